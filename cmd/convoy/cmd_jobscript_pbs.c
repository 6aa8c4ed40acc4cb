/*
 * cmd_jobscript_pbs.c: OpenPBS and PBS Pro. Source: the manual page qsub(1B) of OpenPBS.
 *
 * PBS sends no signal before the limit. An element of a job array cannot be submitted again by its user as such, so
 * the next job is one without the directive -J and gets its number in a variable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_jobscript.h"

static void put_head(const jobscript *s)
{
    cmd_say("#PBS -N %s\n#PBS -j oe\n#PBS -r %c\n", s->name, s->signal_s ? 'y' : 'n');
    if (jobscript_is_array(s))
        cmd_say("#PBS -J %lld-%lld\n", (long long)s->seed, (long long)s->last_seed);
    cmd_say("#PBS -l select=%lld:ncpus=%lld:mpiprocs=%lld", (long long)s->nodes,
            (long long)(s->ppn * (s->threads ? s->threads : 1)), (long long)s->ppn);
    if (s->threads)
        cmd_say(":ompthreads=%lld", (long long)s->threads);
    cmd_say("\n#PBS -l place=scatter%s\n", s->threads ? "" : ":exclhost");
    jobscript_put_limit("#PBS -l walltime=", s->limit_s);
}

static void put_end(const jobscript *s)
{
    jobscript_put_end(&(jobscript_ending){
        .comment = "# If nodes may not call qsub, remove that line and submit several that wait for each other:\n"
                   "# id=$(qsub SCRIPT); qsub -W depend=afterany:$id SCRIPT",
        .again = jobscript_is_array(s) ? "grep -v '^#PBS -J ' \"$0\" | qsub -v \"CONVOY_SEED=$seed\"" : "qsub \"$0\"",
        .fails = "qsub does not take this script from here",
        .stopped = 75,
        .no_newer = 75,
    });
}

const jobscript_scheduler jobscript_pbs = {
    .name = "pbs",
    .submit = "qsub",
    .prefix = "#PBS ",
    .disabled = "##PBS ",
    .account = "-A ",
    .queue = "-q ",
    .optional = {"-k oed"}, /* the output can be read while the job runs */
    .launcher = "mpiexec",
    .is_job = "[ -n \"${PBS_JOBID-}\" ]",
    .folder = "cd -- \"${PBS_O_WORKDIR:-.}\"",
    .element = "${PBS_ARRAY_INDEX:-${CONVOY_SEED-}}",
    .places = 1,
    .put_head = put_head,
    .put_end = put_end,
};
