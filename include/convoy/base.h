/*
 * convoy/base.h: what every other public header builds on: status, error text, dtype, shape, version, context.
 *
 * Needs C11 (or C++11) and the C library only. Functions whose name does not say `_take` borrow their arguments.
 */
#ifndef CONVOY_BASE_H
#define CONVOY_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
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

/** Outcome of a call: 0 is good, negative a fault (cvy_error_text() explains), positive an answer that is not a fault. */
typedef enum cvy_status {
    CVY_OK = 0,
    CVY_END = 1,             /* no more samples, steps, records */
    CVY_NOT_APPLICABLE = 2,  /* a kernel or reader declines; its reason is the error text */
    CVY_BUSY = 3,            /* not finished yet; ask again */
    CVY_STOPPED = 4,         /* a stop was asked for (signal, walltime); state is saved */
    CVY_E_ARGUMENT = -1,     /* the caller's argument */
    CVY_E_SHAPE = -2,        /* shapes that do not fit each other or the operator */
    CVY_E_CONFIG = -3,       /* the job file or an option */
    CVY_E_IO = -4,           /* a file cannot be read or written */
    CVY_E_FORMAT = -5,       /* a file's content is damaged or of another kind */
    CVY_E_MEMORY = -6,       /* an allocation failed */
    CVY_E_COMM = -7,         /* MPI */
    CVY_E_UNSUPPORTED = -8,  /* known, but not built in, or not on this machine */
    CVY_E_NUMERIC = -9,      /* a loss or gradient that is not finite */
    CVY_E_INTERNAL = -10,    /* a fault of the library itself; please report */
    CVY_E_DISAGREE = -11     /* ranks were started with different jobs, data or versions */
} cvy_status;

/** The message of the calling thread's latest fault: what, where, the value, what to do. Never NULL; borrowed, valid until the thread's next fault. */
CVY_API const char *cvy_error_text(void);

/** A status as one lower-case word or two, for logs. */
CVY_API const char *cvy_status_text(cvy_status status);

/** The library's version, "major.minor.patch". */
CVY_API const char *cvy_version(void);

typedef enum cvy_dtype {
    CVY_DTYPE_F32 = 0,
    CVY_DTYPE_F64,
    CVY_DTYPE_I64,
    CVY_DTYPE_I32,
    CVY_DTYPE_U8,
    CVY_DTYPE_BF16,
    CVY_DTYPE_COUNT
} cvy_dtype;

/** Bytes of one element. */
CVY_API size_t cvy_dtype_bytes(cvy_dtype dtype);
/** "f32", "f64", "i64", "i32", "u8", "bf16". */
CVY_API const char *cvy_dtype_text(cvy_dtype dtype);
/** The inverse of cvy_dtype_text(); CVY_E_ARGUMENT for an unknown word. */
CVY_API CVY_MUST_CHECK cvy_status cvy_dtype_parse(const char *text, cvy_dtype *dtype_out);

#define CVY_NDIM_MAX 6

/** A logical shape: dim[0] is the batch for activations, the number of outputs for weights. ndim 0 is a scalar. */
typedef struct cvy_shape {
    int ndim;
    int64_t dim[CVY_NDIM_MAX];
} cvy_shape;

/** How loudly a context speaks, and to whom. NULL sink: standard error, rank 0 only. */
typedef enum cvy_log_level { CVY_LOG_ERROR = 0, CVY_LOG_WARN, CVY_LOG_INFO, CVY_LOG_DEBUG } cvy_log_level;
typedef void (*cvy_log_fn)(void *user, cvy_log_level level, const char *line);

/** Called once for a fault inside a step that other ranks do not know of; the default returns the status to the caller. */
typedef void (*cvy_fatal_fn)(void *user, cvy_status status, const char *text);

/** Options of a context. Zero-initialise, set size to sizeof(cvy_context_opts). */
typedef struct cvy_context_opts {
    size_t size;
    int threads;              /* compute threads, 0: as many as the affinity mask gives this rank */
    cvy_log_level log_level;  /* 0 is errors only */
    cvy_log_fn log;
    void *log_user;
    cvy_fatal_fn fatal;
    void *fatal_user;
} cvy_context_opts;

typedef struct cvy_context cvy_context;

/**
 * cvy_context_create - make a context of one rank (for several see convoy/mpi.h)
 * @opts: NULL for the defaults
 * @context_out: the context; the caller destroys it
 *
 * Collective: no. Errors: CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_create(const cvy_context_opts *opts, cvy_context **context_out);

/** Destroys a context, after everything made from it, and sets the pointer to NULL. NULL is accepted. Collective over the context's ranks. */
CVY_API void cvy_context_destroy(cvy_context **context);

CVY_API int cvy_context_rank(const cvy_context *context);
CVY_API int cvy_context_nranks(const cvy_context *context);
CVY_API int cvy_context_threads(const cvy_context *context);

/** What was built in, one "key value" pair a line. Borrowed, static. */
CVY_API const char *cvy_build_info(void);

#ifdef __cplusplus
}
#endif
#endif
