/*
 * server.h: parameter servers: the last ranks hold the weights and the optimiser's state; the other ranks, the workers,
 * compute gradients of their share of the batch.
 *
 * A worker sends each bucket of gradients to the server that owns it at the point where a reduction would start, and
 * waits for the new weights where it would wait for the sum. A server adds up the gradients, runs the update
 * instructions of its own weights, and answers.
 *
 * Source: Li et al. 2014, Scaling Distributed Machine Learning with the Parameter Server; Ho et al. 2013, More
 * Effective Distributed ML via a Stale Synchronous Parallel Parameter Server (the bound).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SERVER_H
#define CVY_SERVER_H

#include "program/program_view.h"

typedef struct cvy_server cvy_server;

/* Makes the state of the mode. Call it before the plans are bound. */
cvy_status cvy_server_create(cvy_program *program);
/* Divides the buckets among the servers and makes the messages. Call it after the plans are bound. */
cvy_status cvy_server_connect(cvy_server *server);
void cvy_server_destroy(cvy_server **server);

/* One training step of this rank, worker or server. */
cvy_status cvy_server_step(cvy_server *server, const cvy_program_task *step, double learning_rate);
/* ---- workers that do not wait for each other (staleness other than 0) ----
 *
 * From one synchronisation to the next a worker runs steps at its own speed and then leaves; a server serves until all
 * workers have left. All workers leave after the same step: one that all know, or the one that cvy_server_next_sync()
 * returns. A worker that cannot continue leaves earlier, and then all synchronise soon. */
int cvy_server_runs_free(const cvy_server *server); /* 0 also for NULL */
int cvy_server_serves(const cvy_server *server);    /* this rank is a server */
/* Asks all ranks to synchronise soon. The servers receive the request with the next step. */
void cvy_server_request_sync(cvy_server *server);
int64_t cvy_server_next_sync(const cvy_server *server); /* the step after which all synchronise; 0: not known */
cvy_status cvy_server_leave(cvy_server *server, int64_t steps_done);
/* *steps_done: in: steps done before; out: the most steps that any worker has done. */
cvy_status cvy_server_serve(cvy_server *server, int64_t *steps_done);
/* How many steps the workers were ahead of the slowest when they were answered, as the first server has counted so far:
 * mean and maximum. */
void cvy_server_staleness(const cvy_server *server, double *mean_out, int64_t *most_out);
/* Grows with each gradient that a server takes, which shows that the server is alive. */
long long cvy_server_progress(const cvy_server *server);

/* Brings the current weights and statistics to all ranks, and the optimiser's states to rank 0. All workers must have
 * done the same steps. Collective. */
cvy_status cvy_server_collect(cvy_server *server);
/* Writes into text what this rank waits for: "gradients of bucket 3 from rank 1". The text is empty if it does not
 * wait. For the watchdog's thread. */
void cvy_server_waits_for(const cvy_server *server, char *text, size_t room);

#endif
