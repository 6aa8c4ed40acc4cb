/*
 * checkpoint_manifest.h: manifest.json, the list of a checkpoint set's files with their sizes and hashes. It shows that
 * the other files are complete.
 *
 * It is written last in a save and checked first in a resume. The format is described in docs/internals/checkpoint.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_MANIFEST_H
#define CVY_CHECKPOINT_MANIFEST_H

#include "base/base_status.h"

#define CVY_MANIFEST_NAME "manifest.json"

typedef struct cvy_manifest_file {
    char name[48]; /* within the folder */
    size_t bytes;
    uint64_t hash; /* cvy_hash of its bytes */
} cvy_manifest_file;

/* Writes folder/manifest.json, synced. Errors: CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_manifest_write(const char *folder, int64_t step, const cvy_manifest_file *file, int count);

/* Checks the manifest itself, that it belongs to this step, that it lists the `required` names (NULL-terminated; of
 * tensor files all parts of a stem), and that every listed file has its size and hash. Errors: CVY_E_FORMAT (the file
 * is named), CVY_E_IO, CVY_E_UNSUPPORTED (a hash method that this build lacks), CVY_E_MEMORY. */
cvy_status cvy_manifest_verify(const char *folder, int64_t step, const char *const *required);

#endif
