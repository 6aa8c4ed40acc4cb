/*
 * cmd_jobscript.h: the parts of `convoy jobscript`. A scheduler is one file, cmd_jobscript_<scheduler>.c, with a
 * descriptor, and its line in the list of cmd_jobscript.c.
 *
 * All scripts have the same parts in the same order, which cmd_jobscript_parts.c writes: directives, the end of the
 * allocation, modules, names, checks, the words for `convoy train`, the launcher, and what follows the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_JOBSCRIPT_H
#define CMD_JOBSCRIPT_H

#include "cmd.h"

struct jobscript_scheduler;

/* What the command line asks for. NULL and 0: what the site file says. */
typedef struct jobscript_request {
    const char *scheduler, *time, *account, *queue, *pe;
    int64_t nodes, ppn, threads, signal;
} jobscript_request;

/* What a script is written from: the command line, and for what it does not say the site file. */
typedef struct jobscript {
    const struct jobscript_scheduler *scheduler;
    const char *job_file;
    cvy_job_about job;
    const cmd_sets *sets;
    cvy_site_about site;
    char name[64]; /* the job's name, as schedulers accept it */
    char out[512];
    int64_t nodes, ppn, limit_s;
    int64_t signal_s;        /* before the limit; 0: the ranks get no signal, and no job follows by itself */
    int64_t threads;         /* 0: whole nodes, shared evenly */
    int64_t seed, last_seed; /* of a job array; 0: no array */
} jobscript;

typedef struct jobscript_scheduler {
    const char *name;
    const char *submit;          /* the command before the script's path: "sbatch", "bsub <" */
    const char *prefix;          /* of a directive, "#SBATCH " */
    const char *disabled;        /* of a directive without effect; without its second '#' it has one */
    const char *account, *queue; /* options of directives, before their value: "--account=" */
    const char *optional[3];     /* further disabled directives, with a comment if it has '#'; NULL ends the list */
    const char *launcher;        /* if the site does not name one */
    const char *is_job;          /* command of the shell that succeeds in a batch job */
    const char *folder;          /* command of the shell that changes into the folder of submission, or NULL */
    const char *element;         /* shell: the number of this element of a job array */
    int signals;                 /* whether the scheduler itself gives USR1 to mpiexec before the limit */
    int places;                  /* whether mpiexec learns from the scheduler how many ranks a node has */
    int needs_threads;           /* whether it counts cores, so that --threads is required */
    int64_t least_limit_s;       /* 0: a minute */
    /* Directives except those of the site. */
    void (*put_head)(const jobscript *s);
    /* Sets CONVOY_JOB_END. NULL: the time of the start plus the limit. */
    void (*put_end_time)(const jobscript *s);
    /* What to do outside of a job; NULL: say how the script is submitted. */
    void (*put_outside)(const jobscript *s);
    /* What precedes the launcher; NULL: nothing. */
    void (*put_before_run)(const jobscript *s);
    /* The end of the script: by jobscript_put_end(). */
    void (*put_end)(const jobscript *s);
} jobscript_scheduler;

/* ---- cmd_jobscript.c ---- */

/* Reads the request and the site file, which the caller opens with cmd_open_site(). Returns 0, or an exit code after a
 * message. */
int jobscript_read(const cmd_line *line, const jobscript_request *request, jobscript *s);
/* Makes a short name of letters, digits, '.', '_' and '-' which starts with a letter: all schedulers accept it. */
void jobscript_make_name(const char *text, char *name, size_t room);

extern const jobscript_scheduler jobscript_slurm, jobscript_pbs, jobscript_lsf, jobscript_flux, jobscript_sge;

/* ---- cmd_jobscript_parts.c ---- */

/* How a script ends after a run that was stopped with something new saved. */
typedef struct jobscript_ending {
    const char *comment;   /* lines of the script, each begins with '#' */
    const char *again;     /* command that starts the next job; NULL: the exit code does */
    const char *fails;     /* what to say if the command fails */
    int stopped, no_newer; /* exit codes: stopped with something new, and without */
} jobscript_ending;

/* Prints the script of a training. */
void jobscript_put(const jobscript *s);
/* Prints the parts of any script: directives and modules; and the checks that it is in a job that finds convoy and
 * `file`. path: the shell variables and values that follow `set -u`, in pairs; NULL ends the list. */
void jobscript_put_head(const jobscript *s);
void jobscript_put_modules(const jobscript *s);
void jobscript_put_paths(const char *const *path);
void jobscript_put_place(const jobscript *s, const char *variable, const char *whose);
/* Prints "<head>HH:MM:SS\n". */
void jobscript_put_limit(const char *head, int64_t seconds);
void jobscript_put_end(const jobscript_ending *ending);
static inline int jobscript_is_array(const jobscript *s)
{
    return s->last_seed > 0;
}

/* ---- cmd_jobscript_launch.c ---- */

/* Checks that the launcher can be used with the scheduler. Returns 0, or the exit code after it has printed a message.
 */
int jobscript_check_launcher(const jobscript *s);
/* Prints the line that starts the ranks. */
void jobscript_put_launch(const jobscript *s);
/* Prints a script of the shell that is called as `launch -n RANKS COMMAND ..` and starts the ranks. */
void jobscript_put_launcher(const jobscript *s);

#endif
