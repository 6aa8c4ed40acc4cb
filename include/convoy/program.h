/*
 * convoy/program.h: training and evaluation inside a program of one's own: the caller drives, one call runs one task.
 *
 *     cvy_program_create(context, NULL, &program);
 *     cvy_program_add_training(program, model, 64, NULL, &train);      // 64: the global batch
 *     cvy_program_add_forward(program, model, 64, NULL, &forward);     // over the same variables
 *     cvy_program_plan(program);
 *     ... fill cvy_program_feed(program, train, "x") and "label" in place ...
 *     cvy_program_step(program, train, 0.01);
 *
 * A program holds one set of variables and any number of tasks over them: training with one loss, training with
 * another, forward passes, other batch sizes. All tasks are planned before the first one runs, and they share one
 * arena. A task is known by the number that cvy_program_add_training() or cvy_program_add_forward() gives it.
 *
 * Real inputs, outputs and variables are f32 in a program of dtype F32 or BF16, and f64 in one of dtype F64: this is
 * "the program's dtype" below.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_PROGRAM_H
#define CONVOY_PROGRAM_H

#include <convoy/model.h>

CVY_BEGIN_DECLS

/** A set of variables and the tasks over them. */
typedef struct cvy_program cvy_program;

/** How ranks update the weights; docs/guide/update-modes.md says which mode suits which purpose. */
typedef enum cvy_update_mode {
    /** All ranks together, every step. */
    CVY_UPDATE_SYNC,
    /** The gradients of a step are reduced during the next step, and applied after it. */
    CVY_UPDATE_DELAYED,
    /** Local SGD: each rank applies its own gradients; cvy_program_flush() averages the weights of all ranks. */
    CVY_UPDATE_LOCAL,
    /** Some ranks hold the weights and do not train; the others send them gradients. */
    CVY_UPDATE_PARAMETER_SERVER,
    /** ZeRO-1: as SYNC, but each rank updates a part of the weights and keeps the optimiser's state of that part only.
     */
    CVY_UPDATE_ZERO1
} cvy_update_mode;

/** What gradient reductions overlap with. */
typedef enum cvy_overlap {
    /** The backward pass: a reduction starts as soon as its gradients are complete. */
    CVY_OVERLAP_BACKWARD,
    /** Deferred update: also the next step's forward pass, and each update is done just before it is needed. */
    CVY_OVERLAP_FORWARD,
    /** Nothing: reductions start after the backward pass; the pass overlap is off. */
    CVY_OVERLAP_NONE
} cvy_overlap;

/** Options of a program; zero-initialise, set size. They must be equal on all ranks. Strings are borrowed until
 * cvy_program_destroy(). */
