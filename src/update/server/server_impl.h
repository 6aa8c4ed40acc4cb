/*
 * server_impl.h: what the files of the parameter server share.
 *
 *   server_mode.c     the update mode: its options, what does not go with it, its functions
 *   server.c          making it: who owns what, messages; collecting weights for a checkpoint
 *   server_split.c    which instructions and memory of a plan belong to which bucket
 *   server_worker.c   a worker's side of a step
 *   server_sync.c     a server's side where all workers go on together
 *   server_async.c     ... and where they do not wait for each other, or only so far
 */
#ifndef CVY_SERVER_IMPL_H
#define CVY_SERVER_IMPL_H

#include "update/server/server.h"

enum {
    CVY_SERVER_SLOTS = 3
}; /* gradients of other workers than the first that are received at once, before they are added */

typedef struct cvy_list { /* of instructions or buckets */
    int *at;
    int count;
} cvy_list;

/* A worker's word to each server, where workers do not wait for each other. */
typedef struct cvy_server_word {
    int64_t leaves; /* it goes to a meeting; else it begins a step */
    int64_t step;   /* steps done */
    int64_t wishes; /* it wants all to meet soon */
    double rate;    /* of the step that it begins */
} cvy_server_word;

/* A server's word to a worker with each answer, then. Sums are of all answers of this server since the program was
 * made. */
typedef struct cvy_server_note {
    int64_t meeting; /* all meet behind the step of this number; 0: not known */
    int64_t answers, ahead,
        most_ahead; /* steps that workers were ahead of the slowest when they were answered: sum, and most */
} cvy_server_note;

/* One bucket of gradients of one plan. What comes back for it: its weights, and the sums of what else lies in it. */
typedef struct cvy_server_bucket {
    int owner;       /* rank */
    cvy_range place; /* in the arena */
    cvy_dtype dtype;
    cvy_list update; /* instructions that its owner makes new weights by */
    cvy_variable **weight;
    int nweight;
    cvy_range *sum; /* in the arena: losses, batch norm's statistics */
    int nsum;
    int ready; /* instruction behind which a worker reads its weights no more */
    /* of a worker */
    cvy_message *gradient;
    int asked; /* the answer may come: it is being received */
    /* of all but its owner */
    cvy_message *answer; /* weights and sums; of another server: sums, NULL where there are none */
    /* of its owner */
    cvy_message *first; /* gradients of the first worker, or of any, straight into place */
    cvy_message **to;   /* answers, to each rank: workers get weights and sums, other servers sums */
    /* where workers do not wait for each other */
    cvy_server_note *note;     /* that comes with the answer; of its owner: one for each worker */
    struct cvy_served *served; /* of its owner: server_async.c */
} cvy_server_bucket;

/* A bucket of an owner whose workers do not wait for each other. */
typedef struct cvy_served {
    int receiving, from;          /* gradients are awaited in place; or are there, from this worker, -1: none */
    int64_t *taken;               /* gradients of each worker since the latest meeting */
    int64_t applied;              /* of all */
    char *owed, *sending, *heard; /* of each worker: it is to be answered; it is being answered; its sums are known */
    int nsending;
    size_t sum_bytes;
    char *total, *latest; /* sums of the latest step of each worker, over all, and of each */
} cvy_served;

typedef struct cvy_server_plan { /* of one training step */
    cvy_server *server;
    cvy_program_task *task;
    cvy_plan *plan;
    cvy_server_bucket *bucket; /* of each of the plan */
    int nbucket;
    cvy_list mine;      /* buckets that this rank owns */
    cvy_list forward;   /* what a server runs before the update: its part of sums that all ranks make together */
    cvy_list constants; /* instructions of the update phase that belong to no bucket */
    cvy_list behind;    /* those that all ranks run: running statistics */
    cvy_exchange exchange;
} cvy_server_plan;

struct cvy_server {
    cvy_program *program;
    cvy_comm *comm;
    int nworkers, nservers;
    cvy_server_plan **plan; /* of each step of the program, NULL: it does not train */
    int *owner;             /* rank that holds each variable, by its index; -1: all */
    void *slot[CVY_SERVER_SLOTS];
    cvy_message *into[CVY_SERVER_SLOTS];
    size_t slot_bytes;
    int collected;      /* since the latest training step */
    double busy_s;      /* of a server's step, in which it did not wait */
    atomic_llong moved; /* gradients taken: for the watchdog */
    /* where workers do not wait for each other */
    int64_t staleness;    /* 0: they do; -1: never; else by so many steps */
    cvy_server_word word; /* a worker's own, or what came from one */
    cvy_message **words;  /* a worker's: to each server */
    cvy_message *hears;   /* a server's, from any worker */
    int64_t *begun;       /* of each worker: steps since the meeting */
    double *rate;
    char *left;
    int64_t left_step;                   /* the most steps of any that has left */
    int wishes;                          /* a worker's, for its next word */
    int met;                             /* no step since the latest meeting */
    int64_t steps_met;                   /* done then, where the program's caller runs steps */
    cvy_server_note note;                /* what this server tells, or the worker was told */
    atomic_int waits_bucket, waits_rank; /* -1: it does not wait */
};

static inline int cvy_server_is_worker(const cvy_server *s)
{
    return s->comm->rank < s->nworkers;
}

static inline int cvy_server_tag(int bucket)
{
    return 1 + bucket;
}

/* Whether workers do not wait for each other in every step. */
static inline int cvy_server_is_free(const cvy_server *s)
{
    return s->staleness != 0;
}

/* Fills lists, weights, sums and ready of all buckets, and the plan's lists. Owners are told afterwards. */
cvy_status cvy_server_split(cvy_server_plan *sp, cvy_pool *pool);

/* A worker's plan is executed as it is: these are called where sums would be started and tested. cvy_exchange of a
 * worker. */
cvy_status cvy_worker_start(void *server_plan, int bucket);
cvy_status cvy_worker_test(void *server_plan, int bucket, int *done_out);

cvy_status cvy_server_run_list(cvy_plan *plan, const cvy_list *list);
cvy_status cvy_server_serve_step(cvy_server_plan *sp);

/* The plan of the first training step: a free server updates by it, whichever step a worker is in. */
cvy_server_plan *cvy_server_first(const cvy_server *s);
/* Memory and messages that are needed only then; the bucket's answers go out of that memory. */
cvy_status cvy_server_free_bucket(cvy_server_plan *sp, cvy_server_bucket *bucket);
cvy_status cvy_server_free_connect(cvy_server *s);
void cvy_server_free_destroy(cvy_server *s);
/* A worker's word, when the one before is out. */
cvy_status cvy_worker_say(cvy_server *s, const cvy_server_word *word);
void cvy_worker_note(cvy_server_plan *sp);

#endif
