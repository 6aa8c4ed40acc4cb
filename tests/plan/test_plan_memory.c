/* ranks: 1 2 3 */
/* rows: onednn3 */
/*
 * test_plan_memory.c: a plan's arena has no unused end, and no instruction overwrites what another one still needs.
 *
 * The test does not trust the plan. It replays the instructions on a map of the arena that notes the buffer of each
 * line of 64 bytes. A source must be complete when it is read. Gradients must not change between the start and the end
 * of their sum over ranks. Outputs must be complete at the end. Then programs run in an arena full of NaN that is
 * followed by a canary, and must compute the same bits as in a clean one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <stdio.h>

#include "op/comm/op_reduce.h"
#include "plan/plan_extents.h"
#include "program/program_impl.h"
#include "test_util.h"

enum { LINE = 64, NOBODY = -1, CANARY_BYTES = 4096 };

static cvy_context *context;

/* ---- the replay ---- */

struct replay {
    const cvy_plan *plan;
    int *owner;            /* for each line: the last buffer written there */
    unsigned char *locked; /* for each line: being summed over ranks */
    int64_t nline;
    int faults;
};

static void fault(struct replay *r, int at, const char *what, int buffer, int other)
{
    const cvy_instr *instr = at < r->plan->ninstr ? &r->plan->instr[at] : NULL;
    const char *node = instr && instr->call && instr->call->node ? instr->call->node->name
                       : instr                                   ? "plan's own"
                                                                 : "end";
    if (r->faults++ < 5)
        printf("instruction %d (%s): %s %s%s%s\n", at, node, what, r->plan->buffer[buffer].name,
               other >= 0 ? ", there is " : "", other >= 0 ? r->plan->buffer[other].name : "");
}

static const cvy_buffer *root_of(const cvy_plan *plan, int buffer)
{
    while (plan->buffer[buffer].root != buffer)
        buffer = plan->buffer[buffer].root;
    return &plan->buffer[buffer];
}

/* Finds the first and the last line of a buffer. Returns 0 if the buffer is not in the arena. */
static int lines_of(const struct replay *r, int buffer, int64_t *first_out, int64_t *last_out)
{
    if (buffer < 0)
        return 0;
    const cvy_buffer *root = root_of(r->plan, buffer);
    if (root->region != CVY_REGION_ARENA && root->region != CVY_REGION_STEP)
        return 0;
    *first_out = (int64_t)(root->offset / LINE);
    *last_out = (int64_t)((root->offset + r->plan->buffer[buffer].bytes + LINE - 1) / LINE) - 1;
    return *last_out >= *first_out;
}

/* Returns whether a line belongs to a slice: completely, or with `touched` in part. A slice may share lines with its
 * neighbours. */
static int in_slice(const struct replay *r, int buffer, int64_t line, int touched)
{
    const cvy_buffer *b = &r->plan->buffer[buffer];
    if (!b->slice)
        return 1;
    const int64_t n = b->value->shape.dim[0], sample = (int64_t)b->bytes / n;
    const int64_t piece = cvy_shape_elems(&b->value->shape) / n * (int64_t)cvy_dtype_bytes(b->value->dtype);
    const int64_t from = line * LINE - (int64_t)root_of(r->plan, buffer)->offset - (int64_t)b->at;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = CVY_MAX(i * sample, from), last = CVY_MIN(i * sample + piece, from + LINE);
        if (last - first >= (touched ? 1 : LINE))
            return 1;
    }
    return 0;
}

/* Returns whether v is a part of w: a slice of it, or a source of the concat that makes w. */
static int is_piece(const cvy_value *v, const cvy_value *w)
{
    int found = 0;
    if (v->producer && strcmp(v->producer->op->name, "slice") == 0)
        found = v->producer->src[0] == w;
    for (int i = 0; w->producer && strcmp(w->producer->op->name, "concat") == 0 && i < w->producer->nsrc; i++)
        found |= w->producer->src[i] == v;
    return found;
}