typedef struct cvy_program_opts {
    size_t size;
    /** CVY_DTYPE_F32 (0), CVY_DTYPE_BF16 (activations; weights, inputs and outputs are f32) or CVY_DTYPE_F64. */
    cvy_dtype dtype;
    /** Seed of initial weights and dropout. */
    uint64_t seed;
    /** Most samples that share their statistics in batch normalisation; a remainder is spread over the groups. 0: 32;
     * -1: the rank's local batch; -2: the whole global batch; -3, with shards: the whole shard. */
    int64_t batch_norm_group;
    /** Which kernels may be used: "auto" (NULL), "reference", "native", "onednn", "gpu", or "onednn, native" (in order
     * of preference; the reference kernels run what these cannot), "direct" (all but Winograd). With "clock" nothing is
     * computed: a step only waits for the measured times of its kernels and makes its all-reduces. Losses are then NaN,
     * and tensor memory is not touched. */
    const char *kernels;
    /** Optimising passes to turn off: "all", or names out of "fuse-add, fuse-batch-norm, fuse-relu, fuse-update,
     * in-place, memory-reuse, overlap, recompute, slices". NULL: all passes are on. */
    const char *passes_off;
    /** Bytes of gradients that are reduced together; 0: chosen by the cost of an all-reduce on this network. */
    int64_t bucket_bytes;
    /** Algorithm of the all-reduce: "auto" (NULL), "library" (MPI_Iallreduce), "ring", "halving" or "doubling". */
    const char *reduce;
    /** Type of f32 gradients in messages between nodes: CVY_DTYPE_F32 (0), or CVY_DTYPE_BF16, which is half the bytes,
     * rounded. */
    cvy_dtype reduce_wire;
    /** What makes reductions progress while kernels run: "poll" (NULL: this thread, between kernels) or "thread"
     * (a progress thread). */
    const char *reduce_progress;
    /** 1: ranks of a node reduce by messages, as between nodes, and not in shared memory. */
    int reduce_no_node;
    /** What reductions overlap with; 0: CVY_OVERLAP_BACKWARD. With FORWARD results are those of SYNC, to the bit. Call
     * cvy_program_flush() before weights are read in another way (get, save). There are then two sets of gradients, and
     * share_weights is off. */
    cvy_overlap overlap;
    /** 1: if possible, the ranks of a node keep one copy of the weights and of the optimiser's state in shared memory,
     * and each updates a part of them: this is faster and needs less memory. cvy_program_set() on one rank then changes
     * the weights of all ranks of the node. The caller must therefore make these ranks wait for each other between the
     * last use of a weight and such calls, and between the calls and the next use; tasks do so themselves. With dtype
     * BF16 all ranks must make the call, because each of them updates its bf16 shadow copy in it. */
    int share_weights;
    /** A plan.json whose choices of kernels are used again; NULL: none. */
    const char *plan_file;
    /** How kernels are chosen: "estimate" (NULL: by preference and known times), "measure" (by timing the plausible
     * ones) or "patient" (by timing all). */
    const char *planning;
    /** 1: use no algorithm that rounds more than a plain sum does: no Winograd convolutions. */
    int precise;
    /** File of measured times, or "off". NULL: $CONVOY_WISDOM, otherwise a file for this machine in ~/.cache/convoy. */
    const char *wisdom;
    /** Bytes of tensor memory that this program may use on each rank; 0: no limit. See cvy_program_plan(). */
    int64_t memory_limit;
    /** How ranks update the weights; 0: CVY_UPDATE_SYNC. */
    cvy_update_mode update_mode;
    /** With PARAMETER_SERVER: number of ranks that serve, at least 1; they are the last ones. */
    int64_t update_servers;
    /** With PARAMETER_SERVER: number of steps that a worker may be ahead of the slowest one; -1: any number. */
    int64_t update_staleness;
    /** With kernels "clock": a factor on all times; 0: 1. */
    double clock_scale;
    /** With kernels "clock": how much the times of a step vary: the standard deviation of a normal distribution, as a
     * share from 0 to below 1. It depends on seed, rank and step. */
    double clock_noise;
    /** 1: wait for each reduction where it starts; for comparison. */
    int reduce_blocking;
    /** Deterministic training: the bits are the same on any number of ranks up to this one, and on any number of
     * threads. A step is computed in this many shards, a power of two, whatever the number of ranks. The shards are
     * reduced as one binary tree, each is computed by fixed kernels, and batch_norm_group counts within a shard. 0:
     * off. It goes with update SYNC, planning "estimate", reduce "auto" or "doubling", and reduce_wire
     * F32; it does not go with overlap FORWARD, plan_file and accumulate: docs/internals/determinism.md */
    int64_t shards;
    /** 1, for measurements: a training task computes its losses and all gradients on each rank's own rows, sends
     * nothing, and changes no weight. cvy_program_loss() is then the loss of these rows. It goes with update SYNC; it
     * does not go with overlap FORWARD and shards. */
    int gradients_only;
    /** Stages of a pipeline, of which the number of ranks is a multiple: each rank holds the layers of one stage (of
     * several with interleave) and sends activations on. Ranks with the same stage share the batch. A step should have
     * several micro-batches (accumulate), so that no stage idles. 0: 1. It goes with update SYNC, DELAYED and ZERO1. */
    int64_t pipeline;
    /** In which order a stage runs its micro-batches: "1f1b" (NULL: fewest activations) or "gpipe" (all forward passes
     * first). */
    const char *pipeline_order;
    /** Ranks that share the layers with weights: each has a part of the channels of convolutions and fully connected
     * layers (tensor parallelism). 0: 1. The number of ranks is a multiple of pipeline x tensor x all of spatial. */
    int64_t tensor;
    /** With tensor: the layers that are split by channels; ranks share the samples of all other layers, as on the data
     * axis. "all" (NULL): all layers with weights; "fc6, fc7": these; "auto": the last ones, as many as make ranks
     * exchange the fewest bytes, which are often the fully connected layers. */
    const char *tensor_layers;
    /** Parts of each spatial dimension of the samples, in their order: ranks share each sample, and exchange the
     * positions at the borders of their parts (spatial parallelism). 0: 1. */
    int64_t spatial[3];
    /** With pipeline: "conv1, conv3, fc", the layer with which each stage begins, in the order of the model's layers;
     * the first one is the first layer of the model. NULL: layers are cut so that the stages take the same time, with
     * those that cvy_model_set_stage() has placed on their stages. */
    const char *first_layers;
    /** With pipeline: stages of each rank, which are interleaved: with 2, the layers are cut into twice as many stages,
     * and rank r of P has the stages r and r + P. It is idle less, and sends more. 0: 1. The number of micro-batches
     * should be a multiple of pipeline. */
    int64_t interleave;
    /** The batch norms whose statistics are frozen, for fine-tuning: patterns of layer names with * and ?, such as
     * "block1_*, conv1_bn"; "*": all. In training they normalise by their running statistics and do not change them.
     * NULL: none. */
    const char *batch_norm_frozen;
    /** 1, with spatial: outputs are this rank's part of each sample, instead of the whole: cvy_program_part() says
     * which. */
    int outputs_in_parts;
    /** 1: cuDNN may round f32 factors to TF32 (10 bits of mantissa) and multiply them on tensor cores. Sums stay f32.
     * It has no effect without cuDNN and with another dtype, and does not go with precise. */
    int64_t tf32;
} cvy_program_opts;
CVY_SIZED_STRUCT(cvy_program_opts)

