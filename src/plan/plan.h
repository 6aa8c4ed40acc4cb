/*
 * plan.h: the plan of one step: a flat list of instructions with fixed memory, made from graphs before step 0.
 *
 *   tune      finds the fastest kernel for each node from measured times                       plan_tune.c
 *   select    gives each node a kernel and layouts, and adds reorders between them             plan_select.c
 *   slices    lets branches write into the memory of their concat, and gradients be read there  plan_slices.c
 *   schedule  makes the flat list: prepare and micro-batch phases per micro-batch, update once  plan_schedule.c
 *   deferred  sorts the updates by when the next forward pass needs them                       plan_deferred.c
 *   memory    finds lifetimes, computes in place where it can, and plans one arena             plan_memory.c
 *   parts     says whether the ranks of a compute node can share the update of the weights     plan_parts.c
 *   bind      creates the kernels and resolves the pointers                                    plan_bind.c
 *
 * What an instruction runs is in plan_run.c, where its buffers are in plan_address.c, and what a call or an instruction
 * does, for all who ask, in plan_call.h. On a device the work of instructions is recorded, by plan_record.c.
 * After binding, a step allocates nothing and looks nothing up: src/program/program_execute.c walks the list.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_H
#define CVY_PLAN_H

#include <stdatomic.h>

#include "base/machine/base_clock.h"
#include "base/text/base_json.h"
#include "comm/comm_grid.h"
#include "comm/comm_messages.h"
#include "comm/comm_underway.h"
#include "kernel/clock/clock.h"
#include "kernel/kernel_library.h"
#include "pass/pass.h"
#include "reduce/reduce_bucket.h"

typedef enum {                      /* plan_call.h says what they do */
               CVY_CALL_KERNEL,     /* a registered kernel */
               CVY_CALL_REFERENCE,  /* the operator's plain kernel (the reference kernel) */
               CVY_CALL_STAGED,     /* the same on copies of the host, because the tensors are on a device */
               CVY_CALL_REORDER,    /* a copy into another layout or dtype */
               CVY_CALL_VIEW,       /* shares its source's memory: makes no instruction */
               CVY_CALL_COMM,       /* an operator that exchanges data with other ranks: cvy_op_comm */
               CVY_CALL_ABSENT,     /* a node on a rank without samples: only sets to zero what other ranks wait for */
               CVY_CALL_ACCUMULATE, /* plan only: adds a micro-batch's part to an accumulator */
               CVY_CALL_ZERO,       /* plan only: sets memory to zero */
               CVY_CALL_BARRIER, /* plan only: a barrier of the ranks of a compute node, if they update weights in parts
                                  */
} cvy_call_kind;

typedef struct cvy_instance { /* a tensor instance: a value in one layout and dtype */
    cvy_value *value;
    cvy_dtype dtype; /* the value's own; f32 for the feeds and outputs of a bf16 step */
    cvy_layout layout;
    int canonical;  /* 1: the instance that its producer (or the caller) writes */
    int is_once;    /* 1: a variable in another dtype, made once at the start of the step for all micro-batches */
    int is_shadow;  /* 1: also in the variable's layout: a shadow copy, kept across steps and made only when stale */
    int view_of;    /* index of the instance whose memory it shares, -1: has its own */
    size_t view_at; /* bytes from the start of that instance: a slice of its channels */
    int64_t elems;  /* padding included */
    size_t bytes;
    int before; /* index of the value's previous instance, -1: none */
} cvy_instance;

typedef struct cvy_call {
    cvy_call_kind kind;
    const cvy_node *node; /* NULL for reorders */
    const cvy_kernel_def *kernel;
    cvy_kernel_ask ask;
    int signature;           /* KERNEL, REFERENCE: number of the node's signature in `offers` */
    struct cvy_offer *offer; /* the offer that was taken */
    int src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX]; /* indices of instances, -1: none */
    int nsrc, ndst;
    cvy_phase phase;
    int backward; /* it belongs to the backward pass of its micro-batch */
    int chunk;    /* ... and to this stage of the rank, if it has interleaved ones */
    void *state;  /* of the kernel, reorder or reference kernel; set by binding */
} cvy_call;

/* The offers that kernels have made so far: plan_offers.h. A program's graphs share them. */
typedef struct cvy_offers cvy_offers;
cvy_status cvy_offers_create(cvy_offers **out);
void cvy_offers_destroy(cvy_offers **offers);

