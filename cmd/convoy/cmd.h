/*
 * cmd.h: the command. Each verb is one file and a word in main.c, on nothing but the public headers of libconvoy.
 *
 * A verb has a struct of its own for its options, `verb_options`, and a table of rows: one row for each option, with
 * the offset of the field that it fills. The rows make the parser and --help.
 */
#ifndef CMD_H
#define CMD_H

#include <stdio.h>

#include <convoy/convoy.h>

enum { CMD_EXIT_FAULT = 1, CMD_EXIT_USAGE = 2, CMD_EXIT_STOPPED = 75 };

#define CMD_ARGS_MAX 8
#define CMD_SETS_MAX 256
#define CMD_BATCHES_MAX 32
#define CMD_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct cmd_verb;

typedef struct cmd_line { /* what was typed */
    int argc;
    char **argv; /* all of it */
    const struct cmd_verb *verb;
    const char *arg[CMD_ARGS_MAX];
    int narg;
    const void *options; /* the verb's verb_options, filled */
} cmd_line;

/* Fields that an option of the same kind fills. */
typedef struct cmd_sets {
    const char *word[CMD_SETS_MAX]; /* "train.batch=64" */
    int count;
} cmd_sets;
typedef struct cmd_batches {
    int64_t at[CMD_BATCHES_MAX];
    int count;
} cmd_batches;
typedef struct cmd_ranks { /* of every verb that runs on ranks */
    int64_t threads;
    int verbose;
} cmd_ranks;

typedef enum {
    CMD_FLAG,     /* int */
    CMD_TEXT,     /* const char * */
    CMD_NUMBER,   /* int64_t */
    CMD_SHAPE,    /* cvy_shape */
    CMD_DTYPE,    /* cvy_dtype */
    CMD_CHOICE,   /* const char *: one of the words in `value` */
    CMD_SET,      /* cmd_sets: added */
    CMD_PLANNING, /* cmd_sets: the key plan.planning is added */
    CMD_BATCHES   /* cmd_batches */
} cmd_kind;

typedef struct cmd_option {
    const char *name;  /* "--batch"; NULL ends the table */
    const char *value; /* how --help calls it, "N"; of a choice its words, "train|forward"; NULL: a flag */
    cmd_kind kind;
    size_t offset; /* of the field in verb_options */
    const char *help;
} cmd_option;

#define CMD_FIELD(field) offsetof(verb_options, field)

typedef struct cmd_verb {
    const char *name, *arguments, *summary;
    const char *detail; /* paragraphs for --help, a line each, or NULL; they are wrapped when they are printed */
    const cmd_option *options;
    size_t options_size; /* sizeof(verb_options), 0 without options */
    int narg_min, narg_max;
    enum {
        CMD_WARN_ALWAYS,
        CMD_WARN_IF_ALONE,
        CMD_WARN_NEVER
    } idle_cores;                     /* whether cmd_on_ranks() names idle cores */
    int wants_launcher;               /* warns if the batch job has several tasks and this process is alone */
    int (*run)(const cmd_line *line); /* gives the exit code */
} cmd_verb;

/* Rows that several verbs have. */
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
#define CMD_OPTION_THREADS                                                                                             \
    {                                                                                                                  \
        "--threads", "T", CMD_NUMBER, CMD_FIELD(ranks.threads),                                                        \
            "compute threads of each rank; all cores that it may use if not given"                                     \
    }
#define CMD_OPTION_VERBOSE                                                                                             \
    {                                                                                                                  \
        "--verbose", NULL, CMD_FLAG, CMD_FIELD(ranks.verbose), "prints more about what is going on"                    \
    }
#define CMD_OPTION_JSON(what)                                                                                          \
    {                                                                                                                  \
        "--json", NULL, CMD_FLAG, CMD_FIELD(json), what                                                                \
    }

/* ---- cmd_options.c ---- */
/* Fills line and options (the verb's, zeroed) from the words after the verb; 0, or the exit code after a message. */
int cmd_parse(const cmd_verb *verb, int argc, char **argv, cmd_line *line, void *options);
/* Adds "key=value"; 0, or the exit code after a message. */
int cmd_sets_add(cmd_sets *sets, const char *word);
void cmd_help(const cmd_verb *verb);
/* The nearest of n names, or NULL if none is near. */
const char *cmd_nearest(const char *word, const char *const *names, int n);

/* ---- cmd_say.c: what goes to the terminal, once, whatever the number of ranks ---- */
/* "convoy: error: ..." */
void cmd_error(const char *fmt, ...) CVY_PRINTF(1, 2);
/* The message of the latest fault; gives the exit code. Positive answers are no faults. */
int cmd_outcome(cvy_status status);
/* From now on a failed exchange (CVY_E_COMM) is an outcome that ends the other ranks too, by this. */
void cmd_outcome_leaves(void (*leave)(void *user, cvy_status status, const char *text));
/* Prints a text of the library's, and releases it. */
int cmd_print(cvy_status status, char **text);
/* To stdout, as a word of the shell, whatever is in it. */
void cmd_put_word(const char *word);
/* This process's place according to the launcher's environment, before MPI is there: 0 if alone. */
int cmd_launch_rank(void);

/* ---- cmd_ranks.c: MPI and the context ---- */
typedef int (*cmd_body_fn)(const cmd_line *line, cvy_context *context, void *user);
/* Starts MPI and makes the context; then runs `body` on all ranks, and ends both. */
int cmd_on_ranks(const cmd_line *line, const cmd_ranks *ranks, cmd_body_fn body, void *user);
/* Whether the launcher started several processes that do not know of each other, and what to do, in text. */
int cmd_is_split(int nranks, const char *library, char *text, size_t room);

/* ---- cmd_progress.c ---- */
typedef struct cmd_progress {
    int live, silent;
    double last_s;
    int dirty;
} cmd_progress;
/* how: "auto", "live", "plain", "none" or NULL. Before MPI starts: Open MPI sets a launcher's variables when a process
 * starts alone. */
cmd_progress cmd_progress_begin(const char *how);
/* A cvy_progress_fn. */
void cmd_progress_show(void *progress, const cvy_progress *p);
void cmd_progress_end(cmd_progress *progress);

/* ---- cmd_signals.c: NAME=ACTION,... or NULL; 0, or the exit code after a message ---- */
int cmd_listen(const char *actions, cvy_train_control **control_out);

/* ---- cmd_walltime.c ---- */
/* "90", "30:00", "12:00:00", "1-06:00:00": minutes, or as it looks; 0: no time at all. */
int cmd_read_walltime(const char *text, int64_t *seconds_out);
/* When the allocation ends, s since 1970, by --walltime (from `begin`) or the scheduler's variables; 0: nobody says. 0,
 * or the exit code after a message. */
int cmd_end_time(const char *walltime, double begin, double *end_out);

/* The job of a verb: a file, or a text. */
cvy_job_source cmd_job(const cmd_sets *sets, const char *path, const char *text);
/* A word with a dot or a slash is a job file; any other word is a network of the zoo. */
int cmd_is_file(const char *word);
extern const char cmd_default_job[]; /* examples/collider.yaml, built in */

#endif
