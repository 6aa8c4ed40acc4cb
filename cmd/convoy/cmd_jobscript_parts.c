/*
 * cmd_jobscript_parts.c: writes a job script: the parts that are the same for all schedulers, in the order of the
 * script.
 *
 * The script is for bash, which the `module` command usually expects, and uses little more than sh. Names from outside
 * are quoted with single quotes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "cmd_jobscript.h"

void jobscript_put_limit(const char *head, int64_t seconds)
{
    cmd_say("%s%02lld:%02lld:%02lld\n", head, (long long)(seconds / 3600), (long long)(seconds / 60 % 60),
            (long long)(seconds % 60));
}

/* Prints name=path. A path that starts with '-' gets "./" in front, so that no command takes it for an option. */
static void put_path(const char *name, const char *path)
{
    cmd_say("%s=", name);
    if (*path == '-')
        fputs("./", stdout);
    cmd_put_word(path);
    putchar('\n');
}

/* ---- directives ---- */

static void put_site_directives(const jobscript *s)
{
    const jobscript_scheduler *c = s->scheduler;
    const struct {
        const char *option, *value, *example;
    } row[] = {{c->account, s->site.account, "ACCOUNT"}, {c->queue, s->site.queue, "QUEUE"}};
    int disabled = 0;
    for (int i = 0; i < CMD_COUNT(row); i++)
        if (row[i].value)
            cmd_say("%s%s%s\n", c->prefix, row[i].option, row[i].value);
        else
            disabled++;
    for (int i = 0; i < s->site.headers; i++)
        cmd_say("%s%s\n", *s->site.header[i] == '#' ? "" : c->prefix, s->site.header[i]);
    if (disabled || c->optional[0])
        cmd_say("# What your site asks for, without the second #:\n");
    for (int i = 0; i < CMD_COUNT(row); i++)
        if (!row[i].value)
            cmd_say("%s%s%s\n", c->disabled, row[i].option, row[i].example);
    for (int i = 0; c->optional[i]; i++)
        cmd_say("%s%s\n", c->disabled, c->optional[i]);
}

/* ---- what is prepared ---- */

static void put_end_time(const jobscript *s)
{
    cmd_say("\n# The end of this allocation, in seconds since 1970.\n");
    if (s->scheduler->put_end_time)
        s->scheduler->put_end_time(s);
    else
        cmd_say("export CONVOY_JOB_END=\"$(($(date +%%s) + %lld))\"\n", (long long)s->limit_s);
}

void jobscript_put_modules(const jobscript *s)
{
    cmd_say("\n# The MPI library that convoy was built with, and the folder of the command%s\n",
            s->site.modules ? "." : ":");
    if (s->site.modules)
        fputs("module load", stdout);
    for (int i = 0; i < s->site.modules; i++) {
        putchar(' ');
        cmd_put_word(s->site.module[i]);
    }
    fputs(s->site.modules ? "\n" : "# module load openmpi\n# export PATH=\"$HOME/convoy/bin:$PATH\"\n", stdout);
    for (int i = 0; i < s->site.variables; i++) {
        cmd_say("export %s=", s->site.environment[2 * i]);
        cmd_put_word(s->site.environment[2 * i + 1]);
        putchar('\n');
    }
}

void jobscript_put_paths(const char *const *path)
{
    fputs("\nset -u\n", stdout);
    for (; *path; path += 2)
        put_path(path[0], path[1]);
    fputs("\nsay() { echo \"jobscript: $*\" >&2; }\n"
          "die() { say \"$*\"; exit 1; }\n",
          stdout);
}

static void put_names(const jobscript *s)
{
    const char *const path[] = {"job", s->job_file, "out", s->out, NULL};
    jobscript_put_paths(path);
    fputs("last_set() {\n"
          "    local last='' set\n"
          "    for set in \"$out\"/checkpoints/step-*; do\n"
          "        case ${set##*/step-} in *[!0-9]*) ;; *) last=${set##*/} ;; esac\n"
          "    done\n"
          "    echo \"$last\"\n"
          "}\n\n",
          stdout);
}

