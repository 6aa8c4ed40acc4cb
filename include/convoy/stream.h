/*
 * convoy/stream.h: training on what a simulation makes while it runs. A reservoir keeps some of its samples, and each
 * training step draws a batch from them. A stream brings samples to a reservoir on another rank, and weights back.
 *
 * The same ranks compute and train in turns:
 *
 *     cvy_reservoir_create(&opts, &reservoir);                                  // {.capacity = 100000}
 *     cvy_reservoir_add_field(reservoir, "x", CVY_DTYPE_F32, &shape_x);         // the inputs of a task
 *     cvy_reservoir_add_field(reservoir, "y", CVY_DTYPE_F32, &shape_y);
 *     for (each time step) {
 *         cvy_reservoir_put(reservoir, "x", CVY_DTYPE_F64, x, n * elems_x);     // n new samples
 *         cvy_reservoir_put(reservoir, "y", CVY_DTYPE_F64, y, n * elems_y);
 *         cvy_reservoir_push(reservoir);
 *         cvy_reservoir_draw(reservoir, program, task);
 *         cvy_program_step(program, task, rate);
 *     }
 *
 * Samples of neighbouring time steps are alike. A network that sees only the latest ones forgets the others. Each rank
 * has a reservoir of its own, and no call waits for another rank.
 *
 * Other ranks train, each side at its own pace:
 *
 *     cvy_stream_create(world, &opts, &stream);       // {.role = "solver"} on some ranks, {.role = "trainer"} on
 * others
 *
 *     for (each time step) {                          // on a solver
 *         cvy_stream_put(stream, "x", CVY_DTYPE_F64, x, n * elems_x);
 *         cvy_stream_put(stream, "y", CVY_DTYPE_F64, y, n * elems_y);
 *         cvy_stream_push(stream);
 *         cvy_stream_take(stream, NULL);              // new weights, if all solvers have them
 *     }
 *
 *     while (cvy_stream_receive(stream) == CVY_OK) {  // on a trainer
 *         cvy_reservoir_draw(reservoir, program, task);
 *         cvy_program_step(program, task, rate);
 *         cvy_stream_publish(stream);
 *     }
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_STREAM_H
#define CONVOY_STREAM_H

#include <convoy/program.h>

CVY_BEGIN_DECLS

/** Samples of one rank, of which some are kept. */
typedef struct cvy_reservoir cvy_reservoir;

/** Options of a reservoir; zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_reservoir_opts {
    size_t size;
    /** Number of samples that it keeps; required. */
    int64_t capacity;
    /** Which samples are kept when it is full: "uniform" (NULL: each one so far with the same probability, Vitter
     * 1985), "newest", or "loss": a new sample takes the place of the one that has the smallest loss of eight random
     * ones, by the losses of cvy_reservoir_set_losses(). A sample that was never drawn counts as if it had the mean of
     * all losses. */
    const char *keep;
    /** Seed of what is kept and what is drawn. Ranks with different samples should have different seeds. */
    uint64_t seed;
} cvy_reservoir_opts;
CVY_SIZED_STRUCT(cvy_reservoir_opts)

/** Makes an empty reservoir; the caller destroys it. Collective: no. Errors: CVY_E_ARGUMENT (size, capacity, keep),
 * CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_create(const cvy_reservoir_opts *opts, cvy_reservoir **reservoir_out);
/** Destroys the object and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_reservoir_destroy(cvy_reservoir **reservoir);

/**
 * cvy_reservoir_add_field - say what a sample consists of, before the first one comes
 * @name: the name of an input of the tasks that will draw from it; copied
 * @dtype: in which the field is kept: F32, F64, I64, I32 or U8
 * @sample_shape: of one sample; ndim 0: one number
 *
 * Takes the memory of all samples that it can keep. Collective: no. Errors: CVY_E_ARGUMENT (the name is taken, the
 * dtype, samples have come already), CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_add_field(cvy_reservoir *reservoir, const char *name, cvy_dtype dtype,
                                                          const cvy_shape *sample_shape);

/** Field i, in the order in which they were added. The reservoir owns the name. Outputs may be NULL. CVY_END after the
 * last. Collective: no. Errors: none. */
