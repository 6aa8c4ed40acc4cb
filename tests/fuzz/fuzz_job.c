/*
 * fuzz_job.c: fuzzes job files: YAML, the option tables, durations. If a job is accepted, its printed text must be
 * accepted too and print the same, because a run keeps that text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

static int parse(const char *text, cvy_job **out)
{
    const cvy_status status = cvy_job_parse_text("job.yaml", text, NULL, 0, out);
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
    return status == CVY_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = NULL, *printed = NULL, *again = NULL;
    cvy_job *job = NULL, *same = NULL;
    if (cvy_mem_alloc(size + 1, &text) != CVY_OK)
        return 0;
    memcpy(text, data, size);
    if (parse(text, &job) && cvy_job_print(job, &printed) == CVY_OK)
        if (!parse(printed, &same) || cvy_job_print(same, &again) != CVY_OK || strcmp(printed, again) != 0) {
            fprintf(stderr, "%s\n---- printed:\n%s\n---- and again:\n%s\n", cvy_error_text(), printed,
                    again ? again : "(not taken)");
            abort();
        }
    cvy_job_destroy(&job);
    cvy_job_destroy(&same);
    cvy_mem_free(&text);
    cvy_mem_free(&printed);
    cvy_mem_free(&again);
    return 0;
}
