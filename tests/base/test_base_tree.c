/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_tree.c: trees: positions, rules beyond YAML, typed scalars, set, copy, text that is printed and read back,
 * and every allocation failing in turn. */
#include <stdio.h>

#include "base/text/base_table.h"
#include "base/text/base_text.h"
#include "base/text/base_tree.h"
#include "test_util.h"

static cvy_pool *pool;

static cvy_status parse(const char *text, cvy_tree **out)
{
    return cvy_tree_parse_text(pool, "job.yaml", text, strlen(text), out);
}

static void places(void)
{
    cvy_tree *t = NULL;
    EXPECT_OK(parse("# a job\ntrain:\n  batch: 128\n  betas: [0.9, 0.999]\ndata: {path: \"a b\"}\n", &t));
    if (!t)
        return;
    EXPECT_INT(t->kind, CVY_TREE_MAP);
    EXPECT_INT(t->count, 2);
    cvy_tree *train = cvy_tree_get(t, "train");
    EXPECT_TEXT(cvy_tree_where(train->key_at[1]), "job.yaml:4:3");
    EXPECT_TEXT(cvy_tree_where(cvy_tree_get(train, "batch")), "job.yaml:3:10");
    EXPECT_TEXT(cvy_tree_where(cvy_tree_get(train, "betas")->child[1]), "job.yaml:4:16");
    EXPECT_INT(cvy_tree_get(cvy_tree_get(t, "data"), "path")->quoted, 1);
    EXPECT(cvy_tree_get(t, "nothing") == NULL);
}

static void refusals(void)
{
    cvy_tree *t = NULL;
    EXPECT_FAULT(parse("a: 1\nb: 2\na: 3\n", &t), CVY_E_CONFIG,
                 "job.yaml:3:1: key \"a\" is given twice, first at job.yaml:1:1");
    EXPECT_FAULT(parse("a: !!int 1", &t), CVY_E_CONFIG, "job.yaml:1:4: tag");
    EXPECT_FAULT(parse("a: 1\n---\nb: 2\n", &t), CVY_E_CONFIG, "job.yaml:2:1: a second document");
    EXPECT_FAULT(parse("a: [1, 2\nb: 3\n", &t), CVY_E_CONFIG, "job.yaml:2:");
    EXPECT_FAULT(parse("a: *x\n", &t), CVY_E_CONFIG, "job.yaml:1:4: alias *x has no anchor");
    EXPECT_FAULT(parse("[1, 2]: 3\n", &t), CVY_E_CONFIG, "a key must be a word");
    EXPECT_FAULT(parse("a: \"x\\0y\"\n", &t), CVY_E_CONFIG, "zero byte");
    EXPECT_FAULT(parse("a: \xff\xfe\n", &t), CVY_E_CONFIG, "expected UTF-8");
    EXPECT_FAULT(parse("&x [*x]", &t), CVY_E_CONFIG, "alias *x has no anchor");
    char deep[200] = {0};
    memset(deep, '[', 100);
    memset(deep + 100, ']', 99);
    EXPECT_FAULT(parse(deep, &t), CVY_E_CONFIG, "nested deeper than 64");
    EXPECT_FAULT(cvy_tree_parse_file(pool, "/nowhere/job.yaml", &t), CVY_E_IO,
                 "/nowhere/job.yaml: cannot open: No such file");
    EXPECT(t == NULL);
}

