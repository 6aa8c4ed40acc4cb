/* SPDX-License-Identifier: BSD-3-Clause */
/* dirent.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_DIRENT_H
#define DARWIN_DIRENT_H
#include <sys/types.h>
typedef struct darwin_dir DIR;
struct dirent {
    ino_t d_ino;
    uint16_t d_reclen;
    uint8_t d_type;
    char d_name[1024];
};
#define DT_DIR 4
#define DT_REG 8
DIR *opendir(const char *);
DIR *fdopendir(int);
struct dirent *readdir(DIR *);
int closedir(DIR *);
int dirfd(DIR *);
#endif
