/*
 * data_npz.h: the arrays of a .npz file, which is a zip archive of .npy files: which of them are inputs, targets,
 * labels and weights, and where their bytes are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_NPZ_H
#define CVY_DATA_NPZ_H

#include "data/data_reader.h"

typedef struct cvy_npz_member {
    const char *name; /* without ".npy" */
    int is_deflated;
    uint32_t crc;
    int64_t header, packed, bytes; /* place of its header; size as stored, and unpacked */
} cvy_npz_member;

typedef struct cvy_npz {
    cvy_data_file file;
    cvy_npz_member *member;
    int64_t count;
    const char
        *group; /* an array that is read besides those of the roles; NULL: none. The caller sets it after opening */
} cvy_npz;

enum { CVY_NPZ_X, CVY_NPZ_Y, CVY_NPZ_LABEL, CVY_NPZ_WEIGHT, CVY_NPZ_ROLES };

/* Whether the file is a zip archive that is named *.npz. */
int cvy_npz_probe(const char *path);
/* Lists the arrays; memory is in pool. The caller closes npz->file, also on an error. */
cvy_status cvy_npz_open(cvy_pool *pool, const char *path, cvy_npz *npz);
/* Chooses the array of each role: that of the job (name[role]; "none": no such array), or one with a usual name, such
 * as x, images, x_train or train_labels. split: 0 the arrays without a split in their names, or else those of the
 * training; 1 training, 2 validation, 3 test. out[role]: NULL if there is none. Notes what is not read. */
cvy_status cvy_npz_choose(const cvy_npz *npz, const char *const name[CVY_NPZ_ROLES], int split, cvy_reader_info *info,
                          const cvy_npz_member *out[CVY_NPZ_ROLES]);
/* Finds an array by its name. option: of the source, for the message. */
cvy_status cvy_npz_find(const cvy_npz *npz, const char *name, const char *option, const cvy_npz_member **out);
/* Opens an array: its .npy file begins at *base_out of *out, and ends at out->bytes. A deflated one is unpacked in
 * memory. The caller closes *out. */
cvy_status cvy_npz_open_member(cvy_pool *pool, const cvy_npz *npz, const cvy_npz_member *m, cvy_data_file *out,
                               int64_t *base_out);

#endif
