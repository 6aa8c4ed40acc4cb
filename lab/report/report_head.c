/*
 * report_head.c: the top of the page: what was trained and how well it does, in plain words and important numbers, and
 * notes about possible problems.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "monitor/monitor_run_layout.h"
#include "report/report_page.h"

static double last_of(const cvy_frame *f, const char *column)
{
    const double *y = cvy_frame_column(f, column);
    for (int64_t i = f->nrow - 1; y && i >= 0; i--)
        if (isfinite(y[i]))
            return y[i];
    return NAN;
}

static double sum_of(const cvy_frame *f, const char *column)
{
    const double *y = cvy_frame_column(f, column);
    double sum = 0;
    for (int64_t i = 0; y && i < f->nrow; i++)
        sum += isfinite(y[i]) ? y[i] : 0;
    return sum;
}

/* Row of the largest (sign 1) or smallest (sign -1) value; -1 if there is none. */
static int64_t best_row(const cvy_frame *f, const char *column, double sign)
{
    const double *y = cvy_frame_column(f, column);
    int64_t best = -1;
    for (int64_t i = 0; y && i < f->nrow; i++)
        if (isfinite(y[i]) && (best < 0 || sign * y[i] > sign * y[best]))
            best = i;
    return best;
}

static double epoch_at(const cvy_report *r, int64_t row)
{
    const double *epoch = cvy_frame_column(&r->epochs, "epoch");
    return epoch && row >= 0 ? epoch[row] : NAN;
}

const char *cvy_report_model(const cvy_report *r)
{
    const char *name = cvy_tree_text_at(r->job, "model");
    return name ? name : cvy_tree_text_at(r->job, "model.name");
}

double cvy_report_area(const cvy_report *r)
{
    const double area = cvy_tree_real_at(r->analysis, "network.area");
    return isfinite(area) ? area : cvy_tree_real_at(r->test, "metrics.auc");
}

static void run_name(const cvy_report *r, char *text, size_t room)
{
    size_t n = strlen(r->folder);
    while (n > 0 && r->folder[n - 1] == '/')
        n--;
    size_t first = n;
    while (first > 0 && r->folder[first - 1] != '/')
        first--;
    snprintf(text, room, "%.*s", (int)CVY_MIN(n - first, room - 1), r->folder + first);
}

/* ---- the summary in words ---- */

static void say_training(const cvy_report *r, cvy_text *t)
{
    const double epochs = last_of(&r->epochs, "epoch"), steps = last_of(&r->steps, "step"),
                 seconds = sum_of(&r->epochs, "seconds");
    const char *model = cvy_report_model(r), *ranks = cvy_tree_text_at(r->plan, "machine.ranks"),
               *device = cvy_tree_text_at(r->plan, "machine.device name");
    cvy_text_add(t, "%s ", model ? model : "The network");
    if (isfinite(epochs))
        cvy_text_add(t, "was trained for %s %s", cvy_number_count(epochs).at, epochs == 1 ? "epoch" : "epochs");
    else if (isfinite(steps))
        cvy_text_add(t, "was trained for %s steps", cvy_number_count(steps).at);
    else
        cvy_text_add(t, "has not finished a step yet");
    if (seconds > 0)
        cvy_text_add(t, " in %s", cvy_number_seconds(seconds).at);
    if (ranks && isfinite(epochs + steps))
        cvy_text_add(t, " on %s %s", ranks, strcmp(ranks, "1") == 0 ? "rank" : "ranks");
    if (device && isfinite(epochs + steps))
        cvy_text_add(t, ", computed by %s", device);
    cvy_text_add(t, ". ");
}

/* The baseline with the largest area; NULL if there is none. */
static const cvy_tree *best_baseline(const cvy_report *r)
{
    const cvy_tree *list = cvy_tree_at(r->analysis, "baselines"), *best = NULL;
    for (int i = 0; list && list->kind == CVY_TREE_LIST && i < list->count; i++)
        if (!best || (isfinite(cvy_tree_real_at(list->child[i], "area")) &&
                      !(cvy_tree_real_at(list->child[i], "area") <= cvy_tree_real_at(best, "area"))))
            best = list->child[i];
    return best;
}

