/*
 * bench_step.c: shows where the time of a training step goes, instruction by instruction.
 *
 *   bench_step MODEL BATCH [THREADS [KERNELS [forward]]]        KERNELS: auto, native, reference
 *
 * Of several steps it takes the one with the shortest total. It prints every instruction that took a hundredth of it or
 * more, and the sums by kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number/base_rng.h"
#include "model/model.h"
#include "program/program_view.h"

static const char *layouts(const cvy_instr *i, const cvy_lowered *u, char text[128])
{
    int at = 0;
    text[0] = '\0';
    for (int k = 0; i->call && k < i->call->nsrc + i->call->ndst && at < 100; k++) {
        const int instance = k < i->call->nsrc ? i->call->src[k] : i->call->dst[k - i->call->nsrc];
        const char *tag = instance >= 0 && u->instance[instance].layout.tag[0] ? u->instance[instance].layout.tag : "-";
        at += snprintf(text + at, 128 - (size_t)at, "%s%s", k == i->call->nsrc ? "-> " : "", tag);
        at += snprintf(text + at, 128 - (size_t)at, " ");
    }
    return text;
}

static void report(const cvy_plan *plan, const double *seconds, double total)
{
    char text[128];
    double by_kernel[256] = {0};
    const char *name[256];
    int n = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *in = &plan->instr[i];
        const char *what = cvy_instr_runs_by(in);
        if (seconds[i] > 0.01 * total)
            printf("%9.3f ms %5.1f%%  %-36s %-36s %s\n", 1e3 * seconds[i], 100 * seconds[i] / total,
                   in->call && in->call->node ? in->call->node->name : "", what,
                   layouts(in, plan->lowered[in->micro], text));
        int k = 0;
        while (k < n && strcmp(name[k], what) != 0)
            k++;
        if (k == n && n < 256)
            name[n++] = what;
        by_kernel[k] += seconds[i];
    }
    printf("by kernel:\n");
    for (int k = 0; k < n; k++)
        if (by_kernel[k] > 0.001 * total)
            printf("%9.3f ms %5.1f%%  %s\n", 1e3 * by_kernel[k], 100 * by_kernel[k] / total, name[k]);
}

static cvy_status run(const char *name, int64_t batch, int threads, const char *kernels, int forward)
{
    cvy_context *context = NULL;
    cvy_model *model = NULL;
    cvy_program *program = NULL;
    double *best = NULL, best_total = 1e9;
    int step = 0;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = threads, .log_level = CVY_LOG_WARN};
    const cvy_program_opts program_opts = {
        .size = sizeof program_opts, .seed = 1, .batch_norm_group = -2, .kernels = kernels};
    const cvy_training_opts training = {
        .size = sizeof training, .optimizer = "sgd", .optimizer_options = "momentum: 0.9"};
    const cvy_shape label = {0};
    CVY_TRY(cvy_context_create(&opts, &context));
    CVY_TRY(cvy_model_zoo(name, NULL, NULL, 0, &model));
    char from[64];
    snprintf(from, sizeof from, "%s, label", cvy_model_output(model));
    CVY_TRY(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &label));
    CVY_TRY(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, from));
    CVY_TRY(cvy_program_create(context, &program_opts, &program));
    CVY_TRY(forward ? cvy_program_add_forward(program, model, batch, NULL, &step)
                    : cvy_program_add_training(program, model, batch, &training, &step));
    const double start = cvy_clock_s();
    CVY_TRY(cvy_program_plan(program));
    const double planned = cvy_clock_s() - start;
    float *x = cvy_program_feed(program, step, "x");
    const cvy_rng rng = cvy_rng_make(3, "x", 0, 0);
    const cvy_shape *shape = &model->input[0].sample_shape;
    for (int64_t i = 0; i < batch * cvy_shape_elems(shape); i++)
        x[i] = (float)(2 * (cvy_rng_u32(&rng, (uint64_t)i) / 4294967296.0) - 1);
    const cvy_plan *plan = cvy_program_task_plan(program, step);
    CVY_TRY(cvy_mem_alloc((size_t)plan->ninstr * sizeof *best, &best));
    double spent = 0;
    for (int k = 0; k < 40 && (k < 4 || spent < 8); k++) {
        CVY_TRY(cvy_program_step(program, step, 1e-4));
        const double total = plan->times.end_s[plan->ninstr - 1] - plan->times.end_s[-1];
        spent += total;
        if (total < best_total)
            for (int i = 0; i < plan->ninstr; i++)
                best[i] = plan->times.end_s[i] - plan->times.end_s[i - 1];
        best_total = total < best_total ? total : best_total;
    }
    report(plan, best, best_total);
    printf("%s batch %lld threads %d: %.2f ms, %.1f images/s; planned in %.3f s; arena %.1f MB\n", name,
           (long long)batch, threads, 1e3 * best_total, (double)batch / best_total, planned,
           1e-6 * (double)plan->arena_bytes);
    cvy_mem_free(&best);
    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
    cvy_context_destroy(&context);
    return CVY_OK;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        printf("usage: bench_step MODEL BATCH [THREADS [KERNELS [forward]]]\n");
        return 2;
    }
    if (run(argv[1], atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 2, argc > 4 ? argv[4] : NULL, argc > 5) == CVY_OK)
        return 0;
    printf("fault: %s\n", cvy_error_text());
    return 1;
}
