/*
 * fuzz_run.c: fuzzes what a run leaves in its folder: the pages and the run's line in a list are made from it, the log
 * is continued as by a resumed run, and the list of a checkpoint's files is checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fuzz_files.h"

#include <stdio.h>

#include "checkpoint/checkpoint_manifest.h"
#include "files/files.h"
#include "files/files_runs.h"
#include "monitor/monitor_metrics_log.h"
#include "report/report.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    return 0;
}

static void expect_message(cvy_status status)
{
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const file[FUZZ_FILES + 1] = {"metrics.jsonl", "test.json", "job.resolved.yaml", "plan.json",
                                                     CVY_MANIFEST_NAME};
    cvy_run_list_result list;
    cvy_text scores = {0};
    char path[512], *text = NULL;
    cvy_metrics_log *log = NULL;
    fuzz_put_files(file, data, size);
    expect_message(cvy_report_write(fuzz_folder));
    snprintf(path, sizeof path, "%s/comparison.html", fuzz_folder);
    expect_message(cvy_report_compare((const char *const[]){fuzz_folder, fuzz_folder}, 2, path));
    expect_message(cvy_run_scores_text(fuzz_folder, &scores));
    cvy_text_free(&scores);
    expect_message(cvy_run_list(fuzz_folder, &list));
    expect_message(cvy_run_list_result_lines(&list, &text));
    cvy_mem_free(&text);
    expect_message(cvy_run_list_result_json(&list, &text));
    cvy_mem_free(&text);
    cvy_run_list_result_release(&list);
    expect_message(cvy_manifest_verify(fuzz_folder, 12, (const char *const[]){"test.json", NULL}));
    snprintf(path, sizeof path, "%s/metrics.jsonl", fuzz_folder);
    expect_message(cvy_metrics_log_open(path, 3, &log));
    cvy_metrics_log_close(&log);
    return 0;
}
