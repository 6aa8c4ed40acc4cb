/*
 * exchange_build.h: what all readers of foreign networks share: layers that go into a model and at once into a graph of
 * one sample, which knows the shapes and the variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EXCHANGE_BUILD_H
#define CVY_EXCHANGE_BUILD_H

#include "exchange/exchange.h"

typedef struct cvy_build {
    const char *path; /* of the file, for messages */
    cvy_import *out;  /* its model and pool exist */
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value **value; /* [layers of the model]: their outputs in the graph */
    int room;
    cvy_index named;  /* layers whose output has another name */
    cvy_index set;    /* variables that have values: their numbers among the tensors of `out` */
    cvy_index wished; /* names that were not free: their numbers in `suffix`, the last suffix that made them free */
    int *suffix, suffix_room;
} cvy_build;

/* path and out are borrowed. */
cvy_status cvy_build_open(cvy_build *b, const char *path, cvy_import *out);
void cvy_build_close(cvy_build *b);
/* Adds an input to the model and the graph. */
cvy_status cvy_build_input(cvy_build *b, const char *name, cvy_dtype dtype, const cvy_shape *sample);
/* The output of a layer, or an input, by its name in the model; NULL: there is none. */
cvy_value *cvy_build_value(const cvy_build *b, const char *output);

/* A name that the lists of a job file and the names of variables can hold: '/' becomes '.', other characters '_'. It is
 * cut after 100 characters, because names of variables have a limit. */
cvy_status cvy_build_clean(cvy_pool *pool, const char *name, size_t bytes, char **out);
/* Whether a layer or an input has this name, or a feed of a training step, or the data of a job may have a field with
 * it.
 */
int cvy_build_is_taken(const cvy_build *b, const char *name);
/* A name that is not taken and begins with `wish`. */
cvy_status cvy_build_free_name(cvy_build *b, const char *wish, const char **out);

/* The shortest decimal number that gives the same f32: 0.1, and not 0.100000001490116. Formats whose numbers are f32
 * have them so, and it is what somebody wrote. */
double cvy_build_decimal(double value);

typedef struct cvy_build_layer {
    const char *where;                  /* for messages: "conv1 (Conv)" */
    const char *op, *options;           /* of ours; options "a: 1, b: 2"; NULL or "": the defaults */
    const char *name, *output;          /* of its variables, and of its output, which is free */
    const char *from[CVY_NODE_SRC_MAX]; /* names in the model */
    int nfrom;
} cvy_build_layer;
#define CVY_BUILD_ELEMS ((int64_t)1 << 40) /* the most elements of a sample, so that no size overflows */

/* CVY_E_SHAPE: the sources do not fit; CVY_E_UNSUPPORTED: the result is too large. */
cvy_status cvy_build_add(cvy_build *b, const cvy_build_layer *layer);
/* Gives the layer that was added last, which has no variables and no reader yet, another name and output; free_name:
 * not taken. */
cvy_status cvy_build_rename_last(cvy_build *b, const char *free_name);
/* Gives the variable "<layer>.<parameter>", or "<layer>" if the parameter is "", its first values, in the pool of the
 * import. Values that were set stay: the variable is shared. CVY_E_SHAPE: the number of elements is another one. */
cvy_status cvy_build_set(cvy_build *b, const char *where, const char *layer, const char *parameter, cvy_dtype dtype,
                         const void *data, int64_t elems);
/* Whether a variable has these first values, as many as it has elements. */
int cvy_build_holds(const cvy_build *b, const char *variable, cvy_dtype dtype, const void *data);

#endif
