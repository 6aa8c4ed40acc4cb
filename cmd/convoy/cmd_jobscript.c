/*
 * cmd_jobscript.c: `convoy jobscript`: writes a job script for a scheduler that trains a job file to its end, over as
 * many batch jobs as needed.
 *
 * The job file is checked here: otherwise an error in it would be found only after a night in the queue. What the
 * command line does not say comes from the site file. Words of directives are reduced to letters, digits, '.', '_' and
 * '-', or refused if they have other signs; no value may have a line break.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_jobscript.h"

#define SIGNAL_S 120       /* default seconds between the signal and the limit */
#define SIGNAL_SHARE 4     /* but at most 1/4 of the limit */
#define SIGNAL_S_MAX 65535 /* largest value that Slurm accepts */
#define LIMIT_S_MIN 60     /* limits of Slurm and LSF are in whole minutes */
#define LIMIT_S_MAX (366 * 24 * 3600)
#define SEED_MAX 4000000 /* Slurm's largest number of an array's element is less */

typedef struct verb_options {
    const char *scheduler, *time, *out, *seeds, *account, *queue, *pe;
    int64_t nodes, ppn, threads, gpus, signal;
    jobscript_flags flags;
    cmd_sets sets;
} verb_options;

/* ---- reading the request ---- */

static int complain(const cmd_line *line, const char *option, const char *what)
{
    cmd_error("%s %s; usage: convoy %s %s", option, what, line->verb->name, line->verb->arguments);
    return CMD_EXIT_USAGE;
}

void jobscript_make_name(const char *text, char *name, size_t room)
{
    size_t n = 0;
    if (!isalpha((unsigned char)text[0]))
        name[n++] = 'j';
    for (; *text && n + 1 < room; text++)
        name[n++] =
            (char)((isalnum((unsigned char)*text) && (unsigned char)*text < 128) || strchr("._-", *text) ? *text : '_');
    name[n] = '\0';
}

static int read_scheduler(const cmd_line *line, const char *given, jobscript *s)
{
    s->scheduler = given ? given : s->site.scheduler;
    if (!s->scheduler)
        return complain(line, "--scheduler", "is missing: for which one; there is no site file that says it");
    return jobscript_templates_open(s->scheduler, &s->site, &s->templates);
}

/* A number that a block of the scheduler's template has; 0: none. */
static int read_number(const jobscript *s, const char *block, int64_t *number_out)
{
    char *text = NULL;
    const int code = jobscript_text(s->templates, block, &text);
    *number_out = text ? strtoll(text, NULL, 10) : 0;
    free(text);
    return code;
}

/* A word that a directive may have, as the library checks it in the site file. */
static int read_word(const char *option, const char *value, const char **word)
{
    if (!value)
        return 0;
    for (const char *c = value; *c; c++)
        if (!((isalnum((unsigned char)*c) && (unsigned char)*c < 128) ||
              (strchr("_.,:@/+=%-", *c) && (*c != '-' || c > value)))) {
            value = "";
            break;
        }
    if (!*value) {
        cmd_error("%s is no word of letters, digits and _.,:@/+=%%- that does not begin with -, as directives need it",
                  option);
        return CMD_EXIT_USAGE;
    }
    *word = value;
    return 0;
}

/* The rest of a value behind a line break could be taken for a directive. */
static int read_lines(const jobscript *s)
{
    const char *text[CMD_SETS_MAX + 2] = {s->job_file, s->out};
    int count = 2;
    for (int i = 0; i < s->sets->count; i++)
        text[count++] = s->sets->word[i];
    for (int i = 0; i < count; i++)
        if (strpbrk(text[i], "\n\r")) {
            cmd_error("%s has a line break, which cannot stand in a job script", i == 0   ? "the path of the job file"
                                                                                 : i == 1 ? "--out"
                                                                                          : "--set");
            return CMD_EXIT_USAGE;
        }
    return 0;
}

