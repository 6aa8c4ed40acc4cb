/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_tables.c: some 200 tables that pandas and R write with their many options are read as pandas reads them, or
 * refused with a word that names the cause; what was guessed is said (make_tables.py).
 *
 * Values are compared as f32, names and labels as text.
 */
#include <math.h>

#include "data/test_data_support.h"
#include "tables_golden.h"

/* The next item of a list; NULL: there is none. */
static char *next_item(char **list)
{
    char *item = *list;
    if (!item)
        return NULL;
    char *end = strchr(item, '\037');
    *list = end ? end + 1 : NULL;
    if (end)
        *end = 0;
    return item;
}

static int differs(const struct golden_table *t, const char *what, int64_t row, const char *own, const char *expected)
{
    fprintf(stderr, "%s: %s, row %lld: %s, expected %s\n", t->name, what, (long long)row, own, expected);
    return 1;
}

static int compare_names(const struct golden_table *t, const cvy_dataset *d)
{
    const cvy_columns *c = &cvy_dataset_reader_info(d)->columns;
    char *copy = strdup(t->result->names), *at = copy, *name = NULL;
    int wrong = t->result->has_names != (c->x != NULL);
    if (wrong)
        differs(t, "names", 0, c->x ? c->x[0] : "none", t->result->names);
    for (int64_t i = 0; t->result->has_names && c->x && !wrong && i < c->nx && (name = next_item(&at)); i++)
        if (strcmp(name, c->x[i]) != 0)
            wrong = differs(t, "names", i, c->x[i], name);
    free(copy);
    return wrong;
}

/* Whether a label is the one that is expected: a number, also 1.0, or a name of a class. */
static int is_label(const cvy_dataset_info *info, int32_t label, const char *expected)
{
    char *end = NULL;
    const double number = strtod(expected, &end);
    if (info->class_name && strcmp(info->class_name[label], expected) == 0)
        return 1;
    return *expected && !*end && number == label;
}

static int compare_rows(const struct golden_table *t, cvy_dataset *d)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    char *x_copy = strdup(t->result->x), *x_at = x_copy, *label_copy = strdup(t->result->labels),
         *label_at = label_copy, own[40];
    float *x = calloc((size_t)t->result->ncolumn, sizeof *x);
    int32_t label = 0;
    int wrong = 0;
    for (int64_t i = 0; i < t->result->nrow && !wrong; i++) {
        if (cvy_dataset_read(d, i, 0, (void *const[]){x, &label}) != CVY_OK)
            wrong = differs(t, "the row", i, cvy_error_text(), "numbers");
        for (int k = 0; k < t->result->ncolumn && !wrong; k++) {
            const char *expected = next_item(&x_at);
            snprintf(own, sizeof own, "%.9g", (double)x[k]);
            if ((float)strtod(expected, NULL) != x[k])
                wrong = differs(t, "x", i, own, expected);
        }
        const char *expected = info->nclasses > 0 && !wrong ? next_item(&label_at) : NULL;
        if (expected && !is_label(info, label, expected)) {
            snprintf(own, sizeof own, "class %d", label);
            wrong = differs(t, "label", i, own, expected);
        }
    }
    free(x);
    free(x_copy);
    free(label_copy);
    return wrong;
}

static int compare(const struct golden_table *t, cvy_dataset *d)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const int64_t nx = cvy_shape_elems(&info->field[0].shape);
    char own[60];
    snprintf(own, sizeof own, "%lld rows of %lld", (long long)info->nsamples, (long long)nx);
    if (info->nsamples != t->result->nrow || nx != t->result->ncolumn) {
        char expected[60];
        snprintf(expected, sizeof expected, "%d rows of %d", t->result->nrow, t->result->ncolumn);
        return differs(t, "size", 0, own, expected);
    }
    if (!info->note || !strstr(info->note, "read as a table with separator "))
        return differs(t, "what was guessed", 0, info->note ? info->note : "nothing", "a line");
    if (!*t->result->labels != (info->nclasses == 0))
        return differs(t, "labels", 0, info->nclasses ? "some" : "none", t->result->labels);
    return compare_names(t, d) || compare_rows(t, d);
}

/* Reads all rows of a table that must be refused. */
static int check_refused(const struct golden_table *t, cvy_status status, cvy_dataset *d)
{
    static float x[1000];
    int32_t label;
    for (int64_t i = 0; status == CVY_OK && i < cvy_dataset_describe(d)->nsamples; i++)
        status = cvy_dataset_read(d, i, 0, (void *const[]){x, &label});
    if (status == CVY_OK)
        return differs(t, "the table", 0, cvy_dataset_describe(d)->note, t->refused);
    return strstr(cvy_error_text(), t->refused) ? 0 : differs(t, "the message", 0, cvy_error_text(), t->refused);
}

int main(void)
{
    int wrong = 0, refused = 0, equal = 0;
    scratch_make();
    for (int i = 0; i < CVY_COUNT(golden_table); i++) {
        const struct golden_table *t = &golden_table[i];
        char name[40], source[600];
        cvy_dataset *d = NULL;
        snprintf(name, sizeof name, "t%03d.%s", i, t->suffix);
        put_file(in_scratch(name), t->data, t->bytes);
        snprintf(source, sizeof source, "{path: \"%s\", missing: -99%s%s%s}", in_scratch(name),
                 strstr(t->suffix, ".bz2") || strstr(t->suffix, ".xz") || strstr(t->suffix, ".zip") ? ""
                                                                                                    : ", format: csv",
                 *t->options ? ", " : "", t->options);
        const cvy_status status = open_text(source, NULL, 0, &d);
        int is_wrong = 0;
        if (t->refused)
            is_wrong = check_refused(t, status, d);
        else if (status != CVY_OK)
            is_wrong = differs(t, "the table", 0, cvy_error_text(), "numbers");
        else
            is_wrong = compare(t, d);
        wrong += is_wrong;
        refused += t->refused && !is_wrong;
        equal += !t->refused && !is_wrong;
        cvy_dataset_destroy(&d);
    }
    printf("%d tables: %d equal, %d refused, %d wrong\n", (int)CVY_COUNT(golden_table), equal, refused, wrong);
    scratch_remove();
    return wrong != 0;
}
