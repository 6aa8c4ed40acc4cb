/*
 * server.h: parameter servers: the last ranks hold weights and optimiser's state, the others make gradients of their
 * share of the batch.
 *
 * In the step: a worker sends each bucket of gradients to the server that owns it where a sum over ranks would start,
 * and waits for the new weights where it would wait for the sum. A server adds up, runs the update instructions of its
 * own weights, and answers.
 *
 * Source: Li et al. 2014, Scaling Distributed Machine Learning with the Parameter Server; Ho et al. 2013, More
 * Effective Distributed ML via a Stale Synchronous Parallel Parameter Server (the bound).
 */
#ifndef CVY_SERVER_H
#define CVY_SERVER_H

#include "program/program.h"

typedef struct cvy_server cvy_server;

/* Before the plans are bound: which buckets are whose; makes the state of the mode. */
cvy_status cvy_server_create(cvy_program *program);
/* After it: the messages. */
cvy_status cvy_server_connect(cvy_server *server);
void cvy_server_destroy(cvy_server **server);

/* One training step of this rank, worker or server. */
cvy_status cvy_server_step(cvy_server *server, const cvy_program_task *step, double learning_rate);
/* ---- workers that do not wait for each other (staleness other than 0) ----
 * From one meeting to the next a worker runs steps as it likes and then leaves; a server serves until all have left.
 * All workers leave behind the same step: one that all know, or the one that cvy_server_meeting() tells; a worker that
 * cannot go on leaves earlier, and all meet soon. */
int cvy_server_runs_free(const cvy_server *server); /* 0 also for NULL */
int cvy_server_serves(const cvy_server *server);    /* this rank is a server */
/* All meet soon: told to the servers with the next step. */
void cvy_server_wish(cvy_server *server);
int64_t cvy_server_meeting(const cvy_server *server); /* 0: not known */
cvy_status cvy_server_leave(cvy_server *server, int64_t steps_done);
/* steps_done: before; after it, the most of any worker. */
cvy_status cvy_server_serve(cvy_server *server, int64_t *steps_done);
/* Steps that workers were ahead of the slowest when they were answered, as the first server has seen it so far: mean
 * and most. */
void cvy_server_staleness(const cvy_server *server, double *mean_out, int64_t *most_out);
/* Grows with each gradient that a server takes: it is alive. */
long long cvy_server_moved(const cvy_server *server);

/* Weights and statistics as they are now to all ranks, the optimiser's states to rank 0. All workers have done the same
 * steps. Collective. */
cvy_status cvy_server_collect(cvy_server *server);
/* What this rank waits for, into text: "gradients of bucket 3 from rank 1"; empty where it does not wait. For the
 * watchdog's thread. */
void cvy_server_waits_for(const cvy_server *server, char *text, size_t room);

#endif
