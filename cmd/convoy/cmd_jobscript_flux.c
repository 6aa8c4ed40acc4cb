/*
 * cmd_jobscript_flux.c: Flux. Sources: the manual pages flux-batch(1), flux-run(1), flux-job(1), flux-getattr(1), and
 * RFC 36 for directives.
 *
 * A batch job is a Flux instance of its own, in which `flux run` starts the ranks. `flux batch` there would submit to
 * this inner instance, so the next job goes to its parent. Flux has no requeue and no job arrays: outside of a job, a
 * script with seeds submits itself once for each of them. A directive is disabled by a '#' after its tag, because all
 * tags must be equal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_jobscript.h"

static void put_head(const jobscript *s)
{
    cmd_say("#flux: --job-name=%s\n#flux: --output=%s-{{id}}.out\n#flux: --nodes=%lld\n", s->name, s->name,
            (long long)s->nodes);
    if (s->threads)
        cmd_say("#flux: --nslots=%lld\n#flux: --cores-per-slot=%lld\n", (long long)(s->nodes * s->ppn),
                (long long)s->threads);
    else
        cmd_say("#flux: --nslots=%lld\n#flux: --exclusive\n", (long long)s->nodes);
    cmd_say("#flux: --time-limit=%llds\n", (long long)s->limit_s);
}

static void put_end_time(const jobscript *s)
{
    cmd_say("left=$(flux job timeleft 2>/dev/null) || left=\n"
            "case $left in '' | *[!0-9]*) left=%lld ;; esac\n"
            "export CONVOY_JOB_END=\"$(($(date +%%s) + left))\"\n",
            (long long)s->limit_s);
}

/* The attribute of an instance that is no job is 0 or missing. */
#define IS_JOB "[ \"$(flux getattr jobid 2>/dev/null || echo 0)\" != 0 ]"

static void put_outside(const jobscript *s)
{
    if (!jobscript_is_array(s)) {
        cmd_say(IS_JOB " || die \"this script is for the batch system: flux batch $0\"\n");
        return;
    }
    cmd_say("if ! " IS_JOB "; then   # not in a job: submits one for each seed\n"
            "    for ((seed = %lld; seed <= %lld; seed++)); do\n"
            "        flux batch --job-name=\"%s-$seed\" --env=\"CONVOY_SEED=$seed\" \"$0\" || exit\n"
            "    done\n"
            "    exit\n"
            "fi\n",
            (long long)s->seed, (long long)s->last_seed, s->name);
}

static void put_end(const jobscript *s)
{
    jobscript_put_end(&(jobscript_ending){
        .comment = "# If nodes may not submit jobs, remove the line with flux and submit several that wait for each "
                   "other:\n"
                   "# id=$(flux batch SCRIPT); flux batch --dependency=afterany:$id SCRIPT",
        .again = jobscript_is_array(s) ? "flux --parent batch --env=\"CONVOY_SEED=$seed\" \"$0\""
                                       : "flux --parent batch \"$0\"",
        .fails = "flux batch does not take this script from here",
        .stopped = 75,
        .no_newer = 75,
    });
}

const jobscript_scheduler jobscript_flux = {
    .name = "flux",
    .submit = "flux batch",
    .prefix = "#flux: ",
    .disabled = "#flux: # ",
    .account = "--bank=",
    .queue = "--queue=",
    .launcher = "flux",
    .is_job = IS_JOB,
    .element = "${CONVOY_SEED-}",
    .put_head = put_head,
    .put_end_time = put_end_time,
    .put_outside = put_outside,
    .put_end = put_end,
};