typedef struct cvy_lowered { /* a lowered graph: kernels and layouts are chosen */
    cvy_graph *graph;
    cvy_offers *offers; /* borrowed, or own_offers */
    cvy_offers *own_offers;
    cvy_instance *instance;
    int ninstance, instance_room;
    int *newest;                   /* by value: index of its latest instance, -1: none yet */
    const cvy_kernel_def **chosen; /* by node: its kernel; NULL: it has none */
    cvy_call *call;
    int ncall, call_room;
    int adds_backward, adds_chunk; /* while it is made: new calls belong to the backward pass; to this chunk */
} cvy_lowered;

/* Times measured on this machine: plan_wisdom.h. */
typedef struct cvy_wisdom cvy_wisdom;

/* Replaces kernels: the times that they would take, and the clock that waits for these times. */
typedef struct cvy_plan_clock {
    cvy_clock clock;
    const cvy_wisdom *times;
} cvy_plan_clock;

/* How the accumulators of the micro-batches are added up. */
typedef enum {
    CVY_MICRO_IN_ORDER, /* each micro-batch's part is added to the sum of the earlier ones */
    CVY_MICRO_TREE,     /* as a binary tree; their number is a power of two: comm_shards.h */
    CVY_MICRO_SEPARATE, /* a tree in the prepare phase; in the micro phase the parts stay separate: cvy_plan_find_part()
                         */
} cvy_micro_sums;

/* In which order a stage of a pipeline runs the passes of its micro-batches. */
typedef enum {
    CVY_PIPELINE_1F1B,  /* one forward, one backward, as soon as the first gradient can be there: fewest activations */
    CVY_PIPELINE_GPIPE, /* all forward passes, then all backward passes */
} cvy_pipeline_order;

typedef struct cvy_plan_opts {
    cvy_comm *comm;
    const cvy_grid *grid; /* NULL: the graphs are not cut into stages. comm is the grid's data axis, or a part of it */
    cvy_pipeline_order order;
    int nchunks;            /* stages of a rank, which are interleaved; 0: 1 */
    const cvy_space *space; /* the memory space of the tensors; NULL: the host's memory */
    int threads;
    cvy_micro_sums micro_sums;
    cvy_allreduce_opts reduce; /* how buckets are reduced */
    int deterministic; /* same bits with any number of threads; blocking reductions use the buckets' algorithm */
    int tf32;          /* f32 factors of products may be rounded to TF32 */
    int compiles;      /* kernels that a library compiles for a second are asked for, too */
    cvy_kernels kernels;
    int no_inplace; /* pass "in-place" is off */
    int no_slices;  /* pass "slices" is off */
    int no_reuse;   /* pass "memory-reuse" is off: every buffer has its own memory */
    int overlays; /* kernels only wait and nobody limits memory: temporary buffers share memory whatever their lifetimes
                   */
    const cvy_tree *choices; /* map node name -> kernel name, from a plan file or measured; NULL: by preference */
    const cvy_keys *settled; /* for cvy_plan_tune(): nodes that keep their kernel, because other graphs that were tuned
                                before have them, too; with `choices` of these graphs. NULL: none */
    cvy_offers *offers;      /* shared offers, must outlive the lowered graphs; NULL: each lowered graph has its own */
    cvy_plan_clock *clock;   /* not NULL: kernels only wait; NULL: they compute */
    int blocking;            /* each all-reduce is waited for as soon as it is started */
    int deferred;            /* the update phase runs in pieces between the next step's instructions: plan_deferred.c */
    int zero1;               /* ZeRO-1: gradients have buckets of their own, and each rank gets a part of each */
    int feeds_ahead;         /* the host may send the rows of the next step while a step runs: cvy_plan_send_feeds() */
    int sets; /* number of gradient sets at the start of the arena, 0: one; a plan uses one set and never touches the
                 others */
} cvy_plan_opts;

