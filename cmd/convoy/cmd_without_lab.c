/*
 * cmd_without_lab.c: stands in for the laboratory in a build with CONVOY_WITH_LAB=OFF: its verbs say that they were not
 * built, and `convoy train` and `convoy test` write no page.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_lab.h"

#if !CVY_HAVE_LAB

static int is_absent(const char *what)
{
    cmd_error("%s is not in this build: it was configured with CONVOY_WITH_LAB=OFF", what);
    return CMD_EXIT_FAULT;
}

/* `run` is NULL: main.c says that the verb is not in this build. */
#define ABSENT(id, verb)                                                                                               \
    extern const cmd_verb cmd_##id;                                                                                    \
    const cmd_verb cmd_##id = {.name = verb, .arguments = "...", .summary = "(not in this build: CONVOY_WITH_LAB=OFF)"}

ABSENT(bench, "bench");
ABSENT(convert, "convert");
ABSENT(doctor, "doctor");
ABSENT(export, "export");
ABSENT(import, "import");
ABSENT(inspect, "inspect");
ABSENT(jobscript, "jobscript");
ABSENT(keys, "keys");
ABSENT(ls, "ls");
ABSENT(models, "models");
ABSENT(new, "new");
ABSENT(pack, "pack");
ABSENT(plan, "plan");
ABSENT(report, "report");
ABSENT(selftest, "selftest");
ABSENT(simulate, "simulate");
ABSENT(study, "study");
ABSENT(sweep, "sweep");
ABSENT(time, "time");
ABSENT(tune, "tune");

int cmd_page_write(const char *run, const char *fault)
{
    (void)run;
    (void)fault;
    return 0;
}

int cmd_page_json(const char *run)
{
    (void)run;
    return is_absent("--json of `convoy train`");
}

int cmd_profile_read(const char *path, cmd_sets *sets, int *ranks_out, int *threads_out)
{
    (void)path;
    (void)sets;
    *ranks_out = *threads_out = 0;
    return is_absent("--profile");
}

int cmd_is_ensemble(const cmd_line *line)
{
    return line->narg > 1;
}

int cmd_test_ensemble(const cmd_line *line, cvy_context *context, const char *data, int calibrated, int json)
{
    (void)line;
    (void)context;
    (void)data;
    (void)calibrated;
    (void)json;
    return is_absent("`convoy test` of an ensemble");
}

#endif
