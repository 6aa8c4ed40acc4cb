/*
 * extension.h: extensions: shared libraries of a user's own operators (convoy/operator.h), and operators of the program
 * that calls convoy. Each of the latter has a cvy_extension_file of its own, without a file.
 *
 * A file is loaded once for each context, and its descriptors become operators like those of src/op: a forward and a
 * gradient operator, whose reference kernels call the user's functions. Planner, executor, autodiff and printers work
 * on them unchanged. Operators are looked up by name only where a layer is added to a model (cvy_model_find_layer); all
 * else follows pointers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EXTENSION_H
#define CVY_EXTENSION_H

#include <convoy/operator.h>

#include "graph/graph_op.h"

typedef struct cvy_extension_file {
    char *path;    /* as given, for messages */
    char *place;   /* the absolute path; NULL: an operator of the program */
    uint64_t hash; /* of its content, or of what the descriptor of the operator says */
    uint64_t device, inode;
    void *handle; /* of dlopen() */
    cvy_extension about;
    cvy_partition *partition; /* as this version knows them */
    int npartition;
} cvy_extension_file;

/* An operator of an extension. The op_defs point back to it by their `family`. */
typedef struct cvy_extension_op {
    cvy_op_def forward, grad;
    cvy_operator own; /* as this version knows it */
    int nparam;
    const cvy_extension_file *file;
} cvy_extension_op;

typedef struct cvy_extensions { /* the extensions of a context; zero-initialise */
    cvy_pool *pool;             /* all descriptors; NULL until the first file is loaded */
    cvy_extension_file **file;
    int nfile, file_room;
    cvy_extension_op **op;
    int nop, op_room;
} cvy_extensions;

/* Loads a file on this rank alone, if it is not loaded yet. *file_out (may be NULL): the file. */
cvy_status cvy_extensions_load(cvy_extensions *x, const char *path, const cvy_extension_file **file_out);
/* Adds an operator of the program on this rank alone. */
cvy_status cvy_extensions_add(cvy_extensions *x, const cvy_operator *op);
/* Gives `to`, which is empty, what `from` has. */
cvy_status cvy_extensions_copy(cvy_extensions *to, const cvy_extensions *from);
/* Goes back to the first files and operators. */
void cvy_extensions_cut(cvy_extensions *x, int nfile, int nop);
/* Forgets everything. The code stays in memory: its threads may still run. */
void cvy_extensions_unload(cvy_extensions *x);
/* All operators, those of src/op first. The caller frees the table with cvy_mem_free(). x may be NULL. */
cvy_status cvy_extensions_table(const cvy_extensions *x, const cvy_op_def ***table_out, int *count_out);
/* The extension's operator of a forward or gradient node's operator; NULL: it is one of convoy's. */
const cvy_extension_op *cvy_extension_op_of(const cvy_op_def *op);

/* Makes the operators of a descriptor, in `pool`. CVY_E_ARGUMENT: the descriptor is wrong. */
cvy_status cvy_extension_op_create(cvy_pool *pool, const cvy_extension_file *file, const cvy_operator *given,
                                   cvy_extension_op **out);
/* Reads a case of its test; number: for messages. CVY_E_ARGUMENT: it does not fit the operator. */
cvy_status cvy_extension_read_sample(const cvy_operator *own, const cvy_operator_sample *given, int number,
                                     cvy_sample *out);
/* Computes a node as its reference kernel does, with so many threads. */
cvy_status cvy_extension_run(const cvy_node *node, const cvy_span *src, const cvy_span *dst, int threads);

#endif