/**
 * cvy_program_opts_set - set an option of a program by name, for example from a command line
 * @opts: its size must be set
 * @name: a key of the job file, or the name of a field that has no key; docs/reference/job-file.md explains the keys:
 *
 *     train.dtype, train.seed, train.precise, batch_norm.group, batch_norm.frozen ("block1_*, conv1_bn"),
 *     plan.kernels, plan.tf32, plan.passes_off ("overlap, slices"), plan.planning, plan.wisdom,
 *     plan.memory_limit (bytes, "8 GiB"), plan.clock_scale, plan.clock_noise, comm.bucket ("auto", or bytes: "4 MiB"),
 *     comm.overlap, comm.blocking, comm.algorithm, comm.progress, comm.wire, comm.node_memory (reduce_no_node only),
 *     update or update.mode, update.servers, update.staleness ("none": any number),
 *     deterministic ("true": 8 shards, unless a number is set), deterministic_shards (this alone turns it on),
 *     parallel.pipeline, parallel.order, parallel.interleave,
 *     parallel.first_layers ("conv1, fc"), parallel.tensor, parallel.tensor_layers ("all", "auto" or "fc6, fc7"),
 *     parallel.spatial ("2" or "2,2"), plan_file, share_weights, gradients_only, outputs_in_parts
 *
 * @value: as in a job file. Texts (batch_norm_frozen, kernels, passes_off, planning, wisdom, algorithm, progress,
 * first_layers, tensor_layers, plan_file) are borrowed, not copied: they must live until the program is destroyed; an
 * empty one is the default
 *
 * The same options set by name or by fields make the same program. On a fault the options are as they were. Collective:
 * no. Errors: CVY_E_CONFIG (unknown name, or a value that does not fit: the message has the value, what is expected,
 * and the nearest name), CVY_E_UNSUPPORTED (kernels that are not in this build), CVY_E_ARGUMENT (NULL; size),
 * CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_opts_set(cvy_program_opts *opts, const char *name, const char *value);

/** A parameter group: weights that are trained with rates of their own. Zero-initialise, set size. */
typedef struct cvy_training_group {
    size_t size;
    /** Patterns of the names of weights, with * and ?, "conv*.bias, head.*"; required. */
    const char *match;
    /** Factors on the learning rate and on the weight decay, at least 0; 0: 1. */
    double lr_mult, decay_mult;
    /** 1: these weights have no weight decay. */
    int no_decay;
    /** 1: these weights are not trained. */
    int frozen;
} cvy_training_group;
CVY_SIZED_STRUCT(cvy_training_group)

