/*
 * cmd_study_kit.c: `convoy study --kit`, and what is done with a kit. lab/kit makes its studies and predictions; the
 * job scripts, the README and submit.sh come from the templates of `convoy jobscript`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_jobscript.h"
#include "cmd_machine.h"
#include "cmd_simulate.h"
#include "cmd_site.h"
#include "cmd_study.h"
#include "kit/kit.h"

enum { PATH_ROOM = 4096, START_S = 30 };

extern const char cmd_kit_node_throughput[], cmd_kit_threads[], cmd_kit_sp_mp_mn[], cmd_kit_weak_scaling[],
    cmd_kit_strong_scaling[], cmd_kit_communication[];

static const cvy_kit_study shipped[] = {
    {"node-throughput", cmd_kit_node_throughput},
    {"threads", cmd_kit_threads},
    {"sp-mp-mn", cmd_kit_sp_mp_mn},
    {"weak-scaling", cmd_kit_weak_scaling},
    {"strong-scaling", cmd_kit_strong_scaling},
    {"communication", cmd_kit_communication},
};

/* ---- which studies ---- */

struct studies {
    cvy_kit_study at[CVY_KIT_STUDIES];
    char *owned[CVY_KIT_STUDIES], name[CVY_KIT_STUDIES][128];
    int n;
};

static void free_studies(struct studies *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->owned[i]);
}

static int add_study(const char *name, struct studies *list)
{
    const char *names[CMD_COUNT(shipped)], *slash = strrchr(name, '/');
    const int at = list->n;
    if (at == CVY_KIT_STUDIES) {
        cmd_error("more than %d studies", CVY_KIT_STUDIES);
        return CMD_EXIT_USAGE;
    }
    list->owned[at] = NULL;
    for (int i = 0; i < CMD_COUNT(shipped); i++) {
        names[i] = shipped[i].name;
        if (strcmp(shipped[i].name, name) == 0) {
            list->at[list->n++] = shipped[i];
            return 0;
        }
    }
    if (!cmd_is_file(name)) {
        cmd_unknown("study", name, names, CMD_COUNT(names));
        return CMD_EXIT_USAGE;
    }
    list->owned[at] = cmd_study_read_file(name);
    if (!list->owned[at])
        return CMD_EXIT_FAULT;
    jobscript_make_name(slash ? slash + 1 : name, list->name[at], sizeof list->name[at]);
    if (cmd_ends_with(list->name[at], ".yaml"))
        list->name[at][strlen(list->name[at]) - strlen(".yaml")] = '\0';
    list->at[at] = (cvy_kit_study){list->name[at], list->owned[at]};
    list->n++;
    return 0;
}

static int find_studies(const cmd_line *line, struct studies *list)
{
    int code = 0;
    for (int i = 0; !code && i < line->narg; i++)
        code = add_study(line->arg[i], list);
    for (int i = 0; !code && line->narg == 0 && i < CMD_COUNT(shipped); i++)
        code = add_study(shipped[i].name, list);
    return code;
}

/* ---- the platform ---- */

/* Its text, after a look whether it can be used. *owned is for the caller to free. */
static int read_platform(const char *name, const char **text_out, char **owned)
{
    cvy_platform platform = {.size = sizeof platform};
    int code = name ? cmd_find_platform(name, text_out) : 0;
    if (!name || code)
        return code;
    if (!*text_out)
        *text_out = *owned = cmd_study_read_file(name);
    if (!*text_out)
        return CMD_EXIT_FAULT;
    const cvy_platform_opts opts = {.size = sizeof opts, .name = name, .text = *text_out};
    code = cmd_outcome(cvy_run_platform(&opts, &platform));
    if (!code)
        cvy_text_release(&platform.xml);
    return code;
}

/* ---- job scripts ---- */

static int set(const jobscript *s, const char *name, const char *text)
{
    FILE *to = jobscript_value(s->templates, name);
    if (!to)
        return CMD_EXIT_FAULT;
    fputs(text, to);
    return fclose(to) == 0 ? 0 : CMD_EXIT_FAULT;
}

/* As many nodes as the scheduler has, if it says so here: a kit may be made on another machine. */
static int check_nodes(const jobscript *s, int64_t nodes)
{
    char *command = NULL, answer[64] = "";
    int code = jobscript_set_values(s);
    code = code ? code : jobscript_text(s->templates, "nodes_there", &command);
    FILE *from = !code && command && *command ? popen(command, "r") : NULL;
    if (from && !fgets(answer, sizeof answer, from))
        *answer = '\0';
    if (from)
        pclose(from);
    free(command);
    const long long there = strtoll(answer, NULL, 10);
    if (code || there <= 0 || nodes <= there)
        return code;
    cmd_error("--nodes is %lld, but %s has %lld nodes%s%s: take at most as many, or name another --queue",
              (long long)nodes, s->scheduler, there, s->site.queue ? " in " : "", s->site.queue ? s->site.queue : "");
    return CMD_EXIT_USAGE;
}

