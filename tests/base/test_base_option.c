/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_option.c: option tables: values, defaults, every message with its position, printed text that is read back,
 * help, and every allocation failing in turn. */
#include "base/text/base_option.h"
#include "test_util.h"

struct sample {
    int64_t kernel;
    double ratio;
    int bias, method;
    const char *name;
    cvy_ints stride;
    cvy_reals mean;
    const cvy_tree *extra;
};

static const cvy_option rows[] = {
    {"kernel", CVY_TYPE_INT, CVY_FIELD(sample, kernel), "3", "odd 1..", "cells", "size of the window"},
    {"ratio", CVY_TYPE_REAL, CVY_FIELD(sample, ratio), "0.5", "0.. <1", "", "share that is dropped"},
    {"bias", CVY_TYPE_BOOL, CVY_FIELD(sample, bias), "true", "", "", "whether to add one"},
    {"method", CVY_TYPE_CHOICE, CVY_FIELD(sample, method), "average", "max|average|sum", "", "how to join"},
    {"name", CVY_TYPE_STRING, CVY_FIELD(sample, name), "", "", "", "what it is called"},
    {"stride", CVY_TYPE_INTS, CVY_FIELD(sample, stride), "1", "1..", "cells", "step of the window"},
    {"mean", CVY_TYPE_REALS, CVY_FIELD(sample, mean), "", "", "", "mean of each channel"},
    {"extra", CVY_TYPE_TREE, CVY_FIELD(sample, extra), "", "", "", "anything"},
    {0},
};

static cvy_pool *pool;

static cvy_status parse(const char *yaml, struct sample *out)
{
    cvy_tree *map = NULL;
    CVY_TRY(cvy_tree_parse_text(pool, "job.yaml", yaml, strlen(yaml), &map));
    return cvy_options_parse(pool, "layer conv1", rows, map, NULL, out, sizeof *out);
}

static void defaults(void)
{
    struct sample s;
    memset(&s, 0xff, sizeof s);
    EXPECT_OK(cvy_options_parse(pool, "layer conv1", rows, NULL, NULL, &s, sizeof s));
    EXPECT_INT(s.kernel, 3);
    EXPECT(s.ratio == 0.5);
    EXPECT_INT(s.bias, 1);
    EXPECT_INT(s.method, 1);
    EXPECT(s.name == NULL && s.extra == NULL);
    EXPECT_INT(s.stride.count, 1);
    EXPECT_INT(s.stride.at[0], 1);
    EXPECT_INT(s.mean.count, 0);
    EXPECT_OK(parse("kernel: null\nname:\n", &s));
    EXPECT_INT(s.kernel, 3);
}

static void values(void)
{
    struct sample s;
    EXPECT_OK(parse(
        "kernel: 5\nratio: 0\nbias: no\nmethod: sum\nname: a b\nstride: [2, 3]\nmean: [0.1, 2k]\nextra: {a: [1]}\n",
        &s));
    EXPECT_INT(s.kernel, 5);
    EXPECT_INT(s.method, 2);
    EXPECT_TEXT(s.name, "a b");
    EXPECT_INT(cvy_ints_at(&s.stride, 1, 9), 3);
    EXPECT(s.mean.at[1] == 2000);
    EXPECT(s.extra && s.extra->kind == CVY_TREE_MAP);
    EXPECT_OK(cvy_options_parse_text(pool, "pool1", rows, "kernel: 7, stride: [4, 5]", &s, sizeof s));
    EXPECT_INT(s.kernel, 7);
    EXPECT_OK(cvy_options_parse_text(pool, "pool1", rows, " {kernel: 9}", &s, sizeof s));
    EXPECT_INT(s.kernel, 9);
    EXPECT_OK(cvy_options_parse_text(pool, "pool1", rows, NULL, &s, sizeof s));
    EXPECT_INT(s.kernel, 3);
}

