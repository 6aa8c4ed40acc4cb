/*
 * convoy/report.h: the page of a run.
 */
#ifndef CONVOY_REPORT_H
#define CONVOY_REPORT_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * cvy_report_write - write RUN/report.html from what the run left in its folder
 * @run_folder: a run's folder, of a finished or a running run
 *
 * Reads metrics.jsonl, job.resolved.yaml, plan.json, test.json and STATUS as far as they exist; what is missing is left out of the page. The page
 * needs no other file and no network. It is replaced whole. Collective: no; call it on one rank. Allocates what it needs and frees it.
 * Errors: CVY_E_IO (no such folder, the page cannot be written), CVY_E_MEMORY. A damaged input is named in the page and is no fault.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_report_write(const char *run_folder);

#ifdef __cplusplus
}
#endif
#endif
