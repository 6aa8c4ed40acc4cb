/* rows: clang asan */
/*
 * test_report_sweep.c: in the page of a search, listed values that are even in their logarithm have a logarithmic axis
 * as ranges that were drawn so, others have none, and few points are drawn large enough to be seen; a state with values
 * of another kind gives a page or a message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "base/base_file.h"
#include "base/tree_confusion.h"
#include "report/report.h"
#include "report/well_formed.h"
#include "sweep/sweep.h"
#include "test_util.h"

/* The page of a search over one key, whose values have these scores. */
static char *page_of(const char *key, const char *const *value, int n)
{
    static char root[] = "/tmp/cvy-sweep-XXXXXX";
    char path[256], text[4096], *html = NULL;
    size_t bytes = 0;
    int at =
        snprintf(text, sizeof text,
                 "{\"version\": 1, \"sweep\": \"s\", \"metric\": \"val_loss\", \"goal\": \"min\", \"score\": \"last\", "
                 "\"search\": {\"search\": \"grid\"}, \"keys\": [%s], \"trials\": [",
                 key);
    for (int i = 0; i < n; i++)
        at +=
            snprintf(text + at, sizeof text - (size_t)at,
                     "%s{\"trial\": %d, \"state\": \"finished\", \"rank\": %d, \"values\": [\"%s\"], \"scores\": [%d], "
                     "\"epochs\": 2, \"seconds\": 1}",
                     i ? ", " : "", i + 1, i + 1, value[i], i + 1);
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    strcpy(root + strlen(root) - 6, "XXXXXX");
    EXPECT(mkdtemp(root) != NULL);
    snprintf(path, sizeof path, "%s/sweep.json", root);
    EXPECT_OK(cvy_file_replace(path, text, strlen(text)));
    EXPECT_OK(cvy_report_sweep(root));
    snprintf(path, sizeof path, "%s/sweep.html", root);
    EXPECT_OK(cvy_file_read(path, 1 << 24, &html, &bytes));
    EXPECT_OK(cvy_file_remove_tree(root));
    return html;
}

/* A power of ten is written with a superscript on logarithmic axes only, if they have more than two powers. */
static void axis_of(const char *kind, const char *a, const char *b, const char *c, int is_log)
{
    const char *const value[] = {a, b, c};
    char key[128], *html = NULL;
    snprintf(key, sizeof key, "{\"key\": \"train.optimizer.lr\", %s}", kind);
    html = page_of(key, value, CVY_COUNT(value));
    EXPECT_INT(html && strstr(html, "10⁻") != NULL, is_log);
    EXPECT(html && strstr(html, "class=\"point few"));
    cvy_mem_free(&html);
}

static void axes_of_keys(void)
{
    const char listed[] = "\"list\": true, \"log\": false", range[] = "\"list\": false, \"log\": false";
    axis_of("\"list\": false, \"log\": true", "0.0012", "0.0301", "0.2", 1);
    axis_of(listed, "0.1", "0.0001", "0.01", 1);
    axis_of(listed, "3e-4", "1e-3", "3e-2", 1);
    axis_of(listed, "0.01", "0.02", "0.03", 0);
    axis_of(listed, "0", "0.01", "0.1", 0);
    axis_of(range, "0.001", "0.01", "0.1", 0);
}

static char confused[] = "/tmp/cvy-sweep-XXXXXX";

static cvy_status read_state(cvy_pool *pool, const char *text)
{
    char *path = NULL, *table = NULL;
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/sweep.json", confused));
    confuse_file(path, text);
    const cvy_status status = cvy_sweep_table(confused, 0, &table);
    cvy_text_release(&table);
    CVY_TRY(status);
    return cvy_report_sweep(confused);
}

/* Each kind of value in place of each value of the state of a search. */
static void confusion_of_kinds(void)
{
    EXPECT(mkdtemp(confused) != NULL);
    confuse("{version: 1, sweep: s, metric: val_loss, goal: min, score: last, search: {search: population}, keys: "
            "[{key: a, list: false, log: true}], trials: [{trial: 1, state: finished, rank: 1, bracket: 1, values: "
            "[\"0.5\"], scores: [2, 1], epochs: 4, seconds: 1, generations: [{epochs: 2, score: 2, values: [\"0.1\"]}, "
            "{epochs: 4, score: 1, parent: 2, values: [\"0.5\"]}]}, {trial: 2, state: failed, values: [\"0.2\"], "
            "scores: [3], epochs: 2, seconds: 1, error: broke, generations: [{epochs: 2, values: [\"0.2\"]}]}]}",
            read_state);
    EXPECT_OK(cvy_file_remove_tree(confused));
}

int main(void)
{
    TEST(axes_of_keys);
    TEST(confusion_of_kinds);
    return test_end();
}
