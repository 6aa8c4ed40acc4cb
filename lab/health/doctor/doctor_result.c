/*
 * doctor_result.c: the result of cvy_run_doctor() as a struct. Its texts are printed at once, because they need the
 * context, which may be gone when the caller asks for them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "health/doctor/doctor.h"

/* The size of the struct's first version; without `owned` the caller could not release what it is given. */
#define FIRST_SIZE (offsetof(cvy_doctor_result, owned) + sizeof(void *))

struct owned {
    cvy_pool *pool;
    char *json, *lines, *platform;
};

/* ---- filling ---- */

static cvy_status fill_nodes(const cvy_doctor *d, cvy_doctor_result *r)
{
    const cvy_comm *comm = d->context->comm;
    cvy_doctor_result_node *node = NULL;
    cvy_doctor_result_rank *rank = NULL;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *node * (size_t)comm->nnodes, &node));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *rank * (size_t)comm->nranks, &rank));
    for (int n = 0; n < comm->nnodes; n++) {
        const cvy_doctor_node *from = &d->node[n];
        node[n] = (cvy_doctor_result_node){.first_rank = from->first,
                                           .ranks = from->nranks,
                                           .threads = from->threads,
                                           .cores_used = CPU_COUNT(&from->cores),
                                           .cores_permitted = CPU_COUNT(&from->permitted),
                                           .gb_per_s_from_the_node_before =
                                               d->hop_s && n > 0 ? 1e-9 * (double)d->hop_bytes / d->hop_s[n] : NAN};
        snprintf(node[n].host, sizeof node[n].host, "%s", d->topology[from->first].host);
        snprintf(node[n].cpu, sizeof node[n].cpu, "%s", d->rank[from->first].cpu);
        cvy_cores_text(&from->mask, node[n].bound_to, sizeof node[n].bound_to);
    }
    for (int k = 0; k < comm->nranks; k++) {
        rank[k] = (cvy_doctor_result_rank){.node = d->topology[k].node, .threads = d->topology[k].threads};
        cvy_cores_text(&d->topology[k].mask, rank[k].bound_to, sizeof rank[k].bound_to);
    }
    r->nnodes = comm->nnodes;
    r->nranks = comm->nranks;
    r->node = node;
    r->rank = rank;
    return CVY_OK;
}

static cvy_status fill_clock(const cvy_doctor *d, cvy_doctor_result *r)
{
    const cvy_doctor_clock *c = &d->clock;
    cvy_doctor_result_clock *clock = NULL;
    if (!c->is_known)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *clock, &clock));
    *clock = (cvy_doctor_result_clock){c->apart_s, c->back, c->set_s, c->read_s};
    r->clock = clock;
    return CVY_OK;
}

static cvy_status fill_files(const cvy_doctor *d, cvy_doctor_result *r)
{
    const cvy_doctor_files *f = &d->files;
    cvy_doctor_result_files *files = NULL;
    char *folder = NULL;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *files, &files));
    CVY_TRY(cvy_pool_strdup(d->pool, f->folder, &folder));
    *files = (cvy_doctor_result_files){.folder = folder, .ranks_that_do_not_see_them = f->nunseen};
    if (f->is_known) {
        files->is_known = 1;
        files->bytes = f->bytes;
        files->free_bytes = f->free_bytes;
        files->write_mb_per_s = 1e-6 * (double)f->bytes / f->write_s;
        files->read_mb_per_s = 1e-6 * (double)f->bytes / f->read_s;
        files->small_ms = 1e3 * f->small_s;
    }
    r->files = files;
    return CVY_OK;
}

static cvy_status fill_link(const cvy_doctor *d, const cvy_doctor_link *from, const cvy_doctor_result_link **out)
{
    cvy_doctor_result_link *link = NULL;
    int64_t *bytes = NULL;
    double *us = NULL;
    if (from->from < 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *link, &link));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *bytes * CVY_DOCTOR_POINTS, &bytes));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *us * CVY_DOCTOR_POINTS, &us));
    for (int i = 0; i < from->npoints; i++) {
        bytes[i] = from->bytes[i];
        us[i] = 1e6 * from->best_s[i];
    }
    *link = (cvy_doctor_result_link){.from = from->from,
                                     .to = from->to,
                                     .alpha_us = 1e6 * from->alpha_s,
                                     .gb_per_s = 1e-9 / from->beta_s,
                                     .npoints = from->npoints,
                                     .bytes = bytes,
                                     .us = us};
    *out = link;
    return CVY_OK;
}

