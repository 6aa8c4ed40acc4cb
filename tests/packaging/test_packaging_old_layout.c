/* rows: minimal */
/*
 * test_packaging_old_layout.c: callers that were built with other headers.
 *
 * Each struct of options or results has as many fields as an older header had, and the memory after it must not be
 * accessed. The call works or is refused, and it never reads or writes after the end of the struct.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <convoy/convoy.h>

#include "files/files.h"
#include "health/health.h"
#include "predict/predict.h"
#include "test_util.h"

static const char job_text[] = "model: linear\n"
                               "data: {train: {format: synthetic, samples: 64, shape: [4], classes: 2}}\n"
                               "train: {batch: 8, steps: 1}\n";

/* Copies the first `size` bytes of a struct, with that size, to the end of a page; the process may not access the next
 * page. */
static void *before_the_edge(const void *given, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    char *at = pages + page - size;
    memcpy(at, given, size);
    memcpy(at, &size, CVY_MIN(size, sizeof size));
    return at;
}

#define OLD(type, value, last) before_the_edge(&(value), offsetof(type, last))

static void older_options_work(void)
{
    cvy_context_opts context_opts = cvy_context_opts_default();
    cvy_program_opts program_opts = cvy_program_opts_default();
    cvy_training_opts training_opts = cvy_training_opts_default();
    cvy_reducer_opts reducer_opts = cvy_reducer_opts_default();
    cvy_context *context = NULL;
    cvy_program *program = NULL;
    cvy_reducer *reducer = NULL;
    cvy_model *model = NULL;
    int task = -1;
    context_opts.threads = 1;
    program_opts.seed = 7;
    training_opts.optimizer = "adam";
    EXPECT_OK(cvy_context_create(OLD(cvy_context_opts, context_opts, log_level), &context));
    EXPECT(cvy_context_threads(context) == 1);
    EXPECT_OK(cvy_program_create(context, OLD(cvy_program_opts, program_opts, batch_norm_group), &program));
    EXPECT_OK(cvy_model_create("line", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {3}}));
    EXPECT_OK(cvy_model_add_input(model, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(model, "fc", "fc", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(model, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(
        cvy_program_add_training(program, model, 4, OLD(cvy_training_opts, training_opts, optimizer_options), &task));
    EXPECT_OK(cvy_program_plan(program));
    EXPECT_OK(cvy_reducer_create(context, OLD(cvy_reducer_opts, reducer_opts, algorithm), &reducer));
    cvy_reducer_destroy(&reducer);
    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
    cvy_context_destroy(&context);
}

static void older_results_are_filled(void)
{
    cvy_job_source job = cvy_job_source_default();
    cvy_job_about about = cvy_job_about_default();
    job.text = job_text;
    cvy_job_about *old = OLD(cvy_job_about, about, workers);
    EXPECT_OK(cvy_run_read_job(OLD(cvy_job_source, job, sets), 1, old));
    EXPECT_INT(old->batch, 8);
}

/* Results that own memory end, in their first version, with the field that owns it. */
static void results_that_own_memory(void)
{
    struct {
        cvy_test_result known;
        int64_t newer;
    } newer = {.known = {.size = sizeof newer}, .newer = 7};
    const size_t first = offsetof(cvy_test_result, owned) + sizeof(void *);
    char run[] = "/tmp/test_packaging_old_layout-XXXXXX", out[64], clean[64], *text = NULL;
    const cvy_test_result known = cvy_test_result_default();
    const cvy_job_source job = {.size = sizeof job, .text = job_text};
    const char *const data = "{format: synthetic, samples: 16, shape: [4], classes: 2}";
    cvy_train_opts opts = cvy_train_opts_default();
    cvy_context *context = NULL;
    EXPECT(mkdtemp(run) != NULL);
    snprintf(out, sizeof out, "%s/run", run);
    snprintf(clean, sizeof clean, "rm -r %s", run);
    opts.out = out;
    EXPECT_OK(cvy_context_create(NULL, &context));
    EXPECT_OK(cvy_run_train(context, &job, &opts, NULL));
    cvy_test_result *old = before_the_edge(&known, first), *older = before_the_edge(&known, first - sizeof(void *));
    EXPECT_OK(cvy_run_test(context, out, NULL, data, old));
    EXPECT_INT(old->samples, 16);
    EXPECT_OK(cvy_test_result_json(old, &text));
    cvy_text_release(&text);
    cvy_test_result_release(old);
    EXPECT(old->samples == 0 && !old->owned && old->size == first);
    EXPECT_OK(cvy_run_test(context, out, NULL, data, &newer.known));
    EXPECT(newer.known.samples == 16 && newer.newer == 0);
    cvy_test_result_release(&newer.known);
    EXPECT_FAULT(cvy_run_test(context, out, NULL, data, older), CVY_E_ARGUMENT, "its first version had");
    cvy_test_result_release(older);
    cvy_context_destroy(&context);
    EXPECT(system(clean) == 0);
}

static void newer_options_are_refused_if_set(void)
{
    struct {
        cvy_context_opts known;
        int64_t newer;
    } given = {cvy_context_opts_default(), 0};
    cvy_context *context = NULL;
    given.known.size = sizeof given;
    EXPECT_OK(cvy_context_create(before_the_edge(&given, sizeof given), &context));
    cvy_context_destroy(&context);
    given.newer = 1;
    EXPECT_FAULT(cvy_context_create(before_the_edge(&given, sizeof given), &context), CVY_E_ARGUMENT,
                 "a field that only a newer version has is set");
}

/* If a caller forgets the size, its struct may have any layout. */
static void sizes_are_required(void)
{
    const size_t none = 0;
    const void *edge = (char *)before_the_edge(&none, sizeof none);
    cvy_context *context = NULL, *other = NULL;
    cvy_program *program = NULL;
    cvy_reducer *reducer = NULL;
    cvy_train_result result = {.steps = 0};
    cvy_job_source job = cvy_job_source_default();
    cvy_job_about about = cvy_job_about_default();
    cvy_platform platform = cvy_platform_default();
    cvy_bench_data_result measured = {.size = sizeof measured};
    char *text = NULL;
    memset((void *)(uintptr_t)edge, 0, sizeof none);
    job.text = job_text;
    EXPECT_OK(cvy_context_create(NULL, &context));
#define REFUSED(call, type) EXPECT_FAULT(call, CVY_E_ARGUMENT, "the size of " type " is 0")
    REFUSED(cvy_context_create(edge, &other), "cvy_context_opts");
    REFUSED(cvy_program_create(context, edge, &program), "cvy_program_opts");
    REFUSED(cvy_reducer_create(context, edge, &reducer), "cvy_reducer_opts");
    REFUSED(cvy_run_read_job(edge, 1, &about), "cvy_job_source");
    REFUSED(cvy_run_read_job(&job, 1, (cvy_job_about *)(uintptr_t)edge), "cvy_job_about");
    REFUSED(cvy_run_train(context, &job, edge, NULL), "cvy_train_opts");
    REFUSED(cvy_run_train(context, &job, NULL, &result), "cvy_train_result");
    REFUSED(cvy_run_bench_data(edge, &measured), "cvy_bench_data_opts");
    REFUSED(cvy_run_platform(edge, &platform), "cvy_platform_opts");
    REFUSED(cvy_run_test(context, "run", NULL, NULL, (cvy_test_result *)(uintptr_t)edge), "cvy_test_result");
    REFUSED(cvy_run_convert(context, edge, &text), "cvy_convert_request");
    cvy_context_destroy(&context);
}

static void versions_agree(void)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", CVY_VERSION_MAJOR, CVY_VERSION_MINOR, CVY_VERSION_PATCH);
    EXPECT_TEXT(cvy_version(), text);
    EXPECT_INT(cvy_version_number(), CVY_VERSION_NUMBER);
}

int main(void)
{
    TEST(older_options_work);
    TEST(older_results_are_filled);
    TEST(results_that_own_memory);
    TEST(newer_options_are_refused_if_set);
    TEST(sizes_are_required);
    TEST(versions_agree);
    return test_end();
}
