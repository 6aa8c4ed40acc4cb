/*
 * cmd_jobscript_slurm.c: Slurm. Sources: the manual pages sbatch(1), srun(1) and scontrol(1).
 *
 * --signal without "B:" reaches the steps of the job, and not its script. SLURM_JOB_END_TIME exists since Slurm 23.02.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_jobscript.h"

static void put_head(const jobscript *s)
{
    cmd_say("#SBATCH --job-name=%s\n", s->name);
    if (jobscript_is_array(s))
        cmd_say("#SBATCH --array=%lld-%lld\n#SBATCH --output=%s-%%A_%%a.out\n", (long long)s->seed,
                (long long)s->last_seed, s->name);
    else
        cmd_say("#SBATCH --output=%s-%%j.out\n", s->name);
    cmd_say("#SBATCH --open-mode=append\n#SBATCH --nodes=%lld\n#SBATCH --ntasks-per-node=%lld\n", (long long)s->nodes,
            (long long)s->ppn);
    if (s->threads)
        cmd_say("#SBATCH --cpus-per-task=%lld\n", (long long)s->threads);
    else
        cmd_say("#SBATCH --exclusive\n");
    jobscript_put_limit("#SBATCH --time=", s->limit_s);
    if (s->signal_s)
        cmd_say("#SBATCH --signal=USR1@%lld\n#SBATCH --requeue\n", (long long)s->signal_s);
}

static void put_end_time(const jobscript *s)
{
    cmd_say("export CONVOY_JOB_END=\"${SLURM_JOB_END_TIME:-$(($(date +%%s) + %lld))}\"\n", (long long)s->limit_s);
}

/* The last element of an array has the same SLURM_JOB_ID as the array as a whole, so elements are named by their
 * number. */
static void put_end(const jobscript *s)
{
    jobscript_put_end(&(jobscript_ending){
        .comment = "# If your site does not requeue jobs, remove the line with scontrol and submit several that wait "
                   "for each other:\n"
                   "# id=$(sbatch --parsable SCRIPT); sbatch --dependency=afterany:$id SCRIPT",
        .again = jobscript_is_array(s) ? "scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\""
                                       : "scontrol requeue \"$SLURM_JOB_ID\"",
        .fails = "scontrol does not requeue this job",
        .stopped = 75,
        .no_newer = 75,
    });
}

const jobscript_scheduler jobscript_slurm = {
    .name = "slurm",
    .submit = "sbatch",
    .prefix = "#SBATCH ",
    .disabled = "##SBATCH ",
    .account = "--account=",
    .queue = "--partition=",
    .optional = {"--hint=nomultithread"},
    .launcher = "srun",
    .is_job = "[ -n \"${SLURM_JOB_ID-}\" ]",
    .element = "${SLURM_ARRAY_TASK_ID-}",
    .places = 1,
    .put_head = put_head,
    .put_end_time = put_end_time,
    .put_end = put_end,
};
