/*
 * cmd_study_scripts.c: `convoy study --job-scripts`: a job script for each number of nodes that the cases of a study
 * need. In a job, the command measures the cases of this number of nodes; each measurement starts its ranks through a
 * script of its own, because launchers differ.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd_jobscript.h"
#include "cmd_site.h"
#include "cmd_study.h"
#include "study/study.h"

enum { NODES_MAX = 256, PATH_ROOM = 4096 };

static void put_option(FILE *to, const char *option, const char *value)
{
    if (!value)
        return;
    fprintf(to, " %s ", option);
    cmd_put_word(to, value);
}

/* What follows the numbers of nodes and ranks in the words of `convoy study`. */
static int set_options(const jobscript *s, const cmd_study_options *o, const char *study)
{
    FILE *to = jobscript_value(s->templates, "study");
    if (!to)
        return CMD_EXIT_FAULT;
    fputs(*study == '-' ? "./" : "", to);
    cmd_put_word(to, study);
    if (fclose(to) != 0 || !(to = jobscript_value(s->templates, "options")))
        return CMD_EXIT_FAULT;
    fprintf(to, "%s%s%s", o->quick ? " --quick" : "", o->retry ? " --retry" : "", o->once ? " --once" : "");
    put_option(to, "--frameworks", o->frameworks);
    put_option(to, "--frameworks-folder", o->frameworks_folder);
    for (int i = 0; i < o->data.count; i++)
        put_option(to, "--data", o->data.word[i]);
    for (int i = 0; i < o->only.count; i++)
        put_option(to, "--only", o->only.word[i]);
    return fclose(to) == 0 ? 0 : CMD_EXIT_FAULT;
}

int cmd_study_write_block(const jobscript *s, const char *block, const char *path, unsigned mode)
{
    char *text = NULL;
    const int code = jobscript_text(s->templates, block, &text);
    if (code)
        return code;
    const int fd = cmd_open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (to)
        cmd_put(to, text);
    free(text);
    if (to && fclose(to) == 0)
        return 0;
    cmd_error("%s cannot be written: %s", path, strerror(errno));
    return CMD_EXIT_FAULT;
}

static int write_scripts(const jobscript *s, const cmd_study_options *o, const char *study)
{
    char path[PATH_ROOM], *submit = NULL;
    int code = jobscript_set_values(s);
    code = code ? code : set_options(s, o, study);
    snprintf(path, sizeof path, "%.512s/scripts/launch-%lld", s->out, (long long)s->nodes);
    code = code ? code : cmd_study_write_block(s, "study_launcher", path, 0777);
    snprintf(path, sizeof path, "%.512s/scripts/nodes-%lld.sh", s->out, (long long)s->nodes);
    code = code ? code : cmd_study_write_block(s, "study_job", path, 0777);
    code = code ? code : jobscript_text(s->templates, "submit", &submit);
    if (!code)
        cmd_say("%.*s %s\n", (int)strcspn(submit, "\n"), submit, path);
    free(submit);
    return code;
}

/* Makes the folder and those above it. */
static int make_folder(const char *path)
{
    char part[PATH_ROOM];
    for (size_t n = 1; n <= strlen(path); n++)
        if (!path[n] || path[n] == '/') {
            snprintf(part, sizeof part, "%.*s", (int)n, path);
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                cmd_error("%s cannot be made: %s", part, strerror(errno));
                return CMD_EXIT_FAULT;
            }
        }
    return 0;
}

int cmd_study_write_scripts(const cmd_line *line, const cmd_study_options *o, const cvy_study_opts *study)
{
    jobscript s = {.site = cvy_site_about_default()};
    jobscript_request request = {.time = o->time,
                                 .account = o->account,
                                 .queue = o->queue,
                                 .pe = o->pe,
                                 .nodes = 1,
                                 .ppn = o->ppn,
                                 .threads = o->threads};
    cvy_study_opts opts = *study;
    cvy_site *site = NULL;
    char folder[PATH_ROOM];
    int64_t nodes[NODES_MAX];
    int n = 0;
    int code = jobscript_find_scheduler(line, o->scheduler, &o->flags, &request.scheduler);
    code = code ? code : cmd_open_site(&site, &s.site);
    code = code ? code : jobscript_read(line, &request, &s);
    opts.nodes = 0;
    opts.ranks_per_node = s.ppn;
    code = code ? code : cmd_outcome(cvy_study_nodes(&opts, nodes, NODES_MAX, &n));
    if (!code && n > NODES_MAX) {
        cmd_error("%s needs %d numbers of nodes, expected at most %d", line->arg[0], n, NODES_MAX);
        code = CMD_EXIT_USAGE;
    }
    snprintf(folder, sizeof folder, "%s/scripts", study->out);
    code = code ? code : make_folder(folder);
    snprintf(s.out, sizeof s.out, "%s", study->out);
    s.signal_s = 0;
    for (int i = 0; !code && i < n; i++) {
        char name[64];
        s.nodes = nodes[i];
        snprintf(name, sizeof name, "%.40s-%lld", study->name, (long long)nodes[i]);
        jobscript_make_name(name, s.name, sizeof s.name);
        code = write_scripts(&s, o, line->arg[0]);
    }
    jobscript_templates_free(&s.templates);
    cvy_site_destroy(&site);
    return code;
}
