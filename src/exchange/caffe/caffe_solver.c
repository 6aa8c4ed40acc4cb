/*
 * caffe_solver.c: reads a solver of Caffe and finds its networks: those of the fields net, train_net, test_net, and
 * the networks that the solver itself holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "exchange/caffe/caffe_job.h"

/* ---- messages ---- */

enum { RING = 4, PLACE_BYTES = 512 };
typedef struct ring {
    char text[RING][PLACE_BYTES];
    int next;
} ring;

static char *next_place(void)
{
    static _Thread_local ring r;
    return r.text[r.next++ % RING];
}

const char *cvy_caffe_at(const cvy_caffe_file *file, const void *message, const char *field)
{
    char *text = next_place();
    const int line = cvy_caffe_line_of(file, message, field);
    if (line)
        snprintf(text, PLACE_BYTES, "%s:%d: %s", file->path, line, field);
    else
        snprintf(text, PLACE_BYTES, "%s: %s", file->path, field);
    return text;
}

const char *cvy_caffe_layer_at(const cvy_caffe_file *file, const Cvy__Caffe__LayerParameter *layer)
{
    char *text = next_place(), line[24] = "";
    if (layer->convoy_line > 0)
        snprintf(line, sizeof line, ":%u", layer->convoy_line);
    snprintf(text, PLACE_BYTES, "%s%s: layer %s (%s)", file->path, line, layer->name ? layer->name : "",
             layer->type ? layer->type : "");
    return text;
}

/* ---- paths ---- */

cvy_status cvy_caffe_find_file(cvy_caffe_work *w, const cvy_caffe_file *file, const void *message, const char *field,
                               const char *name, const char **out)
{
    const char *beside = NULL;
    char *copy = NULL;
    CVY_CHECK(name && *name, CVY_E_CONFIG, "%s is empty, expected a path", cvy_caffe_at(file, message, field));
    CVY_TRY(cvy_pool_strdup(w->pool, name, &copy));
    *out = copy;
    if (cvy_file_exists(name))
        return CVY_OK;
    const char *const under[] = {name, cvy_file_base_name(name)};
    int is_there = 0;
    for (int i = 0; i < CVY_COUNT(under) && name[0] != '/' && !is_there; i++) {
        CVY_TRY(cvy_data_path_join(w->pool, w->folder, under[i], &beside));
        is_there = cvy_file_exists(beside);
    }
    CVY_CHECK(
        is_there, CVY_E_IO,
        "%s is %s, which exists neither here nor in %s: start convoy in the folder that paths are relative to, or "
        "change the path",
        cvy_caffe_at(file, message, field), name, w->folder);
    cvy_text_add(&w->notes, "%s: %s does not exist relative to the current folder; %s is taken\n",
                 cvy_caffe_at(file, message, field), name, beside);
    *out = beside;
    return w->notes.status;
}

/* ---- the file ---- */

/* How far into a text the reader of a message came before its error, as a line; for a choice between two errors. */
static int line_of_error(const char *path, const char *error)
{
    const size_t n = strlen(path);
    return strncmp(error, path, n) == 0 && error[n] == ':' ? (int)strtol(error + n + 1, NULL, 10) : 0;
}

/* Reads the file as a solver, or else as a network. If it is neither, the error is that of the reader that came
 * farther. */
static cvy_status read_either(cvy_caffe_work *w)
{
    char error[1024];
    const cvy_status as_solver = cvy_caffe_text_read(w->path, &cvy__caffe__solver_parameter__descriptor, &w->solver);
    if (as_solver != CVY_E_FORMAT)
        return as_solver;
    snprintf(error, sizeof error, "%s", cvy_error_text());
    const cvy_status as_net = cvy_caffe_text_read(w->path, &cvy__caffe__net_parameter__descriptor, &w->train.file);
    if (as_net != CVY_E_FORMAT || line_of_error(w->path, error) < line_of_error(w->path, cvy_error_text()))
        return as_net;
    return cvy_error_set(as_solver, "%s", error);
}

/* ---- the phases ---- */

/* What a state says takes the place of what an earlier one said; stages are added. */
static cvy_status merge_state(cvy_pool *pool, const Cvy__Caffe__NetState *more, Cvy__Caffe__NetState *into)
{
    char **stage = NULL;
    if (!more)
        return CVY_OK;
    if (more->has_phase) {
        into->has_phase = 1;
        into->phase = more->phase;
    }
    if (more->has_level) {
        into->has_level = 1;
        into->level = more->level;
    }
    CVY_TRY(cvy_pool_alloc(pool, sizeof *stage * (into->n_stage + more->n_stage + 1), &stage));
    for (size_t i = 0; i < into->n_stage; i++)
        stage[i] = into->stage[i];
    for (size_t i = 0; i < more->n_stage; i++)
        stage[into->n_stage + i] = more->stage[i];
    into->stage = stage;
    into->n_stage += more->n_stage;
    return CVY_OK;
}

/* Brings a network into the newest form and leaves the layers of its phase. own: the state that the solver gives. */
static cvy_status take_phase(cvy_caffe_work *w, cvy_caffe_phase *phase, Cvy__Caffe__Phase usual,
                             const Cvy__Caffe__NetState *own)
{
    phase->state = (Cvy__Caffe__NetState)CVY__CAFFE__NET_STATE__INIT;
    phase->state.has_phase = 1;
    phase->state.phase = usual;
    CVY_TRY(merge_state(w->pool, phase->net->state, &phase->state));
    CVY_TRY(merge_state(w->pool, own, &phase->state));
    CVY_TRY(cvy_caffe_upgrade(phase->at->path, phase->net));
    return cvy_caffe_select(phase->at->path, &phase->state, phase->net);
}

