/*
 * train_turns.c: the trainings that a step takes: one of all weights, or those of train.turns, which train different
 * weights by different losses on the same samples, one after the other. Each has tasks of its own in the program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "program/program_fill.h"
#include "train/trainer.h"

/* ---- how a job's turns are trained ---- */

static cvy_status add_tasks(cvy_trainer *t, cvy_trainer_turn *turn, const cvy_training_opts *opts, int64_t tail)
{
    cvy_session *s = &t->session;
    cvy_training_opts less = *opts;
    turn->tail = -1;
    CVY_TRY(cvy_job_translate(cvy_program_add_training(s->program, s->model, t->order.batch, opts, &turn->full)));
    if (tail) {
        less.accumulate = CVY_MIN(opts->accumulate, tail);
        CVY_TRY(cvy_job_translate(cvy_program_add_training(s->program, s->model, tail, &less, &turn->tail)));
    }
    const int nloss = cvy_program_nlosses(s->program, turn->full);
    CVY_TRY(cvy_pool_alloc(s->job->pool, sizeof *turn->loss * (size_t)nloss, &turn->loss));
    for (int i = 0; i < nloss; i++)
        turn->loss[i] = NAN;
    return CVY_OK;
}

/* A turn changes weights that the next one reads, so all ranks must have them at once. */
cvy_status cvy_trainer_check_mode(const cvy_job *job, const cvy_program *program)
{
    CVY_CHECK(cvy_program_update(program)->takes_turns, CVY_E_CONFIG,
              "%s: train.turns needs update: sync or zero1, not %s: a turn reads the weights of the turn before",
              cvy_job_where(job, "train", "turns"), cvy_program_update(program)->name);
    CVY_CHECK(job->program.pipeline == 1, CVY_E_CONFIG,
              "%s: train.turns needs parallel.pipeline: 1, because turns have different layers",
              cvy_job_where(job, "train", "turns"));
    CVY_CHECK(job->program.overlap != CVY_OVERLAP_FORWARD, CVY_E_CONFIG,
              "%s: train.turns does not go with comm.overlap: forward: a turn reads the weights of the turn before",
              cvy_job_where(job, "train", "turns"));
    return CVY_OK;
}

/* ---- checks ---- */

/* The item of a name or a list of names; NULL after the last one. */
static const char *word_at(const cvy_tree *words, int i)
{
    if (!words || words->kind != CVY_TREE_LIST)
        return words && i == 0 ? words->text : NULL;
    return i < words->count ? words->child[i]->text : NULL;
}

static int begins_with(const char *text, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && (text[n] == '.' || !text[n]);
}

/* Whether a word of `train` may mean weights of the layer: a pattern, its network, the layer, or one of its weights. */
static int may_mean(const char *word, const cvy_layer *layer)
{
    return strpbrk(word, "*?") || begins_with(layer->name, word) || begins_with(word, layer->name);
}

/* Adds the names of all networks of the model, or of its losses, for a message. */
static void list_names(const cvy_model *m, int losses, cvy_text *out)
{
    for (int i = 0; i < m->nlayer; i++) {
        const char *name = losses ? m->layer[i].output : (m->layer[i].part ? m->layer[i].part->network : NULL);
        int known = losses && !(m->layer[i].op->flags & CVY_OP_LOSS);
        for (int k = 0; k < i && name && !known; k++)
            known = !losses && m->layer[k].part && strcmp(m->layer[k].part->network, name) == 0;
        if (name && !known)
            cvy_text_add(out, "%s%s", out->bytes ? ", " : "", name);
    }
}

static cvy_status fail_unknown(const cvy_trainer *t, int turn, const char *what, const char *word, int losses)
{
    cvy_text names = {0};
    list_names(t->session.model, losses, &names);
    const cvy_status status = cvy_error_set(
        CVY_E_CONFIG, "%s: train.turns: turn %d %s '%s', and the model has no %s of this name%s%s",
        cvy_job_where(t->session.job, "train", "turns"), turn + 1, what, word, losses ? "loss" : "network or layer",
        !names.data ? ""
        : losses    ? "; its losses are "
                    : "; its networks are ",
        names.data ? names.data : "");
    cvy_text_free(&names);
    return status;
}

static int is_loss(const cvy_model *m, const char *name)
{
    const int at = cvy_index_find(&m->layer_at, name);
    return at >= 0 && (m->layer[at].op->flags & CVY_OP_LOSS);
}

