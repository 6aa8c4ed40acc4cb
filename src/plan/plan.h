/*
 * plan.h: the plan of one step: a flat list of instructions on known memory, made of graphs before step 0.
 *
 *   tune      which kernel each node shall have, by measured times                            plan_tune.c
 *   select    a kernel and the layouts for each node, reorders where layouts meet             plan_select.c
 *   slices    branches written into the memory of their concat, gradients read from there     plan_slices.c
 *   schedule  the flat list: prepare and micro-batch phases for each micro-batch, update once  plan_schedule.c
 *   deferred  updates in the order in which the next forward pass needs them                 plan_deferred.c
 *   memory    lifetimes, in-place, one arena                                                  plan_memory.c
 *   parts     whether the ranks of a node can share the update of the weights                 plan_parts.c
 *   bind      kernels created, pointers resolved                                              plan_bind.c
 *
 * After binding, a step allocates nothing and looks nothing up: src/program/program_execute.c walks the list.
 */
#ifndef CVY_PLAN_H
#define CVY_PLAN_H

#include <stdatomic.h>

#include "base/base_clock.h"
#include "base/base_json.h"
#include "kernel/clock/clock.h"
#include "kernel/kernel_library.h"
#include "pass/pass.h"
#include "reduce/reduce_bucket.h"

typedef enum {
    CVY_CALL_KERNEL,     /* a registered kernel */
    CVY_CALL_REFERENCE,  /* the operator's plain kernel */
    CVY_CALL_REORDER,    /* between two layouts of one value */
    CVY_CALL_VIEW,       /* no instruction */
    CVY_CALL_COMM,       /* an operator that exchanges something with other ranks: cvy_op_comm */
    CVY_CALL_ABSENT,     /* a node of a rank without samples: what others wait for is zeroed, nothing runs */
    CVY_CALL_ACCUMULATE, /* plan only: an accumulator takes up a later micro-batch's part */
    CVY_CALL_ZERO,       /* plan only: memory set to zero */
    CVY_CALL_BARRIER,    /* plan only: the ranks of a node wait for each other, if they update weights in parts */
} cvy_call_kind;

typedef struct cvy_call_kind_def {
    const char *name;
    int is_comm;  /* it waits for other ranks or starts an exchange: its time counts as communication */
    int computes; /* it takes time of its own, which a clock waits for */
} cvy_call_kind_def;
const cvy_call_kind_def *cvy_call_kind_of(cvy_call_kind kind);

typedef struct cvy_instance { /* a value in one layout and dtype */
    cvy_value *value;
    cvy_dtype dtype; /* the value's own, but f32 for what is outside of a bf16 step: feeds, outputs */
    cvy_layout layout;
    int canonical;  /* the layout in which its producer (or the outside) leaves it */
    int once;       /* of a variable, another dtype: made at the head of the step for all micro-batches */
    int kept;       /* and lies as the variable does: kept with it, made only where it is stale */
    int view_of;    /* index of the instance whose memory it is, -1: its own */
    size_t view_at; /* bytes behind the start of that instance: a slice of its channels */
    int64_t elems;  /* with padding */
    size_t bytes;
    int before; /* the value's instance that was made before this one, -1: none */
} cvy_instance;

typedef struct cvy_call {
    cvy_call_kind kind;
    const cvy_node *node; /* NULL for reorders */
    const cvy_kernel_def *kernel;
    cvy_kernel_ask ask;
    int signature;                                    /* KERNEL, REFERENCE: of the node, in the unit's offers */
    struct cvy_offer *offer;                          /* the one that was taken */
    int src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX]; /* indices of instances, -1: none */
    int nsrc, ndst;
    cvy_phase phase;
    void *state; /* of the kernel, reorder or reference; after binding */
} cvy_call;

/* What kernels have answered so far: plan_offers.h. A program's graphs share them. */
typedef struct cvy_offers cvy_offers;
cvy_status cvy_offers_create(cvy_offers **out);
void cvy_offers_destroy(cvy_offers **offers);

typedef struct cvy_lowered { /* one graph with its kernels chosen */
    cvy_graph *graph;
    cvy_offers *offers; /* borrowed, or its own: */
    cvy_offers *own_offers;
    cvy_instance *instance;
    int ninstance, instance_room;
    int *newest; /* instance of each value of the graph, -1: none yet */
    cvy_call *call;
    int ncall, call_room;
} cvy_lowered;

/* Times measured on this machine: plan_wisdom.h. */
typedef struct cvy_wisdom cvy_wisdom;

/* In place of kernels: what they would take, and the clock that waits so long. */
typedef struct cvy_plan_clock {
    cvy_clock clock;
    const cvy_wisdom *times;
} cvy_plan_clock;

/* How what micro-batches add up comes together. */
typedef enum {
    CVY_MICRO_IN_ORDER, /* a later one's part is added to what the earlier ones have */
    CVY_MICRO_TREE,     /* a power of two of them, as a binary tree: comm_shards.h */
    CVY_MICRO_APART,    /* so in the prepare phase; what the others make stays apart: cvy_plan_find_part() */
} cvy_micro_sums;

