/*
 * convoy/program.h: training and evaluating inside a program of one's own: the caller drives, one call runs one step.
 *
 *     cvy_program_create(context, NULL, &program);
 *     cvy_program_add_training(program, model, 64, NULL, &train);      // 64: the global batch
 *     cvy_program_add_forward(program, model, 64, NULL, &forward);     // over the same variables
 *     cvy_program_plan(program);
 *     ... fill cvy_program_feed(program, train, "x") and "label" in place ...
 *     cvy_program_step(program, train, 0.01);
 *
 * A program holds one set of variables and any number of steps over them: training with one loss, with another, forward only, other batch sizes.
 * Every step is planned before the first one runs and all share one arena.
 */
#ifndef CONVOY_PROGRAM_H
#define CONVOY_PROGRAM_H

#include <convoy/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cvy_program cvy_program;

/** How ranks update the weights: docs/scaling.md says when to take which. */
typedef enum cvy_update_mode {
    CVY_UPDATE_SYNC,             /* all together, every step */
    CVY_UPDATE_PIPELINED,        /* the sums of a step have the next step to get through, and are applied behind it */
    CVY_UPDATE_LOCAL,            /* each rank by its own gradients, until cvy_program_settle(), when all take the average */
    CVY_UPDATE_PARAMETER_SERVER, /* by ranks that hold the weights and train nothing */
    CVY_UPDATE_SHARDED           /* as sync, each rank a part of the weights; it alone keeps the optimiser's state of that part */
} cvy_update_mode;

typedef struct cvy_update {      /* zero is sync */
    cvy_update_mode mode;
    int64_t servers;             /* PARAMETER_SERVER: the last so many ranks, at least 1 */
    int64_t staleness;           /* PARAMETER_SERVER: steps that a worker may be ahead of the slowest; -1: any number */
} cvy_update;

/** Options of a program; zero-initialise, set size. Equal on all ranks. */
typedef struct cvy_program_opts {
    size_t size;
    cvy_dtype dtype;          /* CVY_DTYPE_F32 (0), CVY_DTYPE_BF16 (activations; weights, inputs and outputs are f32) or CVY_DTYPE_F64 */
    uint64_t seed;            /* of initial weights and dropout */
    int64_t batch_norm_group; /* samples; 0: 32; -1: the rank's share; -2: the whole batch */
    const char *kernels;      /* "auto" (NULL), "reference", "native", "onednn", "direct" (all but Winograd); "clock": nothing is computed, a step only waits
                               * for as long as its kernels were measured to take, and sums over ranks are made; losses are then NaN, memory is not touched */
    const char *passes_off;   /* "all", or names: "fuse-add, fuse-batch-norm, fuse-relu, in-place, memory-reuse, overlap, recompute, slices"; NULL: all on */
    int64_t bucket_bytes;     /* of gradients summed over ranks at once, 0: by what sums cost on this network */
    const char *reduce;       /* how they are summed: "auto" (NULL), "library" (MPI_Iallreduce), "ring", "halving", "doubling" */
    cvy_dtype reduce_wire;    /* CVY_DTYPE_BF16: f32 travels between nodes in half the bytes; CVY_DTYPE_F32 (0): as it is */
    const char *reduce_progress; /* what moves sums while kernels run: "poll" (NULL: this thread, between kernels), "thread" (one of its own), "mpi" (the library) */
    int reduce_no_node;       /* 1: ranks of a node send messages too, and do not sum in memory that they share */
    int overlap_forward;      /* 1: sums have the next step's forward pass too: updates are done when it needs them. As sync, to the bit; weights that are read
                               * otherwise (get, save) want cvy_program_settle() first, and there are two sets of gradients. share_weights is then off */
    int share_weights;        /* 1: where it is possible, weights and the optimiser's state lie once on a node and its ranks update them in parts: faster,
                               * in less memory. cvy_program_set() on one rank then changes them for all ranks of the node: between its calls and the
                               * next use of a weight, and between the last use and the calls, the program must see to it that the ranks wait for each
                               * other. Steps do so themselves. With dtype BF16 all ranks must call it: each remakes what it reads in bf16. */
    const char *plan_file;    /* a plan.json whose kernel choices are taken again, or NULL */
    const char *planning;     /* how kernels are chosen: "estimate" (NULL: by preference, and by what wisdom there is), "measure", "patient" */
    int precise;              /* 1: no algorithm that rounds more than the plain sum: no Winograd convolutions */
    const char *wisdom;       /* file of measured times, or "off"; NULL: $CONVOY_WISDOM, else a file of this machine in ~/.cache/convoy */
    int64_t memory_limit;     /* bytes of tensor memory for this program on each rank, 0: none; see cvy_program_plan() */
    cvy_update update;        /* how ranks update the weights; zero: all together, every step */
    double clock_scale;       /* with kernels "clock": on all times; 0: 1 */
    double clock_noise;       /* with kernels "clock": times of a step vary so much, as a share (normal, standard deviation), by seed, rank and step */
    int reduce_blocking;      /* 1: each sum is waited for where it starts: for comparison */
    int64_t shards;           /* of deterministic training: the same bits on any number of ranks up to this, and threads: a step is computed in so many shards,
                               * a power of two, whatever ranks there are. They are summed as one binary tree, each is computed by kernels that are fixed,
                               * and batch_norm_group counts in a shard (-2: all of it). 0: off. Goes with SYNC, planning "estimate", reduce "auto" or "doubling",
                               * f32 on the wire; without overlap_forward, plan_file and accumulate. docs/scaling.md says more */
} cvy_program_opts;

