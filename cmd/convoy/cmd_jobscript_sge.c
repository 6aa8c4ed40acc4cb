/*
 * cmd_jobscript_sge.c: Grid Engine (SGE, Son of Grid Engine, Univa and Altair). Sources: the manual pages submit(1)
 * (-pe, -l, -notify, -r, -t), queue_conf(5) (notify, s_rt, h_rt) and sge_types(1).
 *
 * Slots are cores; how many of them a node gives is a property of the parallel environment, not of the job. With
 * -notify a job gets USR2 before it is killed and USR1 before it is suspended, by a time that the queue sets, often a
 * minute; the script is in the group that gets them. This time may be too short to save, so `timeout` counts, too.
 * A job, or an element of an array, that exits with 99 is scheduled again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_jobscript.h"

static void put_head(const jobscript *s)
{
    cmd_say("#$ -N %s\n#$ -S /bin/bash\n#$ -cwd\n#$ -j y\n", s->name);
    if (jobscript_is_array(s))
        cmd_say("#$ -t %lld-%lld\n#$ -o %s-$JOB_ID-$TASK_ID.out\n", (long long)s->seed, (long long)s->last_seed,
                s->name);
    else
        cmd_say("#$ -o %s-$JOB_ID.out\n", s->name);
    cmd_say("#$ -pe %s %lld\n", s->site.parallel_environment, (long long)(s->nodes * s->ppn * s->threads));
    jobscript_put_limit("#$ -l h_rt=", s->limit_s);
    if (s->signal_s)
        cmd_say("#$ -notify\n#$ -r y\n");
}

static void put_before_run(const jobscript *s)
{
    (void)s;
    cmd_say("trap : USR1    # the signals of -notify are for the ranks, and must not end this script or `timeout`\n"
            "trap '' USR2\n");
}

static void put_end(const jobscript *s)
{
    (void)s;
    jobscript_put_end(&(jobscript_ending){
        .comment = "# SGE schedules a job again that ends with 99, unless its administrator forbids it "
                   "(FORBID_RESCHEDULE). Then submit several that wait\n"
                   "# for each other: id=$(qsub -terse SCRIPT); qsub -hold_jid $id SCRIPT",
        .stopped = 99,
        .no_newer = 75,
    });
}

const jobscript_scheduler jobscript_sge = {
    .name = "sge",
    .submit = "qsub",
    .prefix = "#$ ",
    .disabled = "##$ ",
    .account = "-P ",
    .queue = "-q ",
    .launcher = "mpiexec",
    .is_job = "[ -n \"${SGE_TASK_ID-}\" ]",
    .element = "${SGE_TASK_ID-}",
    .needs_threads = 1,
    .put_head = put_head,
    .put_before_run = put_before_run,
    .put_end = put_end,
};
