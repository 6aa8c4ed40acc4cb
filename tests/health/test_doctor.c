/*
 * test_doctor.c: the report of one rank: tables and JSON, of the nodes, the clock, the files and the findings. Nothing
 * is held afterwards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <string.h>

#include "health/health.h"
#include "test_util.h"

int main(void)
{
    cvy_doctor_opts opts = {.size = sizeof opts, .seconds = 1};
    cvy_doctor_report report;
    cvy_context *context = NULL;
    EXPECT_OK(cvy_context_create(NULL, &context));
    EXPECT_OK(cvy_run_doctor(context, &opts, &report));
    cvy_context_destroy(&context);
    EXPECT(strncmp(report.lines, "1 node, 1 rank", 14) == 0 && strstr(report.lines, "one rank: there is nothing"));
    EXPECT(strstr(report.json, "\"node\": [{\"host\": \"") && strstr(report.json, "\"cores_used\": "));
    EXPECT(strstr(report.json, "\"clock\": {\"apart_s\": 0") && strstr(report.json, "\"files\": {\"folder\": \".\""));
    EXPECT(strstr(report.json, "\"sums\": []") && strstr(report.json, "\"findings\": ["));
    EXPECT(!strstr(report.json, "inside_a_node") && !report.platform);
    cvy_doctor_report_release(&report);
    cvy_doctor_report_release(&report);
    EXPECT(!report.lines && !report.json);
    EXPECT_INT(cvy_memory_bytes(), 0);
    return test_end();
}
