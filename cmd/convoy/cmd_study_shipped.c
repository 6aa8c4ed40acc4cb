/*
 * cmd_study_shipped.c: the studies and publications that the command knows by name: files in studies/, built in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "cmd_study.h"

extern const char cmd_study_node_throughput[], cmd_study_threads[], cmd_study_sp_mp_mn[], cmd_study_many_nodes[],
    cmd_study_strong_scaling[], cmd_study_weak_scaling[], cmd_study_parameter_server[], cmd_study_update_modes[],
    cmd_study_hybrid[], cmd_study_epochs[], cmd_study_time_to_solution[], cmd_study_communication[], cmd_study_data[],
    cmd_study_hindcast[], cmd_study_mlperf_hpc[], cmd_study_settings[];
extern const char cmd_publication_stony_brook[], cmd_publication_cug[], cmd_publication_cineca[],
    cmd_publication_ohio_state[], cmd_publication_tacc[], cmd_publication_best_settings[];

static const struct shipped {
    const char *name, *text;
} shipped[] = {
    {"node-throughput", cmd_study_node_throughput},
    {"threads", cmd_study_threads},
    {"sp-mp-mn", cmd_study_sp_mp_mn},
    {"many-nodes", cmd_study_many_nodes},
    {"strong-scaling", cmd_study_strong_scaling},
    {"weak-scaling", cmd_study_weak_scaling},
    {"parameter-server", cmd_study_parameter_server},
    {"update-modes", cmd_study_update_modes},
    {"hybrid", cmd_study_hybrid},
    {"epochs", cmd_study_epochs},
    {"time-to-solution", cmd_study_time_to_solution},
    {"communication", cmd_study_communication},
    {"data", cmd_study_data},
    {"hindcast", cmd_study_hindcast},
    {"mlperf-hpc", cmd_study_mlperf_hpc},
    {"settings", cmd_study_settings},
    /* publications */
    {"stony-brook", cmd_publication_stony_brook},
    {"cug", cmd_publication_cug},
    {"cineca", cmd_publication_cineca},
    {"ohio-state", cmd_publication_ohio_state},
    {"tacc", cmd_publication_tacc},
    {"best-settings", cmd_publication_best_settings},
};

int cmd_shipped_studies(const char *const **names_out)
{
    static const char *names[CMD_COUNT(shipped)];
    for (int i = 0; i < CMD_COUNT(shipped); i++)
        names[i] = shipped[i].name;
    *names_out = names;
    return CMD_COUNT(shipped);
}

const char *cmd_shipped_study(const char *name)
{
    for (int i = 0; i < CMD_COUNT(shipped); i++)
        if (strcmp(shipped[i].name, name) == 0)
            return shipped[i].text;
    return NULL;
}