static void say_roc(const cvy_report *r, cvy_text *t, double area)
{
    const char *positive = cvy_tree_text_at(r->test, "positive");
    const double error = cvy_tree_real_at(r->analysis, "network.area_error");
    const cvy_tree *baseline = best_baseline(r);
    cvy_text_add(t, "it identifies %s with an area under the ROC curve of %.4f",
                 positive ? positive : "the positive class", area);
    if (isfinite(error))
        cvy_text_add(t, " ± %.4f", error);
    if (baseline && isfinite(cvy_tree_real_at(baseline, "area"))) {
        const double gain = cvy_tree_real_at(baseline, "area_gain"),
                     gain_error = cvy_tree_real_at(baseline, "area_gain_error"), standing = gain / gain_error;
        const char *name = cvy_tree_text_at(baseline, "name");
        cvy_text_add(t, "; the best baseline (%s) reaches %.4f", name ? name : "unnamed",
                     cvy_tree_real_at(baseline, "area"));
        if (isfinite(standing) && fabs(standing) >= 3)
            cvy_text_add(t, ", so the network is %s by %.0f standard errors", standing > 0 ? "better" : "worse",
                         fabs(standing));
        else if (isfinite(standing))
            cvy_text_add(t, "; the difference is within three standard errors");
    }
    cvy_text_add(t, ".");
}

static void say_test(const cvy_report *r, cvy_text *t)
{
    const double samples = cvy_tree_real_at(r->test, "samples"),
                 accuracy = cvy_tree_real_at(r->test, "metrics.accuracy"), area = cvy_report_area(r);
    const cvy_tree *regression = cvy_tree_at(r->test, "regression");
    const cvy_tree *target =
        regression && regression->kind == CVY_TREE_LIST && regression->count > 0 ? regression->child[0] : NULL;
    const char *role = cvy_tree_text_at(r->test, "role");
    if (role && isfinite(samples))
        cvy_text_add(t, "On %s samples that are no test, because they %s, ", cvy_number_count(samples).at,
                     strcmp(role, "chose") == 0 ? "chose the checkpoint or the end of the training"
                                                : "are those of the training");
    else if (isfinite(samples))
        cvy_text_add(t, "On %s test samples ", cvy_number_count(samples).at);
    else
        cvy_text_add(t, "On the test set ");
    if (isfinite(area))
        say_roc(r, t, area);
    else if (isfinite(accuracy))
        cvy_text_add(t, "it gives the right answer for %s.", cvy_number_percent(accuracy).at);
    else if (target && isfinite(cvy_tree_real_at(target, "rmse"))) {
        const char *name = cvy_tree_text_at(target, "name"), *unit = cvy_tree_text_at(target, "unit");
        cvy_text_add(t, "it predicts %s with a root mean square error of %s%s%s", name ? name : "the target",
                     cvy_number_text(cvy_tree_real_at(target, "rmse"), 3).at, unit ? " " : "", unit ? unit : "");
        if (isfinite(cvy_tree_real_at(target, "r2")))
            cvy_text_add(t, " and explains %s of its variance", cvy_number_percent(cvy_tree_real_at(target, "r2")).at);
        cvy_text_add(t, ".");
    } else
        cvy_text_add(t, "its loss is %s.", cvy_number_text(cvy_tree_real_at(r->test, "loss"), 4).at);
}

static void say_validation(const cvy_report *r, cvy_text *t)
{
    const int64_t accurate = best_row(&r->epochs, "val_accuracy", 1), low = best_row(&r->epochs, "val_loss", -1);
    const double loss = last_of(&r->epochs, "train_loss");
    if (accurate >= 0)
        cvy_text_add(t, "Its best validation accuracy was %s, after epoch %s; there is no test result yet.",
                     cvy_number_percent(cvy_frame_column(&r->epochs, "val_accuracy")[accurate]).at,
                     cvy_number_count(epoch_at(r, accurate)).at);
    else if (low >= 0)
        cvy_text_add(t, "Its lowest validation loss was %s, after epoch %s; there is no test result yet.",
                     cvy_number_text(cvy_frame_column(&r->epochs, "val_loss")[low], 4).at,
                     cvy_number_count(epoch_at(r, low)).at);
    else if (isfinite(loss))
        cvy_text_add(t, "The training loss is %s; there is no validation or test result yet.",
                     cvy_number_text(loss, 4).at);
}