typedef struct cvy_plan_opts {
    cvy_comm *comm;
    const cvy_space *space; /* in which tensors lie; NULL: the host's memory */
    int threads;
    cvy_micro_sums micro_sums;
    cvy_allreduce_opts reduce; /* how buckets are reduced */
    int deterministic; /* the same bits by any number of threads; blocking reductions go as those of buckets do */
    cvy_kernels kernels;
    int no_progress;         /* sums are not pushed on between kernels */
    int no_inplace;          /* pass "in-place" switched off */
    int no_slices;           /* pass "slices" switched off */
    int no_reuse;            /* every buffer its own memory: pass "memory" switched off */
    const cvy_tree *choices; /* map node name -> kernel name, from a plan file or measured; NULL: free */
    cvy_offers *offers;      /* what kernels have answered; must outlive the units; NULL: a unit's own */
    cvy_plan_clock *clock;   /* kernels only wait; NULL: they compute */
    int blocking;            /* each sum is waited for where it is started */
    int deferred; /* the update phase is run in pieces between the next step's instructions: plan_deferred.c */
    int sharded;  /* gradients have buckets of their own, of which each rank gets a part */
    int sets; /* of gradients at the head of the arena, 0: one; a plan works on one of them and leaves the others alone
               */
} cvy_plan_opts;

/* Chooses kernels and layouts; variables that have no layout yet get one. */
cvy_status cvy_lowered_create(cvy_graph *graph, const cvy_plan_opts *opts, cvy_lowered **out);
/* The same with a kernel for each node by index, NULL where the order of preference decides; opts->choices is not
 * looked at. */
cvy_status cvy_lowered_select(cvy_graph *graph, const cvy_plan_opts *opts, const cvy_kernel_def *const *pick,
                              cvy_lowered **out);
void cvy_lowered_destroy(cvy_lowered **unit);
typedef enum { CVY_REGION_ARENA, CVY_REGION_VARIABLE, CVY_REGION_SHADOW, CVY_REGION_FEED, CVY_REGION_STEP } cvy_region;

typedef struct cvy_buffer {
    cvy_region region; /* STEP: accumulators and what is shared by micro-batches; from the first write to the step's
                          end, head of the arena */
    const cvy_value *value; /* NULL: scratch */
    const char *name;
    size_t bytes, offset; /* in its region; FEED: into the feed's memory */
    int first, last;      /* instructions between which it lives */
    int root;             /* buffer whose memory it shares (views, in-place), itself if its own */
    size_t at;            /* bytes behind the start of the root */
    int slice;            /* lies with another tensor's strides: never taken over in place */
    int feed;             /* FEED: index of the plan's feed */
    int bucket;           /* STEP: gradient bucket, -1 none */
    void *data;           /* after binding */
    void *host;           /* after binding: what the host reads, data or a copy; NULL: it never does */
} cvy_buffer;

typedef cvy_status (*cvy_run_fn)(void *state, void *const *src, void *const *dst, void *scratch);

typedef struct cvy_instr {
    cvy_run_fn run;
    void *state;
    void *src[CVY_NODE_SRC_MAX], *dst[CVY_NODE_DST_MAX];
    void *scratch;
    cvy_call_kind kind;
    const cvy_call *call; /* NULL for ACCUMULATE and ZERO */
    int micro;
    cvy_variable *weight; /* that it writes, or whose copy in bf16 it makes: NULL mostly */
    int rounds;           /* it leaves that copy fresh */
    int src_buffer[CVY_NODE_SRC_MAX], dst_buffer[CVY_NODE_DST_MAX], scratch_buffer;
    int nsrc, ndst;
} cvy_instr;

/* 0: it makes a copy that is kept from step to step and that is fresh. */
static inline int cvy_instr_runs(const cvy_instr *instr)
{
    return instr->kind != CVY_CALL_REORDER || !instr->weight || instr->weight->shadow_of != instr->weight->written;
}

typedef struct cvy_plan_feed {
    const char *name;
    cvy_dtype dtype;
    cvy_shape shape; /* per-step rows on this rank first, or as given for per_step feeds */
    int per_step;
    size_t bytes, row_bytes;
    void *data; /* after binding: filled from outside before each step */
} cvy_plan_feed;

