/* cmd_bench.c: `convoy bench`: times training or forward steps on made-up data, for a list of networks and batches in one go; or checks them. */
#include <string.h>

#include "cmd.h"

/* ---- the table ---- */

static double number(const char *json, const char *key)
{
    return cmd_json_number(cmd_json_member(json, key));
}

void cmd_bench_head(void)
{
    printf("%-16s %6s %7s %10s %10s %10s %8s %9s %6s %8s %9s %9s %9s\n", "network", "batch", "ranks x", "images/s", "best", "ms median", "ms sd", "GFLOP/s",
           "% peak", "M params", "M MAC", "MiB peak", "loss");
}

void cmd_bench_row(const cmd_line *line, const char *json)
{
    char model[64], split[32], progress[16];
    if (line->json) {
        printf("%s\n", json);
    } else {
        const int beside = strcmp(cmd_json_text(cmd_json_member(json, "progress"), progress, sizeof progress), "thread") == 0;
        snprintf(split, sizeof split, "%.0fx%.0f%s", number(json, "ranks"), number(json, "threads"), beside ? "+1" : "");
        printf("%-16s %6.0f %7s %10.2f %10.2f %10.3f %8.3f %9.1f %6.0f %8.2f %9.1f %9.0f %9.4g\n",
               cmd_json_text(cmd_json_member(json, "model"), model, sizeof model), number(json, "batch"), split, number(json, "images_per_s"),
               number(json, "images_per_s_best"), number(json, "ms_median"), number(json, "ms_sd"), number(json, "gflop_per_s"),
               100 * number(json, "peak_share"), 1e-6 * number(json, "parameters"), 1e-6 * number(json, "macs"), number(json, "peak_rss_bytes") / 1048576,
               number(json, "loss_last"));
    }
    fflush(stdout);
}

/* ---- networks and batches ---- */

int cmd_bench_is_list(const cmd_line *line)
{
    return line->nbatch > 1 || (line->model && strchr(line->model, ','));
}

/* Several rows. */
static int is_list(const cmd_line *line)
{
    return cmd_bench_is_list(line) || line->sweep;
}

/* Of a check: 1 where the plans disagree. */
static int disagrees(const char *json)
{
    char agrees[8] = "";
    return json && strcmp(cmd_json_text(cmd_json_member(json, "agrees"), agrees, sizeof agrees), "false") == 0;
}

int cmd_is_file(const char *word)
{
    return strpbrk(word, "./") != NULL;
}

cvy_bench_opts cmd_bench_opts(const cmd_line *line, const cvy_job_source *job, const char *model, int64_t batch)
{
    return (cvy_bench_opts){
        .size = sizeof(cvy_bench_opts), .job = job, .model = model, .model_options = line->model_options, .input = line->input,
        .classes = line->classes, .batch = batch, .forward = line->mode && strcmp(line->mode, "forward") == 0, .dtype = line->dtype,
        .steps = line->steps, .warmup = line->warmup, .kernels = line->kernels, .passes_off = line->passes_off, .trace = line->trace,
        .planning = line->planning, .sets = line->set, .nsets = line->nset,
    };
}

/* One network at one batch. A fault is said with its name where it is one of several, so that the rest goes on. */
static int bench_one(const cmd_line *line, cvy_context *context, const char *model, int64_t batch, cmd_row_fn row, void *user)
{
    const cvy_job_source job = cmd_job(line, line->narg ? line->arg[0] : NULL, NULL);
    const cvy_bench_opts opts = cmd_bench_opts(line, line->narg ? &job : NULL, model, batch);
    char *json = NULL;
    const cvy_status status = line->check ? cvy_run_check(context, &opts, line->against, &json) : cvy_run_bench(context, &opts, &json);
    int code = 0;
    if (status != CVY_OK && is_list(line) && status < 0) {
        cmd_error("%s, batch %lld: %s", model ? model : line->arg[0], (long long)batch, cvy_error_text());
        code = CMD_EXIT_FAULT;
    } else if (status != CVY_OK) {
        code = cmd_outcome(status);
    } else if (json) {
        row(user, json);
        code = disagrees(json) ? CMD_EXIT_FAULT : 0;
    }
    cvy_text_release(&json);
    return code;
}

int cmd_bench_each(const cmd_line *line, cvy_context *context, cmd_row_fn row, void *user)
{
    const char *at = line->model;
    const int nbatch = line->nbatch ? line->nbatch : 1;
    int code = 0;
    do {
        char name[128];
        const size_t n = at ? strcspn(at, ",") : 0;
        snprintf(name, sizeof name, "%.*s", (int)n, at ? at : "");
        for (int i = 0; i < nbatch; i++) {
            const int one = bench_one(line, context, at ? name : NULL, line->batch[i], row, user);
            code = one ? one : code;
        }
        at = at && at[n] ? at + n + 1 : NULL;
    } while (at);
    return code;
}