static cvy_status fill_sums(const cvy_doctor *d, cvy_doctor_result *r)
{
    cvy_doctor_result_sum *sum = NULL;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *sum * CVY_DOCTOR_SIZES, &sum));
    for (int i = 0; i < d->nsize; i++) {
        const cvy_doctor_size *from = &d->size[i];
        cvy_doctor_result_method *method = NULL;
        CVY_TRY(cvy_pool_alloc(d->pool, sizeof *method * CVY_DOCTOR_METHODS, &method));
        for (int w = 0; w < d->nmethods; w++) {
            method[w] = (cvy_doctor_result_method){.ms_best = 1e3 * from->best_s[w],
                                                   .ms_median = 1e3 * from->median_s[w],
                                                   .gb_per_s = 1e-9 * (double)from->bytes / from->best_s[w],
                                                   .wrong = from->wrong[w]};
            snprintf(method[w].name, sizeof method[w].name, "%s", d->method[w].name);
        }
        sum[i] = (cvy_doctor_result_sum){from->bytes, from->ntrials, d->nmethods,
                                         method,      from->chosen,  cvy_doctor_fastest(d, from)};
    }
    r->nsums = d->nsize;
    r->sum = sum;
    return CVY_OK;
}

static cvy_status fill(const cvy_doctor *d, cvy_doctor_result *r)
{
    const char **finding = NULL;
    r->leaders = d->shared ? d->least_ranks : 0;
    r->left_out_from_bytes = d->left_out_bytes;
    snprintf(r->node_memory, sizeof r->node_memory, "%s", cvy_doctor_memory_text(d));
    snprintf(r->mpi_library, sizeof r->mpi_library, "%s", d->about.library);
    snprintf(r->mpi_threads, sizeof r->mpi_threads, "%s", d->about.threads);
    CVY_TRY(fill_nodes(d, r));
    CVY_TRY(fill_clock(d, r));
    CVY_TRY(fill_files(d, r));
    CVY_TRY(fill_link(d, &d->inside, &r->inside_a_node));
    CVY_TRY(fill_link(d, &d->between, &r->between_nodes));
    CVY_TRY(fill_sums(d, r));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *finding * CVY_DOCTOR_FINDINGS, &finding));
    for (int i = 0; i < d->nfinding; i++)
        finding[i] = d->finding[i];
    r->nfindings = d->nfinding;
    r->finding = finding;
    return CVY_OK;
}

static void release_owned(struct owned **owned)
{
    if (!*owned)
        return;
    cvy_mem_free(&(*owned)->json);
    cvy_mem_free(&(*owned)->lines);
    cvy_mem_free(&(*owned)->platform);
    cvy_pool_destroy(&(*owned)->pool);
    cvy_mem_free(owned);
}

cvy_status cvy_doctor_result_make(const cvy_doctor *d, cvy_pool **pool_take, cvy_doctor_result *given)
{
    cvy_doctor_result own = cvy_doctor_result_default();
    struct owned *owned = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *owned, &owned));
    *owned = (struct owned){0};
    cvy_status status = fill(d, &own);
    if (status == CVY_OK)
        status = cvy_doctor_print_json(d, &owned->json);
    if (status == CVY_OK)
        status = cvy_doctor_print_table(d, &owned->lines);
    if (status == CVY_OK && d->platform.is_measured)
        status = cvy_doctor_print_platform(d, &owned->platform);
    if (status != CVY_OK) {
        release_owned(&owned);
        return status;
    }
    owned->pool = *pool_take;
    *pool_take = NULL;
    own.owned = owned;
    own.platform = owned->platform;
    cvy_result_write(given, &own, sizeof own);
    return CVY_OK;
}

/* ---- the caller's struct ---- */

cvy_status cvy_doctor_result_check(const cvy_doctor_result *given)
{
    CVY_CHECK(given, CVY_E_ARGUMENT, "cvy_run_doctor() needs a place for what it finds");
    CVY_TRY(CVY_RESULT_CHECK(cvy_doctor_result, given));
    CVY_CHECK(
        given->size >= FIRST_SIZE, CVY_E_ARGUMENT,
        "the size of cvy_doctor_result is %zu, and its first version had %zu: set it to sizeof(cvy_doctor_result)",
        given->size, FIRST_SIZE);
    return CVY_OK;
}

void cvy_doctor_result_clear(cvy_doctor_result *given)
{
    const cvy_doctor_result empty = {0};
    cvy_result_write(given, &empty, sizeof empty);
}

static cvy_status copy_text(const cvy_doctor_result *result, int as_json, char **text_out)
{
    *text_out = NULL;
    CVY_TRY(cvy_doctor_result_check(result));
    const struct owned *owned = result->owned;
    CVY_CHECK(owned, CVY_E_ARGUMENT, "the result is empty: cvy_run_doctor() fills it on rank 0");
    return cvy_mem_printf(text_out, "%s", as_json ? owned->json : owned->lines);
}

cvy_status cvy_doctor_result_json(const cvy_doctor_result *result, char **text_out)
{
    CVY_ENTRY();
    return copy_text(result, 1, text_out);
}

cvy_status cvy_doctor_result_lines(const cvy_doctor_result *result, char **text_out)
{
    CVY_ENTRY();
    return copy_text(result, 0, text_out);
}

/* A struct that cvy_run_doctor() has refused holds nothing. */
void cvy_doctor_result_release(cvy_doctor_result *result)
{
    CVY_ENTRY();
    if (result->size < FIRST_SIZE)
        return;
    struct owned *owned = result->owned;
    release_owned(&owned);
    cvy_doctor_result_clear(result);
}