/* Chooses kernels and layouts. Variables that have no layout yet get one. */
cvy_status cvy_lowered_create(cvy_graph *graph, const cvy_plan_opts *opts, cvy_lowered **out);
/* Writes the kernels that the choices name for nodes of this graph to pick [nnode]; others stay as they are. */
cvy_status cvy_lowered_name(const cvy_graph *graph, const cvy_tree *choices, const cvy_kernel_def **pick);
/* The same with given kernels, one per node index; NULL: the order of preference decides. It ignores opts->choices. */
cvy_status cvy_lowered_select(cvy_graph *graph, const cvy_plan_opts *opts, const cvy_kernel_def *const *pick,
                              cvy_lowered **out);
void cvy_lowered_destroy(cvy_lowered **lowered);
typedef enum { CVY_REGION_ARENA, CVY_REGION_VARIABLE, CVY_REGION_SHADOW, CVY_REGION_FEED, CVY_REGION_STEP } cvy_region;

typedef struct cvy_buffer {
    cvy_region region; /* STEP: accumulators and values that micro-batches share; at the start of the arena, from the
                          first write to the step's end */
    const cvy_value *value; /* NULL: scratch memory */
    const char *name;
    size_t bytes, offset; /* offset in its region; FEED: in the feed's memory */
    int first, last;      /* its lifetime: first and last instruction that use it, -1: unused */
    int root;             /* buffer whose memory it shares (view, in place); its own index: it has its own memory */
    size_t at;            /* bytes from the start of the root */
    int slice;            /* has the strides of another tensor: never reused in place */
    int feed;             /* FEED: index of the plan's feed */
    int bucket;           /* STEP: number of its bucket, -1: none */
    void *data;           /* after binding */
    void *host;           /* after binding: what the host reads, data or a copy; NULL: the host never reads it */
} cvy_buffer;

typedef cvy_status (*cvy_run_fn)(void *state, void *const *src, void *const *dst, void *scratch);

typedef struct cvy_instr {
    cvy_run_fn run;
    void *state;
    void **src, **dst; /* [nsrc], [ndst]; after binding, in the plan's pool; NULL if the instruction only waits */
    void *scratch;
    cvy_call_kind kind;
    const cvy_call *call; /* NULL for ACCUMULATE and ZERO */
    int micro;
    cvy_variable *weight;         /* the weight that it writes or whose shadow copy it makes; NULL: none */
    int writes_shadow;            /* 1: after it the shadow copy is up to date */
    cvy_comm_axis axis;           /* of communication: the axis for which its time counts */
    int awaits_stage;             /* 1: its time is spent waiting for another stage of the pipeline */
    int *src_buffer, *dst_buffer; /* [nsrc], [ndst]; -1: none; in the plan's pool */
    int scratch_buffer;
    int nsrc, ndst;
} cvy_instr;

/* 0: the instruction would make a shadow copy that is still up to date, so it is skipped. */
static inline int cvy_instr_runs(const cvy_instr *instr)
{
    return instr->kind != CVY_CALL_REORDER || !instr->weight || instr->weight->shadow_of != instr->weight->written;
}

typedef struct cvy_plan_feed {
    const char *name;
    cvy_dtype dtype;
    cvy_shape shape;      /* dim[0] is this rank's rows of a step; per_step feeds: as declared */
    const cvy_tile *tile; /* the part of the samples that this rank has; NULL: all of them */
    int per_step;
    size_t bytes, row_bytes;
    void *data; /* after binding: the caller fills it before each step */
} cvy_plan_feed;

/* The update phase of a step. */
typedef struct cvy_plan_updates {
    int first;    /* first instruction of the update phase; only STEP buffers cross into this phase */
    int *need;    /* deferred updates: for each instruction of the update phase, the instruction of the next step
                     before which it must run; ascending */
    int can_hold; /* with plan.finite: the phase changes nothing while the device holds updates (cvy_gpu_hold) */
} cvy_plan_updates;

/* What the host fills: numbers of the step, then rows. */
typedef struct cvy_plan_feeds {
    cvy_plan_feed feed[32];
    int count;
    size_t bytes, step_bytes; /* of all; of those at the start that are given once a step, such as the learning rate */
    size_t ahead_bytes;       /* of the rows, if opts.feeds_ahead; else 0 */
    char *host;               /* memory that the host fills */
    char *tensors;            /* memory that kernels read: the same, or memory of the space */
    char *ahead;              /* memory of the space for the rows of the next step, which are sent while a step runs */
    int is_ahead;             /* they are there, or on their way */
    cvy_mark *sent;           /* they are there */
    cvy_mark *copied;         /* on a device: from here on the host may fill its memory again */
} cvy_plan_feeds;