/** Options of a training task; zero-initialise, set size. They must be equal on all ranks. Strings are borrowed for the
 * call. */
typedef struct cvy_training_opts {
    size_t size;
    /** "loss1, loss2": layers whose sum is minimised; NULL: all losses of the model. */
    const char *losses;
    /** Patterns of the variables to train, "gen.*, head.*"; NULL: all that the losses depend on. */
    const char *trains;
    /** "sgd" (NULL), "adam", ... */
    const char *optimizer;
    /** Options of the optimiser as YAML text, "momentum: 0"; NULL: its defaults, the same as in a job file. That of
     * sgd's momentum is 0.9. */
    const char *optimizer_options;
    /** Weight decay, and the largest norm and the largest element of a gradient; 0: none. */
    double weight_decay, clip_norm, clip_value;
    /** Number of micro-batches of a step; 0: 1. */
    int64_t accumulate;
    /** "layer1, layer2": layers that cvy_program_output() can read after the task; NULL: none. */
    const char *outputs;
    /** [ngroups]: parameter groups of this task, as train.groups of a job; NULL: none. A weight belongs to the first
     * group that matches its name. All groups have the same size. */
    const cvy_training_group *groups;
    int ngroups;
    /** Factor of an L1 norm of the weights that have weight decay: l1 times its sign is added to the gradient of each
     * such weight, after clipping; 0: none. */
    double l1;
    /** The largest magnitude of a trained weight: after each update, weights beyond it are set to it; 0: none. It
     * bounds the slope of a critic (Arjovsky et al. 2017). */
    double clip_weights;
    /** What messages and plans call the task, "turn 2"; NULL: nothing. */
    const char *label;
} cvy_training_opts;
CVY_SIZED_STRUCT(cvy_training_opts)

/**
 * cvy_program_create - make an empty program
 * @context: must outlive the program
 * @opts: NULL for the defaults
 * @program_out: the program; the caller destroys it
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (size), CVY_E_CONFIG (an option's value, or options that do not go together),
 * CVY_E_UNSUPPORTED (an update mode that the context's backend cannot run), CVY_E_IO and CVY_E_FORMAT (plan_file),
 * CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_create(cvy_context *context, const cvy_program_opts *opts,
                                                     cvy_program **program_out);
/** Destroys the object and sets the pointer to NULL; NULL is accepted. With DELAYED or overlap FORWARD call
 * cvy_program_flush() on all ranks first, because reductions are under way until then. Collective: no. */
CVY_API void cvy_program_destroy(cvy_program **program);

/**
 * cvy_program_add_training - add a training task
 * @model: must have at least one loss; borrowed until cvy_program_plan() has returned
 * @batch: global batch in samples, at least 1. It is split over the ranks as evenly as possible; if it is smaller than
 *         the number of ranks, some ranks are idle
 * @opts: NULL for the defaults (plain SGD, all losses, all variables)
 * @task_out: the task's number, for the calls below
 *
 * Collective: logically (the same calls on all ranks). Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (optimizer_options is not
 * YAML, or options do not go with the update mode), CVY_E_UNSUPPORTED, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_add_training(cvy_program *program, const cvy_model *model, int64_t batch,
                                                           const cvy_training_opts *opts, int *task_out);
/**
 * cvy_program_add_forward - add a forward task: evaluation with running statistics and without dropout
 * @model: borrowed until cvy_program_plan() has returned
 * @batch: global batch in samples, at least 1, split over the ranks as for training
 * @outputs: "layer1, layer2": layers that cvy_program_output() can read after the task; NULL: the model's output
 * @task_out: the task's number, for the calls below
 *
 * The task also computes the model's losses. Collective: logically. Errors: CVY_E_ARGUMENT, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_add_forward(cvy_program *program, const cvy_model *model, int64_t batch,
                                                          const char *outputs, int *task_out);

/**
 * cvy_program_plan - infer shapes, differentiate, choose kernels, lay out memory, initialise the variables
 *
 * Called once, after all tasks are added. Weights are filled from the seed and are equal on all ranks. If the plan of
 * any rank needs more than memory_limit, all ranks plan training again so that the backward pass recomputes values of
 * the forward pass: those that cost least work for their memory, and no more than it takes. The results are the same
 * bits. Collective: yes (all ranks return the same status). Errors: CVY_E_SHAPE, CVY_E_CONFIG (names the layer and the
 * option), CVY_E_DISAGREE (options, tasks or models of two ranks differ), CVY_E_MEMORY (says how much is needed, and
 * which batch would fit), CVY_E_COMM.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_plan(cvy_program *program);

/** This rank's local batch in a task, in samples: the rows of each feed. 0 if the task is not planned. Collective: no.
 */