/* Follows views to the value that owns the memory. */
static const cvy_value *base_of(const cvy_value *v)
{
    while (v && v->producer && (v->producer->op->flags & CVY_OP_VIEW))
        v = v->producer->src[0];
    return v;
}

static int is_content(const struct replay *r, int owner, int buffer)
{
    if (owner == buffer)
        return 1;
    if (owner < 0 || root_of(r->plan, owner) != root_of(r->plan, buffer))
        return 0;
    const cvy_value *v = r->plan->buffer[buffer].value, *w = r->plan->buffer[owner].value;
    if (v && w && (r->plan->buffer[owner].slice || r->plan->buffer[buffer].slice))
        return is_piece(v, w) || is_piece(w, v);
    return v && base_of(v) != v && base_of(v) == base_of(r->plan->buffer[owner].value);
}

static void read_buffer(struct replay *r, int at, int buffer)
{
    int64_t first, last;
    if (!lines_of(r, buffer, &first, &last))
        return;
    for (int64_t l = first; l <= last; l++) {
        if (!in_slice(r, buffer, l, 0))
            continue;
        if (!is_content(r, r->owner[l], buffer)) {
            fault(r, at, "reads what is not there any more:", buffer, r->owner[l]);
            return;
        }
        if (r->locked[l]) {
            fault(r, at, "reads during the sum over ranks:", buffer, NOBODY);
            return;
        }
    }
}

static void write_buffer(struct replay *r, int at, int buffer)
{
    int64_t first, last;
    if (!lines_of(r, buffer, &first, &last))
        return;
    if (last >= r->nline) {
        fault(r, at, "writes behind the arena:", buffer, NOBODY);
        return;
    }
    for (int64_t l = first; l <= last; l++) {
        if (!in_slice(r, buffer, l, 1))
            continue;
        if (r->locked[l]) {
            fault(r, at, "writes during the sum over ranks:", buffer, r->owner[l]);
            return;
        }
        r->owner[l] = buffer;
    }
}

static int overlap(const struct replay *r, int a, int b)
{
    int64_t first_a, last_a, first_b, last_b;
    return lines_of(r, a, &first_a, &last_a) && lines_of(r, b, &first_b, &last_b) && first_a <= last_b &&
           first_b <= last_a;
}

/* Within an instruction only a source and its in-place destination may overlap, and only if the kernel allows it. */
static void check_apart(struct replay *r, int at)
{
    const cvy_instr *instr = &r->plan->instr[at];
    for (int d = 0; d < instr->ndst; d++) {
        for (int e = 0; e < d; e++)
            if (overlap(r, instr->dst_buffer[d], instr->dst_buffer[e]))
                fault(r, at, "has two destinations in one place:", instr->dst_buffer[d], instr->dst_buffer[e]);
        for (int s = 0; s < instr->nsrc; s++)
            if (overlap(r, instr->dst_buffer[d], instr->src_buffer[s]) && !cvy_instr_comm(instr) &&
                instr->kind != CVY_CALL_ACCUMULATE && (!instr->call || instr->call->ask.inplace[d] != s + 1))
                fault(r, at, "writes over its own source:", instr->src_buffer[s], instr->dst_buffer[d]);
        if (overlap(r, instr->scratch_buffer, instr->dst_buffer[d]))
            fault(r, at, "has its scratch over its destination", instr->dst_buffer[d], NOBODY);
    }
    for (int s = 0; s < instr->nsrc; s++)
        if (overlap(r, instr->scratch_buffer, instr->src_buffer[s]))
            fault(r, at, "has its scratch over its source", instr->src_buffer[s], NOBODY);
}

/* All gradients of the bucket must be complete. From now on nothing but the sum may write them. */
static void lock_bucket(struct replay *r, int at, int bucket, int lock)
{
    for (int b = 0; b < r->plan->nbuffer; b++) {
        const cvy_buffer *buffer = &r->plan->buffer[b];
        int64_t first, last;
        if (buffer->region != CVY_REGION_STEP || buffer->bucket != bucket || !lines_of(r, b, &first, &last))
            continue;
        if (lock)
            read_buffer(r, at, b);
        for (int64_t l = first; l <= last; l++)
            r->locked[l] = (unsigned char)lock;
    }
}

