/*
 * server_impl.h: what the files of the parameter server share.
 *
 *   server_mode.c     the update mode: its options, conflicting options, its functions
 *   server.c          setup: who owns what, messages; collecting weights for a checkpoint
 *   server_split.c    which instructions and memory of a plan belong to which bucket
 *   server_worker.c   a worker's side of a step
 *   server_sync.c     a server's side if workers wait for each other in every step
 *   server_async.c    a server's side if they do not, or only from some distance on
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SERVER_IMPL_H
#define CVY_SERVER_IMPL_H

#include "update/server/server.h"

enum {
    CVY_SERVER_SLOTS = 3
}; /* gradients that are received at once before they are added, from all workers but the first */

typedef struct cvy_list { /* a list of instructions or buckets */
    int *at;
    int count;
} cvy_list;

/* What a worker tells each server if workers do not wait for each other. */
typedef struct cvy_server_request {
    int64_t leaves;        /* it leaves for a synchronisation; else it begins a step */
    int64_t step;          /* steps done */
    int64_t requests_sync; /* it asks all ranks to synchronise soon */
    double rate;           /* of the step that it begins */
} cvy_server_request;

/* What a server tells a worker with each answer then. Sums count all answers of this server since the program was
 * made. */
typedef struct cvy_server_reply_info {
    int64_t next_sync; /* all synchronise after the step of this number; 0: not known */
    int64_t answers, ahead,
        most_ahead; /* steps that workers were ahead of the slowest when they were answered: sum, and maximum */
} cvy_server_reply_info;

/* One bucket of gradients of one plan. The answer to it contains its weights, and the sums of all else that is in the
 * bucket. */
typedef struct cvy_server_bucket {
    int owner;       /* rank */
    cvy_range range; /* in the arena */
    cvy_dtype dtype;
    cvy_list update; /* instructions with which its owner makes new weights */
    cvy_variable **weight;
    int nweight;
    cvy_range *sum; /* in the arena: losses, batch norm's statistics */
    int nsum;
    int ready; /* after this instruction a worker does not read its weights any more */
    /* -- of a worker -- */
    cvy_message *gradient;
    int asked; /* the answer is being received */
    /* -- of all ranks but its owner -- */
    cvy_message *answer; /* weights and sums; on another server only sums, NULL if there are none */
    /* -- of its owner -- */
    cvy_message *first; /* receives gradients of the first worker, or of any, directly into place */
    cvy_message **to;   /* answers, to each rank: workers get weights and sums, other servers only sums */
    /* -- if workers do not wait for each other -- */
    cvy_server_reply_info *reply_info; /* comes with the answer; the owner has one for each worker */
    struct cvy_served *served;         /* of its owner: server_async.c */
} cvy_server_bucket;

/* The state of a bucket at its owner, if workers do not wait for each other. */
typedef struct cvy_served {
    int receiving, from; /* gradients are being received; `from`: the worker whose gradients are in place, -1: none */
    int64_t *taken;      /* gradients taken from each worker since the last synchronisation */
    int64_t applied;     /* gradients of all workers */
    char *unanswered, *sending,
        *has_sums; /* of each worker: it needs an answer; its answer is being sent; its sums are known */
    int nsending;
    size_t sum_bytes;
    char *total, *latest; /* sums of the latest step of each worker: added up, and of each */
} cvy_served;

typedef struct cvy_server_plan { /* of one training step */
    cvy_server *server;
    cvy_program_task *task;
    cvy_plan *plan;
    cvy_server_bucket *bucket; /* one for each bucket of the plan */
    int nbucket;
    cvy_list mine;      /* buckets that this rank owns */
    cvy_list forward;   /* instructions that a server runs before the update: its part of sums over all ranks */
    cvy_list constants; /* instructions of the update phase that belong to no bucket */
    cvy_list statistics_updates; /* instructions that all ranks run after the update: running statistics */
    cvy_exchange exchange;
} cvy_server_plan;

struct cvy_server {
    cvy_program *program;
    cvy_comm *comm;
    int nworkers, nservers;
    cvy_server_plan **plan; /* for each task of the program; NULL: it does not train */
    int *owner;             /* rank that holds each variable, by its index; -1: all ranks */
    void *slot[CVY_SERVER_SLOTS];
    cvy_message *into[CVY_SERVER_SLOTS];
    size_t slot_bytes;
    int collected;      /* since the latest training step */
    double busy_s;      /* time in a server's step in which it did not wait */
    atomic_llong moved; /* gradients taken; the watchdog reads it */
    /* -- if workers do not wait for each other -- */
    int64_t staleness; /* steps a worker may be ahead of the slowest; 0: workers wait for each other; -1: any number */
    cvy_server_request request; /* a worker's own, or the latest one received */
    cvy_message **request_out;  /* of a worker: to each server */
    cvy_message *request_in;    /* of a server: from any worker */
    int64_t *begun;             /* of each worker: steps begun since the synchronisation */
    double *rate;
    char *left;
    int64_t left_step;                   /* the most steps of any worker that has left */
    int requests_sync;                   /* of a worker: it asks for a synchronisation with its next message */
    int synchronised;                    /* no step was run since the last synchronisation */
    int64_t steps_at_sync;               /* steps done at that time, if the program's caller runs the steps */
    cvy_server_reply_info reply_info;    /* what this server tells, or what this worker was told */
    atomic_int waits_bucket, waits_rank; /* what a server waits for; -1: it does not wait */
};

static inline int cvy_server_is_worker(const cvy_server *s)
{
    return s->comm->rank < s->nworkers;
}

static inline int cvy_server_tag(int bucket)
{
    return 1 + bucket;
}

/* Whether workers run without waiting for each other in every step. */
static inline int cvy_server_is_free(const cvy_server *s)
{
    return s->staleness != 0;
}

/* Fills lists, weights, sums and ready of all buckets, and the plan's lists. Owners are set afterwards. */
cvy_status cvy_server_split(cvy_server_plan *sp, cvy_pool *pool);

/* A worker's plan is executed as it is. Its cvy_exchange calls these functions where a reduction would be started and
 * tested. */
cvy_status cvy_worker_start(void *server_plan, int bucket);
cvy_status cvy_worker_test(void *server_plan, int bucket, int *done_out);

cvy_status cvy_server_run_list(cvy_plan *plan, const cvy_list *list);
cvy_status cvy_server_serve_step(cvy_server_plan *sp);

/* The plan of the first training step. An asynchronous server updates by it, whichever step a worker runs. */
cvy_server_plan *cvy_server_first(const cvy_server *s);
/* Memory and messages for asynchronous workers only. The bucket's answers are sent from that memory. */
cvy_status cvy_server_free_bucket(cvy_server_plan *sp, cvy_server_bucket *bucket);
cvy_status cvy_server_free_connect(cvy_server *s);
void cvy_server_free_destroy(cvy_server *s);
/* Sends a worker's message to all servers, after the one before has been sent. */
cvy_status cvy_worker_send_request(cvy_server *s, const cvy_server_request *request);
void cvy_worker_keep_reply_info(cvy_server_plan *sp);

#endif
