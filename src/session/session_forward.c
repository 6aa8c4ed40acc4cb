/*
 * session_forward.c: the step of a network that has no loss, on data without a target: it is applied, not trained.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_text.h"
#include "session/session_model.h"

static int is_read(const cvy_model *m, const char *output)
{
    for (int i = 0; i < m->nlayer; i++)
        for (int s = 0; s < m->layer[i].nfrom; s++)
            if (strcmp(m->layer[i].from[s], output) == 0)
                return 1;
    return 0;
}

cvy_status cvy_job_add_forward(const char *who, const cvy_model *m, int64_t batch, cvy_program *program, int *task_out)
{
    cvy_text ends = {0};
    for (int i = 0; i < m->nlayer; i++)
        if (!m->layer[i].training_only && !is_read(m, m->layer[i].output))
            cvy_text_add(&ends, "%s%s", ends.bytes ? ", " : "", m->layer[i].output);
    cvy_status status = ends.status;
    if (status == CVY_OK)
        status = cvy_program_add_forward(program, m, batch, ends.data, task_out);
    if (status == CVY_OK)
        cvy_log(cvy_program_context(program), CVY_LOG_WARN,
                "%s: the network has no loss, and there is no target for one: a step is a forward pass up to %s; "
                "training takes data with labels or targets (data.train), and train.loss",
                who, ends.data);
    cvy_text_free(&ends);
    return status;
}