static void messages(void)
{
    static const struct {
        const char *yaml, *text;
    } wrong[] = {
        {"bias: 1\nkernal: 3\n", "job.yaml:2:1: layer conv1: unknown key \"kernal\"; did you mean \"kernel\"?"},
        {"zebra: 3\n", "job.yaml:1:1: layer conv1: unknown key \"zebra\", expected one of: kernel, ratio, bias"},
        {"\nkernel: 4\n", "job.yaml:2:9: layer conv1: kernel is \"4\", expected odd 1.. (cells)"},
        {"kernel: -1\n", "kernel is \"-1\", expected odd 1.."},
        {"kernel: 1.5\n", "kernel is \"1.5\", expected a whole number"},
        {"kernel: '3'\n", "kernel is \"3\", expected a whole number"},
        {"kernel: [3]\n", "kernel is a list, expected a whole number"},
        {"ratio: 1\n", "ratio is \"1\", expected 0.. <1"},
        {"ratio: -0.1\n", "ratio is \"-0.1\", expected 0.. <1"},
        {"ratio: half\n", "ratio is \"half\", expected a number"},
        {"bias: maybe\n", "bias is \"maybe\", expected true or false"},
        {"method: mex\n", "method is \"mex\", expected max|average|sum; did you mean \"max\"?"},
        {"method: {a: 1}\n", "method is a map, expected max|average|sum"},
        {"name: [a]\n", "name is a list, expected a word or text"},
        {"stride: [1, 0]\n", "job.yaml:1:13: layer conv1: stride is \"0\", expected 1.."},
        {"stride: {a: 1}\n", "stride is a map, expected a number or a list"},
        {"mean: [[1]]\n", "mean is a list, expected a number"},
        {"- 1\n", "job.yaml:1:1: layer conv1: expected keys and values, got a list"},
        {"word\n", "job.yaml:1:1: layer conv1: expected keys and values, got a single value"},
    };
    struct sample s;
    for (int i = 0; i < CVY_COUNT(wrong); i++)
        EXPECT_FAULT(parse(wrong[i].yaml, &s), CVY_E_CONFIG, wrong[i].text);
    char yaml[400] = "stride: [1";
    for (int i = 0; i < CVY_LIST_MAX; i++)
        strcat(yaml, ",1");
    strcat(yaml, "]");
    EXPECT_FAULT(parse(yaml, &s), CVY_E_CONFIG, "stride has 65 numbers, expected at most 64");
    EXPECT_FAULT(cvy_options_parse_text(pool, "pool1", rows, "kernel: 2", &s, sizeof s), CVY_E_CONFIG,
                 "options of pool1:1:");
}

static void required_and_extra(void)
{
    static const cvy_option need[] = {{"lr", CVY_TYPE_REAL, CVY_FIELD(sample, ratio), NULL, ">0", "", "learning rate"},
                                      {0}};
    static const char *const extra[] = {"name", NULL};
    struct sample s;
    cvy_tree *map = NULL;
    EXPECT_OK(cvy_tree_parse_text(pool, "job.yaml", "name: sgd", 9, &map));
    EXPECT_FAULT(cvy_options_parse(pool, "optimizer", need, map, extra, &s, sizeof s), CVY_E_CONFIG,
                 "job.yaml:1:1: optimizer: the key \"lr\" is missing (learning rate)");
    EXPECT_FAULT(cvy_options_parse(pool, "optimizer", need, NULL, extra, &s, sizeof s), CVY_E_CONFIG,
                 "the key \"lr\" is missing");
    EXPECT_FAULT(cvy_options_parse_text(pool, "optimizer", need, "lr: 0", &s, sizeof s), CVY_E_CONFIG,
                 "lr is \"0\", expected >0");
    EXPECT_FAULT(cvy_options_parse_text(pool, "relu", NULL, "slope: 1", &s, sizeof s), CVY_E_CONFIG,
                 "it has no options");
}

static void print_reads_back(void)
{
    struct sample s, again;
    char *text = NULL, *twice = NULL;
    EXPECT_OK(
        parse("kernel: 5\nratio: 0.1\nbias: no\nname: 'say \"hi\", {you}'\nstride: [2, 3]\nmean: [0.49, 1e-20]\n", &s));
    EXPECT_OK(cvy_options_print(rows, &s, &text));
    EXPECT_TEXT(text, "kernel: 5, ratio: 0.1, bias: false, method: average, name: \"say \\\"hi\\\", {you}\", stride: "
                      "[2, 3], mean: [0.49, 1e-20], extra: null");
    EXPECT_OK(cvy_options_parse_text(pool, "layer conv1", rows, text, &again, sizeof again));
    EXPECT_OK(cvy_options_print(rows, &again, &twice));
    EXPECT_TEXT(twice, text);
    cvy_mem_free(&text);
    cvy_mem_free(&twice);
}