/* Several as rows, a single one with all that is known of it. */
static void show(void *user, const char *json)
{
    const cmd_line *line = user;
    if (line->json || (is_list(line) && !line->check))
        cmd_bench_row(line, json);
    else
        cmd_print_json(json);
}

static int bench(const cmd_line *line, cvy_context *context)
{
    if (is_list(line) && !line->json && !line->check && cvy_context_rank(context) == 0)
        cmd_bench_head();
    return cmd_bench_each(line, context, show, (void *)(uintptr_t)line);
}

/* The loader alone. */
static int bench_data(const cmd_line *line)
{
    const cvy_bench_data_opts opts = {.size = sizeof opts, .source = line->data, .augment = line->augment, .threads = (int)line->threads,
                                      .batch = line->nbatch ? line->batch[0] : 0, .seconds = (double)line->seconds, .shuffle = line->shuffle};
    char *json = NULL;
    const cvy_status status = cvy_run_bench_data(&opts, &json);
    if (status != CVY_OK)
        return cmd_outcome(status);
    if (line->json)
        printf("%s\n", json);
    else
        cmd_print_json(json);
    cvy_text_release(&json);
    return 0;
}

static int run(const cmd_line *line)
{
    if (line->data && !line->model && !line->narg && !line->nset && line->nbatch < 2)
        return bench_data(line);
    if (line->data || line->augment || line->seconds || line->shuffle) {
        cmd_error(line->data ? "--data times a data source alone: leave out the network, --set and lists of batches" : "--augment, --shuffle and --seconds belong to --data");
        return CMD_EXIT_USAGE;
    }
    if (!line->model == !line->narg) {
        cmd_error("give a job file, or --model with networks of the zoo (`convoy models` lists them)");
        return CMD_EXIT_USAGE;
    }
    if (line->sweep && (line->threads || line->check || line->trace)) {
        cmd_error("--sweep tries ranks and threads by itself: leave out %s", line->threads ? "--threads" : line->check ? "--check" : "--trace");
        return CMD_EXIT_USAGE;
    }
    return line->sweep ? cmd_sweep(line) : cmd_on_ranks(line, bench);
}

static const cmd_option options[] = {
    {"--model", "NAME[,NAME...]", CMD_TEXT, CMD_FIELD(model), "networks of the zoo, in place of a job file"},
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data), "times reading, decoding and augmenting this data source, without a network"},
    {"--augment", "LIST", CMD_TEXT, CMD_FIELD(augment), "of --data: what is done to each sample, as data.augment, such as '[{random_resized_crop: 224}, mirror]'"},
    {"--shuffle", "true|window|false", CMD_CHOICE, CMD_FIELD(shuffle), "of --data: the order of the samples, as data.shuffle; true if not given"},
    {"--seconds", "S", CMD_NUMBER, CMD_FIELD(seconds), "of --data: how long; 5 if not given"},
    CMD_OPTIONS_STEP("N[,N...]", "global batches, split over the ranks"),
    {"--check", NULL, CMD_FLAG, CMD_FIELD(check), "compares three training steps with the plain plan, all passes off; exit code 1 if they differ by more than rounding"},
    {"--against", "direct|native|onednn|reference", CMD_CHOICE, CMD_FIELD(against), "kernels of the plain plan; direct, which is all but Winograd, if not given"},
    {"--sweep", NULL, CMD_FLAG, CMD_FIELD(sweep), "tries every split of the cores into ranks and threads and names the fastest"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints a JSON object a line for each network and batch"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_bench = {
    .name = "bench", .arguments = "JOB.yaml | --model NAME[,NAME...] [--batch N[,N...]] [--mode train|forward] [--json] | --data SOURCE [--augment LIST] [--shuffle ORDER]",
    .summary = "times training or forward steps on made-up data; or a data source alone",
    .detail = "The plan and the executor are those of `convoy train`; a step includes all gradients, the sums over ranks and the update.\n"
              "images_per_s counts the global batch, over all timed steps; a step takes as long as its slowest rank. peak_share is the speed beside that\n"
              "of a large matrix product in the same run. Of several networks or batches each is a row; one that fails is named, and the next goes on.\n"
              "--sweep runs under mpiexec with a rank a core (alone it starts mpiexec, or what CONVOY_MPIEXEC names): R ranks of T threads work, the others sleep.\n"
              "`convoy time` shows where a step's time goes.\n"
              "--data needs no network and no MPI: the loader's threads (--threads, all cores if not given) read, decode and augment; the set is\n"
              "read once before, so that its files are in memory.",
    .options = options, .narg_max = 1, .run = run,
};
