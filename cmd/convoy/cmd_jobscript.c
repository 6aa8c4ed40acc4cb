/*
 * cmd_jobscript.c: `convoy jobscript`: writes a job script for Slurm or PBS that trains a job file to its end, over as
 * many batch jobs as needed.
 *
 * The job file is checked here: otherwise an error in it would be found only after a night in the queue. The script is
 * for bash, which the `module` command usually expects, and uses little more than sh. Names from outside are quoted
 * with single quotes, or reduced to letters, digits, '.', '_' and '-'.
 */
#include <mpi.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define SIGNAL_S 120       /* default seconds between the signal and the limit */
#define SIGNAL_SHARE 4     /* but at most 1/4 of the limit */
#define SIGNAL_S_MAX 65535 /* largest value that Slurm accepts */
#define LIMIT_S_MIN 60     /* Slurm's limits are in whole minutes */
#define LIMIT_S_MAX (366 * 24 * 3600)

typedef struct verb_options {
    const char *time, *out;
    int64_t nodes, ppn, threads, signal;
    int slurm, pbs;
    cmd_sets sets;
} verb_options;

typedef struct script {
    const verb_options *options;
    const char *job_file;
    cvy_job_about job;
    char name[64]; /* the job's name, as batch systems accept it */
    char out[512];
    int64_t nodes, ppn, limit_s, signal_s;
} script;

/* ---- reading the request ---- */

static int complain(const cmd_line *line, const char *option, const char *what)
{
    cmd_error("%s %s; usage: convoy %s %s", option, what, line->verb->name, line->verb->arguments);
    return CMD_EXIT_USAGE;
}

/* Makes a short name of letters, digits, '.', '_' and '-' which starts with a letter: both batch systems accept it. */
static void make_name(const char *job, char *name, size_t room)
{
    size_t n = 0;
    if (!isalpha((unsigned char)job[0]))
        name[n++] = 'j';
    for (; *job && n + 1 < room; job++)
        name[n++] =
            (char)((isalnum((unsigned char)*job) && (unsigned char)*job < 128) || strchr("._-", *job) ? *job : '_');
    name[n] = '\0';
}

/* "2:30" means minutes to one batch system, and hours to most people. */
static int is_ambiguous(const char *limit)
{
    const char *colon = strchr(limit, ':');
    return colon && !strchr(colon + 1, ':') && !strchr(limit, '-');
}

static int read_request(const cmd_line *line, script *s)
{
    const verb_options *o = line->options;
    *s = (script){.options = o, .job_file = line->arg[0], .nodes = o->nodes, .ppn = o->ppn};
    if (o->slurm + o->pbs != 1)
        return complain(line, "--slurm or --pbs",
                        o->slurm ? "are for different batch systems, expected one of them"
                                 : "is missing: for which batch system");
    if (!o->nodes || !o->ppn || !o->time)
        return complain(line, !o->nodes ? "--nodes" : !o->ppn ? "--ppn" : "--time", "is missing");
    if (o->nodes * o->ppn > INT32_MAX) {
        cmd_error("--nodes %lld with --ppn %lld make %lld ranks, expected at most %d", (long long)o->nodes,
                  (long long)o->ppn, (long long)(o->nodes * o->ppn), INT32_MAX);
        return CMD_EXIT_USAGE;
    }
    if (is_ambiguous(o->time) || !cmd_read_walltime(o->time, &s->limit_s) || s->limit_s < LIMIT_S_MIN ||
        s->limit_s > LIMIT_S_MAX) {
        cmd_error("--time is '%s', expected HH:MM:SS, D-HH:MM:SS or minutes, from a minute to a year: such as "
                  "02:00:00, 1-12:00:00 or 120",
                  o->time);
        return CMD_EXIT_USAGE;
    }
    s->signal_s = o->signal ? o->signal : s->limit_s / SIGNAL_SHARE < SIGNAL_S ? s->limit_s / SIGNAL_SHARE : SIGNAL_S;
    if (s->signal_s >= s->limit_s || s->signal_s > SIGNAL_S_MAX) {
        cmd_error("--signal is %lld s before a limit of %lld s, expected less than that and at most %d",
                  (long long)s->signal_s, (long long)s->limit_s, SIGNAL_S_MAX);
        return CMD_EXIT_USAGE;
    }
    return 0;
}

