/*
 * fake_nccl.c: libnccl.so.2 without a GPU, for tests: the functions that convoy calls, over the streams of the fake
 * libcuda and memory that the ranks of a machine share. As NCCL's, a sum begins when its stream comes to it, and ends
 * when all ranks have; the host never waits for it here. A thread lets streams go on while the host is elsewhere, as it
 * may be in a call of MPI that another rank enters after its sum. A message is sent when it has been received, so ranks
 * that both send first, and not in a group, hang.
 *
 * Numbers are added in the order of ranks, and bf16 is rounded after each addition. Ranks that call different
 * functions, or the same with other sizes, end with a message. FAKE_NCCL in the environment makes calls fail
 * (fake_faults.h); "hang=1@20" makes the 20th exchange of rank 1 wait for ever, and "absent=1" lets rank 1 never join.
 * FAKE_NCCL_VERSION is the version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend/fake_cuda/fake_cuda.h"
#include "backend/fake_cuda/fake_faults.h"
#include "base/number/base_bf16.h"
#include "comm/nccl/comm_nccl_api.h"

#define EXPORTED __attribute__((visibility("default")))
enum { SYSTEM = 2, INVALID = 4, USAGE = 5, RANKS = 8, PIECES = 2 * RANKS, CHUNK = 1 << 16 /* bytes */ };

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SWAP };
static const char *const kind_name[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast"};

/* What the ranks of a communicator share. A chunk is put into the slot of each rank, and then read by all. */
struct shared {
    atomic_int joined;
    struct {
        atomic_long put, read; /* chunks */
        long what[4];          /* kind, elements, type, root of the present call */
        char slot[CHUNK];
    } rank[RANKS];
    struct mailbox {
        atomic_long put, taken; /* chunks */
        size_t bytes;           /* of the message */
        char slot[CHUNK];
    } mail[RANKS][RANKS]; /* from, to */
};

struct ncclComm {
    struct shared *shared;
    int rank, nranks;
    atomic_int aborted, pending;
    long chunks; /* that this rank has put */
};

/* What a group sends or receives. */
struct piece {
    const char *from;
    char *to; /* NULL: it is sent */
    int peer;
    size_t bytes, done;
    long chunks; /* that this rank has put and the peer must have taken */
};

struct sum {
    struct ncclComm *comm;
    enum kind kind;
    const char *from;
    char *to;
    size_t total, part, done; /* elements */
    size_t bytes;             /* of an element */
    cvy_nccl_dtype type;
    int root, is_put, hangs;
    struct piece piece[PIECES];
    int npiece;
};

static int fails(const char *name)
{
    return fake_fails("FAKE_NCCL", name);
}

static void nap(long microseconds)
{
    const struct timespec time = {.tv_nsec = 1000 * microseconds};
    nanosleep(&time, NULL);
}

/* ---- a sum ---- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The elements of the chunk that belong to part `rank`: from *first to *end, counted from the begin of the range. */
static void cut(const struct sum *s, int rank, size_t n, size_t *first, size_t *end)
{
    const size_t part = s->part * (size_t)rank;
    *first = part > s->done ? smaller(part, s->done + n) : s->done;
    *end = smaller(part + s->part, s->done + n);
    if (*end < *first)
        *end = *first;
}

static void put(const struct sum *s, size_t n)
{
    struct ncclComm *c = s->comm;
    char *slot = c->shared->rank[c->rank].slot;
    const char *from = fake_cuda_memory(s->from);
    size_t first, end;
    if (s->kind == ALL_GATHER) {
        cut(s, c->rank, n, &first, &end);
        memcpy(slot + (first - s->done) * s->bytes, from + (first - s->part * (size_t)c->rank) * s->bytes,
               (end - first) * s->bytes);
    } else if (s->kind != BROADCAST || c->rank == s->root) {
        memcpy(slot, from + s->done * s->bytes, n * s->bytes);
    }
}

static void add_element(cvy_nccl_dtype type, void *sum, const void *x, size_t i)
{
    if (type == CVY_NCCL_F32)
        ((float *)sum)[i] += *(const float *)x;
    else if (type == CVY_NCCL_F64)
        ((double *)sum)[i] += *(const double *)x;
    else
        ((cvy_bf16 *)sum)[i] =
            cvy_bf16_of(cvy_bf16_get(((const cvy_bf16 *)sum)[i]) + cvy_bf16_get(*(const cvy_bf16 *)x));
}

/* to[i] = the sum over ranks of element first + i of the chunk */
static void add(const struct sum *s, void *to, size_t first, size_t n)
{
    const struct ncclComm *c = s->comm;
    memcpy(to, c->shared->rank[0].slot + first * s->bytes, n * s->bytes);
    for (int r = 1; r < c->nranks; r++)
        for (size_t i = 0; i < n; i++)
            add_element(s->type, to, c->shared->rank[r].slot + (first + i) * s->bytes, i);
}

static void take(const struct sum *s, size_t n)
{
    const struct ncclComm *c = s->comm;
    char *to = fake_cuda_memory(s->to);
    size_t first, end;
    switch (s->kind) {
    case ALL_REDUCE: add(s, to + s->done * s->bytes, 0, n); break;
    case REDUCE_SCATTER:
        cut(s, c->rank, n, &first, &end);
        add(s, to + (first - s->part * (size_t)c->rank) * s->bytes, first - s->done, end - first);
        break;
    case ALL_GATHER:
        for (int r = 0; r < c->nranks; r++) {
            cut(s, r, n, &first, &end);
            memcpy(to + first * s->bytes, c->shared->rank[r].slot + (first - s->done) * s->bytes,
                   (end - first) * s->bytes);
        }
        break;
    case BROADCAST: memcpy(to + s->done * s->bytes, c->shared->rank[s->root].slot, n * s->bytes); break;
    case SWAP: break;
    }
}

static void compare(const struct sum *s)
{
    const struct ncclComm *c = s->comm;
    for (int r = 0; r < c->nranks; r++) {
        const long *there = c->shared->rank[r].what, *here = c->shared->rank[c->rank].what;
        if (memcmp(there, here, sizeof c->shared->rank[r].what) == 0)
            continue;
        fprintf(stderr, "fake NCCL: rank %d calls %s of %ld elements, and rank %d %s of %ld\n", c->rank,
                kind_name[here[0]], here[1], r, kind_name[there[0]], there[1]);
        abort();
    }
}

/* One step; returns whether something was done. */
static int step(struct sum *s)
{
    struct ncclComm *c = s->comm;
    const size_t n = smaller(CHUNK / s->bytes, s->total - s->done);
    int ready = 1;
    for (int r = 0; r < c->nranks; r++)
        ready &= s->is_put ? atomic_load(&c->shared->rank[r].put) >= c->chunks
                           : atomic_load(&c->shared->rank[r].read) >= c->chunks;
    if (!ready)
        return 0;
    if (s->is_put) {
        compare(s);
        take(s, n);
        s->done += n;
        atomic_store(&c->shared->rank[c->rank].read, c->chunks);
    } else {
        const long what[4] = {s->kind, (long)s->total, s->type, s->root};
        memcpy(c->shared->rank[c->rank].what, what, sizeof what);
        put(s, n);
        atomic_store(&c->shared->rank[c->rank].put, ++c->chunks);
    }
    s->is_put = !s->is_put;
    return 1;
}

/* ---- messages ---- */

/* One step; returns whether something was done. */
static int step_piece(const struct ncclComm *c, struct piece *p)
{
    struct mailbox *m = p->to ? &c->shared->mail[p->peer][c->rank] : &c->shared->mail[c->rank][p->peer];
    const size_t n = smaller(CHUNK, p->bytes - p->done);
    const long put = atomic_load(&m->put), taken = atomic_load(&m->taken);
    if (n == 0 || (p->to ? put == taken : put > taken))
        return 0;
    if (p->to && m->bytes != p->bytes) {
        fprintf(stderr, "fake NCCL: rank %d receives %zu bytes from rank %d, which sends %zu\n", c->rank, p->bytes,
                p->peer, m->bytes);
        abort();
    }
    if (p->to) {
        memcpy((char *)fake_cuda_memory(p->to) + p->done, m->slot, n);
        atomic_store(&m->taken, taken + 1);
    } else {
        m->bytes = p->bytes;
        memcpy(m->slot, (const char *)fake_cuda_memory(p->from) + p->done, n);
        p->chunks = put + 1;
        atomic_store(&m->put, put + 1);
    }
    p->done += n;
    return 1;
}

static int is_over(const struct ncclComm *c, const struct piece *p)
{
    return p->done == p->bytes && (p->to || atomic_load(&c->shared->mail[c->rank][p->peer].taken) >= p->chunks);
}

/* Returns whether all is sent and received. */
static int step_all(struct sum *s)
{
    int left = 0;
    for (int i = 0; i < s->npiece; i++) {
        while (step_piece(s->comm, &s->piece[i]))
            ;
        left += !is_over(s->comm, &s->piece[i]);
    }
    return left == 0;
}

/* ---- the stream ---- */

/* Called by the stream until it returns 1. */
static int go_on(void *arg)
{
    struct sum *s = arg;
    const int aborted = atomic_load(&s->comm->aborted);
    if (!aborted && s->hangs)
        return 0;
    if (!aborted && s->kind == SWAP && !step_all(s))
        return 0;
    while (!aborted && s->kind != SWAP && s->done < s->total && step(s))
        ;
    if (!aborted && s->done < s->total)
        return 0;
    atomic_fetch_sub(&s->comm->pending, 1);
    free(s);
    return 1;
}

static size_t bytes_of(cvy_nccl_dtype type)
{
    return type == CVY_NCCL_F32    ? sizeof(float)
           : type == CVY_NCCL_F64  ? sizeof(double)
           : type == CVY_NCCL_BF16 ? sizeof(cvy_bf16)
           : type == CVY_NCCL_BYTE ? 1
                                   : 0;
}

static cvy_nccl_result enqueue(const struct sum *sum, cvy_nccl_dtype type, cvy_cu_stream stream)
{
    struct ncclComm *c = sum->comm;
    struct sum *s = malloc(sizeof *s);
    if (!s || !bytes_of(type) || (type == CVY_NCCL_BYTE && sum->kind != SWAP))
        return INVALID;
    *s = *sum;
    s->type = type;
    s->bytes = bytes_of(type);
    s->hangs = c->rank == 1 && fails("hang");
    atomic_fetch_add(&c->pending, 1);
    return fake_cuda_enqueue(stream, go_on, s) == 0 ? 0 : 1;
}

/* The open group of the thread that calls, which has one communicator and one stream. */
static _Thread_local struct sum group;
static _Thread_local cvy_cu_stream group_stream;
static _Thread_local int depth;

EXPORTED cvy_nccl_result ncclGroupStart(void)
{
    MAY_FAIL();
    depth++;
    return 0;
}

EXPORTED cvy_nccl_result ncclGroupEnd(void)
{
    const int error = fails(__func__);
    cvy_nccl_result result = 0;
    if (depth == 0)
        return USAGE;
    if (--depth == 0) {
        if (group.npiece > 0 && !error)
            result = enqueue(&group, CVY_NCCL_BYTE, group_stream);
        memset(&group, 0, sizeof group);
    }
    return error ? error : result;
}

static cvy_nccl_result add_piece(const struct piece *piece, cvy_nccl_dtype type, cvy_nccl_comm comm,
                                 cvy_cu_stream stream)
{
    const int is_first = group.npiece == 0;
    if (type != CVY_NCCL_BYTE || piece->peer < 0 || piece->peer >= comm->nranks || group.npiece == PIECES ||
        (!is_first && (group.comm != comm || group_stream != stream)))
        return INVALID;
    group.kind = SWAP;
    group.comm = comm;
    group_stream = stream;
    group.piece[group.npiece++] = *piece;
    if (depth > 0)
        return 0;
    depth = 1;
    return ncclGroupEnd();
}

EXPORTED cvy_nccl_result ncclSend(const void *from, size_t count, cvy_nccl_dtype type, int peer, cvy_nccl_comm comm,
                                  cvy_cu_stream stream)
{
    MAY_FAIL();
    return add_piece(&(struct piece){.from = from, .peer = peer, .bytes = count}, type, comm, stream);
}

EXPORTED cvy_nccl_result ncclRecv(void *to, size_t count, cvy_nccl_dtype type, int peer, cvy_nccl_comm comm,
                                  cvy_cu_stream stream)
{
    MAY_FAIL();
    return add_piece(&(struct piece){.to = to, .peer = peer, .bytes = count}, type, comm, stream);
}

EXPORTED cvy_nccl_result ncclAllReduce(const void *from, void *to, size_t count, cvy_nccl_dtype type, cvy_nccl_op op,
                                       cvy_nccl_comm comm, cvy_cu_stream stream)
{
    MAY_FAIL();
    return op ? INVALID : enqueue(&(struct sum){comm, ALL_REDUCE, from, to, .total = count}, type, stream);
}

EXPORTED cvy_nccl_result ncclReduceScatter(const void *from, void *to, size_t count, cvy_nccl_dtype type,
                                           cvy_nccl_op op, cvy_nccl_comm comm, cvy_cu_stream stream)
{
    const size_t total = count * (size_t)comm->nranks;
    MAY_FAIL();
    return op ? INVALID
              : enqueue(&(struct sum){comm, REDUCE_SCATTER, from, to, .total = total, .part = count}, type, stream);
}

EXPORTED cvy_nccl_result ncclAllGather(const void *from, void *to, size_t count, cvy_nccl_dtype type,
                                       cvy_nccl_comm comm, cvy_cu_stream stream)
{
    const size_t total = count * (size_t)comm->nranks;
    MAY_FAIL();
    return enqueue(&(struct sum){comm, ALL_GATHER, from, to, .total = total, .part = count}, type, stream);
}

EXPORTED cvy_nccl_result ncclBroadcast(const void *from, void *to, size_t count, cvy_nccl_dtype type, int root,
                                       cvy_nccl_comm comm, cvy_cu_stream stream)
{
    MAY_FAIL();
    return enqueue(&(struct sum){comm, BROADCAST, from, to, .total = count, .root = root}, type, stream);
}

/* ---- communicators ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t mover; /* lets streams go on */
static atomic_int ncomm;

static void *move(void *arg)
{
    while (atomic_load(&ncomm) > 0) {
        nap(2000);
        fake_cuda_go_on();
    }
    return arg;
}

static void note_comm(int change)
{
    pthread_mutex_lock(&lock);
    const int before = atomic_fetch_add(&ncomm, change);
    if (before == 0 && pthread_create(&mover, NULL, move, NULL) != 0)
        abort();
    if (before + change == 0)
        pthread_join(mover, NULL);
    pthread_mutex_unlock(&lock);
}

EXPORTED cvy_nccl_result ncclGetVersion(int *version)
{
    const char *given = getenv("FAKE_NCCL_VERSION");
    MAY_FAIL();
    *version = given ? atoi(given) : 22809;
    return 0;
}

EXPORTED cvy_nccl_result ncclGetUniqueId(cvy_nccl_id *id)
{
    const char *folder = getenv("TMPDIR");
    MAY_FAIL();
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/fake_nccl.XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = mkstemp(id->internal);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared)) != 0)
        return SYSTEM;
    close(fd);
    return 0;
}