/* Writes a script of the kit, for so many nodes. */
static int write_job(jobscript *s, const char *folder, const char *name, int64_t nodes, const char *step,
                     const char *what)
{
    char path[PATH_ROOM], job[64];
    s->nodes = nodes;
    snprintf(job, sizeof job, "kit-%.40s", name);
    jobscript_make_name(job, s->name, sizeof s->name);
    int code = jobscript_set_values(s);
    code = code ? code : set(s, "step", step);
    code = code ? code : set(s, "what", what);
    snprintf(path, sizeof path, "%s/jobs/%s.sh", folder, name);
    code = code ? code : cmd_study_write_block(s, "kit_job", path, 0777);
    snprintf(path, sizeof path, "%s/jobs/launch-%lld", folder, (long long)nodes);
    return code ? code : cmd_study_write_block(s, "study_launcher", path, 0777);
}

/* "1 h 20 min" of so many measurements. */
static void put_time(FILE *to, const cvy_study_effort *effort)
{
    const long long minutes = (long long)ceil((effort->seconds + (double)START_S * (double)effort->count) / 60);
    if (minutes >= 60)
        fprintf(to, "%lld h %lld min", minutes / 60, minutes % 60);
    else
        fprintf(to, "%lld min", minutes);
}

/* The names of the jobs, and a row of the README for each. */
static int set_jobs(const jobscript *s, const cvy_kit_about *kit, int64_t predict_nodes, int measures)
{
    FILE *names = jobscript_value(s->templates, "job_names"), *rows = jobscript_value(s->templates, "kit_jobs");
    if (names && rows) {
        fprintf(rows, "| `jobs/predict.sh` | %lld | %s%d predictions, about %d min |\n", (long long)predict_nodes,
                measures ? "measures the platform, " : "", kit->npredicted, 1 + kit->npredicted * START_S / 60);
        for (int i = 0; i < kit->nnodes; i++) {
            const long long n = (long long)kit->nodes[i];
            fprintf(names, " nodes-%lld", n);
            fprintf(rows, "| `jobs/nodes-%lld.sh` | %lld | up to %lld measurements, about ", n, n,
                    (long long)kit->effort[i].count);
            put_time(rows, &kit->effort[i]);
            fputs(" |\n", rows);
        }
    }
    const int bad = (names && fclose(names) != 0) || (rows && fclose(rows) != 0) || !names || !rows;
    return bad ? CMD_EXIT_FAULT : 0;
}

static int write_block(const jobscript *s, const char *folder, const char *block, const char *name, unsigned mode)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return cmd_study_write_block(s, block, path, mode);
}

static int write_scripts(jobscript *s, const cmd_study_options *o, const cvy_kit_about *kit)
{
    char what[128], name[64];
    const int64_t last = kit->nodes[kit->nnodes - 1], predict_nodes = !o->platform && last > 1 ? 2 : 1;
    snprintf(s->out, sizeof s->out, ".");
    s->signal_s = 0;
    int code = write_job(s, o->kit, "predict", predict_nodes, "predict", "the predictions, before all measurements.");
    for (int i = 0; !code && i < kit->nnodes; i++) {
        snprintf(what, sizeof what, "the measurements that need %lld node%s.", (long long)kit->nodes[i],
                 kit->nodes[i] > 1 ? "s" : "");
        snprintf(name, sizeof name, "nodes-%lld", (long long)kit->nodes[i]);
        code = write_job(s, o->kit, name, kit->nodes[i], "measure", what);
    }
    snprintf(what, sizeof what, "%lld node%s", (long long)last, last > 1 ? "s" : "");
    code = code ? code : set(s, "last_nodes", what);
    code = code ? code : set(s, "seal", "predictions.sha256");
    code = code ? code : set(s, "version", cvy_version());
    code = code ? code : set(s, "scheduler", s->scheduler);
    code = code ? code : set_jobs(s, kit, predict_nodes, predict_nodes > 1);
    code = code ? code : write_block(s, o->kit, "kit_environment", "environment.sh", 0666);
    code = code ? code : write_block(s, o->kit, "kit_submit", "submit.sh", 0777);
    return code ? code : write_block(s, o->kit, "kit_readme", "README.md", 0666);
}

/* ---- --kit ---- */

static int make_kit(const cmd_study_options *o, const cvy_kit_opts *opts, jobscript *s)
{
    cvy_kit_about kit = {.size = sizeof kit};
    int code = check_nodes(s, opts->nodes);
    code = code ? code : cmd_outcome(cvy_kit_create(opts, &kit));
    code = code ? code : write_scripts(s, o, &kit);
    if (code)
        return code;
    cmd_say("%s: %s, on up to %lld nodes\n", o->kit, kit.studies, (long long)kit.nodes[kit.nnodes - 1]);
    cmd_say("%s/README.md says what to do there: copy the folder to the cluster, then `sh submit.sh`\n", o->kit);
    return 0;
}

