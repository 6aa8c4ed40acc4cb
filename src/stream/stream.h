/*
 * stream.h: a stream between solvers and trainers.
 *
 * Between a solver and its trainer there are three kinds of messages. Batches go to the trainer: some records, and what
 * the solver has taken of the weights. Answers go back: how many batches the trainer has taken from its inbox. At most
 * CVY_STREAM_SLOTS batches are unanswered, so what MPI keeps for a slow trainer is bounded. Weights go back only when
 * all solvers have taken the ones before, so all solvers see the same sequence of weights, and none needs more than one
 * set in waiting. A rank that is its own trainer needs no messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STREAM_H
#define CVY_STREAM_H

#include <convoy/stream.h>

#include "comm/comm.h"
#include "stream/stream_reservoir.h"

enum { CVY_STREAM_SLOTS = 4 };
enum { CVY_TAG_BATCH = 1, CVY_TAG_ANSWER, CVY_TAG_WEIGHTS };

/* The head of a batch; n records follow. */
typedef struct cvy_stream_head {
    int64_t n, version; /* version: of the weights that the solver has taken */
    int64_t ended;      /* 1: the solver sends no more */
} cvy_stream_head;

typedef struct cvy_stream_answer {
    int64_t taken;   /* batches so far */
    int64_t version; /* of the weights that it has sent */
    int64_t ended;   /* 1: the trainer sends no more */
} cvy_stream_answer;

/* The variables of the program, one after another. */
typedef struct cvy_stream_weights {
    char *data;
    size_t bytes;
} cvy_stream_weights;

/* A batch that is not answered yet. Its records stay in the queue. */
typedef struct cvy_stream_slot {
    cvy_stream_head head;
    cvy_message *message;
} cvy_stream_slot;

/* A count of solvers: how many have newer weights, and how many leave. */
typedef struct cvy_solver_count {
    cvy_request *request;
    double sum[2];
    int is_under_way;
} cvy_solver_count;

typedef enum { CVY_FULL_DROP, CVY_FULL_THIN, CVY_FULL_WAIT } cvy_stream_full;

typedef enum {
    CVY_LINK_OPEN,
    CVY_LINK_ENDED, /* the trainer has said that it ends */
    CVY_LINK_LOST   /* it does not answer, or MPI failed */
} cvy_stream_link;

/* A solver's side. Records are numbered by their order; record i is at place i % queue. Those from `first` on are kept,
 * those before `sent` are under way, those before `end` are there. */
typedef struct cvy_stream_solver {
    int trainer; /* rank of its trainer */
    int is_own;  /* 1: that is this rank */
    cvy_stream_link link;
    char lost[512]; /* why */
    cvy_stream_full when_full;
    cvy_sample_fields fields;
    char *queue;
    int64_t room, first, sent, end;
    int64_t offered, stride;                      /* records that were pushed; of which every stride-th is taken */
    int64_t batch_max;                            /* records of a batch */
    cvy_stream_slot slot[CVY_STREAM_SLOTS], last; /* last: the batch that says the end */
    int64_t batches, answered;                    /* batch i has slot i % CVY_STREAM_SLOTS */
    cvy_stream_answer answer;
    cvy_message *answers;
    double silent_s, looked_s; /* how long it has listened for an answer in vain; the latest look */
    cvy_message *weights_message;
    int awaits_weights;        /* weights_message is a receive that has not ended */
    int has_weights;           /* newer ones than the program's are in weights.data */
    int64_t version, told;     /* taken; the trainer knows of it */
    cvy_solver_count count[2]; /* see stream_agree.c */
    int64_t counts;            /* that were started */
    int someone_left, said_end;
} cvy_stream_solver;

/* A solver as its trainer sees it. */
typedef struct cvy_stream_peer {
    int rank;
    char *inbox; /* head and records */
    cvy_message *batches, *answers, *weights;
    cvy_stream_answer answer;
    cvy_stream_answer told; /* the latest answer that was sent */
    int64_t version;        /* of the weights that it has taken */
    int ended, said_end;
} cvy_stream_peer;

typedef struct cvy_stream_trainer {
    cvy_reservoir *reservoir;
    cvy_stream_peer *peer;
    int npeer;
    int ends;         /* this side says the end */
    cvy_status fault; /* of an earlier look at messages, to be reported */
    int may_publish;  /* all solvers of all trainers had taken their weights at the latest receive */
    int64_t version;
} cvy_stream_trainer;

struct cvy_stream {
    cvy_context *context;
    cvy_comm *comm, *solvers, *trainers; /* of all ranks; of one side, or NULL if this rank is not on it */
    int solves, trains, independent;
    int is_open; /* the first messages may be under way */
    double wait_s, lost_s;
    cvy_program *program;
    cvy_stream_weights weights;
    cvy_stream_solver solver;
    cvy_stream_trainer trainer;
    cvy_stream_counts count;
};

/* ---- stream_solver.c, stream_trainer.c: each side ---- */

cvy_status cvy_solver_open(cvy_stream *s, int64_t queue);
cvy_status cvy_trainer_open(cvy_stream *s);
/* Moves on what is under way. A solver's link shows what has become of its trainer. */
void cvy_solver_progress(cvy_stream *s);
cvy_status cvy_trainer_progress(cvy_stream *s);
/* Say that this side ends, and wait until nothing is under way, or for lost_s. Then they free what they hold. They
 * return 0, and free nothing, if something still is under way. */
int cvy_solver_close(cvy_stream *s);
int cvy_trainer_close(cvy_stream *s);

/* ---- stream_agree.c: solvers take weights in the same call ---- */

/* Collective over the solvers. */
cvy_status cvy_agreement_open(cvy_stream *s);
/* Waits until all solvers have made the call before; *all_out: all had newer weights in it. CVY_E_COMM after lost_s. */
cvy_status cvy_agreement_finish(cvy_stream *s, int *all_out);
/* Starts the count of this call. */
cvy_status cvy_agreement_start(cvy_stream *s, int have);
/* Tells the other solvers that this one leaves; 0: something is still under way after lost_s. */
int cvy_agreement_leave(cvy_stream *s);
void cvy_agreement_free(cvy_stream *s);

/* ---- stream_weights.c ---- */

/* One line for each variable, the same on all ranks. */
void cvy_stream_list_weights(const cvy_program *program, cvy_text *text);
cvy_status cvy_stream_alloc_weights(const cvy_program *program, cvy_stream_weights *weights);
cvy_status cvy_stream_get_weights(const cvy_program *program, cvy_stream_weights *weights);
cvy_status cvy_stream_set_weights(cvy_program *program, const cvy_stream_weights *weights);

/* ---- stream.c ---- */

/* The largest number of records in a batch. */
int64_t cvy_stream_batch_max(size_t record_bytes);

/* Between two rounds of a wait: first busy, then in short sleeps, since others may need this core. */
void cvy_stream_rest(int round);
/* Makes progress on both sides of this rank. user: the stream. Always CVY_OK, since the caller may be in a reduction
 * that it must finish: faults are kept for later. */
cvy_status cvy_stream_progress(void *user);

#endif