/* Reads the network that a field names. */
static cvy_status open_net(cvy_caffe_work *w, const char *field, const char *path, cvy_caffe_phase *phase)
{
    const char *found = NULL;
    CVY_TRY(cvy_caffe_find_file(w, &w->solver, w->solver.message, field, path, &found));
    CVY_TRY(cvy_caffe_text_read(found, &cvy__caffe__net_parameter__descriptor, &phase->file));
    phase->at = &phase->file;
    phase->net = (Cvy__Caffe__NetParameter *)phase->file.message;
    return CVY_OK;
}

static cvy_status open_train_net(cvy_caffe_work *w, const cvy_caffe_solver *s)
{
    const int given = !!s->net + !!s->net_param + !!s->train_net + !!s->train_net_param;
    CVY_CHECK(given == 1, CVY_E_CONFIG,
              "%s: a solver has one of net, net_param, train_net and train_net_param; this one has %d", w->path, given);
    if (s->net || s->train_net) {
        CVY_TRY(open_net(w, s->net ? "net" : "train_net", s->net ? s->net : s->train_net, &w->train));
    } else {
        w->train.at = &w->solver;
        w->train.net = s->net_param ? s->net_param : s->train_net_param;
        w->train.is_inside = 1;
    }
    return take_phase(w, &w->train, CVY__CAFFE__PHASE__TRAIN, s->train_state);
}

/* The network for tests is read by itself, also if it is in the same file: it has other layers. */
static cvy_status open_test_net(cvy_caffe_work *w, const cvy_caffe_solver *s)
{
    const size_t own = s->n_test_net + s->n_test_net_param, tests = CVY_MAX(s->n_test_iter, own);
    const int shares = own == 0 && s->n_test_iter > 0 && (s->net || s->net_param);
    if (tests > 1)
        cvy_text_add(&w->notes,
                     "%s: of %d test networks the first one gives the validation data; the others are left "
                     "out\n",
                     w->path, (int)tests);
    if (own == 0 && !shares)
        return w->notes.status;
    if (s->n_test_net > 0 || (shares && s->net)) {
        CVY_TRY(
            open_net(w, s->n_test_net > 0 ? "test_net" : "net", s->n_test_net > 0 ? s->test_net[0] : s->net, &w->test));
    } else {
        CVY_TRY(cvy_caffe_text_read(w->path, &cvy__caffe__solver_parameter__descriptor, &w->test.file));
        const cvy_caffe_solver *again = (const cvy_caffe_solver *)w->test.file.message;
        w->test.at = &w->test.file;
        w->test.net = shares ? again->net_param : again->test_net_param[0];
        w->test.is_inside = 1;
    }
    return take_phase(w, &w->test, CVY__CAFFE__PHASE__TEST, s->n_test_state > 0 ? s->test_state[0] : NULL);
}

/* A network whose only data are those of phase TEST is taken as it is there. */
static cvy_status take_test_only(cvy_caffe_work *w)
{
    if (cvy_caffe_has_data(w->train.net) || !cvy_caffe_has_data(w->test.net))
        return CVY_OK;
    cvy_caffe_file_free(&w->train.file);
    w->train = w->test;
    w->train.at = &w->train.file;
    w->test = (cvy_caffe_phase){0};
    cvy_text_add(&w->notes, "%s: no layer of phase TRAIN gives data: the network is that of phase TEST\n", w->path);
    return w->notes.status;
}

/* A network without a solver is one for training, if it has data there. */
static cvy_status open_net_alone(cvy_caffe_work *w)
{
    w->train.at = &w->train.file;
    w->train.net = (Cvy__Caffe__NetParameter *)w->train.file.message;
    CVY_TRY(take_phase(w, &w->train, CVY__CAFFE__PHASE__TRAIN, NULL));
    CVY_TRY(cvy_caffe_text_read(w->path, &cvy__caffe__net_parameter__descriptor, &w->test.file));
    w->test.at = &w->test.file;
    w->test.net = (Cvy__Caffe__NetParameter *)w->test.file.message;
    CVY_TRY(take_phase(w, &w->test, CVY__CAFFE__PHASE__TEST, NULL));
    return take_test_only(w);
}

static cvy_status open_work(cvy_caffe_work *w)
{
    CVY_TRY(cvy_data_folder_of(w->pool, w->path, &w->folder));
    CVY_TRY(read_either(w));
    if (!w->solver.message)
        return open_net_alone(w);
    CVY_TRY(open_train_net(w, cvy_caffe_solver_of(w)));
    return open_test_net(w, cvy_caffe_solver_of(w));
}

cvy_status cvy_caffe_work_open(const char *path, cvy_caffe_work *out)
{
    char *copy = NULL;
    *out = (cvy_caffe_work){0};
    CVY_TRY(cvy_pool_create(&out->pool));
    CVY_TRY(cvy_pool_strdup(out->pool, path, &copy));
    out->path = copy;
    return open_work(out);
}

void cvy_caffe_work_free(cvy_caffe_work *w)
{
    cvy_caffe_file_free(&w->solver);
    cvy_caffe_file_free(&w->train.file);
    cvy_caffe_file_free(&w->test.file);
    cvy_text_free(&w->notes);
    cvy_pool_destroy(&w->pool);
    *w = (cvy_caffe_work){0};
}
