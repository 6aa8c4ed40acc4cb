/*
 * test_checkpoint_adopt.c: weights of other networks are taken by name, after renaming, as a whole or not at all; an
 * error names what does not match and the nearest name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_adopt.h"
#include "graph/graph.h"
#include "test_util.h"

enum { ROOM = 32 };

struct row {
    const char *name;
    cvy_role role;
    cvy_shape shape;
};

static const struct row job[] = {
    {"conv1.weight", CVY_ROLE_WEIGHT, {2, {2, 3}}}, {"bn1.running_mean", CVY_ROLE_STATISTIC, {1, {2}}},
    {"fc.weight", CVY_ROLE_WEIGHT, {2, {2, 4}}},    {"fc.bias", CVY_ROLE_WEIGHT, {1, {2}}},
    {"fc.bias.momentum", CVY_ROLE_STATE, {1, {2}}},
};

static char path[] = "/tmp/cvy-adopt-XXXXXX";
static const char *const paths[] = {path};

static cvy_vars *make_vars(void)
{
    cvy_vars *vars = NULL;
    EXPECT_OK(cvy_vars_create(&vars));
    for (int i = 0; i < CVY_COUNT(job); i++) {
        cvy_variable *v = NULL;
        EXPECT_OK(cvy_vars_declare(vars, job[i].name, job[i].role, CVY_DTYPE_F32, &job[i].shape, NULL, &v));
        v->layout = cvy_layout_plain();
        v->bytes = (size_t)cvy_shape_elems(&v->shape) * sizeof(float);
        EXPECT_OK(cvy_mem_alloc_pages(v->bytes, &v->data));
    }
    return vars;
}

static float first_of(const cvy_vars *vars, const char *name)
{
    return *(const float *)cvy_vars_find(vars, name)->data;
}

/* Whether no variable was filled. */
static int is_untouched(const cvy_vars *vars)
{
    for (int i = 0; i < vars->count; i++)
        if (*(const float *)vars->at[i]->data != 0)
            return 0;
    return 1;
}

/* Writes a file in which tensor i is full of i + 1. */
static void write_file(const struct row *row, int count)
{
    static float data[8][ROOM];
    cvy_tensor_entry entry[8] = {{0}};
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < ROOM; k++)
            data[i][k] = (float)(i + 1);
        entry[i] = (cvy_tensor_entry){row[i].name, CVY_DTYPE_F32, row[i].shape, data[i]};
    }
    EXPECT_OK(cvy_safetensors_write(path, entry, count, NULL, NULL, NULL));
}

static cvy_adopt_opts options(void)
{
    return (cvy_adopt_opts){.from = path, .path = paths, .npath = 1};
}

static void all_agree(void)
{
    static const struct row file[] = {{"fc.bias", 0, {1, {2}}},
                                      {"fc.weight", 0, {2, {2, 4}}},
                                      {"bn1.running_mean", 0, {1, {2}}},
                                      {"conv1.weight", 0, {2, {2, 3}}},
                                      {"bn1.num_batches_tracked", 0, {0}}};
    const cvy_adopt_opts o = options();
    cvy_vars *vars = make_vars();
    cvy_text report = {0};
    write_file(file, 5);
    EXPECT_OK(cvy_weights_adopt(&o, NULL, vars, &report));
    EXPECT(strstr(report.data, "4 of 4 variables are taken\n") != NULL);
    EXPECT_NEAR(first_of(vars, "fc.bias"), 1, 0);
    EXPECT_NEAR(first_of(vars, "conv1.weight"), 4, 0);
    EXPECT_NEAR(first_of(vars, "fc.bias.momentum"), 0, 0);
    cvy_text_free(&report);
    cvy_vars_destroy(&vars);
}

/* A head of another size, a body behind a prefix, and a part that the job does not have. */
static const struct row other[] = {{"module.conv1.weight", 0, {2, {2, 3}}},
                                   {"module.bn1.mean", 0, {1, {2}}},
                                   {"module.fc.weight", 0, {2, {9, 4}}},
                                   {"module.fc.bias", 0, {1, {9}}},
                                   {"module.extra.bias", 0, {1, {3}}}};