/* "1-5" */
static int read_seeds(const char *text, jobscript *s)
{
    char *end = NULL;
    long long first = 0, last = 0;
    if (!text)
        return 0;
    if (isdigit((unsigned char)*text))
        first = strtoll(text, &end, 10);
    if (end && *end == '-' && isdigit((unsigned char)end[1]))
        last = strtoll(end + 1, &end, 10);
    if (!end || *end || first < 1 || last <= first || last > SEED_MAX) {
        cmd_error("--seeds is '%s', expected FROM-TO such as 1-5, from 1 to %d; one seed is --set train.seed=N", text,
                  SEED_MAX);
        return CMD_EXIT_USAGE;
    }
    s->seed = first;
    s->last_seed = last;
    return 0;
}

static int read_limit(const char *time, const char *where, int64_t signal_s, jobscript *s)
{
    int64_t least_s = 0;
    if (!cmd_read_walltime(time, &s->limit_s) || s->limit_s < LIMIT_S_MIN || s->limit_s > LIMIT_S_MAX) {
        cmd_error("%s is '%s', expected HH:MM:SS, D-HH:MM:SS or minutes, from a minute to a year: such as "
                  "02:00:00, 1-12:00:00 or 120",
                  where, time);
        return CMD_EXIT_USAGE;
    }
    const int code = read_number(s, "least_limit_s", &least_s);
    if (code)
        return code;
    if (s->limit_s < least_s) {
        cmd_error("%s is %lld s, expected at least %lld s with the scheduler %s", where, (long long)s->limit_s,
                  (long long)least_s, s->scheduler);
        return CMD_EXIT_USAGE;
    }
    s->signal_s = signal_s ? signal_s : s->limit_s / SIGNAL_SHARE < SIGNAL_S ? s->limit_s / SIGNAL_SHARE : SIGNAL_S;
    if (s->signal_s >= s->limit_s || s->signal_s > SIGNAL_S_MAX) {
        cmd_error("--signal is %lld s before a limit of %lld s, expected less than that and at most %d",
                  (long long)s->signal_s, (long long)s->limit_s, SIGNAL_S_MAX);
        return CMD_EXIT_USAGE;
    }
    return 0;
}

int jobscript_read(const cmd_line *line, const jobscript_request *r, jobscript *s)
{
    int64_t needs_threads = 0;
    int code = read_scheduler(line, r->scheduler, s);
    if (code)
        return code;
    s->nodes = r->nodes ? r->nodes : s->site.nodes;
    s->ppn = r->ppn ? r->ppn : s->site.ppn;
    s->threads = r->threads ? r->threads : s->site.threads;
    s->gpus = r->gpus;
    const char *time = r->time ? r->time : s->site.time;
    if (!s->nodes || !s->ppn || !time)
        return complain(line, !s->nodes ? "--nodes" : !s->ppn ? "--ppn" : "--time", "is missing");
    code = read_number(s, "needs_threads", &needs_threads);
    if (code)
        return code;
    if (needs_threads && !s->threads)
        return complain(line, "--threads", "is missing: this scheduler counts cores, not nodes");
    if (s->nodes > INT32_MAX / s->ppn || (s->threads && s->nodes * s->ppn > INT32_MAX / s->threads)) {
        cmd_error("--nodes %lld with --ppn %lld make %lld ranks, expected at most %d (with --threads: cores)",
                  (long long)s->nodes, (long long)s->ppn, (long long)(s->nodes * s->ppn), INT32_MAX);
        return CMD_EXIT_USAGE;
    }
    code = read_limit(time, r->time ? "--time" : "time of the site file", r->signal ? r->signal : s->site.signal_s, s);
    code = code ? code : read_word("--account", r->account, &s->site.account);
    code = code ? code : read_word("--queue", r->queue, &s->site.queue);
    code = code ? code : read_word("--pe", r->pe, &s->site.parallel_environment);
    if (!code && strcmp(s->scheduler, "sge") == 0 && !s->site.parallel_environment)
        return complain(line, "--pe",
                        "is missing: SGE's parallel environment, as `qconf -spl` lists them (parallel_environment of "
                        "the site file)");
    return code ? code : jobscript_set_launcher(s);
}

