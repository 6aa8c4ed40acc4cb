/*
 * cmd_jobscript.h: the parts of `convoy jobscript`. Scripts are written from templates, jobscripts/common.job and
 * jobscripts/SCHEDULER.job, which a site may replace by its own (cmd_jobscript_template.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_JOBSCRIPT_H
#define CMD_JOBSCRIPT_H

#include "cmd.h"
#include "cmd_site.h"

/* What the command line asks for. NULL and 0: what the site file says. */
typedef struct jobscript_request {
    const char *scheduler, *time, *account, *queue, *pe;
    int64_t nodes, ppn, threads, gpus, signal;
} jobscript_request;

/* What a script is written from: the command line, and for what it does not say the site file. */
typedef struct jobscript {
    const char *scheduler;
    const char *job_file;
    cvy_job_about job;
    const cmd_sets *sets;
    cvy_site_about site;
    char name[64]; /* the job's name, as schedulers accept it */
    char out[512];
    int64_t nodes, ppn, limit_s;
    int64_t signal_s;        /* before the limit; 0: the ranks get no signal, and no job follows by itself */
    int64_t threads;         /* 0: whole nodes, shared evenly */
    int64_t gpus;            /* of each node; 0: none is asked for */
    int64_t seed, last_seed; /* of a job array; 0: no array */
    struct jobscript_templates *templates;
} jobscript;

/* --slurm and the like are short for --scheduler slurm. */
typedef struct jobscript_flags {
    int slurm, pbs, lsf, flux, sge;
} jobscript_flags;
#define JOBSCRIPT_FLAGS                                                                                                \
    {"--slurm", NULL, CMD_FLAG, CMD_FIELD(flags.slurm), "short for --scheduler slurm; likewise:"},                     \
        {"--pbs", NULL, CMD_FLAG, CMD_FIELD(flags.pbs), ""}, {"--lsf", NULL, CMD_FLAG, CMD_FIELD(flags.lsf), ""},      \
        {"--flux", NULL, CMD_FLAG, CMD_FIELD(flags.flux), ""},                                                         \
    {                                                                                                                  \
        "--sge", NULL, CMD_FLAG, CMD_FIELD(flags.sge), ""                                                              \
    }

/* ---- cmd_jobscript.c ---- */

/* The scheduler's name; NULL: none is given. Returns 0, or an exit code after a message. */
int jobscript_find_scheduler(const cmd_line *line, const char *given, const jobscript_flags *flags,
                             const char **name_out);

/* Reads the request, the site file, which the caller opens with cmd_open_site(), and the templates, which the caller
 * frees also after an error. Returns 0, or an exit code after a message. */
int jobscript_read(const cmd_line *line, const jobscript_request *request, jobscript *s);
/* Makes a short name of letters, digits, '.', '_' and '-' which starts with a letter: all schedulers accept it. */
void jobscript_make_name(const char *text, char *name, size_t room);

/* ---- cmd_jobscript_values.c ---- */

/* Give the templates what they may name: the launcher, which is checked, and all else. Return 0, or an exit code after
 * a message. */
int jobscript_set_launcher(const jobscript *s);
int jobscript_set_values(const jobscript *s);

/* ---- cmd_jobscript_template.c ---- */
typedef struct jobscript_templates jobscript_templates;

/* Reads the templates of a scheduler: those of the folder `jobscripts` beside the user's site file and the centre's,
 * and those that the command has. Returns 0, or an exit code after a message. */
int jobscript_templates_open(const char *scheduler, const cvy_site_about *site, jobscript_templates **out);
void jobscript_templates_free(jobscript_templates **t);
/* Sets what @NAME@ stands for, and opens it for writing; the caller closes it. NULL: no memory, after a message. */
FILE *jobscript_value(jobscript_templates *t, const char *name);
/* Writes a block into a text that the caller frees. Returns 0, or an exit code after a message. */
int jobscript_text(jobscript_templates *t, const char *block, char **text_out);

#endif
