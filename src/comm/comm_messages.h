/*
 * comm_messages.h: the messages that a plan sends between the stages of a pipeline: which are under way, progress and
 * waits.
 *
 * A message is known by its direction, its tag and its micro-batch. One instruction starts it, and a later one waits
 * for it. If the host cannot read the memory, it sends and receives page-locked copies (backend_stage.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MESSAGES_H
#define CVY_COMM_MESSAGES_H

#include "backend/backend_stage.h"
#include "comm/comm.h"

typedef struct cvy_message_key {
    int receives; /* 0: this rank sends it */
    int tag, micro;
} cvy_message_key;

typedef struct cvy_message_slot {
    cvy_message_key key;
    int peer; /* rank in the communicator */
    int active;
    cvy_message *message;
    cvy_range range;
    cvy_stage stage; /* of memory that the host cannot read */
    int is_leaving;  /* the copy is on its way to the host; then it is sent */
    int was_copied;  /* what was received before, into the memory */
} cvy_message_slot;

typedef struct cvy_messages { /* zero-initialise it and set comm and space */
    cvy_comm *comm;
    const cvy_space *space; /* where the memory is; NULL: the host's */
    cvy_message_slot *slot;
    int n, room, nactive;
} cvy_messages;

/* Adds a message from or into this memory. */
cvy_status cvy_messages_add(cvy_messages *set, const cvy_message_key *key, int peer, void *data, size_t bytes);
/* The number of the message with this key; -1: there is none. */
int cvy_messages_find(const cvy_messages *set, const cvy_message_key *key);
/* The memory belongs to the message until it is done. */
cvy_status cvy_messages_start(cvy_messages *set, int number);
/* Tests all messages under way. MPI libraries without a progress thread need such calls. */
cvy_status cvy_messages_progress(cvy_messages *set);
/* Sends what was started: it waits until the copies have come out of the device. A rank calls it before it waits for
 * anything else of other ranks, which may wait for these messages first. NULL: does nothing. */
cvy_status cvy_messages_settle(cvy_messages *set);
static inline int cvy_messages_is_active(const cvy_messages *set, int number)
{
    return set->slot[number].active;
}
/* After the message is done: what is computed from now on finds what was received. */
cvy_status cvy_messages_await(const cvy_messages *set, int number);
/* No message may be under way. */
void cvy_messages_free(cvy_messages *set);

#endif
