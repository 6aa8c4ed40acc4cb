/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_test.c: `convoy test`: scores a trained network on labelled data. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_lab.h"

typedef struct verb_options {
    const char *data, *job, *calibrate_on;
    cmd_sets sets;
    int json, calibrate, no_calibration;
    cmd_ranks ranks;
} verb_options;

/* Writes the report of a run folder again; a checkpoint and a file of weights have none. */
static void renew_report(const char *target)
{
    struct stat s;
    char checkpoints[4096];
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", target);
    if (stat(checkpoints, &s) == 0 && S_ISDIR(s.st_mode))
        cmd_page_write(target, "the report was not renewed");
}

/* ---- the scores as text ---- */

/* A row for each true class. */
static void print_confusion(const cvy_test_result *r)
{
    enum { CLASSES_MAX = 20 };
    const int n = r->nconfusion;
    if (n == 0 || n > CLASSES_MAX)
        return;
    cmd_say("\ntrue class           predicted class, in the order of the rows\n");
    for (int i = 0; i < n; i++) {
        cmd_say("%-20s", i < r->nclass ? r->class_name[i] : "");
        for (int k = 0; k < n; k++)
            cmd_say(" %6.15g", r->confusion[i * n + k]);
        putchar('\n');
    }
}

/* A row for each number of a vector of outputs. */
static void print_outputs(const cvy_test_result *r)
{
    enum { OUTPUTS_MAX = 20 };
    if (r->noutput == 0 || r->noutput > OUTPUTS_MAX)
        return;
    cmd_say("\noutput                     rmse          mae       r2\n");
    for (int i = 0; i < r->noutput; i++)
        cmd_say("%-18d %12.5g %12.5g %8.4f\n", i, r->output[i].rmse, r->output[i].mae, r->output[i].r2);
}

/* Four decimals, or five digits if these would hide a small or a large number. A score is undefined if nothing counts
 * for it, such as the area under a ROC curve of one class. */
static void print_score(int width, const char *name, double value)
{
    const int is_usual = !isfinite(value) || value == 0 || (fabs(value) >= 0.01 && fabs(value) < 1e6);
    if (isnan(value))
        cmd_say("%-*s  undefined\n", width, name);
    else
        cmd_say(is_usual ? "%-*s  %.4f\n" : "%-*s  %.5g\n", width, name, value);
}

static void print_scores(const cvy_test_result *r)
{
    int width = 20; /* of the column of names */
    for (int i = 0; i < r->nmetric; i++) {
        const int length = (int)strlen(r->metric[i].name);
        width = length > width ? length : width;
    }
    cmd_say("%lld samples of %s, %s\n", (long long)r->samples, r->data, r->checkpoint);
    if (isfinite(r->loss))
        print_score(width, "loss", r->loss);
    for (int i = 0; i < r->nmetric; i++)
        print_score(width, r->metric[i].name, r->metric[i].value);
    if (r->note)
        cmd_say("%s", r->note);
    print_outputs(r);
    print_confusion(r);
}

static void print_calibration(const cvy_calibration_result *c)
{
    cmd_say("temperature %.4f, fitted on %lld samples\n", c->temperature, (long long)c->samples);
    cmd_say("%20s  %8s  %8s\n", "", "before", "after");
    cmd_say("%-20s  %8.4f  %8.4f\n", "nll", c->nll_before, c->nll_after);
    cmd_say("%-20s  %8.4f  %8.4f\n\n", "ece", c->ece_before, c->ece_after);
}

/* ---- the verb ---- */

static int test(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    (void)user;
    const cvy_job_source job = cmd_job(&o->sets, o->job, NULL);
    cvy_test_result r = {.size = sizeof r};
    cvy_calibration_result c = {.size = sizeof c};
    char *json = NULL;
    int code = 0;
    if (cmd_is_ensemble(line))
        return cmd_test_ensemble(line, context, o->data, !o->no_calibration, o->json);
    if (o->calibrate || o->calibrate_on) {
        const cvy_status fitted = cvy_run_calibrate(context, line->arg[0], o->calibrate_on, &c);
        if (fitted != CVY_OK)
            return cmd_outcome(fitted);
        if (cvy_context_rank(context) == 0 && !o->json)
            print_calibration(&c);
    }
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

static int refuse(const char *why)
{
    cmd_error("%s", why);
    return CMD_EXIT_USAGE;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const int is_ensemble = cmd_is_ensemble(line);
    if (o->sets.count && !o->job)
        return refuse("--set overrides keys of a job file: give --job too");
    if (is_ensemble && (o->calibrate || o->calibrate_on))
        return refuse("--calibrate is for one run: calibrate each member, and their ensemble takes the temperatures");
    if (is_ensemble && o->job)
        return refuse("--job is for one network: the members of an ensemble have jobs of their own");
    if (!is_ensemble && o->no_calibration)
        return refuse(
            "--no-calibration is for an ensemble: the scores of one network are those before its calibration, and "
            "NAME_calibrated those after it");
    return cmd_on_ranks(line, &o->ranks, test, NULL);
}

static const cmd_option options[] = {
    {"--data", "SOURCE", CMD_TEXT, CMD_FIELD(data),
     "a path, or a map {path: ..., format: ...}; data.test of the job if not given"},
    {"--job", "JOB.yaml", CMD_TEXT, CMD_FIELD(job),
     "the job that the weights belong to; a run, a checkpoint and a file of `convoy export` have their own"},
    {"--calibrate", NULL, CMD_FLAG, CMD_FIELD(calibrate),
     "first fits the temperature of the probabilities on the validation data and keeps it in the run"},
    {"--calibrate-on", "SOURCE", CMD_TEXT, CMD_FIELD(calibrate_on), "the same on other data"},
    {"--no-calibration", NULL, CMD_FLAG, CMD_FIELD(no_calibration),
     "an ensemble: without the temperatures of its members"},
    CMD_OPTION_SET,
    CMD_OPTION_JSON("prints everything as one JSON object"),
    CMD_OPTION_CONTEXT_DEVICE,
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_test = {
    .name = "test",
    .arguments = "RUN|CHECKPOINT|WEIGHTS.safetensors ... [--data SOURCE]",
    .summary = "scores a trained network on labelled data",
    .detail =
        "For a run folder it takes the best checkpoint if one is kept, else the newest one. The scores go into "
        "the folder's test.json and its report; those of one checkpoint, RUN/checkpoints/step-N, are only printed.\n"
        "Several networks, or a folder of runs, are an ensemble: it prints the scores of each, their mean and standard "
        "deviation, and the scores of the combined answer. Those of a folder go into its ensemble.json and its page "
        "ensemble.html.\n"
        "--calibrate fits one number, the temperature, by which logits are divided before they become "
        "probabilities (docs/guide/use-a-network.md). It goes into the run's calibration.json, and `convoy predict` "
        "and `convoy export` use it.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = CMD_ARGS_MAX,
    .run = run,
};