/** Options of a training step; zero-initialise, set size. Equal on all ranks. */
typedef struct cvy_training_opts {
    size_t size;
    const char *losses;             /* "loss1, loss2": layers to minimise the sum of; NULL: all losses of the model */
    const char *trains;             /* patterns of variables, "gen.*, head.*"; NULL: all that the losses depend on */
    const char *optimizer;          /* "sgd" (NULL), "adam", ... */
    const char *optimizer_options;  /* YAML text, "momentum: 0.9", or NULL */
    double weight_decay, clip_norm, clip_value;
    int64_t accumulate;             /* micro-batches a step, 0: 1 */
    const char *outputs;            /* layers whose values are kept readable after the step, or NULL */
} cvy_training_opts;

/** Makes an empty program on a context, which must outlive it. Errors: CVY_E_CONFIG, CVY_E_MEMORY. Collective: no. */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_create(cvy_context *context, const cvy_program_opts *opts, cvy_program **program_out);
/** Destroys and sets to NULL; NULL is accepted. A program that is PIPELINED or overlap_forward is settled before, on all ranks: its sums are under way until then.
 *  Collective: no. */
CVY_API void cvy_program_destroy(cvy_program **program);

/**
 * cvy_program_add_training - add a training step
 * @model: must have at least one loss; borrowed until cvy_program_plan() has returned
 * @batch: global batch in samples, split over the ranks as evenly as it goes; at least the number of ranks is usual, fewer leaves ranks idle
 * @opts: NULL for the defaults (plain SGD, all losses, all variables)
 * @step_out: its number, for the calls below
 *
 * Errors: CVY_E_ARGUMENT, CVY_E_MEMORY. Collective: logically (the same calls on all ranks).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_add_training(cvy_program *program, const cvy_model *model, int64_t batch, const cvy_training_opts *opts, int *step_out);
/** Adds a forward step (evaluation: running statistics, no dropout) that computes the layers named in @outputs (NULL: the model's output) and the losses between. */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_add_forward(cvy_program *program, const cvy_model *model, int64_t batch, const char *outputs, int *step_out);

/**
 * cvy_program_plan - infer shapes, differentiate, choose kernels, lay out memory, initialise the variables
 *
 * Called once, after all steps are added. Weights are filled from the seed, equal on all ranks. Where the plan of any rank is larger than memory_limit, all
 * ranks plan training again so that backward makes cheap values anew instead of keeping them; the results are the same bits. Errors: CVY_E_SHAPE,
 * CVY_E_CONFIG (layer and option named), CVY_E_MEMORY (how much is needed, which batch would fit). Collective: yes (all ranks return the same status).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_plan(cvy_program *program);

/** This rank's share of the global batch of a step: rows of each feed, and the index of the first within the global batch (first micro-batch). */
CVY_API int64_t cvy_program_rows(const cvy_program *program, int step);
CVY_API int64_t cvy_program_first_row(const cvy_program *program, int step);

