/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_bench.c: `convoy bench`: times (or checks) steps on synthetic data, for one or more networks, batches and numbers
 * of threads. */
#include <stdlib.h>
#include <string.h>

#include "cmd_bench.h"
#include "measure/measure.h"

typedef cmd_bench_options verb_options;

/* ---- the table ---- */

void cmd_bench_head(void)
{
    cmd_say("%-16s %6s %7s %10s %10s %10s %10s %10s %8s %9s %6s %8s %9s %9s %9s\n", "network", "batch", "ranks x",
            "images/s", "per node", "per rank", "best", "ms median", "ms sd", "GFLOP/s", "% peak", "M params", "M MAC",
            "MiB peak", "loss");
}

void cmd_bench_row(const cmd_bench_options *o, const cvy_bench_result *r)
{
    char split[32], *json = NULL;
    if (o->json) {
        (void)cmd_print(cvy_bench_result_json(r, &json), &json);
    } else {
        snprintf(split, sizeof split, "%dx%d%s", r->ranks, r->threads, strcmp(r->progress, "thread") == 0 ? "+1" : "");
        cmd_say("%-16s %6lld %7s %10.2f %10.2f %10.2f %10.2f %10.3f %8.3f %9.1f %6.0f %8.2f %9.1f %9.0f %9.4g\n",
                r->model, (long long)r->batch, split, r->images_per_s, r->images_per_s_node, r->images_per_s_rank,
                r->images_per_s_best, r->ms_median, r->ms_sd, r->gflop_per_s, 100 * r->peak_share,
                1e-6 * (double)r->parameters, 1e-6 * (double)r->macs, r->peak_rss_bytes / 1048576, r->loss_last);
    }
    fflush(stdout);
}

/* ---- networks, batches and threads ---- */

int cmd_bench_is_list(const cmd_bench_options *o)
{
    return o->step.batches.count > 1 || o->threads.count > 1 || (o->model && strchr(o->model, ','));
}

/* Whether the output has several rows. */
static int is_list(const cmd_bench_options *o)
{
    return cmd_bench_is_list(o) || o->sweep;
}

/* Returns exit code 1 if the plans disagree. */
static int print_check(const cmd_bench_options *o, const cvy_check_result *r)
{
    char *text = NULL;
    const int code = cmd_print(o->json ? cvy_check_result_json(r, &text) : cvy_check_result_lines(r, &text), &text);
    fflush(stdout);
    return code ? code : r->agrees ? 0 : CMD_EXIT_FAULT;
}

/* Times or checks one network at one batch. If it is one of several, an error is printed with the network's name, and
 * the next one is timed. */
static int bench_one(const cmd_line *line, const cmd_bench_options *o, cvy_context *context, const char *model,
                     int64_t batch, cmd_row_fn row, void *user)
{
    cvy_job_source job = cmd_job(&o->sets, line->narg ? line->arg[0] : NULL, NULL);
    cmd_step_job(&o->step, &job);
    cvy_bench_opts opts = cmd_step_opts(&o->step, &o->sets, line->narg ? &job : NULL, model, batch);
    opts.seconds = (double)o->seconds;
    cvy_bench_result timed = {.size = sizeof timed};
    cvy_check_result checked = {.size = sizeof checked};
    const cvy_status status =
        o->check ? cvy_run_check(context, &opts, o->against, &checked) : cvy_run_bench(context, &opts, &timed);
    if (status < 0 && is_list(o)) {
        char threads[32] = "";
        if (o->threads.count > 1)
            snprintf(threads, sizeof threads, ", %d threads", cvy_context_threads(context));
        cmd_error("%s, batch %lld%s: %s", model ? model : line->arg[0], (long long)batch, threads, cvy_error_text());
        return CMD_EXIT_FAULT;
    }
    if (status != CVY_OK || cvy_context_rank(context) != 0)
        return cmd_outcome(status);
    if (o->check)
        return print_check(o, &checked);
    row(user, &timed);
    return 0;
}

int cmd_bench_each(const cmd_line *line, const cmd_bench_options *o, cvy_context *context, cmd_row_fn row, void *user)
{
    const char *at = o->model;
    const int nbatch = o->step.batches.count ? o->step.batches.count : 1;
    int code = 0;
    do {
        char name[128];
        const size_t n = at ? strcspn(at, ",") : 0;
        snprintf(name, sizeof name, "%.*s", (int)n, at ? at : "");
        for (int i = 0; i < nbatch; i++) {
            const int one = bench_one(line, o, context, at ? name : NULL, o->step.batches.at[i], row, user);
            code = one ? one : code;
        }
        at = at && at[n] ? at + n + 1 : NULL;
    } while (at);
    return code;
}

static void leave_result(const cvy_bench_result *r)
{
    FILE *file = cmd_open_stream(getenv(CMD_RESULT_VARIABLE), "w");
    const int bad = !file || fwrite(r, sizeof *r, 1, file) != 1;
    if ((file && fclose(file)) || bad)
        cmd_error("%s cannot be written", getenv(CMD_RESULT_VARIABLE));
}

/* What `bench` prints, over all numbers of threads. */
struct output {
    const cmd_bench_options *options;
    int has_head;
};

/* Prints one row if there are several results; prints all values if there is a single one. */
static void show(void *user, const cvy_bench_result *r)
{
    const struct output *output = user;
    const cmd_bench_options *o = output->options;
    char *lines = NULL;
    if (getenv(CMD_RESULT_VARIABLE))
        leave_result(r);
    else if (o->json || is_list(o))
        cmd_bench_row(o, r);
    else
        (void)cmd_print(cvy_bench_result_lines(r, &lines), &lines);
}