int jobscript_find_scheduler(const cmd_line *line, const char *given, const jobscript_flags *flags,
                             const char **name_out)
{
    const struct {
        const char *name;
        int given;
    } flag[] = {
        {"slurm", flags->slurm}, {"pbs", flags->pbs}, {"lsf", flags->lsf}, {"flux", flags->flux}, {"sge", flags->sge}};
    int count = given != NULL;
    *name_out = given;
    for (int i = 0; i < CMD_COUNT(flag); i++)
        if (flag[i].given) {
            *name_out = flag[i].name;
            count++;
        }
    return count > 1 ? complain(line, "--scheduler", "is given more than once, expected one") : 0;
}

static int read_request(const cmd_line *line, jobscript *s)
{
    const verb_options *o = line->options;
    jobscript_request r = {.time = o->time,
                           .account = o->account,
                           .queue = o->queue,
                           .pe = o->pe,
                           .nodes = o->nodes,
                           .ppn = o->ppn,
                           .threads = o->threads,
                           .gpus = o->gpus,
                           .signal = o->signal};
    s->job_file = line->arg[0];
    s->sets = &o->sets;
    int code = jobscript_find_scheduler(line, o->scheduler, &o->flags, &r.scheduler);
    code = code ? code : jobscript_read(line, &r, s);
    return code ? code : read_seeds(o->seeds, s);
}

static void warn_of_shares(const jobscript *s)
{
    const int64_t least = s->job.batch / s->job.workers, most = (s->job.batch + s->job.workers - 1) / s->job.workers;
    if (least != most)
        cmd_note("convoy: warning: a batch of %lld over %lld ranks makes shares of %lld and %lld samples, and a step "
                 "takes as long as the larger one:"
                 " %lld or %lld would share evenly\n",
                 (long long)s->job.batch, (long long)s->job.workers, (long long)least, (long long)most,
                 (long long)(least * s->job.workers), (long long)(most * s->job.workers));
}

/* Ranks that have no GPU of their own, and GPUs that no rank uses. */
static int check_gpus(const jobscript *s)
{
    if (!s->gpus || s->gpus == s->ppn)
        return 0;
    if (strcmp(s->scheduler, "flux") == 0 && s->threads && s->gpus % s->ppn != 0) {
        cmd_error("--gpus %lld with --ppn %lld: Flux gives GPUs to ranks, so their number has to be a multiple of that "
                  "of the ranks",
                  (long long)s->gpus, (long long)s->ppn);
        return CMD_EXIT_USAGE;
    }
    cmd_note(
        "convoy: warning: %lld GPUs and %lld ranks on each node: a rank computes on one GPU, so %s: --ppn %lld has "
        "a rank for each\n",
        (long long)s->gpus, (long long)s->ppn,
        s->gpus > s->ppn ? "some GPUs are idle" : "several ranks compute on one, in turns", (long long)s->gpus);
    return 0;
}

/* A job that asks for GPUs and does not say where to compute takes them. */
static int put_device(const jobscript *s, FILE *to)
{
    const cvy_job_source job = cmd_job(s->sets, s->job_file, NULL);
    char *text = NULL;
    if (!s->gpus)
        return 0;
    const int code = cmd_outcome(cvy_run_job_value(&job, "device", &text));
    if (!code && strcmp(text, "null") == 0)
        fputs(" --device auto", to);
    cvy_text_release(&text);
    return code;
}

static int read_job(const verb_options *o, jobscript *s)
{
    const cvy_job_source job = cmd_job(&o->sets, s->job_file, NULL);
    s->job.size = sizeof s->job;
    const int code = cmd_outcome(cvy_run_read_job(&job, (int)(s->nodes * s->ppn), &s->job));
    if (code)
        return code;
    jobscript_make_name(s->job.name, s->name, sizeof s->name);
    if (o->out)
        snprintf(s->out, sizeof s->out, "%s", o->out);
    else
        snprintf(s->out, sizeof s->out, "runs/%s", s->job.name);
    if (!*s->out || (o->out && strlen(o->out) >= sizeof s->out)) {
        cmd_error("--out is %s, expected the run's folder", *s->out ? "too long" : "empty");
        return CMD_EXIT_USAGE;
    }
    for (size_t n = strlen(s->out); n > 1 && s->out[n - 1] == '/'; n--)
        s->out[n - 1] = 0; /* the script appends to this name */
    warn_of_shares(s);
    const int refused = check_gpus(s);
    return refused ? refused : read_lines(s);
}

