/*
 * cmd.h: the command: one verb a file, each a row of the table in main.c, on nothing but the public headers of libconvoy.
 *
 * A verb's options are rows too: they make the parser and --help. All verbs share one struct of options, for none has two meanings.
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

typedef struct cmd_line {              /* what was typed */
    int argc;
    char **argv;                       /* all of it */
    const struct cmd_verb *verb;
    const char *arg[CMD_ARGS_MAX];
    int narg;
    const char *set[CMD_SETS_MAX];
    int nset;
    const char *out, *checkpoint, *max, *plan_file, *data, *job, *model, *model_options, *mode, *kernels, *passes_off, *trace, *how, *progress, *features, *planning, *against, *format, *format_options, *augment, *shuffle;
    const char *time;                  /* jobscript's limit */
    int64_t nodes, ppn, signal;
    int slurm, pbs;
    const char *platform, *ranks, *walltime, *on_signal, *noise, *overlap, *latency_factor, *bandwidth_factor, *rate;
    cvy_shape input, resize;
    cvy_dtype dtype;
    int64_t classes, global_batch, batch[CMD_BATCHES_MAX], steps, warmup, threads, parts, seconds;
    int nbatch;
    int resume, json, layers, verify, skip_bad, unchecked, stats, verbose, explain, check, sweep, blocking;
} cmd_line;

typedef enum { CMD_FLAG, CMD_TEXT, CMD_NUMBER, CMD_SHAPE, CMD_DTYPE, CMD_SET, CMD_CHOICE, CMD_BATCHES, CMD_PLANNING } cmd_kind;

typedef struct cmd_option {
    const char *name;                  /* "--batch"; NULL ends the table */
    const char *value;                 /* how --help calls it, "N"; of a choice its words, "train|forward"; NULL: a flag */
    cmd_kind kind;
    size_t offset;                     /* of the field in cmd_line */
    const char *help;
} cmd_option;

#define CMD_FIELD(field) offsetof(cmd_line, field)

typedef struct cmd_verb {
    const char *name, *arguments, *summary;
    const char *detail;                /* paragraphs for --help, or NULL */
    const cmd_option *options;
    int narg_min, narg_max;
    int (*run)(const cmd_line *line);  /* gives the exit code */
} cmd_verb;

extern const cmd_verb cmd_train, cmd_test, cmd_predict, cmd_bench, cmd_time, cmd_plan, cmd_convert, cmd_pack, cmd_inspect, cmd_models, cmd_info, cmd_keys, cmd_report, cmd_doctor, cmd_simulate, cmd_export, cmd_jobscript;

/* Rows that several verbs have. */
#define CMD_OPTION_SET {"--set", "KEY=VALUE", CMD_SET, 0, "overrides a key of the job file, or of the job that a network stands for; may be given several times"}
#define CMD_PLANNING_WORDS "estimate|measure|patient"
#define CMD_PLANNING_HELP "how kernels are chosen: by preference and known times, by timing the plausible ones, by timing all"
#define CMD_OPTION_PLANNING {"--planning", CMD_PLANNING_WORDS, CMD_PLANNING, CMD_FIELD(planning), CMD_PLANNING_HELP}
#define CMD_OPTION_THREADS {"--threads", "T", CMD_NUMBER, CMD_FIELD(threads), "compute threads of each rank; all cores that it may use if not given"}
#define CMD_OPTION_VERBOSE {"--verbose", NULL, CMD_FLAG, CMD_FIELD(verbose), "says more about what is going on"}
#define CMD_OPTION_JSON(what) {"--json", NULL, CMD_FLAG, CMD_FIELD(json), what}

/* ---- cmd_options.c ---- */
/* Fills line from the words behind the verb; 0, or the exit code after a message. */
int cmd_parse(const cmd_verb *verb, int argc, char **argv, cmd_line *line);
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

/* ---- cmd_json.c: values are pointers into the text that the library wrote; NULL where there is none ---- */
const char *cmd_json_member(const char *object, const char *key);
const char *cmd_json_item(const char *list, int i);
/* Member i of an object, and its key. */
const char *cmd_json_pair(const char *object, int i, char *key, size_t room);
double cmd_json_number(const char *value);             /* NaN: none */
const char *cmd_json_text(const char *value, char *text, size_t room);
/* Prints an object for people: a line for each member, long lists by their length. */
void cmd_print_json(const char *json);

