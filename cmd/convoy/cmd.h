/*
 * cmd.h: the convoy command. Each verb (subcommand) has one file and one entry in main.c. It uses the public
 * headers of libconvoy and, of the laboratory, the headers lab/<folder>/<folder>.h.
 *
 * A verb has its own struct for its options, `verb_options`, and a table with one row for each option. A row has the
 * offset of the field which the option fills. The parser and --help both work from these rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_H
#define CMD_H

#include <stdarg.h>
#include <stdio.h>

#include <convoy/convoy.h>

enum { CMD_EXIT_FAULT = 1, CMD_EXIT_USAGE = 2, CMD_EXIT_STOPPED = 75 };

#define CMD_ARGS_MAX 64
#define CMD_SETS_MAX 256
#define CMD_NUMBERS_MAX 32
#define CMD_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct cmd_verb;

typedef struct cmd_line { /* the command line */
    int argc;
    char **argv; /* all words */
    const struct cmd_verb *verb;
    const char *arg[CMD_ARGS_MAX];
    int narg;
    const void *options; /* the verb's verb_options, filled */
} cmd_line;

/* Types of fields that several rows of a table may fill. */
typedef struct cmd_sets {
    const char *word[CMD_SETS_MAX]; /* "train.batch=64" */
    int count;
} cmd_sets;
typedef struct cmd_numbers {
    int64_t at[CMD_NUMBERS_MAX];
    int count;
} cmd_numbers;
typedef struct cmd_ranks { /* part of the options of every verb that runs on ranks */
    int64_t threads;
    int verbose;
    const char *device; /* of the context; NULL: the host */
} cmd_ranks;

typedef enum {
    CMD_FLAG,     /* int */
    CMD_TEXT,     /* const char * */
    CMD_NUMBER,   /* int64_t */
    CMD_SHAPE,    /* cvy_shape */
    CMD_DTYPE,    /* cvy_dtype */
    CMD_CHOICE,   /* const char *: one of the words in `value` */
    CMD_SET,      /* cmd_sets: the word is added */
    CMD_PLANNING, /* cmd_sets: the key plan.planning is added */
    CMD_DEVICE,   /* cmd_sets: the key device is added */
    CMD_NUMBERS   /* cmd_numbers */
} cmd_kind;

typedef struct cmd_option {
    const char *name;  /* "--batch"; NULL ends the table */
    const char *value; /* name of the value in --help, "N"; for a choice its words, "train|forward"; NULL: a flag */
    cmd_kind kind;
    size_t offset; /* of the field in verb_options, in bytes */
    const char *help;
} cmd_option;

#define CMD_FIELD(field) offsetof(verb_options, field)

typedef struct cmd_verb {
    const char *name, *arguments, *summary;
    const char *detail; /* paragraphs for --help, one per line, or NULL; they are wrapped when they are printed */
    const cmd_option *options;
    size_t options_size; /* sizeof(verb_options), 0 without options */
    int narg_min, narg_max;
    enum {
        CMD_WARN_ALWAYS,
        CMD_WARN_IF_ALONE,
        CMD_WARN_NEVER
    } idle_cores;                     /* whether cmd_on_ranks() warns of idle cores */
    int wants_launcher;               /* warns if the batch job has several tasks and this process is alone */
    int (*run)(const cmd_line *line); /* returns the exit code */
} cmd_verb;

/* Rows that several verbs share. */
#define CMD_OPTION_SET                                                                                                 \
    {                                                                                                                  \
        "--set", "KEY=VALUE", CMD_SET, CMD_FIELD(sets),                                                                \
            "overrides a key of the job file, or of the job that a network stands for; may be given several times"     \
    }
#define CMD_PLANNING_WORDS "estimate|measure|patient"
#define CMD_PLANNING_HELP                                                                                              \
    "how kernels are chosen: by preference and known times, by timing the plausible ones, or by timing all"
#define CMD_OPTION_PLANNING                                                                                            \
    {                                                                                                                  \
        "--planning", CMD_PLANNING_WORDS, CMD_PLANNING, CMD_FIELD(sets), CMD_PLANNING_HELP                             \
    }