EXPORTED cvy_nccl_result ncclCommInitRank(cvy_nccl_comm *out, int nranks, cvy_nccl_id id, int rank)
{
    MAY_FAIL();
    const int fd = nranks <= RANKS ? open(id.internal, O_RDWR) : -1;
    struct ncclComm *c = fd >= 0 ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return SYSTEM;
    c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->shared == MAP_FAILED)
        return SYSTEM;
    c->rank = rank;
    c->nranks = nranks;
    while (rank == 1 && fails("absent"))
        nap(100000);
    atomic_fetch_add(&c->shared->joined, 1);
    while (atomic_load(&c->shared->joined) < nranks)
        nap(200);
    if (rank == 0)
        unlink(id.internal);
    note_comm(1);
    *out = c;
    return 0;
}

EXPORTED cvy_nccl_result ncclCommDestroy(cvy_nccl_comm c)
{
    MAY_FAIL();
    while (atomic_load(&c->pending) > 0) {
        fake_cuda_go_on();
        nap(200);
    }
    note_comm(-1);
    munmap(c->shared, sizeof *c->shared);
    free(c);
    return 0;
}

/* Its memory stays, since work in a stream may still name it. */
EXPORTED cvy_nccl_result ncclCommAbort(cvy_nccl_comm c)
{
    atomic_store(&c->aborted, 1);
    note_comm(-1);
    return 0;
}

EXPORTED cvy_nccl_result ncclCommGetAsyncError(cvy_nccl_comm c, cvy_nccl_result *later)
{
    (void)c;
    *later = fails(__func__);
    return 0;
}

EXPORTED const char *ncclGetErrorString(cvy_nccl_result result)
{
    static const char *const text[] = {"no error",
                                       "unhandled cuda error",
                                       "unhandled system error",
                                       "internal error",
                                       "invalid argument",
                                       "invalid usage",
                                       "remote process exited or there was a network error"};
    return result >= 0 && result < (int)(sizeof text / sizeof *text) ? text[result] : "unknown result code";
}

EXPORTED const char *ncclGetLastError(cvy_nccl_comm c)
{
    (void)c;
    return "the fake says so";
}
