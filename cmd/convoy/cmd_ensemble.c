/*
 * cmd_ensemble.c: the scores of an ensemble beside those of its members, for `convoy test`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "cmd_lab.h"
#include "ensemble/ensemble.h"
#include "report/report.h"

static int score_width(const char *metric)
{
    const int n = (int)strlen(metric);
    return n > 9 ? n : 9;
}

static void print_row(const cvy_ensemble_scores *s, int width, const char *name, const double *value)
{
    cmd_say("%-*s", width, name);
    for (int i = 0; i < s->nmetric; i++)
        if (isnan(value[i]))
            cmd_say("  %*s", score_width(s->metric[i]), "undefined");
        else
            cmd_say("  %*.5g", score_width(s->metric[i]), value[i]);
    putchar('\n');
}

/* A row for each member, their mean and standard deviation, then the ensemble. */
static void print_ensemble(const cvy_ensemble_scores *s)
{
    int width = (int)strlen("deviation");
    for (int m = 0; m < s->nmember; m++)
        width = (int)strlen(s->member[m]) > width ? (int)strlen(s->member[m]) : width;
    cmd_say("%lld samples\n%-*s", (long long)s->samples, width, "");
    for (int i = 0; i < s->nmetric; i++)
        cmd_say("  %*s", score_width(s->metric[i]), s->metric[i]);
    putchar('\n');
    for (int m = 0; m < s->nmember; m++)
        print_row(s, width, s->member[m], s->value + m * s->nmetric);
    if (s->nmember > 1) {
        print_row(s, width, "mean", s->mean);
        print_row(s, width, "deviation", s->spread);
    }
    print_row(s, width, "ensemble", s->value + s->nmember * s->nmetric);
}

static void write_page(const cmd_line *line)
{
    if (line->narg != 1)
        return;
    if (cvy_report_ensemble(line->arg[0]) != CVY_OK)
        cmd_note("convoy: warning: the page was not renewed: %s\n", cvy_error_text());
}

int cmd_is_ensemble(const cmd_line *line)
{
    return line->narg > 1 || cvy_is_ensemble(line->arg[0]);
}

int cmd_test_ensemble(const cmd_line *line, cvy_context *context, const char *data, int calibrated, int json)
{
    cvy_ensemble_scores scores = {.size = sizeof scores};
    char *text = NULL;
    const cvy_status status = cvy_run_test_ensemble(context, line->arg, line->narg, data, calibrated, &scores);
    int code = status == CVY_OK ? 0 : cmd_outcome(status);
    if (status == CVY_OK && cvy_context_rank(context) == 0) {
        write_page(line);
        if (json)
            code = cmd_print(cvy_ensemble_scores_json(&scores, &text), &text);
        else
            print_ensemble(&scores);
    }
    cvy_ensemble_scores_release(&scores);
    return code;
}
