/*
 * program_place.c: layers that the user has placed on stages of a pipeline: by `stage: N` in the model, by
 * opts.first_layers, or by a pass of the user.
 *
 * It runs once, before the layers are cut into stages (program_pipeline.c). Layers that are not placed stay free, but a
 * layer cannot be on an earlier stage than the layers that it reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "program/program_impl.h"

cvy_status cvy_program_set_stage(cvy_program *p, const char *layer, int64_t stage)
{
    const int nstages = p->pipeline.nstages;
    int number = 0;
    if (nstages == 1)
        return CVY_OK;
    CVY_CHECK(p->pipeline.of_layer.count == 0, CVY_E_ARGUMENT,
              "layer %s is placed on stage %lld after the layers were cut into stages: place it before", layer,
              (long long)stage);
    CVY_CHECK(stage >= 1 && stage <= nstages, CVY_E_CONFIG,
              "layer %s is placed on stage %lld, and there are %d stages: take a stage from 1 to %d", layer,
              (long long)stage, nstages, nstages);
    CVY_TRY(cvy_keys_add(&p->placed.layer, layer, &number));
    CVY_TRY(cvy_mem_reserve(&p->placed.stage, &p->placed.room, number, sizeof *p->placed.stage));
    int *on = &p->placed.stage[number];
    CVY_CHECK(*on == 0 || *on == stage, CVY_E_CONFIG,
              "layer %s is placed on stage %d and on stage %lld: leave one of them out", layer, *on, (long long)stage);
    *on = (int)stage;
    return CVY_OK;
}

/* ---- sources ---- */

static cvy_status take_model(cvy_program *p, const cvy_model *m)
{
    for (int i = 0; i < m->nlayer; i++)
        if (m->layer[i].stage > 0)
            CVY_TRY(cvy_program_set_stage(p, m->layer[i].name, m->layer[i].stage));
    return CVY_OK;
}

static int find_layer(const cvy_model *m, const char *name, size_t length)
{
    for (int i = 0; i < m->nlayer; i++)
        if (strlen(m->layer[i].name) == length && memcmp(m->layer[i].name, name, length) == 0)
            return i;
    return -1;
}

static cvy_status no_layer(const cvy_model *m, const char *what, const char *name)
{
    const char **names = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *names * ((size_t)m->nlayer + 1), &names));
    for (int i = 0; i < m->nlayer; i++)
        names[i] = m->layer[i].name;
    cvy_error_set(CVY_E_CONFIG, "%s names the layer '%s', and the model %s has no such layer%s", what, name, m->name,
                  cvy_hint_name('\'', name, names, m->nlayer).text);
    cvy_mem_free(&names);
    return CVY_E_CONFIG;
}

/* Reads the names into the numbers of the model's layers. */
static cvy_status read_first_layers(const cvy_program *p, const cvy_model *m, int *first, int *count_out)
{
    const int nstages = p->pipeline.nstages;
    int count = 0;
    for (const char *at = p->opts.first_layers; *(at += strspn(at, ", \t\n"));) {
        const size_t n = strcspn(at, ", \t\n");
        char name[160];
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const int layer = find_layer(m, at, n);
        if (layer < 0)
            return no_layer(m, "opts.first_layers", name);
        CVY_CHECK(
            count == 0 || layer > first[CVY_MIN(count, nstages) - 1], CVY_E_CONFIG,
            "opts.first_layers: stage %d begins with %s, which does not come after %s, with which stage %d begins: "
            "name them in the order of the model's layers",
            count + 1, name, m->layer[first[CVY_MIN(count, nstages) - 1]].name, count);
        if (count < nstages)
            first[count] = layer;
        count++;
        at += n;
    }
    *count_out = count;
    return CVY_OK;
}

/* All layers from one first layer to the next are placed. */
static cvy_status take_first_layers(cvy_program *p, const cvy_model *m)
{
    const int nstages = p->pipeline.nstages;
    int *first = NULL, count = 0;
    cvy_status status = CVY_OK;
    if (!p->opts.first_layers)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *first * (size_t)nstages, &first));
    CVY_TRY_OUT(read_first_layers(p, m, first, &count));
    if (count != nstages)
        CVY_FAIL_OUT(
            CVY_E_CONFIG,
            "opts.first_layers names %d layer%s, and there are %d stages: name the layer with which each stage "
            "begins, that is %d names of which the first is %s",
            count, count == 1 ? "" : "s", nstages, nstages, m->layer[0].name);
    if (first[0] != 0)
        CVY_FAIL_OUT(CVY_E_CONFIG,
                     "opts.first_layers: the first stage begins with %s, the first layer of the model, not with %s",
                     m->layer[0].name, m->layer[first[0]].name);
    for (int i = 0, stage = 1; i < m->nlayer; i++) {
        while (stage < nstages && i >= first[stage])
            stage++;
        CVY_TRY_OUT(cvy_program_set_stage(p, m->layer[i].name, stage));
    }
