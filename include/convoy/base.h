/*
 * convoy/base.h: what every other public header builds on: status, error text, dtype, shape, version, context.
 *
 * Needs C11 (or C++11) and the C library only. Arguments are borrowed for the call unless the function says otherwise.
 * "Collective: yes" means that all ranks of the context call the function and wait for each other in it; "logically"
 * that all ranks make the same calls in the same order, without waiting; "no" that a rank may call it alone. A function
 * whose comment lists no errors fails only as the next sentences say. An object is used by one thread at a time unless
 * its function says otherwise; different contexts may be used by different threads.
 *
 * If an object is NULL, was destroyed, or is of another type, the function returns CVY_E_ARGUMENT, or 0 or NULL if it
 * returns no status, with an error text that names the argument; a destroy function does nothing. The functions of
 * cvy_train_control, which signal handlers may call, leave no error text. In a process that was forked after the
 * library had threads or MPI's ranks, a function that returns a status or a pointer into an object returns
 * CVY_E_UNSUPPORTED or NULL, with an error text that names the parent; others only read, or do nothing.
 *
 * During a call its thread has the locale "C", rounds to nearest and traps no floating-point exception; the host
 * program's settings are back after it and in callbacks for messages. The library sets no signal handler, its threads
 * block all signals, and SIGPIPE and SIGXFSZ of its writes are errors of the calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_BASE_H
#define CONVOY_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Around the declarations of a header. */
#ifdef __cplusplus
#define CVY_BEGIN_DECLS extern "C" {
#define CVY_END_DECLS }
#else
#define CVY_BEGIN_DECLS
#define CVY_END_DECLS
#endif
#if defined(__GNUC__)
#define CVY_API __attribute__((visibility("default")))
#define CVY_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define CVY_MUST_CHECK __attribute__((warn_unused_result))
#else
#define CVY_API
#define CVY_PRINTF(fmt, first)
#define CVY_MUST_CHECK
#endif

CVY_BEGIN_DECLS

/** The version of these headers. Compare cvy_version_number(), the version of the library, with CVY_VERSION_NUMBER. */
#define CVY_VERSION_MAJOR 0
#define CVY_VERSION_MINOR 3
#define CVY_VERSION_PATCH 0
/** major * 10000 + minor * 100 + patch, for #if. */
#define CVY_VERSION_NUMBER (CVY_VERSION_MAJOR * 10000 + CVY_VERSION_MINOR * 100 + CVY_VERSION_PATCH)

/**
 * CVY_SIZED_STRUCT - what a struct of options or results has: `size`, its first field, and type_default()
 *
 * The caller sets `size` to the sizeof of the struct, so that the library knows with which headers the caller was
 * compiled: it reads and writes no byte beyond that. Fields that an older header lacks have their default. Fields that
 * only a newer header has must be zero, or the call fails; so does a size of 0. Every such type comes with a function
 * type_default(), which gives a struct that is zero except for its size:
 *
 *     cvy_program_opts opts = cvy_program_opts_default();
 *     cvy_program_opts same = {.size = sizeof same};              // in C
 */
#define CVY_SIZED_STRUCT(type)                                                                                         \
    static inline type type##_default(void)                                                                            \
    {                                                                                                                  \
        type value;                                                                                                    \
        memset(&value, 0, sizeof value);                                                                               \
        value.size = sizeof value;                                                                                     \
        return value;                                                                                                  \
    }

/** Result of a call: 0 is success, negative a fault (cvy_error_text() explains it), positive another answer that is not
 * a fault. */
typedef enum cvy_status {
    /** Done. */
    CVY_OK = 0,
    /** There are no more samples, steps or records. */
    CVY_END = 1,
    /** A kernel or reader declines; the error text says why. */
    CVY_NOT_APPLICABLE = 2,
    /** The run has stopped on request (signal, walltime); its state is saved. */
    CVY_STOPPED = 4,
    /** An argument of the call is wrong. */
    CVY_E_ARGUMENT = -1,
    /** Shapes do not fit each other or the operator. */
    CVY_E_SHAPE = -2,
    /** The job file or an option is wrong. */
    CVY_E_CONFIG = -3,
    /** A file cannot be read or written. */
    CVY_E_IO = -4,
    /** A file's content is damaged or of another kind. */
    CVY_E_FORMAT = -5,
    /** An allocation failed, or a memory limit is too small. */
    CVY_E_MEMORY = -6,
    /** MPI or another rank failed. */
    CVY_E_COMM = -7,
    /** The request is valid, but this build, this machine or this process cannot do it. */
    CVY_E_UNSUPPORTED = -8,
    /** A loss or a gradient is not finite. */
    CVY_E_NUMERIC = -9,
    /** The library itself is at fault; please report it. */
    CVY_E_INTERNAL = -10,
    /** Ranks were started with different jobs, data or versions. */
    CVY_E_DISAGREE = -11
} cvy_status;

/** The message of the calling thread's latest fault: what, where, the value, what to do. Never NULL; the library owns
 * it, and it is valid until the thread's next fault. Read it only after a call that has returned a negative status, or
 * NULL if the call's comment says "with an error text". Other calls neither clear it nor keep it: after a success it
 * may be the message of an older fault, or of one from which the library has recovered. Collective: no. */
CVY_API const char *cvy_error_text(void);

/** A status as one or two lower-case words, for logs; static. Collective: no. */
CVY_API const char *cvy_status_text(cvy_status status);

/** The library's version, "major.minor.patch"; static. Collective: no. */
CVY_API const char *cvy_version(void);
/** The library's version as CVY_VERSION_NUMBER counts it. Collective: no. */
CVY_API int cvy_version_number(void);