CVY_API int64_t cvy_program_rows(const cvy_program *program, int task);
/** Index of this rank's first row within the global batch (with accumulate: within the first micro-batch). 0 if the
 * task is not planned. Collective: no. */
CVY_API int64_t cvy_program_first_row(const cvy_program *program, int task);

/**
 * cvy_program_feed - memory of a task's input on this rank, to be filled in place
 * @input: name of an input of the model
 *
 * [rows, sample shape...], row-major, of the input's dtype in the model; real inputs have the program's dtype. The
 * program owns it, and its address does not change. A model with dropout also has the input "sample_id", i64 [rows],
 * from which masks are drawn; unless the caller fills it, it is each row's index in the global batch. A real input
 * "weight" is 1 until the caller fills it. If ranks share
 * samples (opts.spatial), it holds this rank's part of each sample: cvy_program_part() says which. Returns
 * NULL, with an error text, if the task is not planned or has no such input. Collective: no.
 */
CVY_API void *cvy_program_feed(cvy_program *program, int task, const char *input);

/**
 * cvy_program_set_rows - say how many of this rank's rows are samples, if ranks have different numbers of them
 * @rows: from 0 to cvy_program_rows(), the rows that were planned; the others are padding until the next call, or until
 *        cvy_program_fill()
 *
 * Inputs of padding become 0, for which the network must give finite numbers. For training, the model must have a real
 * input "weight", one number for each sample, that its losses read ("closure, y, weight"): it becomes 1 for samples and
 * 0 for padding. Losses and gradients are then means over the samples of all ranks, whatever number each rank has. If
 * no rank has any, they are 0, and a step only moves the weights by momentum and decay. Padding counts in no
 * statistics of a batch norm; groups of samples are counted with it, so they depend on the ranks' numbers. A loss of a
 * forward task that does not read "weight" counts padding. cvy_program_write_input() and cvy_program_read_output() then
 * have arrays of the samples alone. Ranks that share samples (opts.tensor, spatial, pipeline) must give the same
 * number. Collective: no. Errors: CVY_E_ARGUMENT (not planned, @rows, no input "weight", a loss that does not read it),
 * CVY_E_SHAPE (it has more than a number for each sample), CVY_E_UNSUPPORTED (training with the update modes LOCAL and
 * PARAMETER_SERVER).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_set_rows(cvy_program *program, int task, int64_t rows);
/** Number of this rank's rows that are samples: cvy_program_rows(), unless cvy_program_set_rows() has said otherwise. 0
 * if the task is not planned. Collective: no. */
CVY_API int64_t cvy_program_samples(const cvy_program *program, int task);