static int create(const cmd_line *line, const cmd_study_options *o)
{
    jobscript s = {.site = cvy_site_about_default()};
    jobscript_request request = {.time = o->time,
                                 .account = o->account,
                                 .queue = o->queue,
                                 .pe = o->pe,
                                 .nodes = o->nodes,
                                 .ppn = o->ppn,
                                 .threads = o->threads};
    struct studies list = {.n = 0};
    cvy_site *site = NULL;
    char self[PATH_ROOM], frameworks[PATH_ROOM], *owned = NULL;
    const char *platform = NULL;
    if (!cmd_self(self, sizeof self)) {
        cmd_error("the path of this program is not known");
        return CMD_EXIT_FAULT;
    }
    int code = cmd_find_frameworks(o->frameworks_folder, self, frameworks, sizeof frameworks);
    code = code ? code : jobscript_find_scheduler(line, o->scheduler, &o->flags, &request.scheduler);
    code = code ? code : cmd_open_site(&site, &s.site);
    code = code ? code : jobscript_read(line, &request, &s);
    code = code ? code : find_studies(line, &list);
    code = code ? code : read_platform(o->platform, &platform, &owned);
    const cvy_kit_opts opts = {.size = sizeof opts,
                               .folder = o->kit,
                               .study = list.at,
                               .nstudy = list.n,
                               .nodes = s.nodes,
                               .ranks_per_node = s.ppn,
                               .quick = o->quick,
                               .peers = o->frameworks,
                               .frameworks = frameworks,
                               .program = self,
                               .published = cmd_study_published,
                               .platform = platform,
                               .platform_name = o->platform,
                               .scheduler = s.scheduler,
                               .commit = cmd_commit};
    code = code ? code : make_kit(o, &opts, &s);
    free_studies(&list);
    free(owned);
    jobscript_templates_free(&s.templates);
    cvy_site_destroy(&site);
    return code;
}

/* ---- --predict, --measure, --collect ---- */

static int go_on(const cmd_study_options *o)
{
    char self[PATH_ROOM];
    double begin = 0, end = 0;
    if (!cmd_self(self, sizeof self)) {
        cmd_error("the path of this program is not known");
        return CMD_EXIT_FAULT;
    }
    const int code = cmd_study_job_time(&begin, &end);
    if (code)
        return code;
    const cvy_kit_run opts = {.size = sizeof opts,
                              .folder = o->measure ? o->measure : o->predict,
                              .program = self,
                              .commit = cmd_commit,
                              .published = cmd_study_published,
                              .nodes = o->nodes,
                              .retry = o->retry,
                              .begin = begin,
                              .end = end,
                              .stop = cmd_stop_by_signal(),
                              .show = cmd_show_line,
                              .user = (void *)(uintptr_t)&o->quiet};
    if (o->measure && o->nodes < 1) {
        cmd_error("--measure needs --nodes N, the nodes of this job");
        return CMD_EXIT_USAGE;
    }
    const cvy_status status = o->measure ? cvy_kit_measure(&opts) : cvy_kit_predict(&opts);
    if (status == CVY_STOPPED)
        cmd_say("stopped: all results are saved; `sh submit.sh` or the same command goes on\n");
    return cmd_outcome(status);
}

static int collect(const cmd_study_options *o)
{
    cvy_kit_result r = {.size = sizeof r};
    char *folder = realpath(o->collect, NULL), archive[PATH_ROOM];
    if (!folder) {
        cmd_error("%s cannot be opened: %s", o->collect, strerror(errno));
        return CMD_EXIT_FAULT;
    }
    snprintf(archive, sizeof archive, "%s", o->out ? o->out : folder);
    if (!o->out)
        snprintf(archive, sizeof archive, "%.4000s-results.tar.gz", folder);
    free(folder);
    const int code = cmd_outcome(cvy_kit_collect(o->collect, archive, cmd_show_line, (void *)(uintptr_t)&o->quiet, &r));
    if (code)
        return code;
    cmd_say("%d of %d parts are complete, with %d results\n", r.complete, r.all, r.measured);
    if (r.compared > 0)
        cmd_say("%d predictions with a measurement: the median error is %.1f %%\n", r.compared, 100 * r.median_error);
    if (r.has_page && !r.is_sealed)
        cmd_say("the predictions are not those that were sealed before the measurements: the page says why\n");
    if (r.has_page)
        cmd_say("%s/report.html is the page\n", o->collect);
    cmd_say("%s is the archive\n", archive);
    return r.has_page ? 0 : CMD_EXIT_FAULT;
}

int cmd_study_kit(const cmd_line *line, const cmd_study_options *o)
{
    const int given = (o->kit != NULL) + (o->predict != NULL) + (o->measure != NULL) + (o->collect != NULL);
    if (given > 1 || (!o->kit && line->narg > 0)) {
        cmd_error(given > 1 ? "--kit, --predict, --measure and --collect: expected one of them"
                            : "only --kit takes names of studies");
        return CMD_EXIT_USAGE;
    }
    return o->kit ? create(line, o) : o->collect ? collect(o) : go_on(o);
}
