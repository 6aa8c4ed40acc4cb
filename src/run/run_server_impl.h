/*
 * run_server_impl.h: what the files of the parameter server share.
 *
 *   run_server.c          making it: who owns what, messages; collecting weights for a checkpoint
 *   run_server_split.c    which instructions and memory of a plan belong to which bucket
 *   run_server_worker.c   a worker's side of a step
 *   run_server_sync.c     a server's side where all workers go on together
 */
#ifndef CVY_RUN_SERVER_IMPL_H
#define CVY_RUN_SERVER_IMPL_H

#include "run/run_server.h"

enum { CVY_SERVER_SLOTS = 3 };         /* gradients of other workers than the first that are received at once, before they are added */

typedef struct cvy_list {              /* of instructions or buckets */
    int *at;
    int count;
} cvy_list;

/* One bucket of gradients of one plan. What comes back for it: its weights, and the sums of what else lies in it. */
typedef struct cvy_server_bucket {
    int owner;                         /* rank */
    cvy_range place;                   /* in the arena */
    cvy_dtype dtype;
    cvy_list update;                   /* instructions that its owner makes new weights by */
    cvy_variable **weight;
    int nweight;
    cvy_range *sum;                    /* in the arena: losses, batch norm's statistics */
    int nsum;
    int ready;                         /* instruction behind which a worker reads its weights no more */
    /* of a worker */
    cvy_message *gradient;
    int asked;                         /* the answer may come: it is being received */
    /* of all but its owner */
    cvy_message *answer;               /* weights and sums; of another server: sums, NULL where there are none */
    /* of its owner */
    cvy_message *first;                /* gradients of the first worker, straight into place */
    cvy_message **to;                  /* answers, to each rank: workers get weights and sums, other servers sums */
} cvy_server_bucket;

typedef struct cvy_server_plan {       /* of one training step */
    cvy_server *server;
    cvy_program_step_info *step;
    cvy_plan *plan;
    cvy_server_bucket *bucket;         /* of each of the plan */
    cvy_list mine;                     /* buckets that this rank owns */
    cvy_list forward;                  /* what a server runs before the update: its part of sums that all ranks make together */
    cvy_list constants;                /* instructions of the update phase that belong to no bucket */
    cvy_list behind;                   /* those that all ranks run: running statistics */
    cvy_exchange exchange;
} cvy_server_plan;

struct cvy_server {
    cvy_program *program;
    cvy_comm *comm;
    int nworkers, nservers;
    cvy_server_plan *plan[64];         /* of each step of the program, NULL: it does not train */
    int *owner;                        /* rank that holds each variable, by its index; -1: all */
    void *slot[CVY_SERVER_SLOTS];
    cvy_message *into[CVY_SERVER_SLOTS];
    size_t slot_bytes;
    int collected;                     /* since the latest training step */
    atomic_int waits_bucket, waits_rank;   /* -1: it does not wait */
};

static inline int cvy_server_is_worker(const cvy_server *s)
{
    return s->comm->rank < s->nworkers;
}

static inline int cvy_server_tag(int bucket)
{
    return 1 + bucket;
}

/* Fills lists, weights, sums and ready of all buckets, and the plan's lists. Owners are told afterwards. */
cvy_status cvy_server_split(cvy_server_plan *sp, cvy_pool *pool);

/* A worker's plan is executed as it is: these are called where sums would be started and tested. cvy_exchange of a worker. */
cvy_status cvy_worker_start(void *server_plan, int bucket);
cvy_status cvy_worker_test(void *server_plan, int bucket, int *done_out);

cvy_status cvy_server_run_list(cvy_plan *plan, const cvy_list *list);
/* One turn of waiting, of so many in a row in which nothing moved. */
void cvy_server_pause(int turn);
cvy_status cvy_server_serve_step(cvy_server_plan *sp);

#endif
