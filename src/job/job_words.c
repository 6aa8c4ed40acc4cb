/*
 * job_words.c: translates messages. Messages of the library name fields of cvy_program_opts, as "opts.reduce_wire".
 * This file replaces them by the keys of the job file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "job/job.h"

static const struct {
    const char *field, *key;
} words[] = {
    {"update_mode", "update"},
    {"overlap_forward", "comm.overlap: forward"},
    {"reduce_wire", "comm.wire"},
    {"reduce_progress", "comm.progress"},
    {"reduce_no_node", "comm.node_memory"},
    {"reduce_blocking", "comm.blocking"},
    {"reduce", "comm.algorithm"},
    {"bucket_bytes", "comm.bucket"},
    {"batch_norm_group", "batch_norm.group"},
    {"batch_norm_frozen", "batch_norm.frozen"},
    {"shards", "deterministic_shards"},
    {"plan_file", "--plan"},
    {"planning", "plan.planning"},
    {"kernels", "plan.kernels"},
    {"passes_off", "plan.passes_off"},
    {"memory_limit", "plan.memory_limit"},
    {"pipeline_order", "parallel.order"},
    {"pipeline", "parallel.pipeline"},
    {"tensor_layers", "parallel.tensor_layers"},
    {"tensor", "parallel.tensor"},
    {"spatial", "parallel.spatial"},
    {"interleave", "parallel.interleave"},
    {"first_layers", "parallel.first_layers"},
    {"precise", "train.precise"},
    {"accumulate", "train.accumulate"},
    {"optimizer_options", "train.optimizer"},
    {"dtype", "train.dtype"},
};

/* The key for the field with which the text begins, and the length of the field's name; NULL: the field is unknown. */
static const char *key_of(const char *text, size_t *length_out)
{
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strncmp(text, words[i].field, strlen(words[i].field)) == 0) {
            *length_out = strlen(words[i].field);
            return words[i].key;
        }
    return NULL;
}

cvy_status cvy_job_translate(cvy_status status)
{
    static const char prefix[] = "opts.";
    char text[2048];
    size_t n = 0;
    if (status == CVY_OK || !strstr(cvy_error_text(), prefix))
        return status;
    for (const char *at = cvy_error_text(); *at && n + 1 < sizeof text;) {
        size_t length = 0;
        const char *key = strncmp(at, prefix, sizeof prefix - 1) == 0 ? key_of(at + sizeof prefix - 1, &length) : NULL;
        if (!key) {
            text[n++] = *at++;
            continue;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", key);
        n = CVY_MIN(n, sizeof text - 1);
        at += sizeof prefix - 1 + length;
    }
    text[n] = '\0';
    return cvy_error_set(status, "%s", text);
}
