/*
 * convoy/stream.h: training on what a simulation makes while it runs: a reservoir keeps some of its samples, and each
 * training step draws a batch from them.
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
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_STREAM_H
#define CONVOY_STREAM_H

#include <convoy/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Samples of one rank, of which some are kept. */
typedef struct cvy_reservoir cvy_reservoir;

/** Options of a reservoir; zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_reservoir_opts {
    size_t size;
    /** Number of samples that it keeps; required. */
    int64_t capacity;
    /** Which samples are kept when it is full: "uniform" (NULL: each one so far with the same probability, Vitter 1985)
     * or "newest". */
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

#ifdef __cplusplus
}
#endif
#endif
