/*
 * test_job_program.c: each option of a program is said once: every field of cvy_program_opts has one row, and from the
 * row follow the key of the job file, its line on the page of keys, the name in cvy_program_opts_set(), the comparison
 * between ranks, and the key that messages name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_table.h"
#include "program/program_options.h"
#include "test_util.h"

typedef struct field_size {
    size_t bytes, alignment;
} field_size;

static field_size size_of(const cvy_option *row)
{
    switch (row->type) {
    case CVY_TYPE_INT: return (field_size){sizeof(int64_t), _Alignof(int64_t)};
    case CVY_TYPE_INT3: return (field_size){3 * sizeof(int64_t), _Alignof(int64_t)};
    case CVY_TYPE_REAL: return (field_size){sizeof(double), _Alignof(double)};
    case CVY_TYPE_BOOL:
    case CVY_TYPE_CHOICE:
    case CVY_TYPE_DTYPE: return (field_size){sizeof(int), _Alignof(int)};
    default: return (field_size){sizeof(char *), _Alignof(char *)};
    }
}

static const cvy_program_option *row_at(size_t offset)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++)
        if (o->row.offset == offset)
            return o;
    return NULL;
}

/* The rows lie one behind the other in the struct: what is between them is padding. */
static void each_field_has_a_row(void)
{
    size_t at = sizeof(size_t);
    int count = 0, rows = 0;
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++)
        rows++;
    while (at < sizeof(cvy_program_opts)) {
        const cvy_program_option *o = row_at(at);
        if (!o && at % sizeof(void *) == sizeof(int)) { /* padding behind an int */
            at += sizeof(int);
            continue;
        }
        if (!o) {
            TEST_FAIL("the field at byte %zu of cvy_program_opts has no row in program_options.c", at);
            return;
        }
        at += size_of(&o->row).bytes;
        count++;
    }
    EXPECT_INT(count, rows); /* no two rows have one field */
}

/* A value that is not the default. */
static const char *other_value(const cvy_program_option *o)
{
    static const char *const texts[][2] = {
        {"kernels", "native"}, {"reduce", "ring"}, {"reduce_progress", "thread"}, {"passes_off", "slices"}};
    static char word[32];
    const char *at = o->row.valid;
    cvy_option_term term;
    for (int i = 0; i < CVY_COUNT(texts); i++)
        if (strcmp(texts[i][0], o->field) == 0)
            return texts[i][1];
    switch (o->row.type) {
    case CVY_TYPE_CHOICE:
    case CVY_TYPE_DTYPE:
    case CVY_TYPE_WORD:
        while (cvy_option_next_word(&o->row, &at, &term))
            snprintf(word, sizeof word, "%.*s", term.word_length, term.word);
        return word;
    case CVY_TYPE_BOOL: return "true";
    case CVY_TYPE_REAL: return "0.5";
    case CVY_TYPE_INT:
    case CVY_TYPE_INT3: return "4";
    default: return "conv1, fc";
    }
}

static char *described(const cvy_program_opts *opts)
{
    cvy_text text = {0};
    cvy_program_opts_describe(opts, &text);
    EXPECT_OK(text.status);
    return text.data;
}

static int same_field(const cvy_program_option *o, const cvy_program_opts *a, const cvy_program_opts *b)
{
    const char *left = (const char *)a + o->row.offset, *right = (const char *)b + o->row.offset;
    const int is_text = o->row.type == CVY_TYPE_STRING || o->row.type == CVY_TYPE_WORD || o->row.type == CVY_TYPE_NAMES;
    if (!is_text)
        return memcmp(left, right, size_of(&o->row).bytes) == 0;
    const char *l = *(const char *const *)(const void *)left, *r = *(const char *const *)(const void *)right;
    return l == r || (l && r && strcmp(l, r) == 0);
}

/* By name: the field of the row changes, and no other; ranks with different values are told apart. */
static void each_row_is_set_by_name(void)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        const cvy_option_name name = cvy_program_option_name(o);
        const cvy_program_opts before = cvy_program_opts_default();
        cvy_program_opts opts = before;
        EXPECT_OK(cvy_program_opts_set(&opts, name.text, other_value(o)));
        for (const cvy_program_option *other = cvy_program_option_table; other->field; other++)
            if (same_field(other, &before, &opts) != (other != o))
                TEST_FAIL("%s: %s sets or leaves the field %s", name.text, other_value(o), other->field);
        EXPECT_OK(cvy_program_opts_check(&opts));
        char *left = described(&before), *right = described(&opts), line[64];
        snprintf(line, sizeof line, "opts.%s ", o->field);
        if ((strcmp(left, right) == 0) != o->may_differ || (strstr(right, line) == NULL) != o->may_differ)
            TEST_FAIL("%s: ranks are compared in another way than its row says", name.text);
        cvy_mem_free(&left);
        cvy_mem_free(&right);
        if (*o->row.fallback && strcmp(o->field, "seed") != 0)
            EXPECT_OK(cvy_program_opts_set(&opts, name.text, o->row.fallback));
    }
}