static void warn_of_shares(const script *s)
{
    const int64_t least = s->job.batch / s->job.workers, most = (s->job.batch + s->job.workers - 1) / s->job.workers;
    if (least != most)
        fprintf(stderr,
                "convoy: warning: a batch of %lld over %lld ranks makes shares of %lld and %lld samples, and a step "
                "takes as long as the larger one:"
                " %lld or %lld would share evenly\n",
                (long long)s->job.batch, (long long)s->job.workers, (long long)least, (long long)most,
                (long long)(least * s->job.workers), (long long)(most * s->job.workers));
}

static int read_job(script *s)
{
    const cvy_job_source job = cmd_job(&s->options->sets, s->job_file, NULL);
    s->job.size = sizeof s->job;
    const int code = cmd_outcome(cvy_run_read_job(&job, (int)(s->nodes * s->ppn), &s->job));
    if (code)
        return code;
    make_name(s->job.name, s->name, sizeof s->name);
    if (s->options->out)
        snprintf(s->out, sizeof s->out, "%s", s->options->out);
    else
        snprintf(s->out, sizeof s->out, "runs/%s", s->job.name);
    if (!*s->out || (s->options->out && strlen(s->options->out) >= sizeof s->out)) {
        cmd_error("--out is %s, expected the run's folder", *s->out ? "too long" : "empty");
        return CMD_EXIT_USAGE;
    }
    for (size_t n = strlen(s->out); n > 1 && s->out[n - 1] == '/'; n--)
        s->out[n - 1] = 0; /* the script appends to this name */
    warn_of_shares(s);
    return 0;
}

/* ---- the script ---- */

/* Prints name=path. A path that starts with '-' gets "./" in front, so that no command takes it for an option. */
static void put_path(const char *name, const char *path)
{
    printf("%s=", name);
    if (*path == '-')
        fputs("./", stdout);
    cmd_put_word(path);
    putchar('\n');
}

static void put_limit(const char *head, int64_t seconds)
{
    printf("%s%02lld:%02lld:%02lld\n", head, (long long)(seconds / 3600), (long long)(seconds / 60 % 60),
           (long long)(seconds % 60));
}

static void put_slurm_head(const script *s)
{
    printf("#!/bin/bash\n"
           "# Made by `convoy jobscript`. Submit it by sbatch in the folder in which the paths of the job file begin.\n"
           "#SBATCH --job-name=%s\n#SBATCH --output=%s-%%j.out\n#SBATCH --open-mode=append\n"
           "#SBATCH --nodes=%lld\n#SBATCH --ntasks-per-node=%lld\n",
           s->name, s->name, (long long)s->nodes, (long long)s->ppn);
    if (s->options->threads)
        printf("#SBATCH --cpus-per-task=%lld\n", (long long)s->options->threads);
    else
        printf("#SBATCH --exclusive\n");
    put_limit("#SBATCH --time=", s->limit_s);
    printf("#SBATCH --signal=USR1@%lld\n#SBATCH --requeue\n"
           "# What your site asks for, with one # less:\n"
           "##SBATCH --account=ACCOUNT\n##SBATCH --partition=PARTITION\n",
           (long long)s->signal_s);
    if (s->options->threads)
        printf("##SBATCH --hint=nomultithread\n");
    printf("\n# The end of this allocation, in seconds since 1970.\n"
           "export CONVOY_JOB_END=\"${SLURM_JOB_END_TIME:-$(($(date +%%s) + %lld))}\"\n",
           (long long)s->limit_s);
}

static void put_pbs_head(const script *s)
{
    const int64_t threads = s->options->threads;
    printf("#!/bin/bash\n"
           "# Made by `convoy jobscript`. Submit it by qsub in the folder in which the paths of the job file begin.\n"
           "#PBS -N %s\n#PBS -j oe\n#PBS -r y\n"
           "#PBS -l select=%lld:ncpus=%lld:mpiprocs=%lld",
           s->name, (long long)s->nodes, (long long)(s->ppn * (threads ? threads : 1)), (long long)s->ppn);
    if (threads)
        printf(":ompthreads=%lld", (long long)threads);
    printf("\n#PBS -l place=scatter%s\n", threads ? "" : ":exclhost");
    put_limit("#PBS -l walltime=", s->limit_s);
    printf("# What your site asks for, with one # less (-k oed: the output can be read while the job runs):\n"
           "##PBS -A ACCOUNT\n##PBS -q QUEUE\n##PBS -k oed\n"
           "\n# The end of this allocation, in seconds since 1970.\n"
           "export CONVOY_JOB_END=\"$(($(date +%%s) + %lld))\"\n",
           (long long)s->limit_s);
}