/* Ten levels of nine aliases each would be 3 billion values. */
static void billion_laughs(void)
{
    char text[4096] = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n";
    for (int i = 1; i < 10; i++) {
        char line[200];
        snprintf(line, sizeof line, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(text, line);
    }
    cvy_pool *own = NULL;
    cvy_tree *t = NULL;
    EXPECT_OK(cvy_pool_create(&own));
    EXPECT_FAULT(cvy_tree_parse_text(own, "bomb", text, strlen(text), &t), CVY_E_CONFIG, "bomb: more than");
    cvy_pool_destroy(&own);
}

static void aliases_are_copies(void)
{
    cvy_tree *t = NULL;
    EXPECT_OK(parse("a: &m {x: 1}\nb: *m\n", &t));
    if (!t)
        return;
    cvy_tree *a = cvy_tree_get(t, "a"), *b = cvy_tree_get(t, "b");
    EXPECT(a != b);
    EXPECT_TEXT(cvy_tree_get(b, "x")->text, "1");
    EXPECT_INT(a->child[0]->used, 0);
}

static void empty_documents(void)
{
    cvy_tree *t = NULL;
    EXPECT_OK(parse("", &t));
    EXPECT(t && t->kind == CVY_TREE_SCALAR && !t->text && cvy_tree_is_null(t));
    EXPECT_OK(parse("# only a comment\n", &t));
    EXPECT(cvy_tree_is_null(t));
    EXPECT_OK(parse("a:\nb: ~\nc: null\nd: 'null'\ne: ''\n", &t));
    for (int i = 0; i < 5; i++)
        EXPECT_INT(cvy_tree_is_null(t->child[i]), i < 3);
}

static void json_is_yaml(void)
{
    cvy_tree *t = NULL;
    EXPECT_OK(parse("{\"a\":[1,2.5,true,null],\n\t\"b\":{\"c\":\"x\\u00e9\\\\\"}}", &t));
    if (!t)
        return;
    EXPECT_INT(cvy_tree_get(t, "a")->count, 4);
    EXPECT_TEXT(cvy_tree_get(cvy_tree_get(t, "b"), "c")->text, "x\xc3\xa9\\");
}

static cvy_status as_int(const char *text, int64_t *out)
{
    cvy_tree *t = NULL;
    const cvy_status status = parse(text, &t);
    return status == CVY_OK ? cvy_tree_int(t, out) : status;
}

static cvy_status as_real(const char *text, double *out)
{
    cvy_tree *t = NULL;
    const cvy_status status = parse(text, &t);
    return status == CVY_OK ? cvy_tree_real(t, out) : status;
}

static void numbers(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"12", 12},
                {"-3", -3},
                {"1_000", 1000},
                {"64k", 64000},
                {"1e6", 1000000},
                {"4 MiB", 4 << 20},
                {"2Ki", 2048},
                {"1.5k", 1500},
                {"+7", 7},
                {"9223372036854775807", INT64_MAX},
                {"3G", 3000000000},
                {"2 TiB", INT64_C(1) << 41},
                {"0", 0}};
    static const char *const bad[] = {"x",   "1.5", "1__0", "_1", "12x", "1e30",   "0x10",
                                      "nan", "inf", "'12'", "",   "[1]", "12 k m", "--1"};
    int64_t whole = -1;
    double real = -1;
    for (int i = 0; i < CVY_COUNT(good); i++) {
        EXPECT_OK(as_int(good[i].text, &whole));
        EXPECT_INT(whole, good[i].value);
    }
    whole = 42;
    for (int i = 0; i < CVY_COUNT(bad); i++)
        EXPECT_FAULT(as_int(bad[i], &whole), CVY_E_CONFIG,
                     bad[i][0] ? "job.yaml:1:1: expected a whole number" : "expected a whole number");
    EXPECT_INT(whole, 42);
    EXPECT_FAULT(as_int("'12'", &whole), CVY_E_CONFIG, "remove the quotes");
    EXPECT_OK(as_real("1e-3", &real));
    EXPECT(real == 1e-3);
    EXPECT_OK(as_real("-.5", &real));
    EXPECT(real == -.5);
    EXPECT_FAULT(as_real("1e999", &real), CVY_E_CONFIG, "expected a number");
    EXPECT_FAULT(as_real(".inf", &real), CVY_E_CONFIG, "expected a number");
}

static void bools(void)
{
    cvy_tree *t = NULL;
    int value = -1;
    static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE", "no", "yes", "No",
                                        "Yes",   "NO",   "YES",   "off",  "on",    "Off",  "On", "OFF", "ON"};
    for (int i = 0; i < CVY_COUNT(words); i++) {
        EXPECT_OK(parse(words[i], &t));
        EXPECT_OK(cvy_tree_bool(t, &value));
        EXPECT_INT(value, i % 2);
    }
    EXPECT_TEXT(cvy_bool_word("window"), "window");
    EXPECT_OK(parse("tRUE", &t));
    EXPECT_FAULT(cvy_tree_bool(t, &value), CVY_E_CONFIG, "expected true or false, got \"tRUE\"");
    EXPECT_OK(parse("maybe", &t));
    EXPECT_FAULT(cvy_tree_bool(t, &value), CVY_E_CONFIG, "expected true or false, got \"maybe\"");
}