/* Why the run ended before its last step, if STATUS tells. */
static void say_end(const cvy_report *r, cvy_text *t)
{
    cvy_run_status s;
    if (!r->status_text || !cvy_run_status_parse(r->status_text, &s) || !s.why[0])
        return;
    if (cvy_run_status_is_early(&s))
        cvy_text_add(t, "It ended at step %s of %s: %s. ", cvy_number_count((double)s.step).at,
                     cvy_number_count((double)s.steps).at, s.why);
    else
        cvy_text_add(t, "It %s at step %s of %s: %s. ", s.word, cvy_number_count((double)s.step).at,
                     cvy_number_count((double)s.steps).at, s.why);
}

static void verdict(cvy_report *r)
{
    cvy_text t = {0};
    say_training(r, &t);
    say_end(r, &t);
    if (r->test)
        say_test(r, &t);
    else
        say_validation(r, &t);
    cvy_text_add(&r->html, "<p class=\"verdict\">");
    if (t.data)
        cvy_html_escape(&r->html, t.data);
    cvy_text_add(&r->html, "</p>\n");
    if (r->html.status == CVY_OK)
        r->html.status = t.status;
    cvy_text_free(&t);
}

/* ---- important numbers ---- */

static void tile(cvy_report *r, const char *name, const char *value)
{
    cvy_text_add(&r->html, "<div><dt>%s</dt><dd>%s</dd></div>", name, value);
}

static double find_params(const cvy_tree *plan)
{
    double params = cvy_tree_real_at(plan, "params");
    for (int i = 0; plan && plan->kind == CVY_TREE_MAP && i < plan->count && !isfinite(params); i++)
        params = cvy_tree_real_at(plan->child[i], "params");
    return params;
}

static void tiles(cvy_report *r)
{
    const double area = cvy_report_area(r), accuracy = cvy_tree_real_at(r->test, "metrics.accuracy"),
                 params = find_params(r->plan), seconds = sum_of(&r->epochs, "seconds"),
                 samples = last_of(&r->steps, "samples");
    const int64_t val = best_row(&r->epochs, "val_accuracy", 1);
    const double speed = cvy_frame_speed(&r->steps);
    cvy_text_add(&r->html, "<dl class=\"tiles\">");
    if (isfinite(area)) {
        char text[32];
        snprintf(text, sizeof text, "%.4f", area);
        tile(r, "area under ROC", text);
    }
    if (isfinite(accuracy))
        tile(r, "test accuracy", cvy_number_percent(accuracy).at);
    else if (val >= 0)
        tile(r, "best validation accuracy", cvy_number_percent(cvy_frame_column(&r->epochs, "val_accuracy")[val]).at);
    if (params > 0)
        tile(r, "parameters", cvy_number_count(params).at);
    if (samples > 0)
        tile(r, "samples seen", cvy_number_count(samples).at);
    if (isfinite(speed))
        tile(r, "samples per second", cvy_number_text(speed, 3).at);
    if (seconds > 0)
        tile(r, "training time", cvy_number_seconds(seconds).at);
    cvy_text_add(&r->html, "</dl>\n");
}

/* ---- notes about possible problems ---- */

static void note(cvy_report *r, int *count, const char *text)
{
    cvy_text_add(&r->html, "%s<li>", (*count)++ ? "" : "<ul class=\"notes\">");
    cvy_html_add(&r->html, "%s</li>\n", text);
}

