/*
 * comm_mpi_window.c: memory that the ranks of a node share. It consists of anonymous memory files
 * (base_memfile.h), which the other ranks open.
 *
 * If a rank cannot open the file of another one (separate containers, a hardened /proc), no rank shares
 * memory, and reductions go by messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_mem.h"
#include "base/base_signals.h"
#include "base/machine/base_memfile.h"
#include "comm/mpi/comm_mpi_impl.h"
#include "comm/mpi/comm_mpi_window.h"

struct card {
    int64_t pid, fd, bytes, device, file;
}; /* what the other ranks need to open the file, and to check that it is the right one */

static const size_t flags_bytes = sizeof(struct cvy_flag) * CVY_WINDOW_SLOTS;

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void *map_file(void *at, size_t bytes, int fd, size_t offset)
{
    void *p = cvy_memfile_map(at, bytes, fd, offset);
    if (!p)
        return NULL;
    cvy_mem_account(at ? 0 : (int64_t)bytes); /* at != NULL replaces memory that its owner has counted already */
    return p;
}

static void unmap_file(void *p, size_t bytes)
{
    munmap(p, bytes);
    cvy_mem_account(-(int64_t)bytes);
}

/* Says why memory cannot be shared, unless something has been said already. */
static void explain(cvy_comm *comm, const char *what, const char *cure)
{
    if (!*comm->unshared)
        snprintf(comm->unshared, sizeof comm->unshared, "rank %d: %.80s: %s; %s", comm->whole_rank, what,
                 strerror(errno), cure);
}

static int new_file(cvy_comm *comm, size_t bytes, struct card *card)
{
    struct stat st;
    const int fd = cvy_memfile_create();
    if (fd < 0)
        explain(comm, "a memory file cannot be made", "Linux has them since version 3.17");
    sigset_t before;
    cvy_signals_hold(&before);
    const int is_grown = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0;
    cvy_signals_release(&before);
    if (fd >= 0 && (!is_grown || fstat(fd, &st) != 0)) {
        explain(comm, "a memory file cannot grow", "look at the memory limits of the job");
        close(fd);
        *card = (struct card){.fd = -1};
        return -1;
    }
    *card = fd < 0 ? (struct card){.fd = -1}
                   : (struct card){getpid(), fd, (int64_t)bytes, (int64_t)st.st_dev, (int64_t)st.st_ino};
    return fd;
}

/* Opens another rank's file. -1: it cannot be opened here, or it is not the file that the card describes. */
static int open_file(cvy_comm *comm, const struct card *card)
{
    char path[64]; /* of the file, for messages */
    struct stat st;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)card->pid, (long long)card->fd);
    if (card->fd < 0)
        return -1;
    const int fd = cvy_memfile_open(card->pid, card->fd);
    if (fd < 0)
        explain(comm, path, "start all ranks of a node in one container (one process namespace), with /proc mounted");
    if (fd >= 0 && (fstat(fd, &st) != 0 || (int64_t)st.st_dev != card->device || (int64_t)st.st_ino != card->file)) {
        errno = ESRCH;
        explain(comm, path, "it belongs to another process: start all ranks of a node in one process namespace");
        close(fd);
        return -1;
    }
    return fd;
}

/* Replaces the memory by a file, which has the flags after the memory. Returns -1 if the system does not allow it. */
static int put_file(cvy_comm *comm, cvy_node_window *w, struct card *card)
{
    const size_t room = whole_pages(w->bytes);
    const int fd = new_file(comm, room + flags_bytes, card);
    if (fd < 0)
        return -1;
    w->flag[w->rank] = map_file(NULL, flags_bytes, fd, room);
    w->of[w->rank] = w->flag[w->rank] ? map_file(w->memory, room, fd, 0) : NULL;
    if (!w->of[w->rank]) {
        explain(comm, "a memory file cannot be mapped", "look at the memory limits of the job");
        card->fd = -1;
    }
    return fd;
}

