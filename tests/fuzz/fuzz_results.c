/*
 * fuzz_results.c: fuzzes what longer work has left: results of a study, the state of a search, and times of kernels.
 * The first byte of an input chooses the file: r results.jsonl, s sweep.json, w a whole file of wisdom, and t the times
 * of one, to which the machine and the checksum are added.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fuzz_files.h"

#include <convoy/model.h>

#include "plan/plan_wisdom.h"
#include "report/report.h"
#include "study/study.h"
#include "sweep/sweep.h"
#include "sweep/sweep_search.h"

static const char study[] = "title: A\nexperiments: {a: {batch: [1, 2], framework: [convoy, other], repeats: 2}}\n"
                            "figures: [{title: F, of: a, x: batch, lines: framework},\n"
                            "          {title: C, of: a, x: curve.seconds, y: curve.loss}]\n";
static const char search[] = "{job: job.yaml, metric: loss, space: {a: {log_uniform: [1e-3, 1]}, b: [x, y, z, u]},\n"
                             " search: {population: {size: 4, interval: 2 epochs, max: 5 epochs}}}\n";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    fuzz_put_file("study.yaml", (const uint8_t *)study, strlen(study));
    fuzz_put_file("job.yaml", (const uint8_t *)"name: job\n", 10);
    fuzz_put_file("search.yaml", (const uint8_t *)search, strlen(search));
    return 0;
}

static void expect_message(cvy_status status)
{
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
}

/* The pages of a search, and its continuation. */
static void read_search(void)
{
    char path[512], *text = NULL;
    cvy_sweep s = {0};
    int64_t epochs = 0;
    expect_message(cvy_report_sweep(fuzz_folder));
    expect_message(cvy_sweep_table(fuzz_folder, 0, &text));
    cvy_text_release(&text);
    snprintf(path, sizeof path, "%s/search.yaml", fuzz_folder);
    if (cvy_sweep_spec_read(path, NULL, 0, &s.spec) != CVY_OK || cvy_sweep_plan(&s) != CVY_OK)
        abort();
    const cvy_status status = cvy_sweep_load(&s, fuzz_folder);
    expect_message(status);
    if (status == CVY_OK)
        (void)cvy_sweep_next(&s, &epochs);
    cvy_pool_destroy(&s.spec.pool);
}

/* A damaged file is a warning, whose text is returned in *warning if it is not NULL. */
static void read_wisdom(const char *path, char *warning, size_t room)
{
    cvy_wisdom *w = NULL;
    if (cvy_wisdom_open(path, NULL, &w) != CVY_OK)
        abort();
    for (int i = 0; i < w->key.count; i++)
        if (!(cvy_wisdom_find(w, w->key.text[i]) >= 0))
            abort();
    if (warning)
        snprintf(warning, room, "%s", w->warning ? w->warning : "");
    cvy_wisdom_close(&w);
}

static void put_times(const char *machine, const char *sum, const uint8_t *data, size_t size)
{
    cvy_text text = {0};
    cvy_text_add(&text, "{\"format\": \"convoy wisdom 1\", \"machine\": ");
    cvy_text_add_quoted(&text, machine);
    cvy_text_add(&text, ", \"sum\": \"%s\", \"times\": ", sum);
    cvy_text_add_bytes(&text, (const char *)data, size);
    cvy_text_add(&text, "}\n");
    if (text.status == CVY_OK)
        fuzz_put_file("wisdom.json", (const uint8_t *)text.data, text.bytes);
    cvy_text_free(&text);
}

/* The warning about a wrong checksum has the right one. */
static void read_times(const char *path, const uint8_t *data, size_t size)
{
    static const char is[] = "that of its times is ";
    static char machine[1024], warning[4096];
    cvy_wisdom *w = NULL;
    if (!machine[0]) {
        if (cvy_wisdom_open("off", NULL, &w) != CVY_OK)
            abort();
        snprintf(machine, sizeof machine, "%s", w->machine);
        cvy_wisdom_close(&w);
    }
    put_times(machine, "", data, size);
    read_wisdom(path, warning, sizeof warning);
    const char *sum = strstr(warning, is);
    if (!sum)
        return;
    put_times(machine, sum + strlen(is), data, size);
    read_wisdom(path, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[512];
    const char kind = size > 0 ? (char)*data++ : 0;
    size -= size > 0;
    snprintf(path, sizeof path, "%s/wisdom.json", fuzz_folder);
    if (kind == 'r') {
        fuzz_put_file("results.jsonl", data, size);
        expect_message(cvy_report_study(fuzz_folder));
    } else if (kind == 's') {
        fuzz_put_file(CVY_SWEEP_STATE, data, size);
        read_search();
    } else if (kind == 'w') {
        fuzz_put_file("wisdom.json", data, size);
        read_wisdom(path, NULL, 0);
    } else if (kind == 't') {
        read_times(path, data, size);
    }
    return 0;
}