/* ---- cmd_ranks.c: MPI and the context ---- */
/* Starts MPI and makes the context; then runs `body` on all ranks, and ends both. */
int cmd_on_ranks(const cmd_line *line, int (*body)(const cmd_line *line, cvy_context *context));
/* Whether the launcher started several processes that do not know of each other, and what to do, in text. */
int cmd_is_split(int nranks, const char *library, char *text, size_t room);

/* ---- cmd_bench.c, cmd_sweep.c ---- */
/* What bench and time share: rows of their option tables, and what the library is asked for. */
#define CMD_OPTIONS_STEP(batches, batch_help)                                                                                       \
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(model_options), "the network's own options, such as 'filters: 64'"},                  \
    {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(input), "shape of a sample; the network's or the job's own if not given"},            \
    {"--classes", "K", CMD_NUMBER, CMD_FIELD(classes), "number of outputs"},                                                        \
    {"--batch", batches, CMD_BATCHES, 0, batch_help},                                                                               \
    {"--mode", "train|forward", CMD_CHOICE, CMD_FIELD(mode), "whole training steps, or evaluation only"},                           \
    {"--dtype", "f32|bf16|f64", CMD_DTYPE, CMD_FIELD(dtype), "type of activations; with bf16, weights are f32"},                    \
    {"--steps", "N", CMD_NUMBER, CMD_FIELD(steps), "timed steps; as many as take 5 s, at least 5, if not given"},                   \
    {"--warmup", "N", CMD_NUMBER, CMD_FIELD(warmup), "steps before them; 2 if not given"},                                          \
    {"--kernels", "auto|reference|native|onednn|direct|clock", CMD_CHOICE, CMD_FIELD(kernels), "which kernels may be used; clock: none, a step only waits for their measured times"}, \
    {"--passes-off", "LIST", CMD_TEXT, CMD_FIELD(passes_off), "optimising passes to leave out, such as fuse-relu; or all"},         \
    {"--planning", CMD_PLANNING_WORDS, CMD_CHOICE, CMD_FIELD(planning), CMD_PLANNING_HELP},                                         \
    {"--trace", "FILE", CMD_TEXT, CMD_FIELD(trace), "writes the last step of all ranks for chrome://tracing or Perfetto"}
/* A word with a dot or a slash is a job file; another one is a network of the zoo. */
int cmd_is_file(const char *word);
/* job: NULL where a network of the zoo is named. */
cvy_bench_opts cmd_bench_opts(const cmd_line *line, const cvy_job_source *job, const char *model, int64_t batch);
/* The head of bench's table, and a row of it (or, with --json, the line). */
void cmd_bench_head(void);
void cmd_bench_row(const cmd_line *line, const char *json);
/* Several networks or batches. */
int cmd_bench_is_list(const cmd_line *line);
/* Times every network with every batch that the line names, and gives each one's JSON to `row` on rank 0. Gives the exit code. */
typedef void (*cmd_row_fn)(void *user, const char *json);
int cmd_bench_each(const cmd_line *line, cvy_context *context, cmd_row_fn row, void *user);
/* `bench --sweep`. */
int cmd_sweep(const cmd_line *line);

/* ---- cmd_progress.c ---- */
typedef struct cmd_progress { int live, silent; double last_s; int dirty; } cmd_progress;
cmd_progress cmd_progress_begin(const cmd_line *line);
/* A cvy_progress_fn. */
void cmd_progress_show(void *progress, const cvy_progress *p);
void cmd_progress_end(cmd_progress *progress);

/* ---- cmd_signals.c: NAME=ACTION,... or NULL; 0, or the exit code after a message ---- */
int cmd_listen(const char *actions, cvy_train_orders **orders_out);

/* ---- cmd_walltime.c ---- */
/* "90", "30:00", "12:00:00", "1-06:00:00": minutes, or as it looks; 0: no time at all. */
int cmd_read_walltime(const char *text, int64_t *seconds_out);
/* When the allocation ends, s since 1970, by --walltime (from `begin`) or the scheduler's variables; 0: nobody says. 0, or the exit code after a message. */
int cmd_end_time(const char *walltime, double begin, double *end_out);

/* The job of a verb: a file, or a text. */
cvy_job_source cmd_job(const cmd_line *line, const char *path, const char *text);
extern const char cmd_default_job[];   /* examples/collider.yaml, built in */

#endif
