/*
 * context.h: what a context holds: the communicator, the number of compute threads, the log.
 */
#ifndef CVY_CONTEXT_H
#define CVY_CONTEXT_H

#include "backend/backend.h"
#include "comm/comm.h"

struct cvy_context {
    cvy_comm *comm;
    cvy_space space; /* where the tensors of this context's programs lie */
    int threads;
    int cores;      /* in this rank's affinity mask */
    int cores_each; /* of these, for each of the ranks that have the same mask */
    const void
        *summing; /* the reducer whose sums are under way, by what the caller has started and not waited for; or NULL */
    const void *pending; /* the program whose latest sums are not applied yet; or NULL */
    cvy_context_opts opts;
};

/* comm is taken over, also on failure. */
cvy_status cvy_context_create_over(cvy_comm *comm, const cvy_context_opts *opts, cvy_context **out);
/* Another backend than the one in the options, before the first program is made. */
cvy_status cvy_context_use(cvy_context *context, const cvy_backend_def *backend);
/* CVY_E_ARGUMENT while sums of a reducer, or of another program than `who`, are under way: who waits for other sums
 * would not push these on. */
cvy_status cvy_context_check_idle(const cvy_context *context, const void *who);
/* A line of the log: rank 0 only, unless the event is local to the rank. */
void cvy_log(const cvy_context *context, cvy_log_level level, const char *fmt, ...) CVY_PRINTF(3, 4);
void cvy_log_local(const cvy_context *context, cvy_log_level level, const char *fmt, ...) CVY_PRINTF(3, 4);

#endif
