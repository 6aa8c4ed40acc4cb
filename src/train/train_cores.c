/*
 * train_cores.c: tells the user once if other programs use the cores of a training run.
 *
 * Compute threads wait for each other after each kernel. If one of them has to share its core, all lose that time, so a
 * busy program beside a run costs more than the core it takes. Nothing else in the log would show it: the steps are
 * slow, and all of that is "compute".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/machine/base_clock.h"
#include "train/trainer.h"

enum { FIRST_S = 5, AGAIN_S = 60 }; /* when the use of the cores is looked at: after the first step, and again */

/* Others count if they use this much of a core, and no core is idle. */
#define OTHERS_MIN 0.4
#define IDLE_MAX 0.15

static void warn(const cvy_trainer *t, double others)
{
    const cvy_context *c = t->session.context;
    const int left = (int)floor(c->cores - others + 0.5);
    if (c->threads > 1)
        cvy_log_local(
            c, CVY_LOG_WARN,
            "other programs use %.1f of the %d core%s of rank %d, whose %d threads wait for each other in each "
            "step: try --threads %d, or OMP_WAIT_POLICY=passive",
            others, c->cores, c->cores == 1 ? "" : "s", c->comm->rank, c->threads, CVY_MAX(left, 1));
    else
        cvy_log_local(c, CVY_LOG_WARN, "other programs use %.1f of the %d core%s of rank %d", others, c->cores,
                      c->cores == 1 ? "" : "s", c->comm->rank);
}

void cvy_trainer_watch_cores(cvy_trainer *t)
{
    const cvy_context *c = t->session.context;
    const double now = cvy_clock_s();
    double busy = 0, others = 0;
    /* ranks that share their cores would take each other for other programs */
    if (t->cores.has_warned || c->sharing > 1 || now < t->cores.next_s)
        return;
    const cvy_cores_use use = cvy_cores_use_now();
    const int is_first = t->cores.next_s <= 0;
    if (!is_first && cvy_cores_used(&t->cores.since, &use, &busy, &others) && others > OTHERS_MIN &&
        busy > c->cores - IDLE_MAX * c->cores) {
        warn(t, others);
        t->cores.has_warned = 1;
    }
    t->cores.since = use;
    t->cores.next_s = now + (is_first ? FIRST_S : AGAIN_S);
}