static void replay_instruction(struct replay *r, int at)
{
    const cvy_instr *instr = &r->plan->instr[at];
    check_apart(r, at);
    const int started = cvy_instr_starts_bucket(instr);
    const int awaited = cvy_instr_awaits_bucket(instr);
    if (started >= 0 || awaited >= 0) {
        lock_bucket(r, at, started >= 0 ? started : awaited, started >= 0);
        return;
    }
    for (int s = 0; s < instr->nsrc; s++)
        read_buffer(r, at, instr->src_buffer[s]);
    if (instr->kind == CVY_CALL_ACCUMULATE)
        read_buffer(r, at, instr->dst_buffer[0]);
    write_buffer(r, at, instr->scratch_buffer);
    for (int d = 0; d < instr->ndst; d++)
        write_buffer(r, at, instr->dst_buffer[d]);
}

static void check_outputs(struct replay *r)
{
    for (int b = 0; b < r->plan->nbuffer; b++) {
        const cvy_value *v = r->plan->buffer[b].value;
        int64_t first, last;
        if (!v || !v->is_output || !lines_of(r, b, &first, &last) || r->plan->buffer[b].first < 0)
            continue;
        /* An output may exist in two layouts. The plain one is read. */
        const cvy_buffer *buffer = &r->plan->buffer[b];
        if (buffer->region == CVY_REGION_ARENA &&
            buffer->bytes != (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype))
            continue;
        read_buffer(r, r->plan->ninstr, b);
    }
}

static int replay(const cvy_plan *plan)
{
    struct replay r = {.plan = plan, .nline = (int64_t)(plan->arena_bytes / LINE)};
    EXPECT_INT(plan->arena_bytes % LINE, 0);
    EXPECT_OK(cvy_mem_alloc(sizeof *r.owner * (size_t)(r.nline + 1), &r.owner));
    EXPECT_OK(cvy_mem_alloc((size_t)r.nline + 1, &r.locked));
    for (int64_t l = 0; l < r.nline; l++)
        r.owner[l] = NOBODY;
    for (int i = 0; i < plan->ninstr; i++)
        replay_instruction(&r, i);
    check_outputs(&r);
    for (int64_t l = 0; l < r.nline; l++)
        r.faults += r.locked[l]; /* a sum that nothing waits for */
    cvy_mem_free(&r.owner);
    cvy_mem_free(&r.locked);
    return r.faults;
}

/* The highest byte of all buffers is in the last line of the arena. */
static void check_size(const cvy_plan *plan)
{
    size_t end = plan->head.bytes, step_end = 0;
    for (int b = 0; b < plan->nbuffer; b++) {
        const cvy_buffer *buffer = root_of(plan, b);
        const size_t last = (buffer->offset + buffer->bytes + LINE - 1) / LINE * LINE;
        if (buffer->region == CVY_REGION_STEP)
            step_end = CVY_MAX(step_end, last);
        if (buffer->region == CVY_REGION_ARENA && buffer->first >= 0)
            end = CVY_MAX(end, last);
    }
    EXPECT_INT(step_end, plan->head.bytes);
    EXPECT_INT(end, plan->arena_bytes);
}

static void check_plans(const cvy_program *p, const char *what)
{
    for (int i = 0; i < cvy_program_ntasks(p); i++) {
        check_size(cvy_program_task_plan(p, i));
        const int faults = replay(cvy_program_task_plan(p, i));
        if (faults)
            printf("%s: step %d has %d faults\n", what, i, faults);
        EXPECT_INT(faults, 0);
        EXPECT(p->memory.arena_bytes >= cvy_program_task_plan(p, i)->arena_bytes);
    }
}

