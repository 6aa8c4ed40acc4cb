/*
 * event_scalars.c: the numbers of metrics.jsonl as scalars. A new number in a line needs no change here.
 *
 * TensorBoard groups tags by what is before the first slash: train, val, test, speed, time, epoch, and the stages of a
 * pipeline.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitor/tensorboard/event.h"

/* These say where on the axis a point is, or are constant. */
static int is_place(const char *key)
{
    static const char *const keys[] = {"kind", "step", "epoch", "samples", "stage", "ranks"};
    for (int i = 0; i < CVY_COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return 1;
    return 0;
}

static const char *group_of_step(const char *key)
{
    if (strcmp(key, "loss") == 0 || strcmp(key, "learning_rate") == 0)
        return "train";
    return strncmp(key, "seconds_", 8) == 0 ? "time" : "speed";
}

/* The tag of a number in a line of this kind. Returns 0 if such lines have no scalars. */
static int make_tag(const cvy_tree *line, const char *kind, const char *key, char *tag, size_t room)
{
    if (strcmp(kind, "step") == 0)
        return snprintf(tag, room, "%s/%s", group_of_step(key), key) > 0;
    if (strcmp(kind, "stage") == 0)
        return snprintf(tag, room, "stage-%.0f/%s", cvy_tree_real_at(line, "stage"), key) > 0;
    if (strcmp(kind, "epoch") != 0 && strcmp(kind, "validation") != 0)
        return 0;
    if (strncmp(key, "val_", 4) == 0 || strncmp(key, "test_", 5) == 0)
        return snprintf(tag, room, "%.*s/%s", (int)strcspn(key, "_"), key, strchr(key, '_') + 1) > 0;
    return snprintf(tag, room, "epoch/%s", key) > 0;
}

static cvy_status make_value(cvy_pool *pool, const char *tag, double number, Cvy__Tb__SummaryValue **out)
{
    CVY_TRY(cvy_pool_alloc(pool, sizeof **out, out));
    cvy__tb__summary_value__init(*out);
    CVY_TRY(cvy_pool_strdup(pool, tag, &(*out)->tag));
    (*out)->value_case = CVY__TB__SUMMARY_VALUE__VALUE_SIMPLE_VALUE;
    (*out)->simple_value = (float)number;
    return CVY_OK;
}

static cvy_status add_numbers(cvy_events *e, cvy_pool *pool, const cvy_tree *line)
{
    const char *kind = cvy_tree_text_at(line, "kind");
    const double step = cvy_tree_real_at(line, "step");
    Cvy__Tb__SummaryValue **value = NULL;
    int count = 0;
    if (!kind || isnan(step))
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *value * ((size_t)line->count + 1), &value));
    for (int i = 0; i < line->count; i++) {
        const cvy_tree *node = line->child[i];
        char tag[160];
        if (is_place(line->key[i]) || node->kind != CVY_TREE_SCALAR || node->quoted)
            continue;
        const double number = cvy_tree_real_or_nan(node);
        if (isfinite(number) && make_tag(line, kind, line->key[i], tag, sizeof tag))
            CVY_TRY(make_value(pool, tag, number, &value[count++]));
    }
    return cvy_event_write_summary(e, (int64_t)step, value, count);
}

cvy_status cvy_events_add_line(cvy_events *e, const cvy_json *line)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    if (!e)
        return CVY_OK;
    CVY_TRY(line->text.status);
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_tree_parse_text(pool, "a line of metrics.jsonl", line->text.data, line->text.bytes, &tree);
    if (status == CVY_OK)
        status = add_numbers(e, pool, tree);
    cvy_pool_destroy(&pool);
    return status;
}