/* The start of the arena, which holds the STEP buffers. */
typedef struct cvy_plan_head {
    size_t bytes;               /* of one set */
    int set;                    /* set before binding: number of the gradient set that this plan uses */
    struct cvy_plan *alternate; /* set before binding: a plan of the same lowered graphs on another set, bound
                                   earlier; both share its feeds; NULL: none */
    int is_partitioned;         /* set before binding: each rank updates a part of the weights, which are in node-shared
                                   memory or (ZeRO-1) exchanged */
    int simulated_parts;        /* set before binding: so many ranks of a simulated node update a part each; 0: none */
    const void *barrier;        /* after binding: shared memory of the barriers of the ranks; NULL: no barriers */
} cvy_plan_head;

/* Host copies of the buffers that the host reads, if it cannot read tensors. Each is made when it is first asked for
 * after a part of a step has written its buffer. */
typedef struct cvy_plan_host_copies {
    char *memory;
    size_t bytes;
    struct cvy_host_copy {
        int buffer, last_write; /* the last instruction that writes it */
        int is_fresh;
    } * of;
    int count;
} cvy_plan_host_copies;

/* When the instructions of the latest step ended. */
typedef struct cvy_plan_times {
    double *end_s; /* when each instruction of the latest step ended, in seconds; end_s[-1] is the start */
    double *memory;
    cvy_mark **mark;      /* [ninstr + 1] on a device, if times are asked for (plan_timer.h); NULL: the host's clock */
    cvy_clock_wait *wait; /* one per instruction, if kernels only wait */
    double *rehearsed_s;  /* of each instruction, in a rehearsal (program_rehearse.c); NULL: there was none */
    double rehearsal_s;   /* how long the rehearsal took */
} cvy_plan_times;

/* What the plan's own instructions work on. */
typedef struct cvy_plan_fillings {
    struct cvy_filling *filling; /* one per instruction that has no call, or may get none */
    int count;
} cvy_plan_fillings;

typedef struct cvy_plan {
    cvy_plan_opts opts;
    cvy_pool *pool;        /* the lists of the instructions: a deep network has many, so each is as long as needed */
    cvy_lowered **lowered; /* lowered graph of each micro-batch; several may be the same; borrowed */
    int nmicro;
    int64_t *first_row; /* first row of each micro-batch in the feeds */
    int64_t rows;
    cvy_buffer *buffer;
    int nbuffer, buffer_room;
    cvy_instr *instr;
    int ninstr, instr_room;
    cvy_plan_updates update;
    size_t arena_bytes; /* memory of all tensors; `convoy plan` prints it */
    cvy_plan_feeds feeds;
    cvy_plan_head head;
    cvy_bucket_set *buckets;    /* ranges of the STEP region; binding connects them to the ranks */
    cvy_messages messages;      /* between the stages of a pipeline */
    cvy_underway_set exchanges; /* of parts of values, that are under way */
    cvy_plan_host_copies host_copies;
    cvy_plan_times times;
    cvy_plan_fillings fillings;
    struct cvy_gpu_finite *finite;    /* on a device: whether losses and gradients are finite, made by the first step */
    struct cvy_plan_records *records; /* on a device that has recordings (plan_record.h); NULL: there are none */
    atomic_int at;                    /* the instruction that runs now, -1 between steps; the watchdog reads it */
} cvy_plan;

/* Makes the schedule and plans the memory; allocates no tensor memory. The lowered graphs are borrowed and must outlive
 * the plan; several micro-batches may share one. */
cvy_status cvy_plan_create(cvy_lowered *const *lowered, int nmicro, const cvy_plan_opts *opts, cvy_plan **out);
/* Creates kernels and resolves pointers into the arena (at least arena_bytes, shared with other plans) and into the
 * memory of the variables, which must be allocated. */
