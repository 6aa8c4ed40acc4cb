/*
 * checkpoint_saver.c: background checkpoints (checkpoint_saver.h).
 *
 *     writers      copy | write their files, sync them |               (thread)
 *     rank 0                                            | manifest, rename, sync, delete older ones |   (thread)
 *     all ranks    begin .......................... advance ..................................... advance
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint_saver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_process.h"
#include "base/machine/base_clock.h"
#include "checkpoint/checkpoint_average.h"
#include "checkpoint/checkpoint_tiles.h"

#define PART_BYTES ((int64_t)64 << 20) /* minimum size of a file */

typedef enum { STAGE_NONE, STAGE_WRITE, STAGE_COMMIT } stage;

struct cvy_saver {
    cvy_context *context;
    stage stage;             /* the same on all ranks */
    cvy_save *save;          /* NULL: this rank does not write */
    cvy_vars *view;          /* the variables as a set names them; NULL: as the program does */
    cvy_vars *whole, *sums;  /* variables and pending gradients that were gathered for this save; NULL: none were */
    cvy_save_room room;      /* memory of its copies, kept from save to save */
    cvy_manifest_file *file; /* rank 0: the files of all writers */
    int nfile;
    cvy_saved saved;
    double begin_s;
    /* the thread */
    pthread_t thread;
    int has_thread;
    atomic_int busy;
    cvy_status status; /* result of the thread's work; read when it is not busy */
    char fault[1024];
};

cvy_status cvy_saver_create(cvy_context *context, cvy_saver **out)
{
    CVY_TRY(cvy_mem_alloc(sizeof **out, out));
    (*out)->context = context;
    return CVY_OK;
}

static void join(cvy_saver *s)
{
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    s->has_thread = 0;
}

static void clear(cvy_saver *s)
{
    join(s);
    cvy_save_destroy(&s->save);
    cvy_vars_destroy(&s->view);
    cvy_vars_destroy(&s->whole);
    cvy_vars_destroy(&s->sums);
    cvy_mem_free(&s->file);
    s->nfile = 0;
    s->stage = STAGE_NONE;
}

void cvy_saver_destroy(cvy_saver **saver)
{
    if (!*saver)
        return;
    clear(*saver);
    cvy_mem_free_pages(&(*saver)->room.data, (*saver)->room.bytes);
    cvy_mem_free(saver);
}

int cvy_saver_parts(const cvy_saver *s, int64_t bytes)
{
    return (int)CVY_MAX(CVY_MIN((int64_t)s->context->comm->nnodes, bytes / PART_BYTES), 1);
}

int cvy_saver_is_on(const cvy_saver *s)
{
    return s->stage != STAGE_NONE;
}

int cvy_saver_is_busy(const cvy_saver *s)
{
    return atomic_load(&s->busy);
}

/* ---- the thread's work ---- */

static void work(cvy_saver *s)
{
    cvy_status status = s->stage == STAGE_WRITE ? cvy_save_write(s->save) : cvy_save_commit(s->save, s->file, s->nfile);
    s->status = status;
    if (status != CVY_OK)
        snprintf(s->fault, sizeof s->fault, "%s", cvy_error_text()); /* the error record belongs to this thread */
}

static void *run(void *saver)
{
    CVY_ENTRY();
    cvy_saver *s = saver;
    work(s);
    atomic_store(&s->busy, 0);
    return NULL;
}

/* Does the stage's work on this rank, in a thread if one may be started. */
static void start(cvy_saver *s, int background)
{
    s->status = CVY_OK;
    atomic_store(&s->busy, 1);
    s->has_thread = background && cvy_thread_start(&s->thread, run, s) == 0;
    if (!s->has_thread)
        run(s);
}

/* ---- beginning ---- */

/* The part of `nparts` that this rank writes; -1: none. The first ranks of the nodes write. */
static int part_of(const cvy_comm *comm, int nparts)
{
    return comm->node_rank == 0 && comm->node < nparts ? comm->node : -1;
}

static cvy_status make_save(cvy_saver *s, const cvy_save_opts *opts, int part, int nparts)
{
    cvy_save_opts mine = *opts;
    mine.part = part;
    mine.nparts = nparts;
    if (!mine.state_json)
        mine.state_json = ""; /* part 0 writes it */
    CVY_TRY(cvy_save_create(&mine, &s->save));
    return part == 0 ? cvy_save_make_folder(s->save) : CVY_OK;
}

/* The first ranks of the parts get whole variables, which `opts` then names. */
static cvy_status gather(cvy_saver *s, const cvy_grid *grid, cvy_save_opts *opts)
{
    cvy_status status = cvy_tiles_gather(opts->vars, grid, &s->whole);
    if (status == CVY_OK && opts->pending)
        status = cvy_tiles_gather(opts->pending, grid, &s->sums);
    if (status != CVY_OK) {
        clear(s);
        return status;
    }
    opts->vars = s->whole ? s->whole : opts->vars;
    opts->pending = s->sums ? s->sums : opts->pending;
    return CVY_OK;
}

