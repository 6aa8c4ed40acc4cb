/*
 * data_hdf5_process.h: the process in which libhdf5 runs, and the memory that it shares with the process that reads.
 *
 * Small messages go through a pair of sockets, and their data through the shared memory. One request is answered at a
 * time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_HDF5_PROCESS_H
#define CVY_DATA_HDF5_PROCESS_H

#include <sys/types.h>

#include "base/base_mem.h"

/* Memory that two processes map. Either may make it larger; the other one follows. */
typedef struct cvy_area {
    int fd; /* negative: there is none */
    char *data;
    size_t bytes;
} cvy_area;
/* folder: NULL for memory without a file (memfd), or a folder for a file without a name. */
cvy_status cvy_area_create_in(const char *folder, size_t bytes, cvy_area *out);
/* Without a file if the kernel can (Linux 3.17), or in /dev/shm, $TMPDIR or /tmp. */
cvy_status cvy_area_create(size_t bytes, cvy_area *out);
/* Maps the area that another process created. fd is taken. */
cvy_status cvy_area_open(int fd, cvy_area *out);
/* Makes room for so many bytes; what is there stays. data may move. */
cvy_status cvy_area_need(cvy_area *a, size_t bytes);
/* Maps what the other process has added. */
cvy_status cvy_area_follow(cvy_area *a);
/* Returns the memory behind the first `keep` bytes to the system. */
void cvy_area_forget(cvy_area *a, size_t keep);
void cvy_area_destroy(cvy_area *a);

#define CVY_HDF5_READER "convoy-hdf5" /* the program */
enum { CVY_H5_OTHER_BUILD = 3 };      /* its exit code if it belongs to another build */

/* What both processes must agree on: the same build on both sides. */
#define CVY_H5_BUILD_ROOM 64
void cvy_h5_build_text(char text[CVY_H5_BUILD_ROOM]);

typedef enum { CVY_H5_OPEN, CVY_H5_STATE, CVY_H5_PLACES, CVY_H5_ROWS, CVY_H5_ENCODED, CVY_H5_SCALE } cvy_h5_what;
typedef struct cvy_h5_request {
    int32_t what, column;
    int64_t file, first, rows; /* first: of SCALE the axis */
    uint64_t bytes;            /* in the area */
} cvy_h5_request;
typedef struct cvy_h5_reply {
    int32_t status, version; /* version: of the library, 1.10.8 is 11008 */
    uint64_t bytes;          /* in the area; of the message if status is a fault. In the first reply: the errno of a
                              * system that does not limit its memory, or 0 */
} cvy_h5_reply;
/* The area begins with the path of the file at work (CVY_H5_AT_WORK); data of messages follow. */

/* Sends or receives a whole message. CVY_END: the other side is closed. */
cvy_status cvy_h5_send(int fd, const void *message, size_t bytes);
cvy_status cvy_h5_receive(int fd, void *message, size_t bytes);

typedef struct cvy_h5_process {
    pid_t pid, owner; /* owner: the process that started it */
    int fd;           /* negative: it does not run */
    cvy_area area;
    int version;
    int64_t limit_s;
} cvy_h5_process;

/* The path of the program. CVY_NOT_APPLICABLE: it is not found, or CONVOY_HDF5_READER is none; the error text says
 * more. */
cvy_status cvy_h5_program(char *path, size_t room);
/* Starts the reader process. CVY_NOT_APPLICABLE: it cannot be started; the error text says why. */
cvy_status cvy_h5_process_start(cvy_h5_process *p);
typedef enum {
    CVY_H5_RUNS,
    CVY_H5_CRASHED,
    CVY_H5_KILLED, /* by SIGKILL, which is not its own fault; or it is not known how the process ended */
    CVY_H5_HUNG    /* it computed for more than limit_s, and was stopped */
} cvy_h5_end;
/* Sends a request and waits for its reply. CVY_E_FORMAT: the process ended; the message says how, and what to do. A
 * fault of the request itself is in the reply. */
cvy_status cvy_h5_process_call(cvy_h5_process *p, const cvy_h5_request *request, cvy_h5_reply *reply_out,
                               cvy_h5_end *end_out);
/* Ends the process if it runs, and frees the area. */
void cvy_h5_process_end(cvy_h5_process *p);

#endif