/**
 * cvy_program_write_input - copy an array of the caller into a task's input on this rank
 * @dtype: F32 or F64 for a real input, I64, I32 or U8 for labels and indices; the elements are converted
 * @data: [rows, sample shape...], row-major, as the memory that cvy_program_feed() gives; after cvy_program_set_rows()
 *        only the rows that are samples, and the rest of the input becomes 0
 * @elems: number of elements of @data, which must be the input's
 *
 * Numbers may be anything: with one that is not finite, cvy_program_step() says CVY_E_NUMERIC in training, and computes
 * with it in a forward task. Collective: no. Errors: CVY_E_ARGUMENT (not planned, no such input, a dtype that does not
 * fit, an integer that the input cannot hold), CVY_E_SHAPE (another number of elements). After a fault the input is as
 * it was before.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_write_input(cvy_program *program, int task, const char *input,
                                                          cvy_dtype dtype, const void *data, int64_t elems);

/**
 * cvy_program_step - run a task once
 * @task: a training task makes one step of training; a forward task is evaluated
 * @learning_rate: of this training step; ignored by forward tasks
 *
 * Allocates nothing. The weights of all ranks are equal after it in all modes but LOCAL. Collective: yes. Errors:
 * CVY_E_ARGUMENT (not planned, a learning rate that is not finite; nothing has changed then), CVY_E_NUMERIC on all
 * ranks, CVY_E_COMM, CVY_E_FORMAT (a label is out of range). With CVY_E_NUMERIC (SYNC and ZERO1) a loss or a gradient
 * is not finite, and the weights are as they were before. In the other modes and with overlap FORWARD, values that are
 * not finite enter the weights, and the next losses show it. After CVY_E_COMM and CVY_E_FORMAT the weights may be
 * partly updated.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_step(cvy_program *program, int task, double learning_rate);

/**
 * cvy_program_flush - bring the weights of all ranks up to date
 *
 * What it does depends on the update mode:
 * - DELAYED: applies the update that is pending, which the next training step would apply otherwise. A training step
 *   that is followed by a flush is a step in sync, so a program can begin or end its training with such steps.
 * - LOCAL: all ranks take the average of weights, optimiser state and running statistics. Call it every few steps, and
 *   before weights are read. It may write over the outputs of the latest task.
 * - PARAMETER_SERVER: all ranks get the weights from the servers, and rank 0 gets the optimiser's state; forward tasks
 *   call it themselves. If staleness is not 0, training steps of a server do nothing: it serves in this call, until all
 *   workers, which must have run the same steps, have called it too. Therefore call it before cvy_program_destroy().
 * - overlap FORWARD: does the update that the next step would do otherwise.
 * - SYNC, ZERO1: nothing.
 *
 * Collective: yes. Errors: as of cvy_program_step().
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_flush(cvy_program *program);

/**
 * cvy_program_loss - value of a loss after a task has run
 * @loss: name of the loss layer
 * @value_out: training: over the global batch, equal on all ranks; forward: this rank's part, to be added over ranks
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (the task is not planned or has no such loss).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_loss(const cvy_program *program, int task, const char *loss,
                                                   double *value_out);
/**
 * cvy_program_output - this rank's rows of an output layer after a task has run
 * @layer: one of the task's outputs
 * @data_out: [rows, ...], row-major, of the program's dtype; the program owns it, and it is valid until the program
 *            runs its next task
 * @shape_out: its shape, rows included; may be NULL
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (not planned, or not one of the task's outputs), CVY_E_UNSUPPORTED (a
 * training step of several micro-batches).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_output(const cvy_program *program, int task, const char *layer,
                                                     const void **data_out, cvy_shape *shape_out);

/**
 * cvy_program_read_output - copy this rank's rows of an output layer into an array of the caller
 * @layer: one of the task's outputs
 * @dtype: CVY_DTYPE_F32 or CVY_DTYPE_F64; the elements are converted
 * @data_out: [rows, ...], row-major; after cvy_program_set_rows() only the rows that are samples
 * @elems: number of elements of @data_out, which must be the output's
 *
 * Collective: no. Errors: those of cvy_program_output(), CVY_E_ARGUMENT (the dtype), CVY_E_SHAPE (another number of
 * elements).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_read_output(const cvy_program *program, int task, const char *layer,
                                                          cvy_dtype dtype, void *data_out, int64_t elems);

/**
 * cvy_program_write_block, cvy_program_read_block - the same with arrays that have ghost cells around them
 * @data: an array of @array, row-major; only its inside is read or written
 * @array: [rows, ...] with ghost cells
 * @ghost: [ndim of @array] ghost cells on each side of a dimension; 0 for rows and channels
 *
 * For the blocks of a decomposed field. With opts.spatial and outputs_in_parts the inside is this rank's part of each
 * sample, and layers exchange what they need of the other parts themselves: ghost cells are not read, and may be stale.
 * The ranks of a field that is cut into 2 x 3 blocks (opts.spatial 2, 3) are numbered along its last dimension first,
 * as MPI_Cart_create() without reordering numbers them. Part p of P of n cells begins at n p / P, rounded down: 11
 * cells on 3 ranks are 3, 4 and 4. cvy_program_part() says it. Collective: no. Errors: CVY_E_ARGUMENT (not planned, no
 * such input or output, a dtype that does not fit), CVY_E_SHAPE (the inside is not this rank's part; the message has
 * both). After a fault of write_block the input may be partly written.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_write_block(cvy_program *program, int task, const char *input,
                                                          cvy_dtype dtype, const void *data, const cvy_shape *array,
                                                          const int64_t *ghost);
CVY_API CVY_MUST_CHECK cvy_status cvy_program_read_block(const cvy_program *program, int task, const char *layer,
                                                         cvy_dtype dtype, void *data, const cvy_shape *array,
                                                         const int64_t *ghost);

/**
 * cvy_program_get, cvy_program_set - copy a variable to or from the caller's memory
 * @variable: its name, "conv1.weight"
 * @plain_out, @plain: row-major, of the program's dtype
 * @elems: number of elements of that memory, which must be the variable's
 *
 * If ranks share layers (opts.tensor), they copy this rank's part: cvy_program_part() says which.
 * Collective: no; see share_weights for cvy_program_set(). Errors: CVY_E_ARGUMENT (not planned, no such variable, wrong
 * number of elements), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_get(const cvy_program *program, const char *variable, void *plain_out,
                                                  int64_t elems);
CVY_API CVY_MUST_CHECK cvy_status cvy_program_set(cvy_program *program, const char *variable, const void *plain,
                                                  int64_t elems);
/**
 * cvy_program_part - which part of a variable, of an input or of an output this rank has
 * @name: a variable ("conv1.weight"), an input of @task, or with opts.outputs_in_parts one of its outputs
 * @whole_out: the shape of the whole variable, or of a whole sample of the input or output; may be NULL
 * @first_out: [ndim of @whole_out] where the part begins in the whole, along each dimension; may be NULL. The part is
 * as long as cvy_program_variable() says, or as the input's feed or the output is
 *
 * Zeros, and the whole, unless opts.tensor or opts.spatial is set. Collective: no. Errors: CVY_E_ARGUMENT (not planned,
 * no such variable, input or output).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_part(const cvy_program *program, int task, const char *name,
                                                   cvy_shape *whole_out, int64_t *first_out);
/** Name and shape of variable @i, from 0; CVY_END after the last one. The program owns the name. @shape_out may be
 * NULL. Collective: no. Errors: none. */