cvy_status cvy_plan_bind(cvy_plan *plan, void *arena);
/* Whether all f32 gradients that are all-reduced are read only by updates that can be done in parts. */
int cvy_plan_can_part(const cvy_plan *plan);
/* Calls body for each variable (weight or state) that these updates write. */
void cvy_plan_each_parted(const cvy_plan *plan, void (*body)(cvy_variable *variable, void *arg), void *arg);
/* The axis for which waits for this bucket count. Valid after binding, as the axis of instructions. */
cvy_comm_axis cvy_plan_bucket_axis(const cvy_plan *plan, int bucket);
/* The buffer of the gradient, if the instruction is an update that can be done in parts; else NULL. */
const cvy_buffer *cvy_instr_parted(const cvy_plan *plan, const cvy_instr *instr);
/* The elements of such a gradient whose sums this rank gets. Valid after binding. */
cvy_part cvy_plan_part(const cvy_plan *plan, const cvy_buffer *gradient);
/* Bytes of all gradient sets at the start of the arena. */
static inline size_t cvy_plan_head_bytes(const cvy_plan *plan)
{
    return plan->head.bytes * (size_t)(plan->opts.sets > 1 ? plan->opts.sets : 1);
}
/* The rank that runs it, among all ranks. */
static inline int cvy_plan_rank(const cvy_plan *plan)
{
    return plan->opts.grid ? plan->opts.grid->all->rank : plan->opts.comm->rank;
}
void cvy_plan_destroy(cvy_plan **plan);
cvy_plan_feed *cvy_plan_find_feed(cvy_plan *plan, const char *name);
/* The memory of a feed that kernels read. */
void *cvy_plan_feed_tensor(const cvy_plan *plan, const void *feed_data);
/* Bytes of all memory for feeds in the space. */
static inline size_t cvy_plan_feed_bytes(const cvy_plan *plan)
{
    return plan->feeds.bytes + plan->feeds.ahead_bytes;
}
/* Sends the rows of the next step to the space, while the latest step still runs. They wait there: the next
 * cvy_plan_push_feeds() takes them, and copies only the numbers of the step from the host. Only if feeds.ahead_bytes is
 * not 0. The host has waited for the feeds of the latest step, and leaves the rows as they are until the next one. */
cvy_status cvy_plan_send_feeds(cvy_plan *plan);
/* Copies the feeds from the host to the memory that kernels read; does nothing if tensors are in host memory. Call it
 * before instructions run. */
cvy_status cvy_plan_push_feeds(cvy_plan *plan);
/* The host waits until it may fill the feeds again. */
cvy_status cvy_plan_await_feeds(cvy_plan *plan);
/* The copy of what an instruction writes last is made again when it is asked for. */
void cvy_plan_outdate_copies(cvy_plan *plan, int instr);
/* The accumulator of this name; NULL: there is none. */
const cvy_buffer *cvy_plan_step_buffer(const cvy_plan *plan, const char *value_name);
/* Puts the copy of an accumulator for the host into the lane COMPUTE. The caller waits for a mark that is put after it,
 * and then cvy_plan_find() does not wait. Does nothing if there is no such accumulator. */
cvy_status cvy_plan_fetch(cvy_plan *plan, const char *value_name);
/* The memory of an accumulator or an output of a micro-batch, with its current content; NULL: there is none. */
void *cvy_plan_find(const cvy_plan *plan, const char *value_name, int micro);
/* The same, but of an accumulator only the part of this micro-batch, if plan.opts.micro_sums keeps the parts
 * separate. */
void *cvy_plan_find_part(const cvy_plan *plan, const char *value_name, int micro);
/* Adds layers (shapes, kernels, layouts, cost) and memory as members to an open JSON object. */
void cvy_plan_json(const cvy_plan *plan, cvy_json *json);

/* ---- for the files of this folder ---- */
/* The dtype in which the caller fills or reads a value. */
cvy_dtype cvy_plan_outside_dtype(cvy_dtype dtype);
/* Removes copies: a concat or slice of channels becomes a view, if the kernels around it can work on slices. */
cvy_status cvy_lowered_place_slices(cvy_lowered *lowered);
cvy_status cvy_plan_schedule(cvy_plan *plan);
cvy_status cvy_plan_memory(cvy_plan *plan);
/* Runs between cvy_plan_schedule() and cvy_plan_memory(), if updates are deferred. */
cvy_status cvy_plan_order_deferred(cvy_plan *plan);
/* Makes the instruction wait for this share of its time. An unknown time is an error, which says how to measure it. */
cvy_status cvy_instr_bind_clock(cvy_plan *plan, cvy_instr *instr, double share);

#endif