static const char *const pattern[] = {"^module\\.", "^(bn[0-9])\\.mean$"}, *const with[] = {"", "\\1.running_mean"};

static void renamed_and_skipped(void)
{
    static const char *const skip[] = {"fc.*", "extra.*"};
    cvy_adopt_opts o = options();
    cvy_vars *vars = make_vars();
    cvy_text report = {0};
    write_file(other, 5);
    o.pattern = pattern;
    o.replacement = with;
    o.nrename = 2;
    o.skip = skip;
    o.nskip = 2;
    EXPECT_OK(cvy_weights_adopt(&o, NULL, vars, &report));
    EXPECT(strstr(report.data, "2 of 4 variables are taken, 2 skipped\n") != NULL);
    EXPECT(strstr(report.data, "fc.bias is skipped and keeps its first values\n") != NULL);
    EXPECT_NEAR(first_of(vars, "conv1.weight"), 1, 0);
    EXPECT_NEAR(first_of(vars, "bn1.running_mean"), 2, 0);
    EXPECT_NEAR(first_of(vars, "fc.weight"), 0, 0);
    cvy_text_free(&report);
    cvy_vars_destroy(&vars);
}

static void what_differs_is_left_out_on_request(void)
{
    cvy_adopt_opts o = options();
    cvy_vars *vars = make_vars();
    cvy_text report = {0};
    write_file(other, 5);
    o.pattern = pattern;
    o.replacement = with;
    o.nrename = 2;
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, &report), CVY_E_SHAPE, "fc.bias is f32 2 in this job and F32 9 in");
    EXPECT(strstr(cvy_error_text(), "no variable takes module.extra.bias (3)") != NULL);
    EXPECT(strstr(cvy_error_text(), "2 of 4 variables agree, and none is loaded") != NULL);
    EXPECT(is_untouched(vars) && report.bytes == 0);
    o.lenient = 1;
    EXPECT_OK(cvy_weights_adopt(&o, NULL, vars, &report));
    EXPECT(strstr(report.data, "2 of 4 variables are taken, 2 do not match\n") != NULL);
    EXPECT(strstr(report.data, "module.extra.bias of the file is not used (3)\n") != NULL);
    EXPECT(strstr(report.data, "fc.weight has another shape or dtype in the file and keeps its first values (9x4)\n"));
    EXPECT_NEAR(first_of(vars, "conv1.weight"), 1, 0);
    cvy_text_free(&report);
    cvy_vars_destroy(&vars);
}

static void faults(void)
{
    static const char *const unknown[] = {"head.*"}, *const broken[] = {"("}, *const all[] = {"*"},
                             *const one[] = {".*"}, *const absent[] = {"^net"}, *const empty[] = {"x"};
    static const struct row near[] = {{"conv_1.weight", 0, {2, {2, 3}}}, {"fc.weight", 0, {2, {2, 4}}}};
    cvy_adopt_opts o = options();
    cvy_vars *vars = make_vars();
    write_file(near, 2);
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, NULL), CVY_E_SHAPE,
                 "lacks conv1.weight (2x3); the nearest name is conv_1.weight");
    o.skip = unknown;
    o.nskip = 1;
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, NULL), CVY_E_CONFIG, "skip: 'head.*' matches no variable");
    o.skip = all;
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, NULL), CVY_E_FORMAT, "all are skipped");
    o.nskip = 0;
    o.replacement = empty;
    o.nrename = 1;
    o.pattern = broken;
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, NULL), CVY_E_CONFIG, "'(' is not a regular expression");
    o.pattern = absent;
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, NULL), CVY_E_CONFIG, "'^net' matches none of the 2 tensors");
    o.pattern = one;
    EXPECT_FAULT(cvy_weights_adopt(&o, NULL, vars, NULL), CVY_E_CONFIG, "conv_1.weight and fc.weight would both be x");
    EXPECT(is_untouched(vars));
    cvy_vars_destroy(&vars);
}

int main(void)
{
    const int fd = mkstemp(path);
    EXPECT(fd >= 0);
    close(fd);
    TEST(all_agree);
    TEST(renamed_and_skipped);
    TEST(what_differs_is_left_out_on_request);
    TEST(faults);
    unlink(path);
    return test_end();
}