static void set_and_print(void)
{
    static const char before[] = "a: 1\nb:\n  c: [1, 2]\n  d: \"12\"\nlayers:\n  - conv: {kernel: 3}\n    from: x\n  - "
                                 "relu\ne: []\nf: {}\ng: null\n";
    static const char after[] = "a: 1\nb:\n  c: [1, 2]\n  d: \"12\"\n  e:\n    f: new\nlayers:\n  - conv:\n      "
                                "kernel: 3\n    from: x\n  - relu\n"
                                "e: []\nf: {}\ng:\n  h: \"k: \\\"v\\\"\"\n";
    cvy_tree *t = NULL, *value = NULL, *again = NULL;
    char *text = NULL;
    EXPECT_OK(parse(before, &t));
    EXPECT_OK(cvy_tree_new_scalar(pool, "--set", "new", &value));
    EXPECT_OK(cvy_tree_set(pool, t, "b.e.f", value));
    EXPECT_FAULT(cvy_tree_set(pool, t, "a.b", value), CVY_E_CONFIG,
                 "--set: cannot set a key below \"a\": the value at job.yaml:1:4");
    EXPECT_FAULT(cvy_tree_set(pool, t, "a..b", value), CVY_E_CONFIG, "cannot set");
    EXPECT_FAULT(cvy_tree_set(pool, t, "b..x", value), CVY_E_CONFIG, "empty word");
    EXPECT_OK(cvy_tree_new_scalar(pool, "--set", "k: \"v\"", &value));
    EXPECT_OK(cvy_tree_set(pool, t, "g.h", value));
    EXPECT_OK(cvy_tree_print(t, &text));
    EXPECT_TEXT(text, after);
    EXPECT_OK(parse(text, &again));
    char *twice = NULL;
    EXPECT_OK(cvy_tree_print(again, &twice));
    EXPECT_TEXT(twice, after);
    cvy_mem_free(&text);
    cvy_mem_free(&twice);
}

/* Any scalar must be read back unchanged, even if YAML could understand it as something else. */
static void scalars_survive_print(void)
{
    static const char *const texts[] = {"",
                                        " x",
                                        "x ",
                                        "- a",
                                        "-",
                                        "a: b",
                                        "a #b",
                                        "*x",
                                        "&x",
                                        "!x",
                                        "%x",
                                        "@x",
                                        "`x",
                                        "'",
                                        "\"",
                                        "\\",
                                        "a\nb",
                                        "\t",
                                        "true",
                                        "null",
                                        "12",
                                        "?",
                                        "? x",
                                        "[",
                                        "{a}",
                                        "a,b",
                                        "---",
                                        "...",
                                        "|",
                                        ">",
                                        "a:",
                                        ":a",
                                        "x\x01y",
                                        "\xc3\xa9",
                                        "10%",
                                        "a/b.yaml",
                                        "~",
                                        "=",
                                        "-1",
                                        ".5",
                                        "<<",
                                        "0x1F",
                                        "a  b",
                                        "http://x:1",
                                        "\x7f",
                                        "a\xc2\x85z",
                                        "\xc2\x9b",
                                        "a\xe2\x80\xa8z",
                                        "a\xe2\x80\xa9z",
                                        "\xef\xbb\xbf",
                                        "\xef\xbf\xbe",
                                        "\xf0\x9f\x98\x80"};
    for (int i = 0; i < CVY_COUNT(texts); i++) {
        cvy_tree *map = NULL, *value = NULL, *again = NULL;
        char *text = NULL;
        EXPECT_OK(cvy_tree_new_map(pool, "test", &map));
        EXPECT_OK(cvy_tree_new_scalar(pool, "test", texts[i], &value));
        value->quoted = 1;
        EXPECT_OK(cvy_tree_set(pool, map, "k", value));
        value = NULL;
        EXPECT_OK(cvy_tree_new_scalar(pool, "test", texts[i], &value));
        EXPECT_OK(cvy_tree_set(pool, map, "plain", value));
        EXPECT_OK(cvy_tree_print(map, &text));
        EXPECT_OK(parse(text, &again));
        cvy_mem_free(&text);
        EXPECT_TEXT(cvy_tree_get(again, "k")->text, texts[i]);
        EXPECT_INT(cvy_tree_get(again, "k")->quoted, 1);
        if (!cvy_tree_is_null(value))
            EXPECT_TEXT(cvy_tree_get(again, "plain")->text, texts[i]);
    }
}

/* Gives the keys "KEY" another name, or counts them. */
static int rename_keys(cvy_tree *t, const char *name, const char *to)
{
    int n = 0;
    for (int i = 0; i < t->count; i++) {
        if (t->kind == CVY_TREE_MAP && strcmp(t->key[i], name) == 0) {
            t->key[i] = to;
            n++;
        }
        n += rename_keys(t->child[i], name, to);
    }
    return n;
}

