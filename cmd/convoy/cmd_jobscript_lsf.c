/*
 * cmd_jobscript_lsf.c: IBM Spectrum LSF. Sources: the manual page bsub(1) (-n, -R, -W, -wa, -wt, -Q, -J) and the
 * chapter on automatic requeue of the administrator's guide.
 *
 * LSF counts minutes, both of the limit (-W) and of the warning before it (-wt), and sends the warning to all processes
 * of the job's group, also to the script. It sends USR2 at the limit. It requeues a job, or one element of an array, by
 * its exit code, and then drops the output of the part that has ended: so the script appends to a file itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_jobscript.h"

static int64_t minutes(int64_t seconds)
{
    return (seconds + 59) / 60;
}

static void put_head(const jobscript *s)
{
    const int64_t limit = minutes(s->limit_s);
    const int64_t warning = minutes(s->signal_s) < limit ? minutes(s->signal_s) : limit - 1;
    if (jobscript_is_array(s))
        cmd_say("#BSUB -J \"%s[%lld-%lld]\"\n#BSUB -o %s-%%J_%%I.lsf\n", s->name, (long long)s->seed,
                (long long)s->last_seed, s->name);
    else
        cmd_say("#BSUB -J %s\n#BSUB -o %s-%%J.lsf\n", s->name, s->name);
    cmd_say("#BSUB -n %lld\n#BSUB -R \"span[ptile=%lld]\"\n", (long long)(s->nodes * s->ppn), (long long)s->ppn);
    if (s->threads)
        cmd_say("#BSUB -R \"affinity[core(%lld)]\"\n", (long long)s->threads);
    else
        cmd_say("#BSUB -x\n");
    cmd_say("#BSUB -W %lld:%02lld\n", (long long)(limit / 60), (long long)(limit % 60));
    if (s->signal_s)
        cmd_say("#BSUB -wa USR1 -wt %lld\n#BSUB -Q 75\n#BSUB -r\n", (long long)warning);
}

static void put_before_run(const jobscript *s)
{
    cmd_say("# LSF keeps no output of a job that it requeues: this file has that of all parts of the run.\n"
            "exec >>\"%s-${LSB_JOBID}%s.out\" 2>&1\n"
            "trap : USR1    # the signals of LSF are for the ranks, and must not end this script\n"
            "trap '' USR2\n",
            s->name, jobscript_is_array(s) ? "_$seed" : "");
}

static void put_end(const jobscript *s)
{
    (void)s;
    jobscript_put_end(&(jobscript_ending){
        .comment = "# LSF requeues a job that ends with 75 (-Q).",
        .stopped = 75,
        .no_newer = 1,
    });
}

const jobscript_scheduler jobscript_lsf = {
    .name = "lsf",
    .submit = "bsub <",
    .prefix = "#BSUB ",
    .disabled = "##BSUB ",
    .account = "-P ",
    .queue = "-q ",
    .launcher = "mpiexec",
    .is_job = "[ -n \"${LSB_JOBID-}\" ]",
    .folder = "cd -- \"${LS_SUBCWD:-.}\"",
    .element = "${LSB_JOBINDEX-}",
    .signals = 1,
    .places = 1,
    .least_limit_s = 120,
    .put_head = put_head,
    .put_before_run = put_before_run,
    .put_end = put_end,
};