static int map_other(cvy_comm *comm, cvy_node_window *w, int rank, const struct card *card)
{
    const int fd = open_file(comm, card);
    const size_t room = whole_pages(w->bytes);
    if (fd < 0 || card->bytes != (int64_t)(room + flags_bytes)) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    w->of[rank] = map_file(NULL, room, fd, 0);
    w->flag[rank] = map_file(NULL, flags_bytes, fd, room);
    close(fd);
    return w->of[rank] && w->flag[rank];
}

/* This rank's own memory stays mapped: its owner unmaps it. */
static void window_free(cvy_node_window *w)
{
    const size_t room = whole_pages(w->bytes);
    for (int r = 0; r < w->nranks; r++) {
        if (w->flag && w->flag[r])
            unmap_file(w->flag[r], flags_bytes);
        if (w->of && w->of[r] && r != w->rank)
            unmap_file(w->of[r], room);
    }
    cvy_mem_free(&w->flag);
    cvy_mem_free(&w->of);
    cvy_mem_free(&w);
}

static cvy_status window_alloc(cvy_comm *comm, void *memory, size_t bytes, cvy_node_window **out)
{
    cvy_node_window *w = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    *w = (cvy_node_window){
        .memory = memory, .bytes = bytes, .nranks = comm->node_nranks, .rank = comm->node_rank, .nslots = 1};
    cvy_status status = cvy_mem_alloc(sizeof *w->of * (size_t)w->nranks, &w->of);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *w->flag * (size_t)w->nranks, &w->flag);
    if (status != CVY_OK)
        window_free(w);
    else
        *out = w;
    return status;
}

