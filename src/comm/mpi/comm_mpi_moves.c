/*
 * comm_mpi_moves.c: a list of moves over MPI_Isend and MPI_Irecv, as a machine that is pushed on between kernels and never waits.
 *
 * Each move of the present round is a lane. Its range goes in segments, some of them under way at once; what is to be added comes into memory
 * aside. In bf16 on the wire both sides round: what was sent is what the sender goes on with, so that all ranks end with the same bits.
 */
#include <string.h>

#include "base/base_bf16.h"
#include "base/base_util.h"
#include "comm/mpi/comm_mpi_impl.h"

enum { PIECE_ELEMS = 8192 };           /* that are worth a thread */
enum { TAGS = 32000 };                 /* MPI promises 32767 */

struct lane {
    const cvy_move *move;
    const struct lane *after;          /* sends the same range: a segment is changed when it is out */
    char *aside;                       /* room for CVY_SEGMENTS; NULL: straight from or to the buffer */
    int64_t nsegments, posted, done;
    MPI_Request request[CVY_SEGMENTS];
};

struct cvy_moves {
    struct cvy_mpi *mpi;
    cvy_sum sum;
    const struct cvy_group *group;
    char *data;
    cvy_dtype dtype, wire;
    int64_t count, segment_elems;
    int tag, next, place;              /* next: first move of the round behind this one; place: -1 without */
    int newest_first, add_threads;
    cvy_moves *younger;                /* started next, of those that are not done */
    struct lane lane[CVY_ROUND_MOVES];
    int nlane;
};

/* Places are made with the first sum that may need one: nothing is allocated in a step. */
static cvy_status need_places(struct cvy_mpi *mpi)
{
    for (int i = 0; i < CVY_PLACES; i++)
        if (!mpi->place[i] && !mpi->folded)
            CVY_TRY(cvy_mem_alloc(CVY_PLACE_BYTES, &mpi->place[i]));
    return CVY_OK;
}

cvy_status cvy_moves_create(struct cvy_mpi *mpi, const cvy_moves_opts *opts, cvy_moves **out)
{
    cvy_moves *m = NULL;
    CVY_TRY(need_places(mpi));
    CVY_TRY(cvy_mem_alloc(sizeof *m, &m));
    *m = (cvy_moves){.mpi = mpi, .group = opts->group, .data = opts->data, .count = opts->count, .dtype = opts->dtype, .wire = opts->wire, .place = -1,
                       .newest_first = mpi->newest_first, .add_threads = mpi->add_threads};
    m->segment_elems = CVY_SEGMENT_BYTES / (int64_t)cvy_dtype_bytes(opts->dtype);
    m->tag = opts->group->next_tag++ % TAGS;
    const struct cvy_group *g = opts->group;
    const cvy_status status = opts->half == CVY_WHOLE ? cvy_sum_build(opts->def, g->me, g->n, opts->count, &m->sum)
                                                      : cvy_sum_build_half(opts->def, g->me, g->n, opts->count, opts->part_out, &m->sum);
    if (status != CVY_OK)
        cvy_mem_free(&m);
    else
        *out = m;
    return status;
}

/* Where the list has it, or its end. */
static cvy_moves **find_started(struct cvy_mpi *mpi, const cvy_moves *m)
{
    cvy_moves **at = &mpi->oldest;
    while (*at && *at != m)
        at = &(*at)->younger;
    return at;
}

static void forget(cvy_moves *m)
{
    cvy_moves **at = find_started(m->mpi, m);
    if (*at)
        *at = m->younger;
    if (m->place >= 0)
        m->mpi->holder[m->place] = NULL;
    m->place = -1;
}

void cvy_moves_destroy(cvy_moves **m)
{
    if (*m) {
        forget(*m);
        cvy_sum_free(&(*m)->sum);
    }
    cvy_mem_free(m);
}

int64_t cvy_moves_sent(const cvy_moves *m)
{
    int64_t elems = 0;
    for (int i = 0; i < m->sum.nmove; i++)
        elems += m->sum.move[i].kind == CVY_MOVE_SEND ? m->sum.move[i].count : 0;
    return elems * (int64_t)cvy_dtype_bytes(m->wire);
}

/* ---- segments ---- */

static int64_t segment_count(const cvy_moves *m, const struct lane *lane, int64_t segment)
{
    return CVY_MIN(m->segment_elems, lane->move->count - segment * m->segment_elems);
}

static char *segment_data(const cvy_moves *m, const struct lane *lane, int64_t segment)
{
    return m->data + (size_t)(lane->move->at + segment * m->segment_elems) * cvy_dtype_bytes(m->dtype);
}

static char *segment_aside(const struct lane *lane, int64_t segment)
{
    return lane->aside + (size_t)(segment % CVY_SEGMENTS) * CVY_SEGMENT_BYTES;
}