static int bench(const cmd_line *line, cvy_context *context, void *user)
{
    struct output *output = user;
    const cmd_bench_options *o = output->options;
    if (is_list(o) && !o->json && !o->check && !output->has_head && cvy_context_rank(context) == 0)
        cmd_bench_head();
    output->has_head = 1;
    return cmd_bench_each(line, o, context, show, output);
}

/* Times the loader alone. */
static int bench_data(const cmd_bench_options *o)
{
    const cvy_bench_data_opts opts = {.size = sizeof opts,
                                      .source = o->data,
                                      .augment = o->augment,
                                      .threads = (int)o->threads.at[0],
                                      .batch = o->step.batches.count ? o->step.batches.at[0] : 0,
                                      .seconds = (double)o->seconds,
                                      .shuffle = o->shuffle};
    cvy_bench_data_result r = {.size = sizeof r};
    char *text = NULL;
    const cvy_status status = cvy_run_bench_data(&opts, &r);
    if (status != CVY_OK)
        return cmd_outcome(status);
    return cmd_print(o->json ? cvy_bench_data_result_json(&r, &text) : cvy_bench_data_result_lines(&r, &text), &text);
}

static int run(const cmd_line *line)
{
    const cmd_bench_options *o = line->options;
    struct output output = {.options = o};
    if (o->data && !o->model && !line->narg && !o->sets.count && o->step.batches.count < 2 && o->threads.count < 2)
        return bench_data(o);
    if (o->data || o->augment || o->shuffle) {
        cmd_error(o->data
                      ? "--data times only a data source: leave out the network, --set and lists of batches and threads"
                      : "--augment and --shuffle belong to --data");
        return CMD_EXIT_USAGE;
    }
    if (!o->model == !line->narg) {
        cmd_error("give a job file, or --model with networks of the zoo (`convoy models` lists them)");
        return CMD_EXIT_USAGE;
    }
    if (o->sweep && (o->threads.count || o->check || o->step.trace)) {
        cmd_error("--sweep tries ranks and threads by itself: leave out %s", o->threads.count ? "--threads"
                                                                             : o->check       ? "--check"
                                                                                              : "--trace");
        return CMD_EXIT_USAGE;
    }
    return o->sweep ? cmd_bench_sweep(line)
                    : cmd_on_ranks_each(line, &o->threads, &(cmd_ranks){.verbose = o->verbose}, bench, &output);
}

static const cmd_option options[] = {
    {"--model", "NAME[,NAME...]", CMD_TEXT, CMD_FIELD(model),
     "networks of the zoo, or ONNX files, instead of a job file"},
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data),
     "times reading, decoding and augmenting this data source, without a network"},
    {"--augment", "LIST", CMD_TEXT, CMD_FIELD(augment),
     "with --data: what is done to each sample, as data.augment, such as '[{random_resized_crop: 224}, mirror]'"},
    {"--shuffle", "true|window|false", CMD_CHOICE, CMD_FIELD(shuffle),
     "with --data: the order of the samples, as data.shuffle; true if not given"},
    {"--seconds", "S", CMD_NUMBER, CMD_FIELD(seconds),
     "how long steps, or with --data reading, are timed; 5 if not given"},
    CMD_OPTIONS_STEP("N[,N...]", "global batches, split over the ranks"),
    {"--check", NULL, CMD_FLAG, CMD_FIELD(check),
     "compares three training steps with those of the plain plan, which has all passes off; exit code 1 if they "
     "differ by more than rounding"},
    {"--against", "NAMES", CMD_TEXT, CMD_FIELD(against),
     "kernels of the plain plan, as plan.kernels; direct, which is all but Winograd, if not given"},
    {"--sweep", NULL, CMD_FLAG, CMD_FIELD(sweep),
     "tries every split of the cores into ranks and threads and names the fastest"},
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    CMD_OPTION_JSON("prints a JSON object a line for each network, batch and number of threads"),
    {"--threads", "T[,T...]", CMD_NUMBERS, CMD_FIELD(threads),
     "compute threads of each rank; all cores that it may use if not given"},
    {"--verbose", NULL, CMD_FLAG, CMD_FIELD(verbose), CMD_VERBOSE_HELP},
    {0},
};

const cmd_verb cmd_bench = {
    .name = "bench",
    .arguments = "JOB.yaml | --model NAME[,NAME...] [--batch N[,N...]] [--threads T[,T...]] [--mode MODE] [--json] | "
                 "--data SOURCE [--augment LIST] [--shuffle ORDER]",
    .summary = "times steps of networks on synthetic data; or only a data source",
    .detail =
        "The plan and the executor are those of `convoy train`. A step includes all gradients, the gradient "
        "reduction over the ranks and the update.\n"
        "--mode forward-backward times what studies of the throughput of a node report: the forward pass and the "
        "backward pass with the gradients of all weights, which are computed although nothing reads them. Each "
        "rank works on its share of the batch by itself. The reduction of the gradients over the ranks, the check "
        "that they are finite, and the update are left out; the difference to --mode train is their time. The "
        "gradient of the input is in neither.\n"
        "images_per_s counts the global batch, over all timed steps; a step takes as long as its slowest rank. "
        "images_per_s_node and images_per_s_rank are its shares. peak_share is the speed relative to that of a "
        "large matrix product in the same run.\n"
        "With several networks, batches or numbers of threads each is a row. One that fails is named, and the next "
        "one is timed.\n"
        "--sweep runs under mpiexec with one rank per core (started alone it starts mpiexec, or what "
        "CONVOY_MPIEXEC names): R ranks of T threads work, the other ranks sleep.\n"
        "`convoy time` shows where the time of a step goes.\n"
        "--data needs neither a network nor MPI: the loader's threads (--threads, all cores if not given) read, "
        "decode and augment. The set is read once before, so that its files are in memory.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_max = 1,
    .run = run,
};