CVY_API cvy_status cvy_reservoir_field(const cvy_reservoir *reservoir, int i, const char **name_out,
                                       cvy_dtype *dtype_out, cvy_shape *shape_out);

/**
 * cvy_reservoir_put - give a field of some new samples, which cvy_reservoir_push() will add
 * @dtype: of @data; real numbers and integers are converted to the dtype of the field
 * @data: [samples, sample shape...], row-major; copied
 * @elems: number of elements at @data, a multiple of those of a sample
 *
 * A second call for the same field replaces what the first one gave. Collective: no. Errors: CVY_E_ARGUMENT (no such
 * field, a dtype that does not fit, an integer that the field cannot hold), CVY_E_SHAPE (no multiple), CVY_E_NUMERIC
 * (an element is not finite), CVY_E_MEMORY. After a fault the field has no new samples.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_put(cvy_reservoir *reservoir, const char *field, cvy_dtype dtype,
                                                    const void *data, int64_t elems);

/** Adds the new samples, of which all fields must have been given, the same number. Collective: no. Errors:
 * CVY_E_ARGUMENT (there are no fields), CVY_E_SHAPE (numbers differ); after a fault nothing is added, and the new
 * samples are still there. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_push(cvy_reservoir *reservoir);

/** Number of samples that it holds now. Collective: no. */
CVY_API int64_t cvy_reservoir_held(const cvy_reservoir *reservoir);
/** Number of samples that were ever added. Collective: no. */
CVY_API int64_t cvy_reservoir_seen(const cvy_reservoir *reservoir);

/**
 * cvy_reservoir_draw - fill a task's inputs on this rank with samples drawn at random
 * @task: each field must be an input of it, with samples of the same number of elements
 *
 * Draws as many samples as the task has rows on this rank, or as cvy_program_set_rows() has said, and none twice. If
 * the reservoir holds fewer, samples are repeated. Allocates nothing after the first call for a task. Collective: no.
 * Errors: CVY_E_ARGUMENT (it is empty, the task is not planned, or has no such input), CVY_E_SHAPE, CVY_E_UNSUPPORTED
 * (ranks that share samples or layers: opts.pipeline, tensor, spatial), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_draw(cvy_reservoir *reservoir, cvy_program *program, int task);

/** Gives the losses of the samples of the latest draw, in the order of its rows, to a reservoir that keeps by "loss".
 * No sample may have been added since the draw. Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_SHAPE (@n is not the
 * number of samples of the draw), CVY_E_NUMERIC (one is not finite); after a fault nothing has changed. */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_set_losses(cvy_reservoir *reservoir, const double *losses, int64_t n);

/** Bytes that cvy_reservoir_save() writes now. Collective: no. */
CVY_API int64_t cvy_reservoir_bytes(const cvy_reservoir *reservoir);
/**
 * cvy_reservoir_save, cvy_reservoir_load - write the state into memory of the caller, or read it back
 * @memory, @bytes: as cvy_reservoir_bytes() says; for the caller's own checkpoint, in the byte order of this machine
 *
 * A reservoir with the same fields, capacity, keep and seed that has loaded the state keeps and draws what the saved
 * one would have. New samples that were put and not pushed are not saved. Collective: no. Errors: CVY_E_ARGUMENT (too
 * few bytes), CVY_E_FORMAT (no such state, or a damaged one), CVY_E_SHAPE (of a reservoir with other fields or
 * options); after a fault the reservoir is as it was.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_save(const cvy_reservoir *reservoir, void *memory, int64_t bytes);
CVY_API CVY_MUST_CHECK cvy_status cvy_reservoir_load(cvy_reservoir *reservoir, const void *memory, int64_t bytes);

/** Samples on their way from the ranks that make them to the ranks that train, and weights on their way back. */
typedef struct cvy_stream cvy_stream;