/* The names in a turn, before anything is planned. */
static cvy_status check_names(const cvy_trainer *t, int turn)
{
    const cvy_model *m = t->session.model;
    const cvy_job_turn *wish = &t->session.job->train.turn[turn];
    const char *word;
    for (int i = 0; (word = word_at(wish->losses_tree, i)) != NULL; i++)
        if (!is_loss(m, word))
            return fail_unknown(t, turn, "has the loss", word, 1);
    for (int i = 0; (word = word_at(wish->train_tree, i)) != NULL; i++) {
        int found = 0;
        for (int k = 0; k < m->nlayer && !found; k++)
            found = may_mean(word, &m->layer[k]);
        if (!found)
            return fail_unknown(t, turn, "trains", word, 0);
    }
    return CVY_OK;
}

/* A loss that no turn reads would not be computed: probably its name was forgotten. */
static cvy_status check_losses(const cvy_trainer *t)
{
    const cvy_model *m = t->session.model;
    for (int i = 0; i < m->nlayer; i++) {
        int is_read = !(m->layer[i].op->flags & CVY_OP_LOSS);
        for (int k = 0; k < t->task.nturn && !is_read; k++) {
            const int task = t->task.turn[k].full;
            for (int l = 0; l < cvy_program_nlosses(t->session.program, task); l++)
                is_read |= strcmp(cvy_program_loss_name(t->session.program, task, l), m->layer[i].output) == 0;
        }
        CVY_CHECK(is_read, CVY_E_CONFIG,
                  "%s: train.turns: no turn has the loss %s: add it to the losses of a turn, or take the layer out",
                  cvy_job_where(t->session.job, "train", "turns"), m->layer[i].output);
    }
    return CVY_OK;
}

static int trains_some(const cvy_trainer *t, int turn, const char *word)
{
    const cvy_variable *v;
    for (int at = 0; (v = cvy_program_next_trained(t->session.program, t->task.turn[turn].full, &at)) != NULL;)
        if (begins_with(v->name, word) || fnmatch(word, v->name, 0) == 0)
            return 1;
    return 0;
}

static const cvy_variable *trained_by_both(const cvy_trainer *t, int a, int b)
{
    const cvy_program *p = t->session.program;
    const cvy_variable *v, *w;
    for (int i = 0; (v = cvy_program_next_trained(p, t->task.turn[a].full, &i)) != NULL;)
        for (int k = 0; (w = cvy_program_next_trained(p, t->task.turn[b].full, &k)) != NULL;)
            if (v == w)
                return v;
    return NULL;
}

cvy_status cvy_trainer_check_turns(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const char *where = cvy_job_where(job, "train", "turns"), *word;
    for (int k = 0; k < job->train.nturn; k++) {
        const cvy_job_turn *turn = &job->train.turn[k];
        for (int i = 0; (word = word_at(turn->train_tree, i)) != NULL; i++)
            CVY_CHECK(trains_some(t, k, word), CVY_E_CONFIG,
                      "%s: %s: it trains '%s', but its losses do not depend on any weight of it that can be trained",
                      where, cvy_program_about(t->session.program, t->task.turn[k].full).label, word);
        for (int j = 0; j < k; j++) {
            const cvy_variable *v = turn->optimizer || job->train.turn[j].optimizer ? trained_by_both(t, j, k) : NULL;
            CVY_CHECK(!v, CVY_E_CONFIG,
                      "%s: train.turns: the turns %d and %d both train %s, so they must have the same optimizer: that "
                      "of the job",
                      where, j + 1, k + 1, v->name);
        }
    }
    return CVY_OK;
}

/* ---- the tasks ---- */

cvy_status cvy_trainer_add_turns(cvy_trainer *t, const cvy_training_opts *opts, int64_t tail)
{
    const cvy_job *job = t->session.job;
    t->task.nturn = CVY_MAX(job->train.nturn, 1);
    CVY_TRY(cvy_pool_alloc(job->pool, sizeof *t->task.turn * (size_t)t->task.nturn, &t->task.turn));
    if (job->train.nturn > 0)
        CVY_TRY(cvy_trainer_check_mode(job, t->session.program));
    for (int k = 0; k < t->task.nturn; k++) {
        const cvy_job_turn *wish = job->train.nturn > 0 ? &job->train.turn[k] : NULL;
        cvy_training_opts own = *opts;
        t->task.turn[k].every = wish ? wish->every : 1;
        t->task.turn[k].lr_mult = wish ? cvy_job_turn_lr(job, k) / job->train.lr : 1;
        if (wish) {
            CVY_TRY(check_names(t, k));
            CVY_TRY(cvy_job_turn_opts(job, k, &own));
        }
        CVY_TRY(add_tasks(t, &t->task.turn[k], &own, tail));
    }
    t->task.full = t->task.turn[0].full;
    t->task.tail = t->task.turn[0].tail;
    return job->train.nturn > 0 ? check_losses(t) : CVY_OK;
}