out:
    cvy_mem_free(&first);
    return status;
}

/* ---- what follows for the other layers ---- */

/* Layers that share their variables have one name, and count as one. */
struct bounds {
    const cvy_model *m;
    cvy_index at; /* the first layer of each name */
    int *placed;  /* by layer: its stage, 0: any */
    int *least;   /* by layer: the first stage on which it can be */
    int *because; /* by layer: the placed layer that decides this */
};

/* The number of a layer's source among the layers; -1: it is an input. */
static int source_of(const struct bounds *b, int layer, int k)
{
    const int from = cvy_index_find(&b->m->layer_at, b->m->layer[layer].from[k]);
    return from < 0 ? -1 : cvy_index_find(&b->at, b->m->layer[from].name);
}

static cvy_status raise(struct bounds *b, int to, int from, int *moved)
{
    if (from < 0 || b->least[from] <= b->least[to])
        return CVY_OK;
    CVY_CHECK(!b->placed[to], CVY_E_CONFIG,
              "layer %s is placed on stage %d, but it reads what layer %s on stage %d makes, and values go to later "
              "stages only: take stage %d or a later one for %s",
              b->m->layer[to].name, b->placed[to], b->m->layer[b->because[from]].name, b->least[from], b->least[from],
              b->m->layer[to].name);
    b->least[to] = b->least[from];
    b->because[to] = b->because[from];
    *moved = 1;
    return CVY_OK;
}

/* One round is enough, unless layers share variables. */
static cvy_status find_least(struct bounds *b)
{
    for (int moved = 1; moved;) {
        moved = 0;
        for (int i = 0; i < b->m->nlayer; i++)
            for (int k = 0; k < b->m->layer[i].nfrom; k++)
                CVY_TRY(raise(b, cvy_index_find(&b->at, b->m->layer[i].name), source_of(b, i, k), &moved));
    }
    return CVY_OK;
}

static cvy_status fill(const cvy_program *p, struct bounds *b, cvy_cut_places *out)
{
    const size_t room = (size_t)b->m->nlayer + 1;
    CVY_TRY(cvy_mem_alloc(sizeof *b->placed * room, &b->placed));
    CVY_TRY(cvy_mem_alloc(sizeof *b->least * room, &b->least));
    CVY_TRY(cvy_mem_alloc(sizeof *b->because * room, &b->because));
    for (int i = 0; i < b->m->nlayer; i++) {
        CVY_TRY(cvy_index_add(&b->at, b->m->layer[i].name, i));
        const int number = cvy_keys_find(&p->placed.layer, b->m->layer[i].name);
        b->placed[i] = number < 0 ? 0 : p->placed.stage[number];
        b->least[i] = CVY_MAX(b->placed[i], 1);
        b->because[i] = i;
    }
    for (int i = 0; i < p->placed.layer.count; i++)
        if (cvy_index_find(&b->at, p->placed.layer.text[i]) < 0)
            return no_layer(b->m, "a stage of the pipeline", p->placed.layer.text[i]);
    CVY_TRY(find_least(b));
    for (int i = 0; i < b->m->nlayer; i++) {
        CVY_TRY(cvy_index_add(&out->least, b->m->layer[i].name, b->least[i]));
        if (b->placed[i])
            CVY_TRY(cvy_index_add(&out->placed, b->m->layer[i].name, b->placed[i]));
    }
    return CVY_OK;
}

cvy_status cvy_program_list_places(cvy_program *p, cvy_cut_places *out)
{
    struct bounds b = {.m = p->task[0]->model};
    CVY_TRY(take_model(p, b.m));
    CVY_TRY(take_first_layers(p, b.m));
    const cvy_status status = fill(p, &b, out);
    cvy_index_free(&b.at);
    cvy_mem_free(&b.placed);
    cvy_mem_free(&b.least);
    cvy_mem_free(&b.because);
    return status;
}

void cvy_program_free_places(cvy_cut_places *places)
{
    cvy_index_free(&places->placed);
    cvy_index_free(&places->least);
}

cvy_status cvy_program_check_stages(const cvy_program *p)
{
    const cvy_model *m = p->task[0]->model;
    for (int i = 0; i < m->nlayer; i++) {
        const int on = cvy_index_find(&p->pipeline.of_layer, m->layer[i].name);
        for (int k = 0; k < m->layer[i].nfrom && on >= 0; k++) {
            const int at = cvy_index_find(&m->layer_at, m->layer[i].from[k]);
            const int from = at < 0 ? -1 : cvy_index_find(&p->pipeline.of_layer, m->layer[at].name);
            CVY_CHECK(from <= on, CVY_E_CONFIG,
                      "layer %s on stage %d reads what layer %s on stage %d makes, and values go to later stages only: "
                      "place layers that share variables and those between them on one stage (stage: %d)",
                      m->layer[i].name, on + 1, m->layer[at].name, from + 1, on + 1);
        }
    }
    return CVY_OK;
}
