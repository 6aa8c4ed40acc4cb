/*
 * files_lists.c: lists of what this build knows, from its tables: networks of the zoo and layers for `convoy models`,
 * keys of the job file for `convoy keys`; for `convoy info` data formats, and where the program is that reads HDF5
 * files in a process of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "files/files.h"

#include <string.h>

#include "base/base_entry.h"
#include "base/text/base_option.h"
#include "data/data_writer.h"
#include "data/hdf5/data_hdf5_process.h"
#include "graph/graph_op.h"
#include "job/job.h"
#include "model/model.h"

/* ---- networks, layers and keys ---- */

/* Prints "{dropout: 0.5, aux: true}": options with their defaults. */
static void add_defaults(cvy_text *t, const cvy_option *rows)
{
    for (const cvy_option *row = rows; row && row->name; row++)
        cvy_text_add(t, "%s%s: %s%s", row == rows ? " {" : ", ", row->name, row->fallback ? row->fallback : "required",
                     row[1].name ? "" : "}");
}

/* Prints the meaning of each option name once. */
static void add_meanings(cvy_text *t, const cvy_model_def *const *table, int count)
{
    for (int i = 0; i < count; i++)
        for (const cvy_option *row = table[i]->options; row && row->name; row++) {
            int seen = 0;
            for (int k = 0; k < i; k++)
                for (const cvy_option *other = table[k]->options; other && other->name; other++)
                    seen |= strcmp(other->name, row->name) == 0;
            if (!seen)
                cvy_text_add(t, "  %-12s %s%s%s%s\n", row->name, row->help, *row->valid ? " (" : "", row->valid,
                             *row->valid ? ")" : "");
        }
}

cvy_status cvy_models_list(char **text_out)
{
    CVY_ENTRY();
    cvy_text t = {0};
    int count = 0;
    const cvy_model_def *const *table = cvy_model_table(&count);
    for (int i = 0; i < count; i++) {
        cvy_text_add(&t, "%-14s %-10s %5lld  %s (%s)", table[i]->name, cvy_shape_text(&table[i]->input),
                     (long long)table[i]->classes, table[i]->summary, table[i]->source);
        add_defaults(&t, table[i]->options);
        cvy_text_add(&t, "\n");
        if (table[i]->numbers)
            cvy_text_add(&t, "%14s N is %s\n", "", table[i]->numbers);
    }
    cvy_text_add(&t, "\noptions, as in `model: {name: NAME, option: value}`\n");
    add_meanings(&t, table, count);
    *text_out = t.data;
    return t.status;
}

cvy_status cvy_layers_list(char **text_out)
{
    CVY_ENTRY();
    cvy_text t = {0};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    for (int i = 0; i < count; i++) {
        char *help = NULL;
        if (table[i]->flags & CVY_OP_HIDDEN)
            continue;
        cvy_text_add(&t, "%s: %s\n", table[i]->name, table[i]->summary);
        if (table[i]->options && cvy_options_help(table[i]->options, &help) == CVY_OK)
            cvy_text_add(&t, "%s", help);
        cvy_mem_free(&help);
    }
    *text_out = t.data;
    return t.status;
}

cvy_status cvy_run_keys(char **text_out)
{
    CVY_ENTRY();
    return cvy_job_help(text_out);
}

/* ---- data formats ---- */

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