static void round_to_wire(float *x, cvy_bf16 *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = cvy_bf16_of(x[i]);
        x[i] = cvy_bf16_get(out[i]);
    }
}

static void finish(cvy_moves *m)
{
    float *x = (float *)(void *)m->data;
    const int rounds = m->sum.rounds_at_end && m->wire != m->dtype && !m->mpi->folded;
    for (int64_t i = 0; rounds && i < m->count; i++)
        x[i] = cvy_bf16_get(cvy_bf16_of(x[i]));
    forget(m);
}

static cvy_status post(cvy_moves *m, struct lane *lane)
{
    const int64_t n = segment_count(m, lane, lane->posted);
    char *data = segment_data(m, lane, lane->posted), *buffer = lane->aside ? segment_aside(lane, lane->posted) : data;
    MPI_Request *request = &lane->request[lane->posted % CVY_SEGMENTS];
    if (m->mpi->folded)
        data = buffer = m->mpi->folded;
    const int peer = lane->move->peer, bytes = (int)((size_t)n * cvy_dtype_bytes(m->wire));
    if (lane->move->kind != CVY_MOVE_SEND) {
        CVY_TRY_MPI(MPI_Irecv(buffer, bytes, MPI_BYTE, peer, m->tag, m->group->comm, request));
    } else {
        if (m->wire != m->dtype && !m->mpi->folded)
            round_to_wire((float *)data, (cvy_bf16 *)buffer, n);
        CVY_TRY_MPI(MPI_Isend(buffer, bytes, MPI_BYTE, peer, m->tag, m->group->comm, request));
    }
    lane->posted++;
    return CVY_OK;
}

