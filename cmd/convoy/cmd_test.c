/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_test.c: `convoy test`: scores a trained network on labelled data. */
#include <math.h>
#include <string.h>

#include "cmd.h"

typedef struct verb_options {
    const char *data, *job;
    cmd_sets sets;
    int json;
    cmd_ranks ranks;
} verb_options;

/* Writes the report of a run folder again; a weights file has no report. */
static void renew_report(const char *target)
{
    const char *dot = strrchr(target, '.');
    if ((!dot || strcmp(dot, ".safetensors") != 0) && cvy_report_write(target) != CVY_OK)
        fprintf(stderr, "convoy: warning: no report: %s\n", cvy_error_text());
}

/* ---- the scores as text ---- */

/* A row for each true class. */
static void print_confusion(const cvy_test_result *r)
{
    enum { CLASSES_MAX = 20 };
    const int n = r->nconfusion;
    if (n == 0 || n > CLASSES_MAX)
        return;
    printf("\ntrue class           predicted\n");
    for (int i = 0; i < n; i++) {
        printf("%-20s", i < r->nclass ? r->class_name[i] : "");
        for (int k = 0; k < n; k++)
            printf(" %6.15g", r->confusion[i * n + k]);
        putchar('\n');
    }
}

/* A row for each number of a vector of outputs. */
static void print_outputs(const cvy_test_result *r)
{
    enum { OUTPUTS_MAX = 20 };
    if (r->noutput == 0 || r->noutput > OUTPUTS_MAX)
        return;
    printf("\noutput                     rmse          mae       r2\n");
    for (int i = 0; i < r->noutput; i++)
        printf("%-18d %12.5g %12.5g %8.4f\n", i, r->output[i].rmse, r->output[i].mae, r->output[i].r2);
}

/* Four decimals, or five digits if these would hide a small or a large number. */
static void print_score(const char *name, double value)
{
    const int is_usual = !isfinite(value) || value == 0 || (fabs(value) >= 0.01 && fabs(value) < 1e6);
    printf(is_usual ? "%-20s  %.4f\n" : "%-20s  %.5g\n", name, value);
}

static void print_scores(const cvy_test_result *r)
{
    printf("%lld samples of %s, %s\n", (long long)r->samples, r->data, r->checkpoint);
    if (isfinite(r->loss))
        print_score("loss", r->loss);
    for (int i = 0; i < r->nmetric; i++)
        print_score(r->metric[i].name, r->metric[i].value);
    print_outputs(r);
    print_confusion(r);
}

/* ---- the verb ---- */

static int test(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    (void)user;
    const cvy_job_source job = cmd_job(&o->sets, o->job, NULL);
    cvy_test_result r = {.size = sizeof r};
    char *json = NULL;
    int code = 0;
    const cvy_status status = cvy_run_test(context, line->arg[0], o->job ? &job : NULL, o->data, &r);
    if (status == CVY_OK && cvy_context_rank(context) == 0)
        renew_report(line->arg[0]);
    if (status != CVY_OK)
        code = cmd_outcome(status);
    else if (cvy_context_rank(context) == 0 && o->json)
        code = cmd_print(cvy_test_result_json(&r, &json), &json);
    else if (cvy_context_rank(context) == 0)
        print_scores(&r);
    cvy_test_result_release(&r);
    return code;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (o->sets.count && !o->job) {
        cmd_error("--set overrides keys of a job file: give --job too");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, &o->ranks, test, NULL);
}

static const cmd_option options[] = {
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data),
     "a path, or a map {path: ..., format: ...}; data.test of the job if not given"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job), "the job that the weights belong to; a run folder has its own"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints everything as one JSON object"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_test = {
    .name = "test",
    .arguments = "RUN|WEIGHTS.safetensors [--data SOURCE]",
    .summary = "scores a trained network on labelled data",
    .detail = "For a run folder it takes the best checkpoint if one is kept, else the newest one. The scores go into "
              "the folder's test.json and its report.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