/* What follows the folder in the words of `convoy train`. */
static int set_options(const jobscript *s)
{
    FILE *to = jobscript_value(s->templates, "options");
    if (!to)
        return CMD_EXIT_FAULT;
    if (s->threads)
        fprintf(to, " --threads %lld", (long long)s->threads);
    const int code = put_device(s, to);
    for (int i = 0; i < s->sets->count; i++) {
        fputs(" --set ", to);
        cmd_put_word(to, s->sets->word[i]);
    }
    return fclose(to) == 0 ? code : CMD_EXIT_FAULT;
}

static int run(const cmd_line *line)
{
    jobscript s = {.site = cvy_site_about_default()};
    cvy_site *site = NULL;
    char *text = NULL;
    int code = cmd_open_site(&site, &s.site);
    code = code ? code : read_request(line, &s);
    code = code ? code : read_job(line->options, &s);
    code = code ? code : jobscript_set_values(&s);
    code = code ? code : set_options(&s);
    code = code ? code : jobscript_text(s.templates, "train", &text);
    if (!code)
        cmd_put(stdout, text);
    free(text);
    jobscript_templates_free(&s.templates);
    cvy_site_destroy(&site);
    return code;
}

static const cmd_option options[] = {
    {"--scheduler", "slurm|pbs|lsf|flux|sge", CMD_CHOICE, CMD_FIELD(scheduler),
     "whose script: Slurm, OpenPBS or PBS Pro, LSF, Flux, Grid Engine; that of the site file if not given"},
    JOBSCRIPT_FLAGS,
    {"--nodes", "N", CMD_NUMBER, CMD_FIELD(nodes), "nodes"},
    {"--ppn", "P", CMD_NUMBER, CMD_FIELD(ppn), "ranks on each node"},
    {"--time", "T", CMD_TEXT, CMD_FIELD(time),
     "limit of one job: HH:MM:SS, D-HH:MM:SS or minutes; the run may take several"},
    {"--threads", "T", CMD_NUMBER, CMD_FIELD(threads),
     "cores and compute threads of each rank; whole nodes, shared evenly, if not given (SGE needs it)"},
    {"--gpus", "G", CMD_NUMBER, CMD_FIELD(gpus),
     "GPUs of each node, one for each rank; the job then computes on them, unless its key `device` says otherwise"},
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "the run folder; runs/<job> if not given"},
    {"--signal", "S", CMD_NUMBER, CMD_FIELD(signal),
     "seconds before the limit at which the ranks are asked to save; if not given 120, or a quarter of a short limit"},
    {"--seeds", "FROM-TO", CMD_TEXT, CMD_FIELD(seeds),
     "a job array: a run with each of these numbers as train.seed, in the folders <out>-seed-<number>"},
    {"--account", "A", CMD_TEXT, CMD_FIELD(account), "whom the time is charged to"},
    {"--queue", "Q", CMD_TEXT, CMD_FIELD(queue), "the queue, or Slurm's partition"},
    {"--pe", "NAME", CMD_TEXT, CMD_FIELD(pe), "SGE's parallel environment"},
    CMD_OPTION_SET,
    {0},
};

const cmd_verb cmd_jobscript = {
    .name = "jobscript",
    .arguments = "JOB.yaml [--scheduler NAME] --nodes N --ppn P --time T [--threads T] [--gpus G] [--out FOLDER] "
                 "[--seeds FROM-TO] "
                 "[--set KEY=VALUE]...",
    .summary = "writes a job script for a scheduler that trains to the end, over several jobs",
    .detail = "The script goes to stdout. It tells the ranks to save before the limit; if they did, it submits the job "
              "again, which then resumes.\n"
              "The job file is checked at once, without its data. The paths in it, and --out, are relative to the "
              "folder in which the script is submitted.\n"
              "Scheduler, account, queue, modules, launcher and defaults can stand in a site file; `convoy info` says "
              "which one is in use.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