cvy_status cvy_saver_begin(cvy_saver *s, const cvy_save_opts *given, int split, int background)
{
    cvy_comm *comm = s->context->comm;
    const cvy_grid *grid = given->grid;
    cvy_save_opts own = *given, *opts = &own;
    const int nparts = grid    ? grid->nstages
                       : split ? cvy_saver_parts(s, cvy_save_bytes(opts->vars))
                               : 1,
              part = !grid                  ? part_of(comm, nparts)
                     : cvy_grid_saves(grid) ? grid->stage
                                            : -1;
    int64_t copied = 1;
    s->begin_s = cvy_clock_s();
    cvy_vars_destroy(&s->view); /* of a save that could not begin */
    CVY_TRY(cvy_comm_agree(comm, cvy_vars_as_saved(opts->vars, &s->view)));
    opts->vars = s->view ? s->view : opts->vars;
    if (grid && cvy_grid_splits(grid))
        CVY_TRY(gather(s, grid, opts));
    cvy_status status = part >= 0 ? make_save(s, opts, part, nparts) : CVY_OK;
    if (status != CVY_OK && part == 0 && s->save)
        status = cvy_save_give_up(s->save, status);
    status = cvy_comm_agree(comm, status);
    if (status != CVY_OK) {
        clear(s);
        return status;
    }
    if (part >= 0 && background)
        copied =
            cvy_save_copy(s->save, &s->room) == CVY_OK; /* without memory for the copy, the step waits for the write */
    CVY_TRY(comm->ops->allreduce(comm, &copied, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    s->stage = STAGE_WRITE;
    s->saved = (cvy_saved){.step = opts->step,
                           .bytes = cvy_save_bytes(opts->vars) + (opts->pending ? cvy_save_bytes(opts->pending) : 0),
                           .writers = nparts,
                           .copied = background && copied};
    s->status = CVY_OK;
    if (part >= 0)
        start(s, s->saved.copied);
    s->saved.stall_s = cvy_clock_s() - s->begin_s;
    return CVY_OK;
}

/* ---- from stage to stage ---- */

struct told {
    int32_t nfile;
    cvy_manifest_file file[CVY_SAVE_FILES];
};

/* Rank 0 receives the list of files from all writers. */
static cvy_status gather_files(cvy_saver *s)
{
    cvy_comm *comm = s->context->comm;
    struct told mine, *all = NULL;
    cvy_status status = CVY_OK;
    memset(&mine, 0, sizeof mine);
    if (s->save)
        mine.nfile = cvy_save_files(s->save, mine.file);
    status = cvy_mem_alloc(sizeof *all * (size_t)comm->nranks, &all);
    if (status == CVY_OK && comm->rank == 0)
        status = cvy_mem_alloc(sizeof *s->file * (size_t)(CVY_SAVE_FILES * s->saved.writers), &s->file);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->allgather(comm, &mine, sizeof mine, all));
    for (int r = 0; r < comm->nranks && comm->rank == 0; r++)
        for (int i = 0; i < all[r].nfile; i++)
            s->file[s->nfile++] = all[r].file[i];
out:
    cvy_mem_free(&all);
    return status;
}

static void end(cvy_saver *s, cvy_status status, int *ended_out, cvy_saved *saved_out)
{
    s->saved.status = status;
    s->saved.total_s = cvy_clock_s() - s->begin_s;
    *saved_out = s->saved;
    *ended_out = 1;
    clear(s);
}

cvy_status cvy_saver_advance(cvy_saver *s, int *ended_out, cvy_saved *saved_out)
{
    cvy_comm *comm = s->context->comm;
    const int root = comm->rank == 0;
    *ended_out = 0;
    join(s);
    if (s->status != CVY_OK)
        cvy_error_set(s->status, "%s", s->fault);
    if (s->stage == STAGE_WRITE && s->status != CVY_OK && root)
        s->status = cvy_save_give_up(s->save, s->status);
    cvy_status status = cvy_comm_agree(comm, s->status);
    if (s->stage == STAGE_WRITE && status == CVY_OK)
        status = gather_files(s);
    if (status == CVY_OK && s->stage == STAGE_WRITE) {
        s->stage = STAGE_COMMIT;
        s->status = CVY_OK;
        if (root)
            start(s, s->saved.copied);
        return CVY_OK;
    }
    if (s->stage == STAGE_WRITE && root && s->status == CVY_OK)
        status = cvy_save_give_up(s->save, status); /* another rank failed */
    end(s, status, ended_out, saved_out);
    return CVY_OK;
}

cvy_status cvy_saver_finish(cvy_saver *s, int *ended_out, cvy_saved *saved_out)
{
    const double begin = cvy_clock_s();
    *ended_out = 0;
    while (s->stage != STAGE_NONE && !*ended_out) {
        join(s); /* the agreement that follows waits for the other ranks */
        CVY_TRY(cvy_saver_advance(s, ended_out, saved_out));
    }
    if (*ended_out)
        saved_out->stall_s += cvy_clock_s() - begin;
    return CVY_OK;
}