/* If the script were started by hand, it would use other resources than its head requests. */
void jobscript_put_place(const jobscript *s, const char *variable, const char *whose)
{
    if (s->scheduler->put_outside)
        s->scheduler->put_outside(s);
    else
        cmd_say("%s || die \"this script is for the batch system: %s $0\"\n", s->scheduler->is_job,
                s->scheduler->submit);
    if (s->scheduler->folder)
        cmd_say("%s || exit 1\n", s->scheduler->folder);
    cmd_say(
        "command -v convoy >/dev/null || die \"there is no convoy in PATH: load its module, or add its folder at the "
        "head of this script\"\n"
        "[ -e \"$%s\" ] || die \"there is no $%s in $PWD: submit this script in the folder in which the paths of "
        "%s begin\"\n",
        variable, variable, whose);
}

static void put_checks(const jobscript *s)
{
    jobscript_put_place(s, "job", "the job file");
    if (jobscript_is_array(s))
        cmd_say("# This element of the job array trains with its number as seed, in a folder of its own.\n"
                "seed=%s\n"
                "case $seed in '' | *[!0-9]*) die \"this job is no element of a job array: its number is '$seed'\" ;; "
                "esac\n"
                "out=$out-seed-$seed\n",
                s->scheduler->element);
    putchar('\n');
}

/* Sets "$@" to the words after `convoy`. A run folder without any checkpoint cannot be resumed, so it is renamed. */
static void put_words(const jobscript *s)
{
    fputs("set -- train \"$job\" --out \"$out\"", stdout);
    if (s->threads)
        cmd_say(" --threads %lld", (long long)s->threads);
    for (int i = 0; i < s->sets->count; i++) {
        fputs(" --set ", stdout);
        cmd_put_word(s->sets->word[i]);
    }
    if (jobscript_is_array(s))
        fputs(" --set \"train.seed=$seed\"", stdout);
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

/* A job that has saved nothing new is not started again: it would repeat for ever. */
void jobscript_put_end(const jobscript_ending *e)
{
    cmd_say(
        "code=$?\n\n# 75: stopped before its end with everything saved. STATUS says so too, for launchers that lose "
        "the code.\n%s\n"
        "is_stopped() { [ $code -eq 75 ] || grep -q '^stopped ' \"$out/STATUS\" 2>/dev/null; }\n"
        "if is_stopped && [ \"$(last_set)\" != \"$before\" ]; then\n"
        "    code=%d\n"
        "    say \"$(last_set) is saved: another job continues\"\n",
        e->comment, e->stopped);
    if (e->again)
        cmd_say("    %s || say \"%s; submit this script again by hand, and it continues\"\n", e->again, e->fails);
    cmd_say("elif [ $code -eq 75 ]; then\n");
    if (e->no_newer != 75)
        cmd_say("    code=%d\n", e->no_newer);
    cmd_say("    say \"no new step was saved in this job, so it is not started again: give it a longer --time\"\n"
            "fi\n"
            "exit $code\n");
}

void jobscript_put_head(const jobscript *s)
{
    s->scheduler->put_head(s);
    put_site_directives(s);
}

void jobscript_put(const jobscript *s)
{
    const jobscript_scheduler *c = s->scheduler;
    cmd_say("#!/bin/bash\n"
            "# Made by `convoy jobscript`. Submit it by `%s SCRIPT` in the folder in which the paths of the job file "
            "begin.\n",
            c->put_outside && jobscript_is_array(s) ? "bash" : c->submit);
    jobscript_put_head(s);
    put_end_time(s);
    jobscript_put_modules(s);
    put_names(s);
    put_checks(s);
    put_words(s);
    if (c->put_before_run)
        c->put_before_run(s);
    jobscript_put_launch(s);
    c->put_end(s);
}