typedef struct cvy_plan {
    cvy_plan_opts opts;
    cvy_lowered **unit; /* of each micro-batch; several may be the same */
    int nmicro;
    int64_t *first_row; /* of each micro-batch in the feeds */
    int64_t rows;
    cvy_buffer *buffer;
    int nbuffer, buffer_room;
    cvy_instr *instr;
    int ninstr, instr_room;
    int update_at; /* first instruction of the update phase; only STEP buffers cross into this phase */
    int *need; /* deferred updates: for each instruction of the update phase, the instruction of the next step before
                  which it must have run; ascending */
    size_t arena_bytes; /* memory of all tensors: what `convoy plan` prints */
    struct {
        cvy_plan_feed feed[32];
        int count;
        size_t bytes;
        char *host;    /* what the host fills */
        char *tensors; /* what kernels read: the same memory, or memory of the space */
    } feeds;
    struct {                        /* the head of the arena, where STEP buffers lie */
        size_t bytes;               /* of one set */
        int set;                    /* set before binding: which of opts.sets this plan uses */
        struct cvy_plan *alternate; /* set before binding: a plan of the same lowered graphs on another set, which was
                                       bound earlier: both have the same feeds */
        int is_partitioned;  /* set before binding: each rank updates a part of the weights, which are node-shared
                                or (ZeRO-1) exchanged */
        const void *barrier; /* after binding, the shared memory of the ranks' barriers; NULL: there are none */
    } head;
    cvy_bucket_set *buckets; /* ranges of the STEP region; connected by binding */
    struct {
        char *memory; /* of what the host reads, if it cannot read tensors */
        size_t bytes;
    } host_copies;
    struct {
        double *end_s; /* of each instruction of the latest step; end_s[-1] is the start */
        double *memory;
        cvy_clock_wait *wait; /* of each instruction, if kernels only wait */
    } times;
    struct {
        struct cvy_adding *adding; /* of each instruction that adds to an accumulator */
        int count;
    } accumulate;
    atomic_int at; /* the instruction that runs now, -1 between steps: read by the watchdog */
} cvy_plan;

/* Schedule and memory, no allocation of tensor memory. units are borrowed and must outlive the plan; a unit may stand
 * for several micro-batches. */
cvy_status cvy_plan_create(cvy_lowered *const *unit, int nmicro, const cvy_plan_opts *opts, cvy_plan **out);
/* Creates kernels and resolves pointers into arena (at least arena_bytes, shared with other plans) and the variables'
 * memory, which must be there. */
cvy_status cvy_plan_bind(cvy_plan *plan, void *arena);
/* Whether every f32 gradient that is summed serves nothing but updates that can be done in parts. */
int cvy_plan_can_part(const cvy_plan *plan);
/* Calls back with each variable (weights and states) that these updates write. */
void cvy_plan_each_parted(const cvy_plan *plan, void (*body)(cvy_variable *variable, void *arg), void *arg);
/* The bucket that an instruction starts or waits for, as its role says; -1: it does not. */
int cvy_instr_bucket(const cvy_instr *instr, cvy_comm_role role);
/* Whether it belongs to the exchange of buckets: it starts one, waits for one, or is the barrier around updates in
 * parts. */
int cvy_instr_exchanges(const cvy_instr *instr);
/* Of an instruction: its gradient's buffer where it is an update that is done in parts, else NULL. */
const cvy_buffer *cvy_instr_parted(const cvy_plan *plan, const cvy_instr *instr);
/* The elements of such a gradient that this rank has the sums of, after binding. */
cvy_part cvy_plan_part(const cvy_plan *plan, const cvy_buffer *gradient);
/* Bytes of all sets at the head of the arena. */
static inline size_t cvy_plan_head_bytes(const cvy_plan *plan)
{
    return plan->head.bytes * (size_t)(plan->opts.sets > 1 ? plan->opts.sets : 1);
}
void cvy_plan_destroy(cvy_plan **plan);
cvy_plan_feed *cvy_plan_find_feed(cvy_plan *plan, const char *name);
/* What the host has written into the feeds goes to where kernels read it; nothing on the host. Before instructions run.
 */
cvy_status cvy_plan_push_feeds(cvy_plan *plan);
/* The memory of a value that lives through the step (an accumulator or an output) in micro-batch m, as it is now; NULL
 * if there is none. */
void *cvy_plan_find(const cvy_plan *plan, const char *value_name, int micro);
/* The same without what micro-batches have added up: an accumulator's own part of micro-batch m, where
 * plan.opts.micro_sums keeps them apart. */
void *cvy_plan_find_part(const cvy_plan *plan, const char *value_name, int micro);
/* Layers with shapes, kernels, layouts, cost, and memory, as members of an open JSON object. */
void cvy_plan_json(const cvy_plan *plan, cvy_json *json);

/* ---- between the files of this folder ---- */
/* The dtype in which a value is filled or read from outside. */
cvy_dtype cvy_plan_outside_dtype(cvy_dtype dtype);
/* Takes copies out of a unit: concat and slice of channels, where the kernels around them can work on slices. */
cvy_status cvy_lowered_place_slices(cvy_lowered *unit);
cvy_status cvy_plan_schedule(cvy_plan *plan);
cvy_status cvy_plan_memory(cvy_plan *plan);
/* Between the two. */
cvy_status cvy_plan_order_deferred(cvy_plan *plan);
/* Makes what a call needs to run, if it is not there, and the function that runs it. */
cvy_status cvy_call_ready(const cvy_plan_opts *opts, const cvy_lowered *u, cvy_call *call);
cvy_run_fn cvy_call_run(const cvy_call *call);
void cvy_call_release(cvy_call *call);
/* Kernels, reorders and what the plan does to memory; not communication. */
int cvy_instr_computes(const cvy_instr *instr);
/* Makes it wait for this share of its time. A time that is not known is a fault that says how to measure it. */
cvy_status cvy_instr_bind_clock(cvy_plan *plan, cvy_instr *instr, double share);

#endif