/* YAML reads a key of more than 1024 characters only behind a '?'. */
static void long_keys_survive_print(void)
{
    static const char *const around[] = {"KEY: 1\nz: 2\n", "a: {z: 2, KEY: 1}\n",
                                         "a:\n  - KEY: {b: [c, {d: e}]}\n    z: 2\n",
                                         "a:\n  KEY:\n    KEY: {c: {d: e}}\n", "- KEY: [a, {b: c}]\n- z\n"};
    static const char fill[] = "x\x01\xff ";
    static char key[3001];
    for (int i = 0; i < CVY_COUNT(around) * 4; i++)
        for (int length = 160; length < CVY_COUNT(key); length += 710) {
            cvy_tree *t = NULL, *again = NULL;
            char *block = NULL, *line = NULL;
            memset(key, fill[i % 4], (size_t)length);
            key[0] = key[length - 1] = 'k';
            key[length] = 0;
            EXPECT_OK(parse(around[i / 4], &t));
            const int n = rename_keys(t, "KEY", key);
            EXPECT(n > 0);
            EXPECT_OK(cvy_tree_print(t, &block));
            EXPECT_OK(parse(block, &again));
            EXPECT(fill[i % 4] == '\xff' || rename_keys(again, key, "KEY") == n);
            EXPECT_OK(cvy_tree_print_line(t, &line));
            EXPECT_OK(parse(line, &again));
            EXPECT(fill[i % 4] == '\xff' || rename_keys(again, key, "KEY") == n);
            cvy_mem_free(&block);
            cvy_mem_free(&line);
        }
}

static void unused_keys(void)
{
    static const char *const known[] = {"batch", "epochs", NULL};
    cvy_tree *t = NULL;
    EXPECT_OK(parse("train:\n  batch: 1\n  epoch: 2\n", &t));
    cvy_tree *train = cvy_tree_get(t, "train");
    cvy_tree_get(train, "batch");
    EXPECT_FAULT(cvy_tree_check_used(t, known), CVY_E_CONFIG,
                 "job.yaml:3:3: unknown key \"epoch\"; did you mean \"epochs\"?");
    cvy_tree_get(train, "epoch");
    EXPECT_OK(cvy_tree_check_used(t, known));
}

static void nearest(void)
{
    static const char *const names[] = {"kernel", "pad", "stride", "momentum", "lr", "batch_per_rank"};
    static const struct {
        const char *word, *near;
    } rows[] = {{"kernal", "kernel"},
                {"kerenl", "kernel"},
                {"Kernel", "kernel"},
                {"sride", "stride"},
                {"momen", "momentum"},
                {"l", "lr"},
                {"batch_per_rnak", "batch_per_rank"}};
    for (int i = 0; i < CVY_COUNT(rows); i++)
        EXPECT_TEXT(cvy_text_nearest(rows[i].word, names, CVY_COUNT(names)), rows[i].near);
    EXPECT(cvy_text_nearest("zebra", names, CVY_COUNT(names)) == NULL);
    EXPECT(cvy_text_nearest("", names, CVY_COUNT(names)) == NULL);
}

static void entries_of_lists(void)
{
    static const struct {
        const char *list, *separators, *entry;
        int found;
    } rows[] = {{"cl_khr_fp64 cl_khr_fp16", " ", "cl_khr_fp16", 1},
                {"cl_khr_fp16_more  cl_khr", " ", "cl_khr_fp16", 0},
                {"speed of one ; area", ";", "speed of one", 1},
                {"speed of one; area", ";", "area", 1},
                {"speed of one; area", ";", "speed", 0},
                {"a;; b", ";", "", 0},
                {"", ";", "a", 0}};
    for (int i = 0; i < CVY_COUNT(rows); i++)
        EXPECT_INT(cvy_text_lists(rows[i].list, rows[i].separators, rows[i].entry), rows[i].found);
}

static cvy_status parse_in_own_pool(void)
{
    static const char text[] = "a: &x [1, 2, {b: 'c'}]\nd: *x\ne: {f: g, h: i, j: k, l: m, n: o}\n";
    cvy_pool *own = NULL;
    cvy_tree *t = NULL;
    char *printed = NULL;
    CVY_TRY(cvy_pool_create(&own));
    cvy_status status = cvy_tree_parse_text(own, "job.yaml", text, strlen(text), &t);
    if (status == CVY_OK)
        status = cvy_tree_print(t, &printed);
    cvy_mem_free(&printed);
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
    TEST(places);
    TEST(refusals);
    TEST(billion_laughs);
    TEST(aliases_are_copies);
    TEST(empty_documents);
    TEST(json_is_yaml);
    TEST(numbers);
    TEST(bools);
    TEST(set_and_print);
    TEST(scalars_survive_print);
    TEST(long_keys_survive_print);
    TEST(unused_keys);
    TEST(nearest);
    TEST(entries_of_lists);
    TEST(no_memory);
    cvy_pool_destroy(&pool);
    return test_end();
}
