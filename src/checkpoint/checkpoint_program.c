/*
 * checkpoint_program.c: checkpoints of the public API (convoy/checkpoint.h): a program's variables, the counts of its
 * tasks and the caller's text, as a set like those of a training run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/checkpoint.h>

#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/text/base_json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_saver.h"
#include "program/program_update.h"
#include "program/program_view.h"

/* ---- writing ---- */

static cvy_status add_state(const cvy_program *p, const cvy_checkpoint_opts *o, cvy_json *json)
{
    int64_t steps[CVY_TASKS_MAX];
    const int n = cvy_program_steps(p, steps);
    cvy_json_open(json, NULL, '{');
    cvy_json_int(json, "step", o->step);
    cvy_json_open(json, "task_steps", '[');
    for (int i = 0; i < n; i++)
        cvy_json_int(json, NULL, steps[i]);
    cvy_json_close(json, ']');
    if (o->state)
        cvy_json_string(json, "state", o->state);
    cvy_json_string(json, "version", cvy_version());
    cvy_json_close(json, '}');
    return json->text.status;
}

/* Rank 0 writes all; in a pipeline the first rank of each stage writes the variables of its stage. */
static cvy_status save(const cvy_program *p, const cvy_checkpoint_opts *o, const cvy_vars *pending)
{
    cvy_comm *comm = cvy_program_context(p)->comm;
    const cvy_grid *grid = cvy_program_grid(p);
    cvy_json json = {0};
    cvy_saver *saver = NULL;
    cvy_saved saved = {0};
    int ended = 0;
    cvy_status status = cvy_saver_create(cvy_program_context(p), &saver);
    if (status == CVY_OK && comm->rank == 0)
        status = add_state(p, o, &json);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    const cvy_save_opts opts = {.dir = o->folder,
                                .step = o->step,
                                .vars = cvy_program_vars(p),
                                .pending = pending,
                                .state_json = json.text.data,
                                .keep = o->keep > 0 ? o->keep : 2,
                                .must_be_finite = 1,
                                .is_best = o->is_best,
                                .grid = cvy_grid_is_used(grid) ? grid : NULL};
    CVY_TRY_OUT(cvy_saver_begin(saver, &opts, 0, 0));
    CVY_TRY_OUT(cvy_saver_finish(saver, &ended, &saved));
    status = saved.status;
out:
    cvy_saver_destroy(&saver);
    cvy_text_free(&json.text);
    return status;
}

static cvy_status check_write(const cvy_program *p, const cvy_checkpoint_opts *given, cvy_checkpoint_opts *o)
{
    CVY_TRY(CVY_OPTS_READ(cvy_checkpoint_opts, given, o));
    CVY_CHECK(o->folder && *o->folder, CVY_E_ARGUMENT, "a checkpoint needs a folder");
    CVY_CHECK(o->step >= 0 && o->keep >= 0, CVY_E_ARGUMENT,
              "a checkpoint of step %lld that keeps %d, expected no negative numbers", (long long)o->step, o->keep);
    CVY_CHECK(cvy_program_is_ready(p), CVY_E_ARGUMENT, "plan the program before saving it");
    return CVY_OK;
}

cvy_status cvy_checkpoint_write(cvy_program *program, const cvy_checkpoint_opts *opts)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, program));
    cvy_comm *comm = cvy_program_context(program)->comm;
    cvy_checkpoint_opts o;
    cvy_vars *pending = NULL;
    CVY_TRY(cvy_comm_agree(comm, check_write(program, opts, &o)));
    CVY_TRY(cvy_program_flush(program));
    cvy_status status = cvy_program_collect(program, &pending);
    if (status == CVY_OK)
        status = save(program, &o, pending);
    cvy_vars_destroy(&pending);
    cvy_program_release(program);
    return status;
}

/* ---- reading ---- */

static cvy_status copy_text(const char *text, char **out)
{
    return text ? cvy_mem_printf(out, "%s", text) : CVY_OK;
}

static cvy_status copy_notes(const cvy_checkpoint *c, char **out)
{
    cvy_text notes = {0};
    for (int i = 0; i < c->nmessage; i++)
        cvy_text_add(&notes, "%s\n", c->message[i]);
    *out = notes.data;
    return notes.status;
}

static cvy_status read_counts(const cvy_checkpoint *c, const cvy_program *p, int64_t count[CVY_TASKS_MAX])
{
    const int n = cvy_program_steps(p, count);
    const cvy_tree *list = cvy_tree_get(c->state, "task_steps");
    CVY_CHECK(list && list->kind == CVY_TREE_LIST, CVY_E_FORMAT,
              "%s was not written by cvy_checkpoint_write(): the counts of its tasks are missing", c->path);
    CVY_CHECK(list->count == n, CVY_E_SHAPE, "%s is of a program with %d tasks, and this one has %d", c->path,
              list->count, n);
    for (int i = 0; i < list->count; i++)
        CVY_TRY(cvy_tree_int(list->child[i], &count[i]));
    return CVY_OK;
}

/* Does all that can fail on one rank, before any variable is changed. */
static cvy_status examine(const cvy_checkpoint *c, const cvy_program *p, int64_t *count, cvy_checkpoint_about *about)
{
    const cvy_tree *state = NULL;
    CVY_TRY(read_counts(c, p, count));
    state = cvy_tree_get(c->state, "state");
    CVY_TRY(copy_text(state ? state->text : NULL, &about->state));
    return copy_notes(c, &about->notes);
}

static cvy_status load(cvy_program *p, const cvy_checkpoint *c, cvy_checkpoint_about *about)
{
    cvy_comm *comm = cvy_program_context(p)->comm;
    int64_t count[CVY_TASKS_MAX];
    about->step = c->step;
    CVY_TRY(cvy_comm_agree(comm, examine(c, p, count, about)));
    CVY_TRY(cvy_program_flush(p));
    CVY_TRY(cvy_checkpoint_load(c, comm, cvy_program_vars(p), 1));
    cvy_program_release(p);
    cvy_program_set_steps(p, count);
    return CVY_OK;
}

static cvy_status check_read(const cvy_program *p, const char *folder, const cvy_checkpoint_about *about)
{
    CVY_CHECK(folder && about, CVY_E_ARGUMENT,
              "cvy_checkpoint_read() needs a folder and an output pointer for what it finds");
    CVY_CHECK(cvy_program_is_ready(p), CVY_E_ARGUMENT, "plan the program before reading a checkpoint");
    return CVY_RESULT_CHECK(cvy_checkpoint_about, about);
}

cvy_status cvy_checkpoint_read(cvy_program *program, const char *folder, const char *which,
                               cvy_checkpoint_about *about_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, program));
    cvy_comm *comm = cvy_program_context(program)->comm;
    cvy_checkpoint set = {0};
    cvy_checkpoint_about about = cvy_checkpoint_about_default();
    CVY_TRY(cvy_comm_agree(comm, check_read(program, folder, about_out)));
    cvy_status status =
        cvy_checkpoint_share(comm, comm->rank == 0 ? cvy_checkpoint_find(folder, which, &set) : CVY_OK, &set);
    if (status == CVY_OK)
        status = load(program, &set, &about);
    if (status == CVY_OK)
        cvy_result_write(about_out, &about, sizeof about);
    else {
        cvy_text_release(&about.state);
        cvy_text_release(&about.notes);
    }
    cvy_checkpoint_close(&set);
    return status;
}