/* ---- plans of whole networks, without memory ---- */

static const struct zoo {
    const char *name;
    cvy_shape input;
    int64_t batch;
} zoo[] = {
    {"lenet", {3, {1, 28, 28}}, 8},     {"cifar-convnet", {3, {3, 32, 32}}, 10},
    {"resnet-20", {3, {3, 16, 16}}, 7}, {"googlenet-bn", {3, {3, 32, 32}}, 16},
    {"hep-cnn", {3, {3, 64, 64}}, 4},   {"alexnet-v2", {3, {3, 224, 224}}, 2},
    {"vgg-a", {3, {3, 64, 64}}, 3},
};

static void add_loss(cvy_model *m)
{
    char from[64];
    snprintf(from, sizeof from, "%s, label", cvy_model_output(m));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, from));
}

static void networks_of_the_zoo(void)
{
    static const char *const off[] = {NULL, "in-place", "memory-reuse", "slices", "all"};
    for (int i = 0; i < CVY_COUNT(zoo) * CVY_COUNT(off); i++) {
        const struct zoo *z = &zoo[i / CVY_COUNT(off)];
        const int64_t shards = i % CVY_COUNT(off) < 2 ? 0 : i % 2 ? 8 : 4;
        const cvy_program_opts opts = {.size = sizeof opts,
                                       .passes_off = off[i % CVY_COUNT(off)],
                                       .batch_norm_group = 4,
                                       .bucket_bytes = 64 << 10,
                                       .shards = shards};
        const cvy_training_opts train = {.size = sizeof train,
                                         .accumulate = shards || i % 3 + 1 > z->batch ? 1 : i % 3 + 1,
                                         .clip_norm = i % 2,
                                         .optimizer = i % 2 ? "adam" : "sgd"};
        cvy_model *m = NULL;
        cvy_program *p = NULL;
        int step = 0;
        EXPECT_OK(cvy_model_zoo(z->name, NULL, &z->input, 10, &m));
        add_loss(m);
        EXPECT_OK(cvy_program_create(context, &opts, &p));
        EXPECT_OK(cvy_program_add_training(p, m, z->batch, &train, &step));
        EXPECT_OK(cvy_program_add_forward(p, m, z->batch, NULL, &step));
        EXPECT_OK(cvy_program_prepare(p));
        check_plans(p, z->name);
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
}

/* ---- an arena of NaN, followed by a canary ---- */

static cvy_model *new_branches(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("branches", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 9, 9}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv1", "channels: 16, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn1", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "conv2", "channels: 8, kernel: 3, pad: 1", "relu1"));
    EXPECT_OK(cvy_model_add(m, "dropout", "drop", "p: 0.2", NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "conv3", "channels: 8, kernel: 1", "relu1"));
    EXPECT_OK(cvy_model_add(m, "tanh", "tanh3", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "add", "sum", NULL, "drop, tanh3"));
    EXPECT_OK(cvy_model_add(m, "concat", "both", NULL, "sum, relu1"));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "lrn", "lrn", "size: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 10", NULL));
    add_loss(m);
    return m;
}

static void fill_rows(cvy_program *p, int step, int turn)
{
    float *x = cvy_program_feed(p, step, "x");
    int32_t *label = cvy_program_feed(p, step, "label");
    const int64_t rows = cvy_program_rows(p, step), first = cvy_program_first_row(p, step);
    for (int64_t i = 0; i < rows * 243; i++)
        x[i] = (float)sin(0.37 * (double)(i + first * 243 + turn * 1000)) + (float)((i * 7919 + turn) % 13) / 13;
    for (int64_t i = 0; i < rows; i++)
        label[i] = (int32_t)((i + first + turn) % 10);
}

/* Trains and evaluates in turn. With `poison`, the arena is filled with NaN before each step. Returns the final
 * weights. */