static void put_modules(void)
{
    fputs("\n# The MPI library that convoy was built with, and the folder of the command:\n"
          "# module load openmpi\n"
          "# export PATH=\"$HOME/convoy/bin:$PATH\"\n",
          stdout);
}

static void put_names(const script *s)
{
    fputs("\nset -u\n", stdout);
    put_path("job", s->job_file);
    put_path("out", s->out);
    fputs("\nsay() { echo \"jobscript: $*\" >&2; }\n"
          "die() { say \"$*\"; exit 1; }\n"
          "last_set() {\n"
          "    local last= set\n"
          "    for set in \"$out\"/checkpoints/step-*; do\n"
          "        case ${set##*/step-} in *[!0-9]*) ;; *) last=${set##*/} ;; esac\n"
          "    done\n"
          "    echo \"$last\"\n"
          "}\n\n",
          stdout);
}

/* If the script were started by hand, it would use other resources than its head requests. */
static void put_check(const char *variable, const char *submit)
{
    printf("[ -n \"${%s-}\" ] || die \"this script is for the batch system: %s $0\"\n", variable, submit);
    fputs("command -v convoy >/dev/null || die \"there is no convoy in PATH: load its module, or add its folder at the "
          "head of this script\"\n"
          "[ -f \"$job\" ] || die \"there is no $job in $PWD: submit this script in the folder in which the paths of "
          "the job file begin\"\n\n",
          stdout);
}

/* Sets "$@" to the words after `convoy`. A run folder without any checkpoint cannot be resumed, so it is renamed. */
static void put_words(const script *s)
{
    fputs("set -- train \"$job\" --out \"$out\"", stdout);
    if (s->options->threads)
        printf(" --threads %lld", (long long)s->options->threads);
    for (int i = 0; i < s->options->sets.count; i++) {
        fputs(" --set ", stdout);
        cmd_put_word(s->options->sets.word[i]);
    }
    fputs("\nbefore=$(last_set)\n"
          "if [ -n \"$before\" ]; then\n"
          "    say \"$out exists: continuing after $before\"\n"
          "    set -- \"$@\" --resume\n"
          "elif [ -e \"$out/STATUS\" ]; then   # ended before its first checkpoint\n"
          "    if command -v flock >/dev/null; then\n"
          "        flock -n \"$out/lock\" true\n"
          "        [ $? -ne 1 ] || die \"another run is using $out\"\n"
          "    fi\n"
          "    n=1\n"
          "    while [ -e \"$out.aside-$n\" ]; do n=$((n + 1)); done\n"
          "    mv -- \"$out\" \"$out.aside-$n\" || die \"$out has no checkpoint, and cannot be put aside\"\n"
          "    say \"$out had no checkpoint: it is $out.aside-$n now, and the run starts from the beginning\"\n"
          "fi\n\n",
          stdout);
}

static void put_slurm_run(const script *s)
{
    fputs("# srun of Slurm 22.05 and later does not take over --cpus-per-task. `srun --mpi=list` has the other ways to "
          "start MPI.\n",
          stdout);
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(library, &length);
    printf("srun --mpi=%s --cpus-per-task=", strstr(library, "Open MPI") ? "pmix" : "pmi2");
    if (s->options->threads)
        printf("%lld", (long long)s->options->threads);
    else
        printf("$((SLURM_CPUS_ON_NODE / %lld))", (long long)s->ppn);
    fputs(" --wait=60 convoy \"$@\"\n", stdout);
}

static void put_pbs_run(const script *s)
{
    char cores[24] = "CORES";
    if (s->options->threads)
        snprintf(cores, sizeof cores, "%lld", (long long)s->options->threads);
    printf(
        "# PBS has no signal before its limit, so `timeout` gives USR1 to mpiexec, which hands it to the ranks. Ranks "
        "move freely over the cores of their node;\n"
        "# to tie each to its own with Open MPI, remove the next line and give mpiexec --map-by ppr:%lld:node:PE=%s "
        "--bind-to core.\n"
        "export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none HYDRA_BINDING=none\n"
        "timeout --foreground --preserve-status -s USR1 $((CONVOY_JOB_END - %lld - $(date +%%s))) mpiexec -n %lld "
        "\"$(command -v convoy)\" \"$@\"\n",
        (long long)s->ppn, cores, (long long)s->signal_s, (long long)(s->nodes * s->ppn));
}

