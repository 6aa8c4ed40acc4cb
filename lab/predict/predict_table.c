/*
 * predict_table.c: what the search for a process grid has found, as a table for people and as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/text/base_json.h"
#include "predict/predict_table.h"

static const double gib = 1073741824.0;

static int width_of(const cvy_search_candidate *c)
{
    cvy_text grid = {0};
    cvy_search_grid_text(&c->grid, &grid);
    const int width = (int)grid.bytes;
    cvy_text_free(&grid);
    return width;
}

static void add_row(const cvy_search_candidate *c, int width, cvy_text *out)
{
    cvy_text grid = {0};
    cvy_search_grid_text(&c->grid, &grid);
    cvy_text_add(out, "%-*s %10.4g %11.4g %9.3f %9.0f %9.0f %8.0f%s\n", width, grid.data ? grid.data : "",
                 1e3 * c->time.step_s, c->samples_per_s, (double)c->need_bytes / gib,
                 cvy_search_share(c, c->time.work_s), cvy_search_share(c, cvy_search_exposed_s(c)),
                 cvy_search_share(c, c->time.bubble_s), cvy_search_is_rough(c) ? "  rough" : "");
    cvy_text_free(&grid);
}

static void add_head(const cvy_search_opts *o, int width, cvy_text *out)
{
    const int here = CVY_MIN(o->network.node_ranks, o->nranks);
    cvy_text_add(out, "%d rank%s of %d thread%s, %d on each node", o->nranks, o->nranks == 1 ? "" : "s", o->threads,
                 o->threads == 1 ? "" : "s", here);
    if (o->cores > 0)
        cvy_text_add(out, " of %d core%s", o->cores, o->cores == 1 ? "" : "s");
    if (here < o->nranks)
        cvy_text_add(out, "; between nodes %.3g us and %.3g MB/s", 1e6 * o->network.across.alpha_s,
                     1e-6 / o->network.across.beta_s);
    cvy_text_add(out, "\n\n%-*s %10s %11s %9s %9s %9s %8s\n", width, "grid", "ms a step", "samples/s", "GiB rank",
                 "work %", "exposed %", "bubble %");
}

static void add_too_large(const cvy_search *s, cvy_text *out)
{
    const char *head = "\ntoo large:\n";
    for (int i = 0; i < s->n; i++) {
        if (s->at[i].status != CVY_E_MEMORY)
            continue;
        cvy_text_add(out, "%s  ", head);
        cvy_search_grid_text(&s->at[i].grid, out);
        cvy_text_add(out, ": needs ");
        cvy_search_bytes_text(s->at[i].need_bytes, out);
        cvy_text_add(out, " on a rank\n");
        head = "";
    }
}

static int is_unusable(const cvy_search_candidate *c)
{
    return c->status != CVY_OK && c->status != CVY_E_MEMORY;
}

/* Grids with the same reason are listed together. */
static void add_unusable(const cvy_search *s, cvy_text *out)
{
    const char *head = "\ncannot be used:\n";
    for (int i = 0; i < s->n; i++) {
        int is_first = is_unusable(&s->at[i]);
        for (int k = 0; k < i && is_first; k++)
            is_first = !is_unusable(&s->at[k]) || strcmp(s->at[k].why, s->at[i].why) != 0;
        if (!is_first)
            continue;
        cvy_text_add(out, "%s  ", head);
        for (int k = i; k < s->n; k++)
            if (strcmp(s->at[k].why, s->at[i].why) == 0) {
                cvy_text_add(out, "%s", k > i ? "; " : "");
                cvy_search_grid_text(&s->at[k].grid, out);
            }
        cvy_text_add(out, ":\n    %s\n", s->at[i].why);
        head = "";
    }
}

void cvy_predict_table(const cvy_search *s, const cvy_search_opts *o, int shown, cvy_text *out)
{
    int n = 0, ngood = 0, rough = 0, width = 4;
    for (; ngood < s->n && s->at[ngood].status == CVY_OK; ngood++)
        width = ngood < shown ? CVY_MAX(width, width_of(&s->at[ngood])) : width;
    add_head(o, width, out);
    for (; n < ngood && n < shown; n++) {
        add_row(&s->at[n], width, out);
        rough |= cvy_search_is_rough(&s->at[n]);
    }
    if (ngood > n)
        cvy_text_add(out, "and %d slower one%s\n", ngood - n, ngood - n == 1 ? "" : "s");
    if (ngood > 0) {
        cvy_text_add(out, "\n%s: ", o->only_given ? "predicted" : "best");
        cvy_search_grid_text(&s->at[0].grid, out);
        cvy_text_add(out, ": ");
        cvy_search_explain(&s->at[0], out);
        cvy_text_add(out, "\n");
    }
    if (ngood > 0 && !o->only_given) {
        cvy_text_add(out, "as keys of the job: ");
        cvy_search_grid_keys(&s->at[0].grid, out);
        cvy_text_add(out, "\n");
    }
    if (rough)
        cvy_text_add(out, "rough: some kernels have no measured time here, and estimates stand for them; use "
                          "--planning measure\n");
    add_too_large(s, out);
    add_unusable(s, out);
}

/* ---- JSON ---- */

static void add_candidate(const cvy_search_candidate *c, cvy_json *json)
{
    cvy_text grid = {0};
    cvy_search_grid_text(&c->grid, &grid);
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "grid", grid.data ? grid.data : "");
    cvy_text_free(&grid);
    for (int a = 0; a < CVY_AXES; a++)
        cvy_json_int(json, cvy_axis_name((cvy_axis)a), c->grid.length[a]);
    cvy_json_int(json, "micro_batches", c->grid.micro_batches);
    cvy_json_int(json, "interleave", c->grid.interleave);
    cvy_json_bool(json, "shares_samples", c->grid.shares_samples);
    if (c->need_bytes > 0)
        cvy_json_int(json, "need_bytes", c->need_bytes);
    if (c->status == CVY_OK) {
        cvy_json_real(json, "step_ms", 1e3 * c->time.step_s);
        cvy_json_real(json, "samples_per_s", c->samples_per_s);
        cvy_json_real(json, "work_ms", 1e3 * c->time.work_s);
        cvy_json_real(json, "exposed_ms", 1e3 * cvy_search_exposed_s(c));
        cvy_json_real(json, "bubble_ms", 1e3 * c->time.bubble_s);
        cvy_json_bool(json, "rough", cvy_search_is_rough(c));
        cvy_json_bool(json, "rehearsed", c->is_rehearsed);
    } else {
        cvy_json_string(json, c->status == CVY_E_MEMORY ? "too_large" : "unusable", c->why);
    }
    cvy_json_close(json, '}');
}

cvy_status cvy_predict_json(const cvy_search *s, const cvy_search_opts *o, char **text_out)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_json_int(&json, "ranks", o->nranks);
    cvy_json_int(&json, "threads", o->threads);
    cvy_json_open(&json, "grids", '[');
    for (int i = 0; i < s->n; i++)
        add_candidate(&s->at[i], &json);
    cvy_json_close(&json, ']');
    cvy_json_close(&json, '}');
    *text_out = json.text.data;
    return json.text.status;
}