cvy_row_needs cvy_trainer_row_needs(const cvy_trainer *t)
{
    const cvy_program *p = t->session.program;
    cvy_row_needs needs = cvy_program_row_needs(p, t->task.full);
    for (int k = 0; k < t->task.nturn; k++) {
        needs = CVY_MIN(needs, cvy_program_row_needs(p, t->task.turn[k].full));
        if (t->task.turn[k].tail >= 0)
            needs = CVY_MIN(needs, cvy_program_row_needs(p, t->task.turn[k].tail));
    }
    return needs;
}

/* A field is read in part only if all turns read the same part of it, or do not read it. A turn cuts its part out of a
 * whole field. */
void cvy_trainer_find_parts(const cvy_trainer *t, cvy_field_part part_out[CVY_FIELD_MAX])
{
    const cvy_program *p = t->session.program;
    const cvy_dataset_info *info = cvy_dataset_describe(t->session.train);
    cvy_program_parts(p, t->task.full, info, part_out);
    for (int k = 1; k < t->task.nturn; k++) {
        cvy_field_part own[CVY_FIELD_MAX];
        cvy_program_parts(p, t->task.turn[k].full, info, own);
        for (int f = 0; f < info->nfield; f++)
            if (cvy_program_has_input(p, t->task.turn[k].full, info->field[f].name) &&
                (!own[f].is_part || !part_out[f].is_part || !cvy_shape_equal(&own[f].shape, &part_out[f].shape) ||
                 memcmp(own[f].tile.first, part_out[f].tile.first, sizeof own[f].tile.first) != 0))
                part_out[f] = (cvy_field_part){0};
    }
}

/* ---- a step ---- */

/* turn: that of the loss or the gradient; NULL: of no turn in particular. what: the loss or a gradient. word: "nan",
 * "infinite" or "not finite". cause: where the number was computed, or NULL. */
static cvy_status fail_not_finite(const cvy_trainer *t, const cvy_trainer_turn *turn, const char *what,
                                  const char *word, const char *cause)
{
    const struct cvy_job_train *train = &t->session.job->train;
    const char *label = turn ? cvy_program_about(t->session.program, turn->full).label : NULL;
    const char *data = cvy_space_is_host(&t->session.context->space)
                           ? ""
                           : "on a device a label of no class or an index of no row does this, too, and the same job "
                             "with --device host names the sample; ";
    int has_own = 0; /* weights that another turn has spoilt may be the cause */
    char saved[96] = "no checkpoint was saved yet", first[408] = "";
    if (t->save.safe_step >= 0)
        snprintf(saved, sizeof saved, "the checkpoint of step %lld holds finite weights", (long long)t->save.safe_step);
    if (cause)
        snprintf(first, sizeof first, "%s; ", cause);
    for (int k = 0; k < train->nturn; k++)
        has_own |= train->turn[k].optimizer != NULL;
    return cvy_error_set(
        CVY_E_NUMERIC,
        "%s%s%s of step %lld is %s, expected a finite number: %s%slower %s, add a warm-up to train.schedule, or set "
        "train.clip_norm; %s",
        label ? label : "", label ? ": " : "", what, (long long)(t->step + 1), word, first, data,
        has_own ? "train.optimizer.lr, or lr in the optimizer of a turn" : "train.optimizer.lr", saved);
}

/* The first turn whose losses are not all finite; NULL: none, or their sum is too large. */
static const cvy_trainer_turn *find_not_finite(const cvy_trainer *t)
{
    for (int k = 0; k < t->task.nturn; k++)
        for (int i = 0; i < cvy_program_nlosses(t->session.program, t->task.turn[k].full); i++)
            if (!isfinite(t->task.turn[k].loss[i]) && t->step % t->task.turn[k].every == 0)
                return &t->task.turn[k];
    return NULL;
}

/* The loss is a sum over all ranks, so all of them stop here. For workers that do not wait for each other it is the sum
 * over the latest step of each worker. They may see it at different steps, and the agreement at the next
 * synchronisation stops all ranks. */
static cvy_status check_loss(const cvy_trainer *t)
{
    return isfinite(t->latest.loss)
               ? CVY_OK
               : fail_not_finite(t, find_not_finite(t), "the loss", isnan(t->latest.loss) ? "nan" : "infinite", NULL);
}

/* If the loss or a gradient is not finite, the turn ends before its update, and its weights are those of the previous
 * step. */
