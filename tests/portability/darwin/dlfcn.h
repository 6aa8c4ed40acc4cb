/* SPDX-License-Identifier: BSD-3-Clause */
/* dlfcn.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_DLFCN_H
#define DARWIN_DLFCN_H
#define RTLD_LAZY 0x1
#define RTLD_NOW 0x2
#define RTLD_LOCAL 0x4
#define RTLD_NODELETE 0x80
void *dlopen(const char *path, int mode);
void *dlsym(void *handle, const char *symbol);
int dlclose(void *handle);
char *dlerror(void);
typedef struct dl_info {
    const char *dli_fname;
    void *dli_fbase;
    const char *dli_sname;
    void *dli_saddr;
} Dl_info;
int dladdr(const void *address, Dl_info *info);
#endif
