/*
 * files_formats.c: cvy_run_formats(): lists the data formats that this build reads and writes, from its tables, and
 * where the program is that reads HDF5 files in a process of its own, for `convoy info`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convert.h>

#include <string.h>

#include "base/base_entry.h"
#include "data/data_writer.h"
#include "data/hdf5/data_hdf5_process.h"

/* Formats that need a library which a build may lack. All other formats are always available. */
static const struct {
    const char *format;
    int reads, writes;
} needs[] = {
    {"hdf5", CVY_HAVE_HDF5, CVY_HAVE_HDF5},
    {"netcdf", CVY_HAVE_HDF5, 0},
    {"lmdb", 1, CVY_HAVE_LMDB},
    {"fits", CVY_HAVE_CFITSIO, 0},
};

static int has(const char *format, int writes)
{
    for (int i = 0; i < CVY_COUNT(needs); i++)
        if (strcmp(needs[i].format, format) == 0)
            return writes ? needs[i].writes : needs[i].reads;
    return 1;
}

cvy_status cvy_run_formats(char **text_out)
{
    CVY_ENTRY();
    cvy_text t = {0};
    int nreader = 0, nwriter = 0;
    const cvy_reader_def *const *reader = cvy_reader_table(&nreader);
    const cvy_writer_def *const *writer = cvy_writer_table(&nwriter);
    cvy_text_add(&t, "reads");
    for (int i = 0; i < nreader; i++)
        if (has(reader[i]->name, 0))
            cvy_text_add(&t, " %s", reader[i]->name);
    cvy_text_add(&t, "\nwrites");
    for (int i = 0; i < nwriter; i++)
        if (has(writer[i]->name, 1))
            cvy_text_add(&t, " %s", writer[i]->name);
    cvy_text_add(&t, "\n");
#if CVY_HAVE_HDF5
    char program[1024];
    const int found = cvy_h5_program(program, sizeof program) == CVY_OK;
    cvy_text_add(&t, "hdf5-reader %s%s\n", found ? "" : "none: ", found ? program : cvy_error_text());
#endif
    *text_out = t.data;
    return t.status;
}
