/*
 * data_picture_file.h: writes pictures as files, for the formats that are made of such files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_PICTURE_FILE_H
#define CVY_DATA_PICTURE_FILE_H

#include "data/data_reader.h"

typedef struct cvy_picture_files { /* start with zeros */
    int64_t count, bytes;          /* of what was written */
    cvy_bytes path, rows, png;
} cvy_picture_files;
/* CVY_E_UNSUPPORTED: the samples are no pictures, or have targets or weights. what: "a folder", for the message. */
cvy_status cvy_picture_files_check(const cvy_reader_info *info, const char *what);
/* Writes folder/00000017.jpg or .png; number is that of the sample. JPEG and PNG are written unchanged, bytes as PNG.
 * The path is at w->path.data afterwards. */
cvy_status cvy_picture_files_write(cvy_picture_files *w, const char *folder, int64_t number, const cvy_raw *raw);
/* Syncs all files of the file system that has this folder to the disk at once, which is much faster than one by one. */
cvy_status cvy_picture_files_sync(const char *folder);
void cvy_picture_files_free(cvy_picture_files *w);

#endif