#define CMD_DEVICE_WORDS "auto|host|cuda[:I]|opencl[:I]"
#define CMD_DEVICE_HELP                                                                                                \
    "what computes: the processor, a GPU by this driver, or auto, a GPU if there is one; without a number the ranks "  \
    "of a node take its devices in turns; `convoy info` lists them"
/* The key of the job, or for verbs that use a trained network the device of the context. */
#define CMD_OPTION_DEVICE                                                                                              \
    {                                                                                                                  \
        "--device", CMD_DEVICE_WORDS, CMD_DEVICE, CMD_FIELD(sets), CMD_DEVICE_HELP                                     \
    }
#define CMD_OPTION_CONTEXT_DEVICE                                                                                      \
    {                                                                                                                  \
        "--device", CMD_DEVICE_WORDS, CMD_TEXT, CMD_FIELD(ranks.device), CMD_DEVICE_HELP "; host if not given"         \
    }
#define CMD_OPTION_THREADS                                                                                             \
    {                                                                                                                  \
        "--threads", "T", CMD_NUMBER, CMD_FIELD(ranks.threads),                                                        \
            "compute threads of each rank; as many as the cores that it may use, or OMP_NUM_THREADS, if not given"     \
    }
#define CMD_VERBOSE_HELP "prints more about what is going on"
#define CMD_OPTION_VERBOSE                                                                                             \
    {                                                                                                                  \
        "--verbose", NULL, CMD_FLAG, CMD_FIELD(ranks.verbose), CMD_VERBOSE_HELP                                        \
    }
#define CMD_OPTION_JSON(what)                                                                                          \
    {                                                                                                                  \
        "--json", NULL, CMD_FLAG, CMD_FIELD(json), what                                                                \
    }

/* ---- cmd_options.c ---- */
/* Fills line and options (the verb's, zeroed) from the words after the verb. Returns 0, or the exit code after it has
 * printed a message. */
int cmd_parse(const cmd_verb *verb, int argc, char **argv, cmd_line *line, void *options);
/* Adds "key=value". Returns 0, or the exit code after it has printed a message. */
int cmd_sets_add(cmd_sets *sets, const char *word);
void cmd_help(const cmd_verb *verb);
/* The nearest of n names, or NULL if none is near. */
const char *cmd_nearest(const char *word, const char *const *names, int n);
/* The message that there is no `kind` of this name, no such file, and which n names there are. */
void cmd_unknown(const char *kind, const char *name, const char *const *names, int n);

/* ---- cmd_help.c ---- */
/* Prints what the index of the documentation says about the words. Returns the exit code. */
int cmd_help_word(int argc, char **argv);

/* ---- cmd_tables.c ---- */
/* Prints the tables of a verb, for `convoy --print-tables`. */
void cmd_print_tables(const cmd_verb *verb);

/* ---- cmd_file.c: the command opens files only here ---- */
/* As open(): a regular file, or a pipe that the shell has given as /dev/stdin or /dev/fd/N. -1: errno says why; EINVAL
 * for a FIFO, a device or a folder. */
int cmd_open(const char *path, int flags, unsigned mode);
/* As fopen() with "r" or "w". */
FILE *cmd_open_stream(const char *path, const char *how);

/* ---- cmd_print.c: the command prints only here ---- */
/* The bytes at the begin of the text that a terminal may get: whole characters of UTF-8 that do not control it. */
size_t cmd_plain_length(const char *text);
/* Prints with '?' for bytes that control a terminal, or that are not UTF-8. */
void cmd_put(FILE *to, const char *text);
int cmd_put_args(FILE *to, const char *fmt, va_list args);
/* As printf(), and to stderr. */
int cmd_say(const char *fmt, ...) CVY_PRINTF(1, 2);
void cmd_note(const char *fmt, ...) CVY_PRINTF(1, 2);

/* ---- cmd_say.c: output to the terminal, which is printed once for any number of ranks ---- */
/* Prints "convoy: error: ..." to stderr, on rank 0 only. */
void cmd_error(const char *fmt, ...) CVY_PRINTF(1, 2);
/* Returns the exit code of a status: 0 for CVY_OK, CMD_EXIT_STOPPED for CVY_STOPPED. For an error it first prints the
 * message. Any other positive status is reported as a bug of convoy. */
int cmd_outcome(cvy_status status);
/* From now on cmd_outcome() calls `abort_ranks` for a failed exchange (CVY_E_COMM): `abort_ranks` ends the other ranks
 * too. */