static void run_branches(const char *off, const char *kernels, int64_t accumulate, int64_t shards, int poison,
                         float *weights, int64_t n, double *loss_out)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .passes_off = off,
                                   .kernels = kernels,
                                   .batch_norm_group = 3,
                                   .bucket_bytes = 1024,
                                   .shards = shards};
    const cvy_training_opts train = {.size = sizeof train,
                                     .accumulate = accumulate,
                                     .optimizer = "adam",
                                     .clip_norm = 1,
                                     .outputs = accumulate == 1 ? "fc, sum" : NULL};
    cvy_model *m = new_branches();
    cvy_program *p = NULL;
    int step = 0, forward = 0, intact = 1;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 7, &train, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, 5, NULL, &forward));
    EXPECT_OK(cvy_program_prepare(p));
    const size_t planned = p->memory.arena_bytes;
    p->memory.arena_bytes += CANARY_BYTES;
    EXPECT_OK(cvy_program_allocate(p));
    check_plans(p, "branches");
    for (int turn = 0; turn < 4; turn++) {
        const int now = turn == 2 ? forward : step;
        memset((char *)p->memory.arena + (poison ? 0 : planned), 0xff, p->memory.arena_bytes - (poison ? 0 : planned));
        fill_rows(p, now, turn);
        EXPECT_OK(cvy_program_step(p, now, 0.01));
        EXPECT_OK(cvy_program_loss(p, now, "loss", &loss_out[turn]));
        for (size_t i = planned; i < p->memory.arena_bytes; i++)
            intact &= ((unsigned char *)p->memory.arena)[i] == 0xff;
    }
    EXPECT(intact);
    EXPECT_OK(cvy_program_get(p, "fc.weight", weights, n));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void poison_and_canary(void)
{
    static const char *const off[] = {NULL, "all"}, *const kernels[] = {"auto", "native", "reference"};
    enum { WEIGHTS = 10 * 24 * 3 * 3 };
    static float clean[WEIGHTS], poisoned[WEIGHTS];
    for (int i = 0; i < 16; i++) {
        double clean_loss[4], poisoned_loss[4];
        const char *passes = off[i % 2], *kernel = kernels[i / 4 % 3];
        const int64_t shards = i < 12 ? 0 : i < 14 ? 4 : 16, accumulate = shards ? 1 : 1 + i / 2 % 2;
        run_branches(passes, kernel, accumulate, shards, 0, clean, WEIGHTS, clean_loss);
        run_branches(passes, kernel, accumulate, shards, 1, poisoned, WEIGHTS, poisoned_loss);
        EXPECT(memcmp(clean, poisoned, sizeof clean) == 0);
        EXPECT(memcmp(clean_loss, poisoned_loss, sizeof clean_loss) == 0);
        EXPECT(isfinite(clean_loss[3]));
    }
}

/* The lowest gap among many extents is that of a walk over all of them. */
static void extents(void)
{
    enum { N = 3000 };
    static cvy_extent all[N];
    cvy_extents x = {0};
    uint64_t random = 1;
    for (int n = 0; n < N; n++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        const int first = (int)(random >> 33) % 500, is_long = random >> 60 == 0;
        const int last = is_long ? 500 : first + (int)(random >> 40) % 30;
        const size_t bytes = 64 * (1 + (size_t)(random >> 50) % 8);
        size_t lowest = 0;
        for (int i = 0; i < n; i++) /* sorted by offset */
            if (all[i].last >= first && all[i].first <= last) {
                if (lowest + bytes <= all[i].offset)
                    break;
                lowest = CVY_MAX(lowest, all[i].end);
            }
        EXPECT_INT((int)cvy_extents_lowest(&x, bytes, first, last), (int)lowest);
        int at = n;
        for (; at > 0 && all[at - 1].offset > lowest; at--)
            all[at] = all[at - 1];
        all[at] = (cvy_extent){lowest, lowest + bytes, first, last};
        EXPECT_OK(cvy_extents_add(&x, all[at]));
    }
    cvy_extents_free(&x);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    TEST(extents);
    TEST(networks_of_the_zoo);
    TEST(poison_and_canary);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