/* adds, or in bf16 only takes over. */
static void add_range(const cvy_moves *m, char *to, const char *came, int adds, int64_t n)
{
    float *x = (float *)(void *)to;
    if (m->wire != m->dtype) {
        const cvy_bf16 *y = (const cvy_bf16 *)(const void *)came;
        for (int64_t i = 0; i < n; i++)
            x[i] = adds ? x[i] + cvy_bf16_get(y[i]) : cvy_bf16_get(y[i]);
    } else if (m->dtype == CVY_DTYPE_F64) {
        double *z = (double *)(void *)to;
        for (int64_t i = 0; i < n; i++)
            z[i] += ((const double *)(const void *)came)[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            x[i] += ((const float *)(const void *)came)[i];
    }
}

/* Single numbers are added by one thread, so any number of threads gives the same bits. */
static void take_in(const cvy_moves *m, const struct lane *lane)
{
    const int64_t n = segment_count(m, lane, lane->done), npieces = (n + PIECE_ELEMS - 1) / PIECE_ELEMS;
    const int adds = lane->move->kind == CVY_MOVE_ADD;
    const size_t elem = cvy_dtype_bytes(m->dtype), wire_elem = cvy_dtype_bytes(m->wire);
    if (!lane->aside || lane->move->kind == CVY_MOVE_SEND)
        return;
    if (m->mpi->folded) {
        cvy_clock_sleep((double)n * (double)elem * m->mpi->add_s);
        return;
    }
    char *to = segment_data(m, lane, lane->done);
    const char *came = segment_aside(lane, lane->done);
    if (m->add_threads <= 1 || npieces < 2) { /* a team of one would cost an allocation */
        add_range(m, to, came, adds, n);
        return;
    }
#pragma omp parallel for num_threads(m->add_threads)
    for (int64_t p = 0; p < npieces; p++) {
        const int64_t at = p * PIECE_ELEMS;
        add_range(m, to + (size_t)at * elem, came + (size_t)at * wire_elem, adds, CVY_MIN(PIECE_ELEMS, n - at));
    }
}

static cvy_status push_lane(cvy_moves *m, struct lane *lane, int *moved)
{
    while (lane->done < lane->posted) {
        MPI_Request *request = &lane->request[lane->done % CVY_SEGMENTS];
        int there = *request == MPI_REQUEST_NULL; /* a simulator has waited for it */
        if (lane->after && lane->after->done <= lane->done)
            break;
        if (!m->mpi->folded)
            CVY_TRY_MPI(MPI_Test(request, &there, MPI_STATUS_IGNORE));
        if (!there)
            break;
        take_in(m, lane);
        lane->done++;
        *moved = 1;
    }
    while (lane->posted < lane->nsegments && lane->posted - lane->done < CVY_SEGMENTS) {
        CVY_TRY(post(m, lane));
        *moved = 1;
    }
    return CVY_OK;
}

/* ---- rounds ---- */

static void begin_round(cvy_moves *m)
{
    char *aside = m->mpi->folded ? m->mpi->folded : m->mpi->place[m->place];
    const int round = m->next < m->sum.nmove ? m->sum.move[m->next].round : 0;
    m->nlane = 0;
    for (; m->next < m->sum.nmove && m->sum.move[m->next].round == round; m->next++) {
        struct lane *lane = &m->lane[m->nlane++];
        *lane = (struct lane){.move = &m->sum.move[m->next]};
        lane->nsegments = (lane->move->count + m->segment_elems - 1) / m->segment_elems;
        if (lane->move->kind == CVY_MOVE_ADD || m->wire != m->dtype) {
            lane->aside = aside;
            aside += (size_t)CVY_SEGMENTS * CVY_SEGMENT_BYTES;
        }
        for (int i = 0; i < CVY_SEGMENTS; i++)
            lane->request[i] = MPI_REQUEST_NULL;
        for (int before = 0; before < m->nlane - 1; before++)
            if (m->lane[before].move->kind == CVY_MOVE_SEND && m->lane[before].move->at == lane->move->at && lane->move->kind == CVY_MOVE_ADD)
                lane->after = &m->lane[before];
    }
}

static int is_newest_waiting(const cvy_moves *m)
{
    const cvy_moves *y = m->younger;
    while (y && y->place >= 0)
        y = y->younger;
    return !y;
}

/* The last free one is for the oldest, where that has none. */
static int take_place(cvy_moves *m)
{
    const cvy_moves *oldest = m->mpi->oldest;
    int nfree = 0, last = -1;
    if (m != oldest && m->newest_first && !is_newest_waiting(m))
        return 0;
    for (int i = 0; i < CVY_PLACES; i++)
        if (!m->mpi->holder[i]) {
            nfree++;
            last = i;
        }
    if (nfree == 0 || (nfree == 1 && m != oldest && oldest->place < 0))
        return 0;
    m->mpi->holder[last] = m;
    m->place = last;
    return 1;
}

void cvy_moves_start(cvy_moves *m)
{
    m->next = m->nlane = 0;
    m->younger = NULL;
    *find_started(m->mpi, m) = m;
}

/* ---- under a simulator: no tests, see comm_mpi_simulated.c ---- */

#define LOOK_AGAIN_S 1e-6
enum { REQUESTS_MAX = CVY_PLACES * CVY_ROUND_MOVES * CVY_SEGMENTS + 1 };

static int add_requests(cvy_moves *m, MPI_Request **from, int n)
{
    for (int l = 0; l < m->nlane; l++)
        for (int64_t s = m->lane[l].done; s < m->lane[l].posted; s++)
            from[n++] = &m->lane[l].request[s % CVY_SEGMENTS];
    return n;
}

/* Waits for one of them, which becomes null. */
static cvy_status wait_any(MPI_Request **from, int n, int *which_out)
{
    MPI_Request all[REQUESTS_MAX];
    for (int i = 0; i < n; i++)
        all[i] = *from[i];
    CVY_TRY_MPI(MPI_Waitany(n, all, which_out, MPI_STATUS_IGNORE));
    if (*which_out != MPI_UNDEFINED)
        *from[*which_out] = all[*which_out];
    return CVY_OK;
}

static cvy_status look(cvy_moves *m)
{
    MPI_Request *from[REQUESTS_MAX];
    const int n = add_requests(m, from, 0);
    CVY_TRY(cvy_simulated_tick(m->mpi));
    from[n] = &m->mpi->tick;
    for (int which = 0; which < n;)
        CVY_TRY(wait_any(from, n + 1, &which));
    return CVY_OK;
}

cvy_status cvy_moves_wait(struct cvy_mpi *mpi)
{
    MPI_Request *from[REQUESTS_MAX];
    int n = 0, which = 0;
    for (int i = 0; i < CVY_PLACES; i++)
        if (mpi->holder[i])
            n = add_requests(mpi->holder[i], from, n);
    if (n == 0)
        cvy_clock_sleep(LOOK_AGAIN_S); /* for something else than sums */
    return n > 0 ? wait_any(from, n, &which) : CVY_OK;
}

/* ---- all of it ---- */

cvy_status cvy_moves_progress(cvy_moves *m, int *done_out)
{
    *done_out = 0;
    if (m->place < 0) {
        if (!take_place(m))
            return CVY_OK;
        begin_round(m);
    }
    if (m->mpi->folded)
        CVY_TRY(look(m));
    for (int moved = 1; moved;) {
        int open = 0;
        moved = 0;
        for (int i = 0; i < m->nlane; i++) {
            CVY_TRY(push_lane(m, &m->lane[i], &moved));
            open += m->lane[i].done < m->lane[i].nsegments;
        }
        if (open)
            continue;
        if (m->next == m->sum.nmove) {
            finish(m);
            *done_out = 1;
            return CVY_OK;
        }
        begin_round(m);
        moved = 1;
    }
    return CVY_OK;
}
