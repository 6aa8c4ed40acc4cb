/*
 * score_applied.h: a network and the samples that it is applied to, cut into blocks that the ranks take in turns. Any
 * rank computes a block in the same way, so the outputs do not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_APPLIED_H
#define CVY_SCORE_APPLIED_H

#include "data/load/data_samples.h"
#include "network/network.h"

typedef struct cvy_applied { /* zero-initialise it, end it with cvy_applied_close(); it must not be moved while open */
    cvy_context *context;
    cvy_network *network;
    cvy_dataset *whole; /* of which data is a part; or NULL */
    cvy_dataset *data;
    cvy_loader *loader;
    int64_t nsamples, block;
} cvy_applied;

/* Opens the network, see cvy_network_open_on_ranks(). Collective. */
cvy_status cvy_applied_open(cvy_applied *b, cvy_context *context, const char *target, const cvy_network_opts *opts,
                            int dropout, cvy_network_gives gives);
/* Opens a source as the data of the training, with targets if they are needed. Otherwise data without targets are
 * enough, too. NULL: data.test of the job. */
cvy_status cvy_applied_open_data(cvy_applied *b, const char *source, int needs_targets);
/* Opens the validation data of the network's job, or the source with its targets. */
cvy_status cvy_applied_open_validation(cvy_applied *b, const char *source);
/* Begins to read. block: samples of a block; 0: the largest batch of the network. */
cvy_status cvy_applied_start(cvy_applied *b, int64_t block);

/* Rounds in which each rank has one block. */
int64_t cvy_applied_rounds(const cvy_applied *b);
/* The number of samples of a rank's block, which may be short or empty at the end, and the number of the first one. */
int64_t cvy_applied_range(const cvy_applied *b, int64_t round, int rank, int64_t *first_out);
/* The rows of this rank's block; cvy_loader_release() gives them back. */
cvy_status cvy_applied_get(cvy_applied *b, int64_t round, const cvy_rows **out);
/* Computes all outputs of the network for this rank's block. output: [block, elements] of each. */
cvy_status cvy_applied_apply(cvy_applied *b, int64_t round, const cvy_rows *rows, float *const *output);
/* Gathers `bytes` of each sample of all ranks' blocks on rank 0, behind its own block: there must be room for a block
 * more than ranks. bytes_of: [ranks]. Collective. */
cvy_status cvy_applied_gather(const cvy_applied *b, int64_t round, size_t bytes, void *block, size_t *bytes_of);
/* Logs the bad samples that were skipped on this rank. */
void cvy_applied_report_bad(const cvy_applied *b);
void cvy_applied_close(cvy_applied *b);

#endif
