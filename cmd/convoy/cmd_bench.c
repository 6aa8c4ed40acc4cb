/* cmd_bench.c: `convoy bench`: times training or forward steps on made-up data, for a list of networks and batches in one go. */
#include <string.h>

#include "cmd.h"

static void add_row(const char *json)
{
    char text[64];
    const double peak = cmd_json_number(cmd_json_member(json, "peak_share")), mib = cmd_json_number(cmd_json_member(json, "peak_rss_bytes")) / 1048576;
    printf("%-16s", cmd_json_text(cmd_json_member(json, "model"), text, sizeof text));
    printf(" %6.0f", cmd_json_number(cmd_json_member(json, "batch")));
    printf(" %10.2f", cmd_json_number(cmd_json_member(json, "images_per_s")));
    printf(" %10.2f", cmd_json_number(cmd_json_member(json, "images_per_s_best")));
    printf(" %10.3f", cmd_json_number(cmd_json_member(json, "ms_median")));
    printf(" %8.3f", cmd_json_number(cmd_json_member(json, "ms_sd")));
    printf(" %9.1f", cmd_json_number(cmd_json_member(json, "gflop_per_s")));
    printf(" %6.0f", 100 * peak);
    printf(" %8.2f", 1e-6 * cmd_json_number(cmd_json_member(json, "parameters")));
    printf(" %9.1f", 1e-6 * cmd_json_number(cmd_json_member(json, "macs")));
    printf(" %9.0f", mib);
    printf(" %9.4g\n", cmd_json_number(cmd_json_member(json, "loss_last")));
    fflush(stdout);
}

static void add_head(void)
{
    printf("%-16s %6s %10s %10s %10s %8s %9s %6s %8s %9s %9s %9s\n", "network", "batch", "images/s", "best", "ms median", "ms sd", "GFLOP/s", "% peak",
           "M params", "M MAC", "MiB peak", "loss");
}

/* One network at one batch; as one of several it is a row, and a fault of its own does not end the rest. */
static int bench_one(const cmd_line *line, cvy_context *context, const char *model, int64_t batch, int is_one_of_many)
{
    const cvy_job_source job = cmd_job(line, line->narg ? line->arg[0] : NULL, NULL);
    const cvy_bench_opts opts = {
        .size = sizeof opts, .job = line->narg ? &job : NULL, .model = model, .model_options = line->model_options, .input = line->input,
        .classes = line->classes, .batch = batch, .forward = line->mode && strcmp(line->mode, "forward") == 0, .dtype = line->dtype,
        .steps = line->steps, .warmup = line->warmup, .kernels = line->kernels, .passes_off = line->passes_off, .trace = line->trace,
        .planning = line->planning,
    };
    char *json = NULL;
    const cvy_status status = cvy_run_bench(context, &opts, &json);
    if (status != CVY_OK && is_one_of_many && status < 0) {
        cmd_error("%s, batch %lld: %s", model ? model : line->arg[0], (long long)batch, cvy_error_text());
        cvy_text_release(&json);
        return CMD_EXIT_FAULT;
    }
    if (line->json || status != CVY_OK)
        return cmd_print(status, &json);
    if (json && is_one_of_many)
        add_row(json);
    else if (json)
        cmd_print_json(json);
    cvy_text_release(&json);
    return 0;
}

/* Every network with every batch. The last row's fault is the exit code's. */
static int bench(const cmd_line *line, cvy_context *context)
{
    const char *at = line->model;
    const int nbatch = line->nbatch ? line->nbatch : 1, many = nbatch > 1 || (at && strchr(at, ','));
    int code = 0;
    if (many && !line->json && cvy_context_rank(context) == 0)
        add_head();
    do {
        char name[128];
        const size_t n = at ? strcspn(at, ",") : 0;
        snprintf(name, sizeof name, "%.*s", (int)n, at ? at : "");
        for (int i = 0; i < nbatch; i++) {
            const int one = bench_one(line, context, at ? name : NULL, line->batch[i], many);
            code = one ? one : code;
        }
        at = at && at[n] ? at + n + 1 : NULL;
    } while (at);
    return code;
}

static int run(const cmd_line *line)
{
    if (!line->model == !line->narg) {
        cmd_error("give a job file, or --model with networks of the zoo (`convoy models` lists them)");
        return CMD_EXIT_USAGE;
    }
    if (line->nset && !line->narg) {
        cmd_error("--set overrides keys of a job file: give one; --options sets a network's own");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, bench);
}

static const cmd_option options[] = {
    {"--model", "NAME[,NAME...]", CMD_TEXT, CMD_FIELD(model), "networks of the zoo, in place of a job file"},
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(model_options), "the network's own options, such as 'filters: 64'"},
    {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(input), "shape of a sample; the network's or the job's own if not given"},
    {"--classes", "K", CMD_NUMBER, CMD_FIELD(classes), "number of outputs"},
    {"--batch", "N[,N...]", CMD_BATCHES, 0, "global batches, split over the ranks"},
    {"--mode", "train|forward", CMD_CHOICE, CMD_FIELD(mode), "whole training steps, or evaluation only"},
    {"--dtype", "f32|bf16|f64", CMD_DTYPE, CMD_FIELD(dtype), "type of weights and activations"},
    {"--steps", "N", CMD_NUMBER, CMD_FIELD(steps), "timed steps; as many as take 5 s, at least 5, if not given"},
    {"--warmup", "N", CMD_NUMBER, CMD_FIELD(warmup), "steps before them; 2 if not given"},
    {"--kernels", "auto|reference|native|onednn", CMD_CHOICE, CMD_FIELD(kernels), "which kernels may be used"},
    {"--passes-off", "LIST", CMD_TEXT, CMD_FIELD(passes_off), "optimising passes to leave out, such as fuse-relu; or all"},
    {"--planning", CMD_PLANNING_WORDS, CMD_CHOICE, CMD_FIELD(planning), CMD_PLANNING_HELP},
    {"--trace", "FILE", CMD_TEXT, CMD_FIELD(trace), "writes the last step of all ranks for chrome://tracing or Perfetto"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints a JSON object a line for each network and batch"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_bench = {
    .name = "bench", .arguments = "JOB.yaml | --model NAME[,NAME...] [--batch N[,N...]] [--mode train|forward] [--json]",
    .summary = "times training or forward steps on made-up data",
    .detail = "The plan and the executor are those of `convoy train`; a step includes all gradients, the sums over ranks and the update.\n"
              "images_per_s counts the global batch, over all timed steps; a step takes as long as its slowest rank. peak_share is the speed beside that\n"
              "of a large matrix product in the same run. Of several networks or batches each is a row; one that fails is named, and the next goes on.\n"
              "`convoy time` shows where a step's time goes.",
    .options = options, .narg_max = 1, .run = run,
};