/* The line of a key below the heading of its section. */
static const char *line_of(const char *page, const char *section, const char *key)
{
    char text[64];
    snprintf(text, sizeof text, *section ? "`%s`" : "At the top", section);
    const char *at = page;
    do
        at = strstr(at + 1, "#");
    while (at && (strncmp(at + strspn(at, "#") + 1, text, strlen(text)) != 0));
    snprintf(text, sizeof text, "\n| `%s` |", key);
    return at ? strstr(at, text) : NULL;
}

/* In a job: the key is on the page and in the help, and sets the same as the name; messages name it for the field. */
static void each_row_is_a_key(void)
{
    char *page = NULL, *help = NULL;
    EXPECT_OK(cvy_job_manual(&page));
    EXPECT_OK(cvy_job_help(&help));
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        const cvy_option_name name = cvy_program_option_name(o);
        const int is_mode = strcmp(name.text, "update.mode") == 0;
        char set[128], message[128];
        const char *sets[] = {"update={mode: parameter_server}", set};
        cvy_job *job = NULL;
        cvy_program_opts opts = cvy_program_opts_default();
        if (!o->section)
            continue;
        if (!is_mode && (!line_of(page, o->section, o->row.name) || !strstr(help, o->row.help)))
            TEST_FAIL("%s is not on the page of keys, or not in the help", name.text);
        snprintf(set, sizeof set, o->row.type == CVY_TYPE_NAMES ? "%s=[%s]" : "%s=%s", name.text, other_value(o));
        EXPECT_OK(cvy_job_parse_text("job.yaml", "model: lenet\ndata: {train: mnist}\n", sets, 2, &job));
        EXPECT_OK(cvy_program_opts_set(&opts, name.text, other_value(o)));
        if (job && !same_field(o, &job->program, &opts))
            TEST_FAIL("--set %s is another value than the option of that name", set);
        cvy_job_destroy(&job);
        (void)cvy_error_set(CVY_E_CONFIG, "opts.%s is wrong", o->field);
        EXPECT_INT(cvy_job_translate(CVY_E_CONFIG), CVY_E_CONFIG);
        snprintf(message, sizeof message, "%s is wrong", is_mode ? "update" : name.text);
        EXPECT_TEXT(cvy_error_text(), message);
    }
    cvy_mem_free(&page);
    cvy_mem_free(&help);
}

/* A job that gives nothing has the values for which 0 and NULL stand; numbers may have another default in a row. */
static void defaults_are_zero(void)
{
    const cvy_program_opts zero = cvy_program_opts_default();
    cvy_job *job = NULL;
    EXPECT_OK(cvy_job_parse_text("job.yaml", "model: lenet\ndata: {train: mnist}\n", NULL, 0, &job));
    for (const cvy_program_option *o = cvy_program_option_table; o->field && job; o++) {
        const void *field = (const char *)&job->program + o->row.offset;
        if (o->row.type == CVY_TYPE_WORD && o->section)
            EXPECT_INT(cvy_program_word_index(o->field, *(const char *const *)field), 0);
        else if (o->row.type != CVY_TYPE_INT && o->row.type != CVY_TYPE_REAL && o->row.type != CVY_TYPE_STRING)
            EXPECT(same_field(o, &zero, &job->program));
    }
    cvy_job_destroy(&job);
}

/* A field that a program has filled is checked by its row. */
static void fields_are_checked(void)
{
    static const struct {
        cvy_program_opts opts;
        const char *text;
    } bad[] = {
        {{.pipeline = -1}, "opts.pipeline is -1, expected 1.."},
        {{.spatial = {2, -2}}, "opts.spatial is [2, -2, 0], expected 1.."},
        {{.interleave = 1001}, "opts.interleave is 1001, expected 1..1000"},
        {{.clock_noise = 1}, "opts.clock_noise is 1, expected 0.. <1"},
        {{.overlap = (cvy_overlap)3}, "opts.overlap is 3, expected true|forward|false"},
        {{.reduce_wire = CVY_DTYPE_F64}, "opts.reduce_wire is f64, expected f32|bf16"},
        {{.planning = "quick"}, "opts.planning is \"quick\", expected estimate|measure|patient"},
        {{.reduce = "rings"}, "opts.reduce: there is no all-reduce algorithm \"rings\""},
        {{.update_staleness = -2}, "opts.update_staleness is -2, expected none or 0.. (steps)"},
        {{.batch_norm_group = -4}, "opts.batch_norm_group is -4, expected batch or rank or shard or 1.. (samples)"},
    };
    for (int i = 0; i < CVY_COUNT(bad); i++)
        EXPECT_FAULT(cvy_program_opts_check(&bad[i].opts), CVY_E_CONFIG, bad[i].text);
    EXPECT_OK(cvy_program_opts_check(&(cvy_program_opts){.seed = UINT64_MAX}));
}

int main(void)
{
    TEST(each_field_has_a_row);
    TEST(each_row_is_set_by_name);
    TEST(each_row_is_a_key);
    TEST(defaults_are_zero);
    TEST(fields_are_checked);
    return test_end();
}
