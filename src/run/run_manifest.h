/*
 * run_manifest.h: manifest.json, the list of a checkpoint set's files with size and hash; the one file that says that the others are whole.
 *
 * In the step: written last at a save, checked first at a resume. The format is described in docs/checkpoint.md.
 */
#ifndef CVY_RUN_MANIFEST_H
#define CVY_RUN_MANIFEST_H

#include "base/base_util.h"

#define CVY_MANIFEST_NAME "manifest.json"

typedef struct cvy_manifest_file {
    char name[48];             /* within the folder */
    size_t bytes;
    uint64_t hash;             /* cvy_hash of its bytes */
} cvy_manifest_file;

/* Writes folder/manifest.json, synced. Errors: CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_manifest_write(const char *folder, int64_t step, const cvy_manifest_file *file, int count);

/* Checks the manifest itself, that it is of this step, that it lists the `required` names (NULL-terminated; for tensor files all parts of a stem), and that every listed file has its size and
 * hash. Errors: CVY_E_FORMAT (file named), CVY_E_IO, CVY_E_UNSUPPORTED (a hash method that is not built in), CVY_E_MEMORY. */
cvy_status cvy_manifest_verify(const char *folder, int64_t step, const char *const *required);

#endif
