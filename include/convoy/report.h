/*
 * convoy/report.h: the report of a run, an HTML page.
 */
#ifndef CONVOY_REPORT_H
#define CONVOY_REPORT_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * cvy_report_write - write RUN/report.html from what the run left in its folder
 * @run_folder: the folder of a run, which may have ended or not
 *
 * Reads metrics.jsonl, job.resolved.yaml, plan.json, test.json, analysis.json and STATUS if they exist; the page leaves
 * out what is missing. It names a damaged file, which is not a fault. The page needs no other file and no network. An
 * existing page is replaced as a whole. Collective: no; call it on one rank. Errors: CVY_E_IO (there is no such folder,
 * or the page cannot be written), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_report_write(const char *run_folder);

#ifdef __cplusplus
}
#endif
#endif
