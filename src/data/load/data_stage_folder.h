/*
 * data_stage_folder.h: the folder of one staged copy. The folder around it may be one that all users may write, such as
 * /dev/shm, so nothing in it is trusted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_STAGE_FOLDER_H
#define CVY_DATA_STAGE_FOLDER_H

#include "base/base_mem.h"

typedef struct cvy_stage_copy {
    int folder;       /* descriptor of the folder around it, borrowed */
    const char *name; /* of the copy's folder in it, borrowed */
    const char *path; /* of the copy's folder, for messages and readers, borrowed */
    int root;         /* descriptor of the copy's folder; -1: not open */
    int lock;         /* descriptor of its lock file; -1: this rank holds none */
} cvy_stage_copy;

/* Makes the folder around the copies if it is missing, and opens it. CVY_E_CONFIG if another user could rename what is
 * in it. */
cvy_status cvy_stage_folder_open(const char *path, int *fd_out);
/* Opens the copy's folder. Refused if it is a link, is not this user's, or others may use it. CVY_END: there is none.
 */
cvy_status cvy_stage_copy_open(cvy_stage_copy *c);
/* Makes and opens the folder, and tries once to lock it: alone if nobody uses it, else with others. c->lock stays -1 if
 * that failed: try again. */
cvy_status cvy_stage_copy_try_lock(cvy_stage_copy *c, int *alone_out);
void cvy_stage_copy_share(const cvy_stage_copy *c); /* others may use the copy from now on */
/* Whether the copy is complete and has this manifest. */
int cvy_stage_copy_is(const cvy_stage_copy *c, const char *manifest);
/* Removes manifest and files. */
cvy_status cvy_stage_copy_clear(const cvy_stage_copy *c);
/* Creates the file data/NAME, which must not exist. */
cvy_status cvy_stage_copy_create(const cvy_stage_copy *c, const char *name);
/* Opens the file data/NAME. */
cvy_status cvy_stage_copy_file(const cvy_stage_copy *c, const char *name, int *fd_out);
cvy_status cvy_stage_copy_finish(const cvy_stage_copy *c, const char *manifest);
/* Removes the folder unless somebody else uses it; closes all. */
void cvy_stage_copy_close(cvy_stage_copy *c);

#endif