/**
 * cvy_program_feed - memory of an input on this rank, [rows, sample shape...], of the model's dtype (real inputs: the program's), filled in place
 *
 * A model with dropout has the input "sample_id" too, i64 [rows], by which masks are drawn; unless filled it is each row's place in the global batch.
 * Returns NULL where there is no such input.
 */
CVY_API void *cvy_program_feed(cvy_program *program, int step, const char *input);

/**
 * cvy_program_step - run one step
 * @learning_rate: of this step; ignored by forward steps
 *
 * Allocates nothing. The weights of all ranks are equal after it, in any mode but LOCAL. Errors: CVY_E_NUMERIC on all ranks (SYNC and SHARDED: a loss or a gradient is not
 * finite; the weights are as they were; in the other modes and with overlap_forward such a number goes into the weights, and the next losses show it); CVY_E_COMM, CVY_E_FORMAT
 * (a label out of range): then weights may be partly updated. Collective: yes.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_step(cvy_program *program, int step, double learning_rate);

/**
 * cvy_program_settle - bring the weights up to date
 *
 * PIPELINED: a step's update is applied behind the next training step, or by this call; until then the weights lack it. A step that is settled at once is
 * one in sync, so calls of it warm up and cool down. LOCAL: all ranks take the average of weights, optimiser state and running statistics; call it every few
 * steps, and before weights are read; it may write over the outputs of the latest step. PARAMETER_SERVER: all ranks get the servers' weights, and rank 0 the
 * optimiser's state; forward steps see to it too. With a staleness other than 0 training steps of a server do nothing and it serves in here, until all workers,
 * which must have run the same steps, have come; so call it before the program is destroyed. overlap_forward: the update is done while the next
 * step runs, or by this call. Else nothing to do. Errors: as of cvy_program_step(). Collective: yes.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_settle(cvy_program *program);

/** Value of a loss after a step: training: over the global batch, equal on all ranks; forward: this rank's share of it (add over ranks). Errors: CVY_E_ARGUMENT. */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_loss(const cvy_program *program, int step, const char *loss, double *value_out);
/** Rows of an output layer on this rank after a step, plain layout, of the program's dtype; valid until the program's next step. @shape_out may be NULL. */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_output(const cvy_program *program, int step, const char *layer, const void **data_out, cvy_shape *shape_out);

/** Variables by name ("conv1.weight"), copied to or from plain row-major memory of the program's dtype and of @elems elements. Errors: CVY_E_ARGUMENT. */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_get(const cvy_program *program, const char *variable, void *plain_out, int64_t elems);
CVY_API CVY_MUST_CHECK cvy_status cvy_program_set(cvy_program *program, const char *variable, const void *plain, int64_t elems);
/** Name and shape of variable i, CVY_END behind the last. */
CVY_API cvy_status cvy_program_variable(const cvy_program *program, int i, const char **name_out, cvy_shape *shape_out);

/** Weights to and from a safetensors file (load: names and shapes must agree). Save on one rank; load on all. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_SHAPE. */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_save(const cvy_program *program, const char *path);
CVY_API CVY_MUST_CHECK cvy_status cvy_program_load(cvy_program *program, const char *path);

/** The graph of a step as text or Graphviz dot; the plan (layers, kernels, memory to the byte) as JSON. Released with cvy_text_release(). */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_print(const cvy_program *program, int step, const char *how, char **text_out);   /* how: "text", "dot", "json", "explain" */
/** Bytes of tensor memory that this rank's program holds: arena (shared by all steps), variables, feeds. */
CVY_API int64_t cvy_program_bytes(const cvy_program *program);

#ifdef __cplusplus
}
#endif
#endif
