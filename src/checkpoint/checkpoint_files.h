/*
 * checkpoint_files.h: tensors in one safetensors file or in several, and variables that are filled with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_FILES_H
#define CVY_CHECKPOINT_FILES_H

#include "comm/comm.h"
#include "format/format.h"

typedef struct cvy_tensor_files {
    const char *path; /* of the first file, for messages */
    cvy_safetensors **file;
    int count;
} cvy_tensor_files; /* zero-initialise it, end it with cvy_tensor_files_close, also after an error */

typedef struct cvy_tensor_place {
    const cvy_safetensors *file; /* NULL: the variable is not filled */
    int at;
} cvy_tensor_place;

cvy_status cvy_tensor_files_open(const char *const *path, int count, cvy_tensor_files *f);
void cvy_tensor_files_close(cvy_tensor_files *f);
/* Whether a dtype of a file can be converted to that of a variable. */
int cvy_tensor_converts(const char *from, cvy_dtype to);
/* Fills list[i] from place[i], in the order of the list, through one buffer. With a comm, rank 0 reads for all ranks;
 * the places of the others are not used, and all agree on its errors after the last variable. Collective over comm. */
cvy_status cvy_tensor_files_fill(const cvy_tensor_place *place, cvy_comm *comm, cvy_variable *const *list, int count);

#endif