/**
 * The bytes of memory that the library holds in this process, for all its objects together: 0 before the first object
 * is created and after the last one is destroyed. What MPI, oneDNN and other libraries hold is not counted, nor is what
 * the system's allocator keeps for later use, so a host program can see from it whether it has destroyed all it made.
 * Collective: no. Any thread may call it. Errors: none.
 */
CVY_API int64_t cvy_memory_bytes(void);

/** Type of the elements of a tensor. */
typedef enum cvy_dtype {
    CVY_DTYPE_F32 = 0,
    CVY_DTYPE_F64,
    CVY_DTYPE_I64,
    CVY_DTYPE_I32,
    CVY_DTYPE_U8,
    CVY_DTYPE_BF16,
    CVY_DTYPE_COUNT
} cvy_dtype;

/** Size of one element in bytes. Collective: no. */
CVY_API size_t cvy_dtype_bytes(cvy_dtype dtype);
/** Its name, static: "f32", "f64", "i64", "i32", "u8" or "bf16". Collective: no. */
CVY_API const char *cvy_dtype_text(cvy_dtype dtype);
/** The inverse of cvy_dtype_text(). Collective: no. Errors: CVY_E_ARGUMENT (unknown name). */
CVY_API CVY_MUST_CHECK cvy_status cvy_dtype_parse(const char *text, cvy_dtype *dtype_out);

/** The largest number of dimensions. */
#define CVY_NDIM_MAX 6

/** A logical shape: dim[0] is the batch for activations, the number of outputs for weights. ndim 0 is a scalar. */
typedef struct cvy_shape {
    int ndim;
    int64_t dim[CVY_NDIM_MAX];
} cvy_shape;

/** Levels of log lines, the most important first. */
typedef enum cvy_log_level { CVY_LOG_ERROR = 0, CVY_LOG_WARN, CVY_LOG_INFO, CVY_LOG_DEBUG } cvy_log_level;
/** Receives a log line, without its newline; @line is borrowed for the call. */
typedef void (*cvy_log_fn)(void *user, cvy_log_level level, const char *line);

/** Called if one rank fails inside a step and the other ranks do not know of it, or if ranks do not come (watchdog_s of
 * cvy_context_opts; with CVY_E_COMM). It should end the job, for example by
 * MPI_Abort. Without it the status is only returned to the caller. @text is borrowed for the call. */
typedef void (*cvy_fatal_fn)(void *user, cvy_status status, const char *text);

/** Options of a context; zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_context_opts {
    size_t size;
    /** Compute threads; 0: the least of affinity mask, quotas, batch system and OMP_NUM_THREADS, shared by a node. */
    int threads;
    /** Lines up to this level are logged; CVY_LOG_ERROR (0): errors only. */
    cvy_log_level log_level;
    /** Receives each line, with log_user; NULL: lines go to standard error, on rank 0 only. */
    cvy_log_fn log;
    void *log_user;
    /** See cvy_fatal_fn; called with fatal_user. May be NULL. */
    cvy_fatal_fn fatal;
    void *fatal_user;
    /** The former name of @device, which counts if @device is NULL. Leave it NULL. */
    const char *backend;
    /** Seconds for which a rank waits for other ranks in a call of the library, before it finds out and says which
     * ranks do not come, where they are, and in which call and step all were last: to @fatal, which may end the job, or
     * without it to the log. It then waits on. Equal on all ranks. 0: no limit. It should be longer than the work of
     * any rank from one call to the next. */
    double watchdog_s;
    /** Where tensors are and kernels run: "host"; "opencl" for the device of this driver whose number is the rank's
     * number on its node, modulo the number of devices; "opencl:1" for this one; "auto" for a GPU if a driver finds
     * one, else the host. NULL: "host". Equal on all ranks. */
    const char *device;
} cvy_context_opts;
CVY_SIZED_STRUCT(cvy_context_opts)

/** A group of ranks with its threads and its log; programs and reducers are made from it. */
typedef struct cvy_context cvy_context;

/**
 * cvy_context_create - make a context of one rank (for several see convoy/mpi.h)
 * @opts: NULL for the defaults
 * @context_out: the context; the caller destroys it
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (size, threads), CVY_E_CONFIG (device), CVY_E_UNSUPPORTED (there is no such
 * device), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_create(const cvy_context_opts *opts, cvy_context **context_out);

/** Destroys a context and sets the pointer to NULL; NULL is accepted. Everything that was made from it must be
 * destroyed before. Collective: yes. */
CVY_API void cvy_context_destroy(cvy_context **context);

/** This rank's number, from 0. Collective: no. */
CVY_API int cvy_context_rank(const cvy_context *context);
/** Number of ranks. Collective: no. */
CVY_API int cvy_context_nranks(const cvy_context *context);
/** Number of compute threads of this rank. Collective: no. */
CVY_API int cvy_context_threads(const cvy_context *context);
/** Where this rank computes, as cvy_context_opts.device names it: "host" or "opencl:0"; valid until a training of a job
 * with another `device` begins or ends on the context. Collective: no. */
CVY_API const char *cvy_context_device(const cvy_context *context);

/**
 * cvy_device_list - which devices this process can compute on
 * @text_out: a line for each device: its name as in cvy_context_opts.device, a space, and what it is; or the name of a
 *            driver and why it has no device. The caller releases it by cvy_text_release() of convoy/model.h
 *
 * It loads the drivers' libraries and opens each device. Collective: no. Errors: CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_device_list(char **text_out);

/** What this build contains, one line with a key and a value for each item; static. Collective: no. */
CVY_API const char *cvy_build_info(void);

CVY_END_DECLS
#endif
