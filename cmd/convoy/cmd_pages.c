/*
 * cmd_pages.c: the page of a run, and the profile of a tuning, for `convoy train` and `convoy test`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_lab.h"
#include "report/report.h"
#include "study/study.h"

int cmd_page_write(const char *run, const char *fault)
{
    if (cvy_report_write(run) == CVY_OK)
        return 1;
    cmd_note("convoy: warning: %s: %s\n", fault, cvy_error_text());
    return 0;
}

int cmd_page_json(const char *run)
{
    char *text = NULL;
    return cmd_print(cvy_report_json(run, &text), &text);
}

int cmd_profile_read(const char *path, cmd_sets *sets, int *ranks_out, int *threads_out)
{
    static cvy_profile profile;
    profile.size = sizeof profile;
    int code = cvy_profile_read(path, &profile) == CVY_OK ? 0 : cmd_outcome(CVY_E_CONFIG);
    for (int i = 0; i < profile.nkeys && !code; i++)
        code = cmd_sets_add(sets, profile.key[i]);
    *ranks_out = profile.ranks;
    *threads_out = profile.threads;
    return code;
}
