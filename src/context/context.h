/*
 * context.h: the contents of a context: the communicator, the number of compute threads, the log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CONTEXT_H
#define CVY_CONTEXT_H

#include "backend/backend.h"
#include "comm/comm.h"
#include "extension/extension.h"

struct cvy_context {
    cvy_comm *comm;
    cvy_space space;    /* the memory space of the tensors of this context's programs */
    char device[48];    /* its name: context_device.h */
    int device_ranks;   /* ranks that compute on it, this one included */
    int turn;           /* which of the node's devices a rank takes: its number on the node */
    int64_t saved_step; /* of the latest complete checkpoint of a training, for messages of faults; 0: none */
    int nprograms;      /* programs that exist: their tensors are in the space */
    int threads;
    int cores;           /* number of cores in this rank's affinity mask */
    int sharing;         /* number of ranks of the node that have the same mask, this one included */
    int cores_each;      /* this rank's share of them, or fewer: quotas, the batch system (context_threads.c) */
    const void *summing; /* the reducer whose reductions are under way (the caller has started them and not waited for
                            them), or NULL */
    const void *pending; /* the program whose latest reduced gradients are not applied yet, or NULL */
    cvy_context_opts opts;
    cvy_extensions extensions; /* libraries of operators that were loaded */
    const cvy_context *of;     /* the context that this one stands for, which owns all but comm; NULL: none */
};

/* Makes a context in which programs are planned for the ranks of comm, instead of those of the context; nothing can run
 * in it, and it logs nothing. It borrows from both and needs no destruction. */
cvy_context cvy_context_for_planning(const cvy_context *context, cvy_comm *comm);
/* Whether the libraries are those of this context. */
static inline int cvy_context_has(const cvy_context *context, const cvy_extensions *extensions)
{
    return extensions == &(context->of ? context->of : context)->extensions;
}

/* For contexts within the work of another one: it does not warn of the number of threads. Takes ownership of comm, also
 * on failure. */
cvy_status cvy_context_create_over(cvy_comm *comm, const cvy_context_opts *opts, cvy_context **out);
/* CVY_E_DISAGREE if ranks have loaded files of other contents, or added other operators; copies in other places are the
 * same. Collective. */
cvy_status cvy_extensions_compare(cvy_comm *comm, const cvy_extensions *x);
/* Sets another backend than the one in the options; call it before the first program is created. */
cvy_status cvy_context_use(cvy_context *context, const cvy_backend_def *backend);
/* CVY_E_ARGUMENT while reductions of a reducer, or of another program than `who`, are under way: a rank that waits for
 * other reductions would not make progress on these. */
cvy_status cvy_context_check_idle(const cvy_context *context, const void *who);
/* Writes a line of the log. cvy_log writes on rank 0 only; cvy_log_local is for events of one rank. */
void cvy_log(const cvy_context *context, cvy_log_level level, const char *fmt, ...) CVY_PRINTF(3, 4);
/* Says on rank 0 which protections cannot work here (base/base_protection.h), each once. */
void cvy_context_say_protections(const cvy_context *context);
void cvy_log_local(const cvy_context *context, cvy_log_level level, const char *fmt, ...) CVY_PRINTF(3, 4);

#endif
