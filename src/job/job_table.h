/*
 * job_table.h: the option tables of the job file, and the place of each section in cvy_job. The parser, the printer
 * and the help share it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_JOB_TABLE_H
#define CVY_JOB_TABLE_H

#include "base/text/base_text.h"
#include "job/job.h"

typedef struct cvy_job_section {
    const char *name; /* the section's key; NULL ends the table */
    const char *help;
    const cvy_option *own; /* rows with offsets in cvy_job, without those of the program; see cvy_job_rows() */
} cvy_job_section;

extern const cvy_job_section cvy_job_sections[];

extern const cvy_option cvy_job_top_rows[]; /* of keys that are not sections; without those of the program */

/* The rows of a section with those of the program's options among them, all with offsets in cvy_job. section "": at the
 * top of the file. */
cvy_status cvy_job_rows(cvy_pool *pool, const char *section, const cvy_option **out);
/* The rows of the keys of an update mode, besides `mode`. *fields_out, if it is not NULL, becomes the struct that they
 * fill: the mode's options, or the job. The list is empty if the mode has none. */
cvy_status cvy_job_update_rows(cvy_job *job, cvy_pool *pool, const struct cvy_update_def *def, const cvy_option **out,
                               void **fields_out);
/* fields of struct cvy_job_optimizer; other keys belong to the optimiser */
extern const cvy_option cvy_job_optimizer_rows[];
extern const cvy_option cvy_job_loss_rows[];   /* fields of cvy_job_loss; other keys belong to the loss */
extern const cvy_option cvy_job_metric_rows[]; /* fields of cvy_job_metric; other keys belong to the metric */
extern const cvy_option cvy_job_group_rows[];
extern const cvy_option cvy_job_turn_rows[];
extern const cvy_option cvy_job_turn_optimizer_rows[];
extern const cvy_option cvy_job_stop_rows[];
extern const cvy_option cvy_job_init_rows[];
extern const cvy_option cvy_job_mlperf_rows[];

struct cvy_job_optimizer {
    const char *name;
    double lr;
    int decay_on;
};

typedef struct cvy_job_names {                     /* how a list of names is read */
    const char *key, *example;                     /* for messages: "parallel.first_layers", "[conv1, fc]" */
    int may_be_one;                                /* 1: one name without a list will do */
    void (*add)(cvy_text *text, const char *word); /* adds a name in another way than with a comma; may be NULL */
} cvy_job_names;
/* Joins the names of a list, "a, b". *out is in the pool of the job; NULL: the key is not given. CVY_E_CONFIG. */
cvy_status cvy_job_join_names(cvy_job *job, const cvy_tree *tree, const cvy_job_names *names, const char **out);

/* The place where section.key was given, or the file if it was not given. section NULL: a key at the top. */
const char *cvy_job_where(const cvy_job *job, const char *section, const char *key);
/* Interprets the trees and texts of the sections, and checks what depends on several keys. */
cvy_status cvy_job_interpret(cvy_job *job);
/* Reads the network that `model` takes from a file of another format. */
cvy_status cvy_job_read_import(cvy_job *job);
/* Reads train.groups from its tree. */
cvy_status cvy_job_read_groups(cvy_job *job);
/* Names the scores of train.metrics, which has been read. CVY_E_CONFIG: two of them are the same. */
cvy_status cvy_job_name_metrics(cvy_job *job);
cvy_status cvy_job_interpret_libraries(cvy_job *job);
cvy_status cvy_job_interpret_train(cvy_job *job);
cvy_status cvy_job_interpret_init(cvy_job *job);
/* Checks the texts of the program's options. */
cvy_status cvy_job_interpret_program(cvy_job *job);
cvy_status cvy_job_interpret_normalize(cvy_job *job);
/* Reads data.val if it is a part of data.train (job_split.c), and the keys of such a map. */
cvy_status cvy_job_interpret_split(cvy_job *job);
extern const cvy_option cvy_job_split_rows[];
cvy_status cvy_job_interpret_update(cvy_job *job);
/* Call it after all others. */
cvy_status cvy_job_interpret_deterministic(cvy_job *job);
/* Adds a line for each key that has no effect with the other keys of the job. */
cvy_status cvy_job_list_idle_keys(const cvy_job *job, cvy_text *out);
/* Replaces words of older versions by the new ones, leaves out keys that are gone, and adds a line to `notes` for
 * each. CVY_E_CONFIG: a key that is gone cannot be left out. */
cvy_status cvy_job_read_old_words(cvy_pool *pool, cvy_tree *root, cvy_text *notes);
/* Makes the resolved job as a tree. whole 0: without the name and the log, which may differ between ranks. */
cvy_status cvy_job_tree(const cvy_job *job, cvy_pool *pool, int whole, cvy_tree **out);

#endif