/** Options of a stream; zero-initialise, set size. Strings are borrowed for the call, objects until the stream is
 * destroyed. */
typedef struct cvy_stream_opts {
    size_t size;
    /** What this rank does: "solver" (NULL) makes samples, "trainer" trains, "both" does both in turns and trains on
     * its own samples. */
    const char *role;
    /** Of a trainer: where its samples go. It has fields, the same on all trainers, with names of at most 63 letters;
     * solvers learn them from it. No field may be added later. */
    cvy_reservoir *reservoir;
    /** The program whose weights are trained on trainers, and whose weights are replaced by them on solvers. It is
     * planned, and has the same variables and dtype on all ranks. With the role "both" it is the program that is
     * trained, so its weights are newer than those of other solvers. NULL on all ranks: no weights go back. */
    cvy_program *program;
    /** Of a solver: number of samples that may wait or be under way, for which it has memory; 0: 4096. */
    int64_t queue;
    /** Of a solver, what becomes of new samples when the queue is full: "drop" (NULL): they are dropped; "thin": every
     * second sample that waits is dropped, and from then on only every second, fourth, ... new one is taken; each push
     * that finds none waiting takes twice as many again; "wait": the push waits for up to wait_s, then the samples that
     * are left are dropped. */
    const char *when_full;
    /** Of a solver with "wait": the longest time that a push holds the solver, in seconds; at least 0. */
    double wait_s;
    /** Seconds after which the other side is lost; 0: 60. A solver takes its trainer for lost if samples are under way
     * and it has not answered for so long; of the time between two calls of the stream at most a quarter of it counts,
     * since a large message cannot move then. A trainer takes its solvers for lost if it has no samples at all, and
     * none come for so long. No call waits longer for a sign of the other side. A trainer with samples does not notice
     * that a solver has died. */
    double lost_s;
    /** Of a solver, equal on all: 1: cvy_stream_take() replaces the weights as soon as this rank has them. 0: all
     * solvers take the same weights in the same call. Trainers send new ones when all solvers have taken the ones
     * before, also with 1. */
    int independent;
} cvy_stream_opts;
CVY_SIZED_STRUCT(cvy_stream_opts)

/** What has happened so far on this rank. Set size; the library fills the rest. */
typedef struct cvy_stream_counts {
    size_t size;
    /** Of a solver: samples that were pushed, those of them that a trainer has got, that were dropped, and that wait or
     * are under way. The last three add up to the first. If the trainer is lost, it may still get some of those that
     * count as dropped. */
    int64_t pushed, delivered, dropped, waiting;
    /** Of a trainer: samples that it has got. */
    int64_t received;
    /** Number of the weights that this rank has published or taken; 0: none. */
    int64_t version;
    /** Of a solver: seconds of the longest call of cvy_stream_push() and of cvy_stream_take(). */
    double longest_push_s, longest_take_s;
} cvy_stream_counts;
CVY_SIZED_STRUCT(cvy_stream_counts)

/**
 * cvy_stream_create - connect solvers and trainers
 * @context: over all solvers and trainers, and no other ranks. A program has a context of its own, for example over
 *           the trainers (MPI_Comm_split), or of one rank
 * @opts: role, reservoir and so on of this rank
 * @stream_out: the caller destroys it
 *
 * Each solver is served by one trainer, in the order of ranks. Collective: yes, over @context. Errors: CVY_E_ARGUMENT
 * (size; a value; no solver, no trainer, or more trainers than solvers; a trainer without a reservoir with fields),
 * CVY_E_DISAGREE (reservoirs of two trainers have other fields, programs have other variables or are NULL on some ranks
 * only, opts.independent differs), CVY_E_UNSUPPORTED (the program has opts.pipeline, tensor, spatial, share_weights, a
 * progress thread, or the update mode LOCAL or PARAMETER_SERVER), CVY_E_MEMORY, CVY_E_COMM.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_create(cvy_context *context, const cvy_stream_opts *opts,
                                                    cvy_stream **stream_out);

/** Ends the stream on this rank and sets the pointer to NULL; NULL is accepted. The other side learns it by CVY_END. On
 * a solver, samples that wait are delivered first, and the other solvers keep the weights that they have from now on.
 * It waits for a sign of the other side, no longer than lost_s for each. If there is none, what is under way keeps its
 * memory. Collective: logically. */