CVY_API cvy_status cvy_program_variable(const cvy_program *program, int i, const char **name_out, cvy_shape *shape_out);

/**
 * cvy_program_save, cvy_program_load - write the weights to a safetensors file, or read them from one
 *
 * Save on one rank; load on all ranks. A file that is loaded must have the program's variables by name and shape. An
 * .onnx file is read, too: its values have the names of the variables of cvy_model_from_file(), and variables that it
 * does not have stay as they are.
 * Collective: no. Errors: CVY_E_ARGUMENT (not planned, no path), CVY_E_IO, CVY_E_FORMAT, CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_save(const cvy_program *program, const char *path);
CVY_API CVY_MUST_CHECK cvy_status cvy_program_load(cvy_program *program, const char *path);

/**
 * cvy_program_print - a task's graph or plan as text
 * @how: "text" (the graph), "dot" (the graph for Graphviz), "json" (the plan: layers, kernels, memory to the byte) or
 *       "explain" (for each node its candidate kernels: the one that is taken, the slower ones, and why others do not
 * fit)
 * @text_out: the caller releases it by cvy_text_release()
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (not planned, unknown @how), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_print(const cvy_program *program, int task, const char *how,
                                                    char **text_out);
/** Bytes of tensor memory that the program holds on this rank: arena (shared by all tasks), variables and feeds.
 * Collective: no. */
CVY_API int64_t cvy_program_bytes(const cvy_program *program);

CVY_END_DECLS
#endif
