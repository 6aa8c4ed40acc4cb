/*
 * network.h: the inside of an open network: a program of forward tasks for a few batch sizes, on a context of one rank.
 *
 * cvy_network_open() makes it from the description of the network (network_spec.h) and the weights (network.c);
 * cvy_network_apply() runs it (network_apply.c). `convoy predict` applies it to a data set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NETWORK_H
#define CVY_NETWORK_H

#include <convoy/network.h>

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "model/model.h"
#include "network/network_spec.h"
#include "program/program_view.h"

enum { CVY_NETWORK_SIZES = 3, CVY_NETWORK_ARRAYS = 16 };

/* What an open network computes of the output that is asked for. */
typedef enum cvy_network_gives {
    CVY_GIVES_OUTPUTS, /* the output */
    CVY_GIVES_CLASSES, /* its logits, if it has one number for each class of a sample; otherwise the output */
    CVY_GIVES_SCORED   /* what scores read of it: logits or values */
} cvy_network_gives;

typedef struct cvy_network_size { /* a batch size for which the network is planned */
    int64_t batch;
    int task;
} cvy_network_size;

typedef struct cvy_network_scaled { /* a layer whose outputs are in units of the scaled target */
    const char *name;
    cvy_scaling scaling;
} cvy_network_scaled;

/* What an output that is asked for is, before the layers that lead to losses are dropped. */
typedef struct cvy_network_meant {
    const char *name, *of;
    cvy_output_kind kind;
} cvy_network_meant;

typedef struct cvy_network_answer { /* an output that is computed */
    const char *name;
    const char *of;       /* the output that was asked for: `name`, or what the numbers of `name` become */
    cvy_shape shape;      /* of a sample */
    cvy_output_kind kind; /* of the numbers of `name` */
    cvy_scaling scaling;  /* in the memory of the augmentation or of the model */
} cvy_network_answer;

struct cvy_network {
    cvy_context *context; /* of this rank alone */
    cvy_network_spec spec;
    cvy_augment *augment; /* the part of data.augment that is not random, with the normalisation */
    cvy_model *model;
    cvy_network_scaled scaled[CVY_NETWORK_ARRAYS];
    int nscaled;
    cvy_program *program;
    int64_t step, parameters;                 /* step -1: not known */
    cvy_network_size size[CVY_NETWORK_SIZES]; /* ascending */
    int nsize, noutput;
    int dropout; /* 1: layers of dropout are active */
    cvy_network_gives gives;
    cvy_network_meant meant[CVY_NETWORK_ARRAYS];
    int nmeant;
    int64_t pass; /* with dropout: the number of the pass, which its masks depend on */
    cvy_network_answer output[CVY_NETWORK_ARRAYS];
    /* Buffers of a call: a sample of x as f32 before augmentation, and what augmentation needs. */
    cvy_bytes plain, row;
    cvy_augment_scratch scratch;
};

/* Whether a folder is that of a run: it has a job or checkpoints. */
int cvy_network_is_run(const char *folder);
/* Finds and checks the set `which` of a run folder ("best", "step-12"; NULL: the best one, or else the newest), or the
 * one set that the folder is. Its messages name sets that were skipped, also after a fault. */
cvy_status cvy_network_find_set(const char *target, const char *which, cvy_checkpoint *out);
/* As cvy_network_open(), for all ranks of the context together: rank 0 checks the checkpoint and sends the weights.
 * dropout 1: layers of dropout stay active, as in training, but batch norm uses its running statistics. Of several
 * outputs, `gives` has no effect. Collective; all ranks return the same status. */
cvy_status cvy_network_open_on_ranks(cvy_context *context, const char *target, const cvy_network_opts *opts,
                                     int dropout, cvy_network_gives gives, cvy_network **out);
/* Returns an error if the network cannot be applied to samples of this data set. */
cvy_status cvy_network_check_data(const cvy_network *n, const cvy_dataset_info *data);
/* As cvy_network_apply() for n samples of a data set, which are read and augmented already. field: their rows. first:
 * the number of the first sample in the data set. With dropout, masks depend on the seed of the job, n->pass and the
 * number of the sample, and not on the batch. */
cvy_status cvy_network_apply_rows(cvy_network *n, const cvy_dataset_info *data, int64_t first, int64_t rows,
                                  void *const *field, const cvy_network_out *out, int nout);

#endif