void cmd_outcome_set_abort(void (*abort_ranks)(void *user, cvy_status status, const char *text));
/* Prints a text that the library has allocated, and releases it. Returns the exit code. */
int cmd_print(cvy_status status, char **text);
/* Prints any text as one word of the shell, quoted if needed. */
void cmd_put_word(FILE *to, const char *word);
/* Prints the command line to stderr, with more words at its end. */
void cmd_put_command(const cmd_line *line, const char *more);

/* ---- cmd_launch.c ---- */
/* This process's rank, for messages that one rank prints: that of MPI once it has started. Before, the launcher's
 * variable says it to its own tasks; any other process is rank 0. */
int cmd_launch_rank(void);

/* ---- cmd_ranks.c: MPI and the context ---- */
typedef int (*cmd_body_fn)(const cmd_line *line, cvy_context *context, void *user);
/* Starts MPI, creates the context, runs `body` on all ranks, and ends both. Returns the exit code. */
int cmd_on_ranks(const cmd_line *line, const cmd_ranks *ranks, cmd_body_fn body, void *user);
/* The same with a context for each number of compute threads instead of ranks->threads, one after the other. An empty
 * list: all cores. Returns the last exit code that is not 0. */
int cmd_on_ranks_each(const cmd_line *line, const cmd_numbers *threads, const cmd_ranks *ranks, cmd_body_fn body,
                      void *user);

/* ---- cmd_progress.c ---- */
typedef struct cmd_progress {
    int live, silent;
    double last_s;
    int dirty;
} cmd_progress;
/* how: "auto", "live", "plain", "none" or NULL. Call it before MPI_Init. */
cmd_progress cmd_progress_begin(const char *how);
/* A cvy_progress_fn. */
void cmd_progress_show(void *progress, const cvy_progress *p);
void cmd_progress_end(cmd_progress *progress);

/* ---- cmd_signals.c ---- */
/* SIGPIPE and SIGXFSZ are errors of the calls that write, and do not end this process. */
void cmd_signals_of_writes(void);
/* SIGCHLD has its default action, also if what has started this process ignores it: children have exit codes. */
void cmd_signals_of_children(void);
/* For verbs other than trainings: the handler of all signals by which a user or a batch system ends a process. */
void cmd_signals_on_end(void (*handler)(int));
/* If such a signal ends this process, the incomplete file PATH.aside-PID of a result is removed first. */
void cmd_signals_remove_partial(const char *path);
/* For trainings: handlers that make requests to *control_out. actions: --on-signal, or NULL. Returns 0, or the exit
 * code after it has printed a message. */
int cmd_listen(const char *actions, cvy_train_control **control_out);
/* Sets the handlers of cmd_listen() again, if it was called. MPI_Init may load a library that takes the signals and is
 * unloaded at once, as libfabric 1.11 does in Open MPI 4.1.0: SIGTERM would then jump to an address without code. */
void cmd_listen_again(void);

/* ---- cmd_walltime.c ---- */
/* Reads "90" (minutes), "30:00" (MM:SS), "12:00:00" or "1-06:00:00" (D-HH:MM:SS). Returns 0 if the text is no such
 * time. */
int cmd_read_walltime(const char *text, int64_t *seconds_out);
/* *end_out: when the allocation ends, in seconds since 1970, according to --walltime (counted from `begin`) or to the
 * scheduler's variables; 0 if unknown. *source_out: which of them it is, or NULL. Returns 0, or the exit code after it
 * has printed a message. */
int cmd_end_time(const char *walltime, double begin, double *end_out, const char **source_out);

/* A file that exists already is replaced only by --force. Returns 0, or the exit code after it has printed a message.
 */
int cmd_check_new(const char *path, int force);
/* Whether a name ends like this and is longer. */
int cmd_ends_with(const char *name, const char *end);
/* The job of a verb: the file `path`, or `text` if path is NULL. A file .prototxt is a solver or a network of Caffe. */
cvy_job_source cmd_job(const cmd_sets *sets, const char *path, const char *text);
/* A word with a dot or a slash is a job file; any other word is a network of the zoo. */
int cmd_is_file(const char *word);
extern const char cmd_default_job[]; /* examples/collider.yaml, built in */

#endif