/* All ranks take the explanation of the first rank that has one. */
static cvy_status agree_on_reason(cvy_comm *comm)
{
    int64_t first = *comm->unshared ? comm->rank : comm->nranks;
    CVY_TRY(comm->ops->allreduce(comm, &first, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    if (first < comm->nranks)
        CVY_TRY_MPI(MPI_Bcast(comm->unshared, sizeof comm->unshared, MPI_BYTE, (int)first, cvy_mpi_of(comm)->comm));
    return CVY_OK;
}

/* Opens the files of the other ranks. All ranks of the communicator agree whether it worked. The files stay open until
 * they have agreed. */
static cvy_status exchange(cvy_comm *comm, cvy_node_window *w, const struct card *mine, struct card *all,
                           int64_t *shared_out)
{
    int64_t shared = 1;
    CVY_TRY_MPI(MPI_Allgather(mine, sizeof *mine, MPI_BYTE, all, sizeof *all, MPI_BYTE, cvy_mpi_of(comm)->node));
    for (int r = 0; r < w->nranks; r++)
        shared = shared && all[r].fd >= 0 && (r == w->rank || map_other(comm, w, r, &all[r]));
    *shared_out = shared;
    CVY_TRY(comm->ops->allreduce(comm, shared_out, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    return *shared_out ? CVY_OK : agree_on_reason(comm);
}

static cvy_status make_window(cvy_comm *comm, void *memory, size_t bytes, int *shared_out)
{
    cvy_node_window *w = NULL;
    struct card mine = {.fd = -1}, *all = NULL;
    int64_t shared = 0;
    cvy_status status = window_alloc(comm, memory, bytes, &w);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *all * (size_t)comm->node_nranks, &all);
    status = cvy_comm_agree(comm, status);
    if (status == CVY_OK) {
        const int fd = put_file(comm, w, &mine);
        status = cvy_comm_agree(comm, exchange(comm, w, &mine, all, &shared));
        if (fd >= 0)
            close(fd);
    }
    cvy_mem_free(&all);
    *shared_out = status == CVY_OK && shared;
    if (*shared_out) {
        w->next = cvy_mpi_of(comm)->window;
        cvy_mpi_of(comm)->window = w;
    } else if (w) {
        window_free(w);
    }
    return status;
}

/* If a program could not be created on all ranks, some ranks have created fewer reductions than others. So the ranks
 * agree on the next tags. */
static cvy_status agree_on_tags(cvy_comm *comm)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    int64_t tag[] = {mpi->all.next_tag, mpi->across.next_tag};
    CVY_TRY(comm->ops->allreduce(comm, tag, CVY_COUNT(tag), CVY_DTYPE_I64, CVY_REDUCE_MAX));
    mpi->all.next_tag = (int)tag[0];
    mpi->across.next_tag = (int)tag[1];
    return CVY_OK;
}

static cvy_status node_share(cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory, size_t bytes,
                             int *shared_out)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    *shared_out = 0;
    if (comm->shares_nodes && !opts->no_node)
        CVY_TRY(make_window(comm, memory, bytes, shared_out));
    CVY_TRY(agree_on_tags(comm));
    cvy_group *group = *shared_out ? &mpi->across : &mpi->all;
    if (opts->algorithm || group->is_given || (*shared_out && comm->nnodes == 1))
        return CVY_OK;
    return cvy_group_measure(comm, group, !*shared_out || comm->node_rank < mpi->leaders, NULL);
}

static void node_unshare(cvy_comm *comm, const void *memory)
{
    for (cvy_node_window **at = &cvy_mpi_of(comm)->window; *at; at = &(*at)->next)
        if ((*at)->memory == memory) {
            cvy_node_window *w = *at;
            *at = w->next;
            window_free(w);
            return;
        }
}

cvy_node_window *cvy_node_window_find(const struct cvy_mpi *mpi, const void *data, size_t bytes)
{
    cvy_node_window *w = mpi->window;
    while (w && ((const char *)data < w->memory || (const char *)data + bytes > w->memory + w->bytes))
        w = w->next;
    return w;
}

/* ---- memory that exists once on the node ---- */

static void node_free(cvy_comm *comm, void **memory, size_t bytes)
{
    (void)comm;
    if (*memory)
        unmap_file(*memory, whole_pages(bytes));
    *memory = NULL;
}

static cvy_status node_alloc(cvy_comm *comm, size_t bytes, void **memory_out)
{
    struct card card = {.fd = -1};
    int fd = comm->node_rank == 0 ? new_file(comm, whole_pages(bytes), &card) : -1;
    const int code = MPI_Bcast(&card, sizeof card, MPI_BYTE, 0, cvy_mpi_of(comm)->node);
    if (comm->node_rank != 0)
        fd = open_file(comm, &card);
    void *memory = fd >= 0 ? map_file(NULL, whole_pages(bytes), fd, 0) : NULL;
    int64_t there = memory != NULL;
    cvy_status status = cvy_comm_agree(comm, cvy_mpi_check(code, "MPI_Bcast"));
    if (status == CVY_OK)
        status =
            comm->ops->allreduce(comm, &there, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN); /* until then the file stays open */
    if (fd >= 0)
        close(fd);
    if (memory && (status != CVY_OK || !there))
        node_free(comm, &memory, bytes);
    *memory_out = memory;
    return status == CVY_OK && !there ? agree_on_reason(comm) : status;
}

/* ---- barriers ---- */

static void node_barrier_enter(cvy_comm *comm, const void *memory)
{
    const cvy_node_window *w = cvy_node_window_find(cvy_mpi_of(comm), memory, 1);
    atomic_fetch_add_explicit(&w->flag[w->rank]->posted, 1, memory_order_release);
}

int cvy_node_window_all_posted(const cvy_node_window *w, int slot, uint64_t number)
{
    int all = 1;
    for (int r = 0; r < w->nranks && all; r++)
        all = atomic_load_explicit(&w->flag[r][slot].posted, memory_order_acquire) >= number;
    return all;
}

static int node_barrier_test(cvy_comm *comm, const void *memory)
{
    const cvy_node_window *w = cvy_node_window_find(cvy_mpi_of(comm), memory, 1);
    return cvy_node_window_all_posted(w, 0, atomic_load_explicit(&w->flag[w->rank]->posted, memory_order_relaxed));
}

const cvy_comm_node_ops cvy_mpi_node_ops = {
    .share = node_share,
    .unshare = node_unshare,
    .alloc = node_alloc,
    .free = node_free,
    .barrier_enter = node_barrier_enter,
    .barrier_test = node_barrier_test,
};
