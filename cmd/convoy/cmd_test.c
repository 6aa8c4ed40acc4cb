/* cmd_test.c: `convoy test`: the scores of a trained network on labelled data; beside those of simpler methods, where the data offer them. */
#include <math.h>
#include <string.h>

#include <convoy/report.h>

#include "cmd.h"

/* Weights alone have no page. */
static void renew_report(const char *target)
{
    const char *dot = strrchr(target, '.');
    if ((!dot || strcmp(dot, ".safetensors") != 0) && cvy_report_write(target) != CVY_OK)
        fprintf(stderr, "convoy: warning: no report: %s\n", cvy_error_text());
}

/* ---- the scores for people ---- */

static void print_measure(double x, double error)
{
    char text[48] = "";
    if (isfinite(x))
        snprintf(text, sizeof text, isfinite(error) ? "%.4f +- %.4f" : "%.4f", x, error);
    printf("  %-18s", text);
}

/* How far the network is ahead, in standard errors of the paired difference. */
static void print_lead(double gain, double error)
{
    char text[48] = "";
    if (isfinite(gain) && error > 0)
        snprintf(text, sizeof text, "%+.4f (%+.1f se)", gain, gain / error);
    printf("  %-18s", text);
}

static double number(const char *object, const char *key)
{
    return cmd_json_number(cmd_json_member(object, key));
}

static void print_method(const char *name, const char *m)
{
    printf("%-20s", name);
    print_measure(number(m, "area"), number(m, "area_error"));
    print_lead(number(m, "area_gain"), number(m, "area_gain_error"));
    print_measure(number(m, "efficiency"), number(m, "efficiency_error"));
    print_lead(number(m, "efficiency_gain"), number(m, "efficiency_gain_error"));
    putchar('\n');
}

/* The network beside the baselines: what a physicist looks at. */
static void print_methods(const char *json)
{
    const char *network = cmd_json_member(json, "network"), *baselines = cmd_json_member(json, "baselines");
    char heading[64], name[64];
    if (!network || !cmd_json_item(baselines, 0))
        return;
    snprintf(heading, sizeof heading, "efficiency at fpr %g", number(network, "at_fpr"));
    printf("\n%-20s  %-18s  %-18s  %-18s  %s\n", "", "area under ROC", "network's lead", heading, "network's lead");
    print_method("network", network);
    for (int i = 0; cmd_json_item(baselines, i); i++)
        print_method(cmd_json_text(cmd_json_member(cmd_json_item(baselines, i), "name"), name, sizeof name), cmd_json_item(baselines, i));
}

/* A row for each true class. */
static void print_confusion(const char *json)
{
    enum { CLASSES_MAX = 20 };
    const char *rows = cmd_json_member(json, "confusion"), *classes = cmd_json_member(json, "classes");
    char text[64];
    if (!cmd_json_item(rows, 0) || cmd_json_item(rows, CLASSES_MAX))
        return;
    printf("\ntrue class           predicted\n");
    for (int i = 0; cmd_json_item(rows, i); i++) {
        printf("%-20s", cmd_json_item(classes, i) ? cmd_json_text(cmd_json_item(classes, i), text, sizeof text) : "");
        for (int k = 0; cmd_json_item(cmd_json_item(rows, i), k); k++)
            printf(" %6s", cmd_json_text(cmd_json_item(cmd_json_item(rows, i), k), text, sizeof text));
        putchar('\n');
    }
}

static void print_scores(const char *json)
{
    char text[256], key[64];
    const char *value = NULL;
    printf("%s samples of ", cmd_json_text(cmd_json_member(json, "samples"), text, sizeof text));
    printf("%s, ", cmd_json_text(cmd_json_member(json, "data"), text, sizeof text));
    printf("%s\n", cmd_json_text(cmd_json_member(json, "checkpoint"), text, sizeof text));
    if (isfinite(number(json, "loss")))
        printf("%-20s  %.4f\n", "loss", number(json, "loss"));
    for (int i = 0; (value = cmd_json_pair(cmd_json_member(json, "metrics"), i, key, sizeof key)); i++)
        printf("%-20s  %.4f\n", key, cmd_json_number(value));
    print_confusion(json);
    print_methods(json);
}

/* ---- the verb ---- */

static int test(const cmd_line *line, cvy_context *context)
{
    const cvy_job_source job = cmd_job(line, line->job, NULL);
    char *json = NULL;
    const cvy_status status = cvy_run_test(context, line->arg[0], line->job ? &job : NULL, line->data, &json);
    if (status == CVY_OK && cvy_context_rank(context) == 0)
        renew_report(line->arg[0]);
    if (line->json || status != CVY_OK)
        return cmd_print(status, &json);
    if (json)
        print_scores(json);
    cvy_text_release(&json);
    return 0;
}

static int run(const cmd_line *line)
{
    if (line->nset && !line->job) {
        cmd_error("--set overrides keys of a job file: give --job too");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, test);
}

static const cmd_option options[] = {
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data), "a path, or a map {path: ..., format: ...}; data.test of the job if not given"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job), "the job that weights belong to; a run folder has its own"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints everything as one JSON object"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_test = {
    .name = "test", .arguments = "RUN|WEIGHTS.safetensors [--data SOURCE]", .summary = "scores a trained network on labelled data",
    .detail = "Of a run folder the best checkpoint is taken, if one is kept, else the newest; the scores go into its test.json and its report.",
    .options = options, .narg_min = 1, .narg_max = 1, .run = run,
};