static cvy_status take_step(cvy_trainer *t, const cvy_trainer_turn *turn, int task, double lr)
{
    char cause[400];
    cvy_status status = cvy_program_step_begin(t->session.program, task, lr);
    if (status == CVY_OK) {
        const cvy_status ahead = cvy_trainer_go_ahead(t, task);
        status = cvy_program_step_end(t->session.program, task);
        status = status == CVY_OK ? ahead : status;
    }
    if (status != CVY_E_NUMERIC)
        return status;
    snprintf(cause, sizeof cause, "%s", cvy_error_text());
    /* a save in progress may complete now, so that the message can name it */
    (void)!cvy_trainer_finish_save(t, 0);
    return fail_not_finite(t, turn, cvy_program_lost(t->session.program, task), "not finite", cause);
}

/* How often the optimiser state of a turn was updated before this turn of this step: by this turn, and by all turns
 * that train the same weights. */
static int64_t updates_before(const cvy_trainer *t, int turn)
{
    int64_t sum = 0;
    for (int k = 0; k < t->task.nturn; k++) {
        const int64_t every = t->task.turn[k].every, steps = t->step + (k < turn ? 1 : 0);
        if (cvy_program_share_state(t->session.program, t->task.turn[turn].full, t->task.turn[k].full))
            sum += (steps + every - 1) / every;
    }
    return sum;
}

static cvy_status take_turn(cvy_trainer *t, int k, const cvy_rows *rows, double lr)
{
    cvy_session *s = &t->session;
    cvy_trainer_turn *turn = &t->task.turn[k];
    const int task = cvy_order_batch(&t->order, t->step) == t->order.batch ? turn->full : turn->tail;
    if (rows != t->data.sent)
        CVY_TRY(cvy_session_fill(s, task, cvy_dataset_describe(s->train), rows, t->data.part));
    t->data.sent = NULL;
    cvy_program_set_updates(s->program, task, updates_before(t, k));
    cvy_program_name_samples(s->program, rows->id);
    const cvy_status status = take_step(t, turn, task, turn->lr_mult * lr);
    cvy_program_name_samples(s->program, NULL);
    CVY_TRY(status);
    CVY_TRY(cvy_program_losses(s->program, task, turn->loss));
    t->task.latest = task;
    return CVY_OK;
}

cvy_status cvy_trainer_take_turns(cvy_trainer *t, const cvy_rows *rows, double lr, cvy_step_time *time)
{
    double sum = 0;
    for (int k = 0; k < t->task.nturn; k++) {
        const cvy_trainer_turn *turn = &t->task.turn[k];
        const int is_due = t->step % turn->every == 0;
        if (is_due) {
            CVY_TRY(take_turn(t, k, rows, lr));
            cvy_step_time_join(time, cvy_program_time(t->session.program, t->task.latest));
            time->total -= t->data.ahead_s;
        }
        /* a checkpoint of an older version has no losses of turns that are not due */
        for (int i = 0; i < cvy_program_nlosses(t->session.program, turn->full); i++)
            sum += is_due || !isnan(turn->loss[i]) ? turn->loss[i] : 0;
    }
    t->latest.loss = sum;
    return check_loss(t);
}

void cvy_trainer_add_turn_losses(const cvy_trainer *t, cvy_json *json)
{
    cvy_json_open(json, "turn_losses", '[');
    for (int k = 0; k < t->task.nturn && t->task.nturn > 1; k++)
        for (int i = 0; i < cvy_program_nlosses(t->session.program, t->task.turn[k].full); i++)
            cvy_json_real(json, NULL, t->task.turn[k].loss[i]);
    cvy_json_close(json, ']');
}

cvy_status cvy_trainer_restore_turn_losses(cvy_trainer *t)
{
    const cvy_tree *list = cvy_tree_get(t->folder.resume.state, "turn_losses");
    int n = 0;
    for (int k = 0; k < t->task.nturn && t->task.nturn > 1; k++)
        n += cvy_program_nlosses(t->session.program, t->task.turn[k].full);
    if (!list || list->kind != CVY_TREE_LIST || list->count != n) /* of an older version, or of another job */
        return CVY_OK;
    for (int k = 0, at = 0; at < n; k++)
        for (int i = 0; i < cvy_program_nlosses(t->session.program, t->task.turn[k].full); i++, at++)
            if (!cvy_tree_is_null(list->child[at]))
                CVY_TRY(cvy_tree_real(list->child[at], &t->task.turn[k].loss[i]));
    return CVY_OK;
}

void cvy_trainer_log_turns(const cvy_trainer *t, cvy_json *json)
{
    char name[160];
    for (int k = 0; k < t->task.nturn && t->task.nturn > 1; k++) {
        const int task = t->task.turn[k].full;
        for (int i = 0; i < cvy_program_nlosses(t->session.program, task); i++) {
            snprintf(name, sizeof name, "loss_%s", cvy_program_loss_name(t->session.program, task, i));
            cvy_json_real(json, name, t->task.turn[k].loss[i]);
        }
    }
}
