/*
 * test_kernel_library.c: the choice of kernels by name: each word, lists in their order, wrong names; and a plan holds
 * no kernel that the choice excludes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "plan/plan_offers.h"
#include "program/program_options.h"
#include "program/program_view.h"
#include "test_util.h"

static cvy_context *context;

static cvy_model *new_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("choice", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {16, 8, 8}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 16, kernel: 3, pad: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "relu", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

struct counts {
    int native, onednn, reference, winograd;
    char conv[64];
};

static struct counts plan_with(const char *kernels)
{
    const cvy_program_opts opts = {.size = sizeof opts, .kernels = kernels};
    const cvy_training_opts training = {.size = sizeof training};
    struct counts n = {0};
    cvy_program *p = NULL;
    cvy_model *m = new_model();
    int step;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 4, &training, &step));
    EXPECT_OK(cvy_program_plan(p));
    const cvy_lowered *u = cvy_program_task_plan(p, 0)->lowered[0];
    for (int i = 0; i < u->ncall; i++) {
        if (!u->call[i].offer)
            continue;
        const cvy_kernel_def *kernel = u->call[i].offer->kernel;
        const cvy_library_def *library = cvy_kernel_library(kernel);
        n.native += library && strcmp(library->name, "native") == 0;
        n.onednn += library && strcmp(library->name, "onednn") == 0;
        n.reference += kernel == &cvy_kernel_plain;
        n.winograd += kernel->winograd;
        if (strcmp(u->call[i].node->name, "conv") == 0)
            snprintf(n.conv, sizeof n.conv, "%s", kernel->name);
    }
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    return n;
}

static void every_kernel_has_a_library(void)
{
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int i = 0; i < count; i++) {
        EXPECT(cvy_kernel_library(table[i]) != NULL);
        EXPECT_INT(table[i]->winograd, strstr(table[i]->name, "winograd") != NULL);
    }
    EXPECT(cvy_kernel_library(&cvy_kernel_plain) == NULL);
}

static const char *job_help(void)
{
    return cvy_program_option_of_key("plan", "kernels")->row.help;
}

static void words(void)
{
    cvy_kernels k;
    const char *help = NULL;
    for (int i = 0; cvy_kernels_word(i, &help); i++) {
        EXPECT(help && *help);
        EXPECT(strstr(job_help(), cvy_kernels_word(i, &help)) != NULL);
        EXPECT_OK(cvy_kernels_parse(cvy_kernels_word(i, &help), &k));
    }
    EXPECT_OK(cvy_kernels_parse(NULL, &k));
    EXPECT(!k.listed && !k.no_winograd && !k.by_clock);
    EXPECT_OK(cvy_kernels_parse("clock", &k));
    EXPECT(k.by_clock && !k.listed);
    EXPECT_OK(cvy_kernels_parse("reference", &k));
    EXPECT(cvy_kernels_are_reference(&k));
    EXPECT_OK(cvy_kernels_parse("native, reference", &k));
    EXPECT(k.nlibrary == 1 && k.listed && strcmp(k.library[0]->name, "native") == 0);
    EXPECT_FAULT(cvy_kernels_parse("natvie", &k), CVY_E_CONFIG, "did you mean \"native\"?");
    EXPECT_FAULT(cvy_kernels_parse("native, native", &k), CVY_E_CONFIG, "twice");
    EXPECT_FAULT(cvy_kernels_parse("reference, native", &k), CVY_E_CONFIG, "cannot be combined with others");
    EXPECT_FAULT(cvy_kernels_parse("native, auto", &k), CVY_E_CONFIG, "\"auto\" cannot be combined with others");
    EXPECT_FAULT(cvy_kernels_parse(" ,", &k), CVY_E_CONFIG, "names no kernels");
    if (!cvy_library_find("onednn"))
        EXPECT_FAULT(cvy_kernels_parse("onednn", &k), CVY_E_UNSUPPORTED, "this build of convoy has no onednn kernels");
}

static void plans(void)
{
    struct counts n = plan_with("reference");
    EXPECT(n.native == 0 && n.onednn == 0 && n.reference > 0);
    n = plan_with("native");
    EXPECT(n.native > 0 && n.onednn == 0);
    n = plan_with("direct");
    EXPECT(n.native > 0 && n.winograd == 0);
    if (!cvy_library_find("onednn"))
        return;
    n = plan_with("onednn");
    EXPECT(n.native == 0 && n.onednn > 0 && n.reference > 0);
    n = plan_with("onednn, native");
    EXPECT(n.native > 0 && n.onednn > 0 && strncmp(n.conv, "onednn.", 7) == 0);
    n = plan_with("native, onednn");
    EXPECT(n.native > 0 && strncmp(n.conv, "native.", 7) == 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_SELF, &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1},
                                     &context));
    TEST(every_kernel_has_a_library);
    TEST(words);
    TEST(plans);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