static void tree_reads_back(void)
{
    struct sample s, again;
    cvy_tree *tree = NULL;
    char *text = NULL;
    EXPECT_OK(parse("name: 'null'\nstride: [2, 3]\nextra: {a: [1, 'x']}\n", &s));
    EXPECT_OK(cvy_options_tree(pool, rows, &s, &tree));
    EXPECT_OK(cvy_tree_print(tree, &text));
    EXPECT_TEXT(text, "kernel: 3\nratio: 0.5\nbias: true\nmethod: average\nname: \"null\"\nstride: [2, 3]\nextra:\n  "
                      "a: [1, \"x\"]\n");
    EXPECT_OK(parse(text, &again));
    EXPECT_TEXT(again.name, "null");
    EXPECT_INT(again.stride.at[1], 3);
    cvy_mem_free(&text);
}

/* Names may be separated by commas, spaces or both, as in "a b": the tree has a list of them. */
static void names_become_a_list(void)
{
    static const cvy_option names[] = {
        {"layers", CVY_TYPE_NAMES, CVY_FIELD(sample, name), "", "all|true=*", "", "layers that are meant"}, {0}};
    static const char *const given[] = {"a, b, c", "a b c", " a,b \t c,", "[a, b, c]"};
    for (int i = 0; i < CVY_COUNT(given); i++) {
        struct sample s;
        cvy_tree *map = NULL, *value = NULL, *tree = NULL;
        char *text = NULL;
        EXPECT_OK(cvy_tree_new_map(pool, "job.yaml", &map));
        EXPECT_OK(given[i][0] == '[' ? cvy_tree_parse_text(pool, "job.yaml", given[i], strlen(given[i]), &value)
                                     : cvy_tree_new_scalar(pool, "job.yaml", given[i], &value));
        EXPECT_OK(cvy_tree_set(pool, map, "layers", value));
        EXPECT_OK(cvy_options_parse(pool, "layer conv1", names, map, NULL, &s, sizeof s));
        EXPECT_OK(cvy_options_tree(pool, names, &s, &tree));
        EXPECT_OK(cvy_tree_print(tree, &text));
        EXPECT_TEXT(text, "layers: [a, b, c]\n");
        cvy_mem_free(&text);
    }
}

static void help(void)
{
    char *text = NULL;
    EXPECT_OK(cvy_options_help(rows, &text));
    EXPECT(text && strstr(text, "  kernel    integer = 3: size of the window (cells, odd 1..)\n"));
    EXPECT(text && strstr(text, "  method    max|average|sum = average: how to join\n"));
    EXPECT(text && strstr(text, "  name      text: what it is called\n"));
    cvy_mem_free(&text);
}

static cvy_status parse_in_own_pool(void)
{
    cvy_pool *own = NULL;
    struct sample s;
    cvy_tree *tree = NULL;
    char *text = NULL;
    CVY_TRY(cvy_pool_create(&own));
    cvy_status status =
        cvy_options_parse_text(own, "layer", rows, "kernel: 5, mean: [1, 2], extra: {a: b}", &s, sizeof s);
    if (status == CVY_OK)
        status = cvy_options_tree(own, rows, &s, &tree);
    if (status == CVY_OK)
        status = cvy_options_help(rows, &text);
    cvy_mem_free(&text);
    cvy_pool_destroy(&own);
    return status;
}

static void no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(parse_in_own_pool());
}

int main(void)
{
    EXPECT_OK(cvy_pool_create(&pool));
    TEST(defaults);
    TEST(values);
    TEST(messages);
    TEST(required_and_extra);
    TEST(print_reads_back);
    TEST(tree_reads_back);
    TEST(names_become_a_list);
    TEST(help);
    TEST(no_memory);
    cvy_pool_destroy(&pool);
    return test_end();
}
