/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_study.h: what `convoy study` and `convoy tune` share: both run commands that measure. */
#ifndef CMD_STUDY_H
#define CMD_STUDY_H

#include "cmd.h"
#include "cmd_jobscript.h"
#include "study/study.h"

typedef struct cmd_study_options {
    const char *out, *frameworks, *frameworks_folder;
    cmd_sets data, only;
    int quick, retry, once, quiet, only_report;
    int64_t nodes, ppn;
    int job_scripts; /* what follows matters to them alone */
    const char *scheduler, *time, *account, *queue, *pe;
    int64_t threads;
    jobscript_flags flags;
    const char *kit, *predict, *measure, *collect; /* folders of kits */
    const char *platform;
} cmd_study_options;

/* ---- cmd_study_scripts.c ---- */
/* Writes a job script for each number of nodes that the cases need into the folder of the study. Returns 0, or an exit
 * code after a message. */
int cmd_study_write_scripts(const cmd_line *line, const cmd_study_options *o, const cvy_study_opts *study);

/* ---- cmd_study_shipped.c ---- */
/* The names of the studies and publications that the command knows. Returns their number. */
int cmd_shipped_studies(const char *const **names_out);
/* The text of the one with this name; NULL: there is none. */
const char *cmd_shipped_study(const char *name);
extern const char cmd_study_published[]; /* studies/published.csv */
extern const char cmd_commit[];          /* of this program, or "" */
/* Writes a block of the templates into a file. Returns 0, or an exit code after a message. */
int cmd_study_write_block(const jobscript *s, const char *block, const char *path, unsigned mode);

/* ---- cmd_study_kit.c ---- */
/* --kit, --predict, --measure and --collect. Returns the exit code. */
int cmd_study_kit(const cmd_line *line, const cmd_study_options *o);

/* ---- cmd_study.c ---- */
/* When this job began, and when a study in it has to end: some time before its allocation; 0: that is not known.
 * Returns 0, or an exit code after a message. */
int cmd_study_job_time(double *begin_out, double *end_out);
/* The text of a file, which the caller frees; NULL after a message. */
char *cmd_study_read_file(const char *path);
/* Finds the descriptions of frameworks beside this program, or takes the given folder. Returns 0, or an exit code after
 * a message. */
int cmd_find_frameworks(const char *given, const char *self, char *path, size_t room);
/* From now on the signals that end a process set what this returns. */
const volatile int *cmd_stop_by_signal(void);
/* Prints a line of progress, if *user, an int, is 0: it is whether to be quiet. */
void cmd_show_line(void *user, const char *line);
/* "studies/NAME", without the folder and the end of a file's name. */
void cmd_name_folder(const char *parent, const char *file, char *path, size_t room);

#endif
