/*
 * job_table.h: the option tables of the job file, and where each section lies in cvy_job. Shared by the parser, the
 * printer and the help.
 */
#ifndef CVY_JOB_TABLE_H
#define CVY_JOB_TABLE_H

#include "base/base_text.h"
#include "job/job.h"

typedef struct cvy_job_section {
    const char *name; /* the key; NULL ends the table */
    const char *help;
    const cvy_option *rows;
    size_t offset, size; /* in cvy_job */
} cvy_job_section;

extern const cvy_job_section cvy_job_sections[];

extern const cvy_option cvy_job_top_rows[];       /* keys that are no sections */
extern const cvy_option cvy_job_optimizer_rows[]; /* of struct cvy_job_optimizer; other keys are the optimiser's own */
extern const cvy_option cvy_job_loss_rows[];      /* of cvy_job_loss; other keys are the loss's own */
extern const cvy_option cvy_job_metric_rows[];    /* of cvy_job_metric; other keys are the metric's own */
extern const cvy_option cvy_job_group_rows[];
extern const cvy_option cvy_job_stop_rows[];

struct cvy_job_optimizer {
    const char *name;
    double lr;
    int decay_on;
};

/* Where section.key was given, or the file if it was not. */
const char *cvy_job_where(const cvy_job *job, const char *section, const char *key);
/* Fills in what the trees and texts of the sections mean, and checks what one row alone cannot. */
cvy_status cvy_job_interpret(cvy_job *job);
cvy_status cvy_job_interpret_train(cvy_job *job);
cvy_status cvy_job_interpret_normalize(cvy_job *job);
cvy_status cvy_job_interpret_update(cvy_job *job);
/* Behind all others. */
cvy_status cvy_job_interpret_deterministic(cvy_job *job);
/* Adds a line for each key that has no effect beside the job's others; nothing where all have. */
cvy_status cvy_job_list_idle_keys(const cvy_job *job, cvy_text *out);
/* Puts new words in the place of those that older versions had. Adds a line to notes for each. */
cvy_status cvy_job_read_old_words(cvy_pool *pool, cvy_tree *root, cvy_text *notes);
/* Fills what `train` leaves open in the job as it was given from the preset that train.preset names. */
cvy_status cvy_job_apply_preset(cvy_pool *pool, const cvy_tree *given);
/* The presets, for the page docs/reference/job-file.md. */
void cvy_job_add_presets(cvy_text *t);
/* The resolved job as a tree, whole or without its name and the log, which may differ over ranks. */
cvy_status cvy_job_tree(const cvy_job *job, cvy_pool *pool, int whole, cvy_tree **out);

#endif