static void notes(cvy_report *r)
{
    char text[400];
    int n = 0;
    const int64_t low = best_row(&r->epochs, "val_loss", -1), last = r->epochs.nrow - 1;
    const double *val = cvy_frame_column(&r->epochs, "val_loss"), last_val = last_of(&r->epochs, "val_loss");
    const double spent = sum_of(&r->steps, "seconds_data"), comm = sum_of(&r->steps, "seconds_exposed_comm"),
                 all = spent + comm + sum_of(&r->steps, "seconds_compute");
    const double data =
        cvy_frame_column(&r->steps, "seconds_data_wait") ? sum_of(&r->steps, "seconds_data_wait") : spent;
    const cvy_tree *turns = cvy_tree_at(r->job, "train.turns"); /* losses that work against each other say neither */
    const int has_turns = turns && turns->kind == CVY_TREE_LIST && turns->count > 0;
    if (val && !has_turns && last >= 4 && low < (last * 4) / 5 && last_val > 1.08 * val[low]) {
        snprintf(text, sizeof text,
                 "The validation loss has risen since epoch %s, from %s to %s, while training went on: the network "
                 "overfits. "
                 "More data, augmentation, weight decay or an earlier stop would help.",
                 cvy_number_count(epoch_at(r, low)).at, cvy_number_text(val[low], 3).at,
                 cvy_number_text(last_val, 3).at);
        note(r, &n, text);
    } else if (val && !has_turns && last >= 4 && low == last && val[last] < 0.97 * val[last - CVY_MAX(1, last / 8)])
        note(r, &n, "The validation loss was still falling at the end: more epochs would probably help.");
    if (all > 0 && data > 0.03 * all) {
        snprintf(text, sizeof text,
                 "Steps wait for data %s of their time: more data threads (data.threads), samples kept in memory "
                 "(data.cache) or a packed set (convoy convert) would make the run faster.",
                 cvy_number_percent(data / all).at);
        note(r, &n, text);
    }
    const double bubble = sum_of(&r->steps, "seconds_bubble");
    if (all > 0 && comm > 0.2 * all && bubble > 0.5 * comm) {
        snprintf(text, sizeof text,
                 "The first stage of the pipeline waits %s of the step for other stages: more micro-batches "
                 "(train.accumulate), or fewer stages, would use the machine better.",
                 cvy_number_percent(bubble / all).at);
        note(r, &n, text);
    } else if (all > 0 && comm > 0.2 * all) {
        snprintf(text, sizeof text,
                 "Exposed communication takes %s of the step: a larger batch, or fewer ranks, would "
                 "use the machine better.",
                 cvy_number_percent(comm / all).at);
        note(r, &n, text);
    }
    for (int i = 0; i < r->nread_errors; i++)
        note(r, &n, r->read_errors[i]);
    if (n)
        cvy_text_add(&r->html, "</ul>\n");
}

/* ---- one line of facts ---- */

static void fact(cvy_report *r, int *count, const char *what, const char *value)
{
    if (!value)
        return;
    cvy_text_add(&r->html, "%s%s <b>", (*count)++ ? " · " : "<p class=\"soft facts\">", what);
    cvy_html_add(&r->html, "%s</b>", value);
}

static const char *first_text(const cvy_tree *map, const char *path, const char *inner)
{
    char longer[96];
    const char *text = cvy_tree_text_at(map, path);
    snprintf(longer, sizeof longer, "%s.%s", path, inner);
    return text ? text : cvy_tree_text_at(map, longer);
}

static void facts(cvy_report *r)
{
    int n = 0;
    char line[160], dead[640];
    cvy_run_status s;
    const double sent = sum_of(&r->steps, "bytes_wire");
    fact(r, &n, "data",
         first_text(r->job, "data.train", "path") ? first_text(r->job, "data.train", "path")
                                                  : first_text(r->job, "data.train", "format"));
    fact(r, &n, "batch", cvy_tree_text_at(r->job, "train.batch"));
    fact(r, &n, "optimizer", first_text(r->job, "train.optimizer", "name"));
    fact(r, &n, "schedule", first_text(r->job, "train.schedule", "name"));
    fact(r, &n, "seed", cvy_tree_text_at(r->job, "train.seed"));
    if (sent > 0) {
        fact(r, &n, "update", first_text(r->job, "update", "mode"));
        fact(r, &n, "sent by rank 0 in a step", cvy_number_bytes(sent / (double)r->steps.nrow).at);
    }
    if (r->status_text) {
        if (cvy_run_status_parse(r->status_text, &s)) /* the reason is in the verdict */
            snprintf(line, sizeof line, "%s step %lld of %lld at %s", s.word, (long long)s.step, (long long)s.steps,
                     s.time);
        else
            snprintf(line, sizeof line, "%.*s", (int)CVY_MIN(strcspn(r->status_text, "\n"), (size_t)120),
                     r->status_text);
        fact(r, &n, "status", line[0] ? line : NULL);
        if (cvy_run_is_dead(r->folder, dead, sizeof dead))
            fact(r, &n, "note", dead);
    }
    if (n)
        cvy_text_add(&r->html, "</p>\n");
}

void cvy_report_head(cvy_report *r)
{
    char name[200];
    run_name(r, name, sizeof name);
    cvy_html_add(&r->html, "<header><p class=\"over\">convoy training report</p><h1>%s</h1>\n", name);
    verdict(r);
    tiles(r);
    facts(r);
    notes(r);
    cvy_text_add(&r->html, "</header>\n");
}