/* A job that has saved nothing new is not started again: it would repeat for ever. */
static void put_end(const char *how, const char *again, const char *fails)
{
    printf("code=$?\n\n# 75: stopped before its end with everything saved. STATUS says so too, for launchers that lose "
           "the code.\n# %s\n"
           "is_stopped() { [ $code -eq 75 ] || grep -q '^stopped ' \"$out/STATUS\" 2>/dev/null; }\n"
           "if is_stopped && [ \"$(last_set)\" != \"$before\" ]; then\n"
           "    code=75\n"
           "    say \"$(last_set) is saved: another job continues\"\n"
           "    %s || say \"%s; submit this script again by hand, and it continues\"\n"
           "elif [ $code -eq 75 ]; then\n"
           "    say \"no new step was saved in this job, so it is not started again: give it a longer --time\"\n"
           "fi\n"
           "exit $code\n",
           how, again, fails);
}

static void put_slurm(const script *s)
{
    put_slurm_head(s);
    put_modules();
    put_names(s);
    put_check("SLURM_JOB_ID", "sbatch");
    put_words(s);
    put_slurm_run(s);
    put_end("If your site does not requeue jobs, remove the line with scontrol and submit several that wait for each "
            "other:\n"
            "# id=$(sbatch --parsable SCRIPT); sbatch --dependency=afterany:$id SCRIPT",
            "scontrol requeue \"$SLURM_JOB_ID\"", "scontrol does not requeue this job");
}

static void put_pbs(const script *s)
{
    put_pbs_head(s);
    put_modules();
    put_names(s);
    printf("cd -- \"${PBS_O_WORKDIR:-.}\" || exit 1\n");
    put_check("PBS_JOBID", "qsub");
    put_words(s);
    put_pbs_run(s);
    put_end("If nodes may not call qsub, remove that line and submit several that wait for each other:\n"
            "# id=$(qsub SCRIPT); qsub -W depend=afterany:$id SCRIPT",
            "qsub \"$0\"", "qsub does not take this script from here");
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    script s;
    int code = read_request(line, &s);
    if (!code)
        code = read_job(&s);
    if (code)
        return code;
    if (o->slurm)
        put_slurm(&s);
    else
        put_pbs(&s);
    return 0;
}

static const cmd_option options[] = {
    {"--slurm", NULL, CMD_FLAG, CMD_FIELD(slurm), "for Slurm's sbatch"},
    {"--pbs", NULL, CMD_FLAG, CMD_FIELD(pbs), "for the qsub of OpenPBS or PBS Pro"},
    {"--nodes", "N", CMD_NUMBER, CMD_FIELD(nodes), "nodes"},
    {"--ppn", "P", CMD_NUMBER, CMD_FIELD(ppn), "ranks on each node"},
    {"--time", "T", CMD_TEXT, CMD_FIELD(time),
     "limit of one job: HH:MM:SS, D-HH:MM:SS or minutes; the run may take several"},
    {"--threads", "T", CMD_NUMBER, CMD_FIELD(threads),
     "cores and compute threads of each rank; whole nodes, shared evenly, if not given"},
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "the run folder; runs/<job> if not given"},
    {"--signal", "S", CMD_NUMBER, CMD_FIELD(signal),
     "seconds before the limit at which the ranks are asked to save; if not given 120, or a quarter of a short limit"},
    CMD_OPTION_SET,
    {0},
};

const cmd_verb cmd_jobscript = {
    .name = "jobscript",
    .arguments = "JOB.yaml --slurm|--pbs --nodes N --ppn P --time T [--out FOLDER] [--threads T] [--set KEY=VALUE]...",
    .summary = "writes a job script for Slurm or PBS that trains to the end, over several jobs",
    .detail = "The script goes to stdout. It tells the ranks to save before the limit; if they did, it submits the job "
              "again, which then resumes.\n"
              "The job file is checked at once, without its data. The paths in it, and --out, are relative to the "
              "folder in which the script is submitted.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
