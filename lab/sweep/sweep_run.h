/*
 * sweep_run.h: a search that is running: the groups of ranks, and the messages between their leaders and rank 0.
 *
 * The leader of a group is its first rank. It reports to rank 0 and gets an order, which it tells its group. Rank 0
 * answers reports while it waits for work itself and after each of its own training steps, so a group may wait as long
 * as a step of rank 0, or its validation, takes. If some ranks are left over, rank 0 is in no group, and answers at
 * once.
 *
 * A leader posts the receive of its order before it reports. Rank 0 sends each group one notice to stop: when the
 * search stops, or together with its last order. The leader waits for it before it ends, so no message is left.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SWEEP_RUN_H
#define CVY_SWEEP_RUN_H

#include "context/context.h"
#include "sweep/sweep_search.h"
#include "train/train_request.h"

enum { CVY_TAG_REPORT = 1, CVY_TAG_ORDER, CVY_TAG_NOTICE };
enum { CVY_SWEEP_ERROR = 512 }; /* bytes of the error of a trial that is kept */

typedef enum { CVY_REPORT_FREE, CVY_REPORT_ENDED, CVY_REPORT_STOPPED, CVY_REPORT_FAILED } cvy_report_kind;
typedef struct cvy_sweep_report { /* from a leader; all ranks run the same program, so it is sent as it is */
    int kind, trial;
    int asked;            /* a rank of the group was asked to stop: the whole search stops */
    double score, epochs; /* of the trial; epochs: that it has done in all, NaN: unknown */
    double seconds;       /* that it has trained now */
    char error[CVY_SWEEP_ERROR];
} cvy_sweep_report;

typedef enum { CVY_ORDER_NONE, CVY_ORDER_TRAIN, CVY_ORDER_END } cvy_order_kind;
typedef struct cvy_sweep_order { /* to a leader, and from it to its group */
    int kind, trial;
    int64_t epochs;                   /* at which the trial ends its rung; 0: when its job ends it */
    double place[CVY_SWEEP_KEYS_MAX]; /* the trial's values: those of a population change */
} cvy_sweep_order;

typedef struct cvy_sweep_group { /* what rank 0 knows of a group */
    int leader;                  /* its rank among all ranks */
    int waits, has_ended;        /* it waits for an order; it got its last one */
    int has_begun;               /* it has trained in this process */
    cvy_sweep_order order;
    cvy_message *send_order, *send_notice; /* NULL for the group of rank 0 */
} cvy_sweep_group;

/* It completes when all ranks are here. All that a rank needs to take part in the search is made before it begins,
 * because nobody would wait for a rank that fails later. */
typedef struct cvy_sweep_meeting {
    cvy_request *request;
    double ready;
} cvy_sweep_meeting;

typedef struct cvy_sweep_run {
    cvy_context *all; /* of the caller */
    cvy_comm *comm;   /* its communicator */
    const cvy_sweep_opts *opts;
    double end_time; /* that of rank 0 */
    cvy_sweep sweep;
    int lock;
    int nretried;             /* on rank 0: failed trials that are tried again */
    uint64_t variables;       /* of the first trial, on the leader of the first group; then on all ranks */
    int ngroups, first, mine; /* first: rank of the first leader; mine: this rank's group, or -1 */
    cvy_context *context;     /* of the group; NULL: this rank is in none */
    char line[96];            /* prefix of the group's log */
    cvy_sweep_group *group;   /* on rank 0 */
    int stops, is_asked;      /* on rank 0: no more trials are begun; because somebody asked for it */
    int is_done;              /* on rank 0: nothing is left to do */
    int is_noticed;           /* on rank 0: all groups have got a notice; on a leader: it has got one */
    cvy_sweep_report report;  /* of this group */
    cvy_sweep_order order;    /* of this group */
    int notice;
    cvy_message *send_report, *get_order, *get_notice; /* on other leaders */
    cvy_sweep_report inbox;                            /* on rank 0 */
    cvy_message *get_report;
    cvy_train_control control; /* of the trial that runs */
    cvy_status fault;          /* the first fault of rank 0's bookkeeping, or of an exchange */
    char fault_text[1024];
    cvy_sweep_meeting meeting, group_meeting; /* of all ranks of the search; of those of the group */
} cvy_sweep_run;

/* Lets some time pass in a loop that waits. Other ranks may train for hours, and need the cores; so the pauses become
 * longer with the rounds. */
void cvy_sweep_pause(int round);
/* Starts a request and waits for it asleep. NULL: the communicator has one rank. */
cvy_status cvy_sweep_meet(const cvy_comm *comm, cvy_request *request);

/* ---- sweep_coordinate.c: rank 0 ---- */
/* Makes the messages of all leaders. */
cvy_status cvy_sweep_open_messages(cvy_sweep_run *run);
void cvy_sweep_close_messages(cvy_sweep_run *run);
/* Decides what can be decided, and gives members of a population their run folders. Returns 1 if nothing is left to
 * do. */
int cvy_sweep_advance(cvy_sweep_run *run);
/* Takes reports and gives orders, without waiting. */
void cvy_sweep_serve(cvy_sweep_run *run);
/* Takes the report of rank 0's own group, and waits for its order while serving the others. Without a group, serves
 * until all groups have ended. */
void cvy_sweep_serve_own(cvy_sweep_run *run);
/* Adds the values of a trial to a line: "train.batch 32, train.seed 1". */
void cvy_sweep_add_values(const cvy_sweep *sweep, int trial, cvy_text *line);
/* Notes a fault; the search then stops. */
void cvy_sweep_note_fault(cvy_sweep_run *run, cvy_status fault);
/* The first fault that was noted, with its text. */
cvy_status cvy_sweep_first_fault(const cvy_sweep_run *run);

/* ---- sweep_group.c: all ranks of a group ---- */
/* Trains what rank 0 orders, until it orders the end. */
cvy_status cvy_sweep_work(cvy_sweep_run *run);

#endif