CVY_API void cvy_stream_destroy(cvy_stream **stream);

/** Field i of the samples, as cvy_reservoir_field(). The stream owns the name. Collective: no. Errors: none. */
CVY_API cvy_status cvy_stream_field(const cvy_stream *stream, int i, const char **name_out, cvy_dtype *dtype_out,
                                    cvy_shape *shape_out);

/**
 * cvy_stream_put - on a solver: give a field of some new samples, as cvy_reservoir_put()
 *
 * Collective: no. Errors: those of cvy_reservoir_put(), CVY_E_ARGUMENT (not a solver).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_put(cvy_stream *stream, const char *field, cvy_dtype dtype,
                                                 const void *data, int64_t elems);

/**
 * cvy_stream_push - on a solver: send the new samples, of which all fields must have been given, the same number
 *
 * Copies them into the queue and sends what waits there as far as the trainer keeps up. It waits for nothing unless
 * when_full is "wait". Messages make progress only during calls of the stream and of MPI.
 * Collective: no. CVY_END: the trainers have ended the stream; this and later samples are dropped. Errors:
 * CVY_E_ARGUMENT (not a solver), CVY_E_SHAPE (numbers differ; the samples are still there), CVY_E_COMM (the trainer is
 * lost, on this and all later calls: this and later samples are dropped).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_push(cvy_stream *stream);

/**
 * cvy_stream_flush - on a solver: wait until all samples are delivered, but no longer than so many seconds
 *
 * For a checkpoint: afterwards all samples that were not dropped are in a reservoir. Collective: no. CVY_STOPPED: some
 * still wait (cvy_stream_get_counts()). CVY_END and errors: as of cvy_stream_push().
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_flush(cvy_stream *stream, double seconds);

/**
 * cvy_stream_take - on a solver: replace the program's weights by newer ones, if there are any
 * @version_out: number of the weights that the program has now, from 1; 0: its own still. May be NULL
 *
 * Unless opts.independent is set, all solvers take the same weights in their call number n: those that all of them had
 * in call n - 1. So a solver may be one call ahead of the others, and then waits until they have followed. It waits for
 * no trainer. When a solver has ended, the others take no more weights.
 * Collective: logically, over the solvers. Errors: CVY_E_ARGUMENT (not a solver, no program), CVY_E_COMM (another
 * solver has not called for lost_s, or MPI fails). A trainer that is lost or has ended is no fault here: the weights
 * stay.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_take(cvy_stream *stream, int64_t *version_out);

/**
 * cvy_stream_receive - on a trainer: move the samples that have come into the reservoir
 *
 * Waits only while the reservoir of any trainer is empty. Collective: yes, over the trainers (all return the same
 * status). CVY_END: all solvers have ended the stream, and all their samples are in the reservoirs. Errors:
 * CVY_E_ARGUMENT (not a trainer), CVY_E_COMM (the reservoir of a trainer is empty, and no sample has come for lost_s,
 * or none can come).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_receive(cvy_stream *stream);

/**
 * cvy_stream_publish - on a trainer: send the program's weights to the solvers, if these have taken the ones before
 *
 * Otherwise it does nothing, so it may be called after each step. Waits for nothing. Collective: logically, over the
 * trainers, after cvy_stream_receive(). Errors: CVY_E_ARGUMENT (not a trainer, no program), CVY_E_COMM.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_publish(cvy_stream *stream);

/** What has happened so far on this rank. Collective: no. Errors: CVY_E_ARGUMENT (size). */
CVY_API CVY_MUST_CHECK cvy_status cvy_stream_get_counts(const cvy_stream *stream, cvy_stream_counts *counts_out);

CVY_END_DECLS
#endif
