/* rows: clang asan */
/*
 * test_report_compare.c: the page of several runs has the keys that differ and no others, the scores with the best ones
 * marked, and the curves of all runs; damaged files and runs without scores do not stop it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "base/base_file.h"
#include "report/report.h"
#include "report/well_formed.h"
#include "test_util.h"

static char root[] = "/tmp/cvy-compare-XXXXXX";

static void begin(void)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    EXPECT(mkdtemp(root) != NULL);
}

static void end(void)
{
    EXPECT_OK(cvy_file_remove_tree(root));
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

/* The paths of up to three runs, which stay until the next call. */
static const char *const *paths_of(const char *a, const char *b, const char *c)
{
    static char path[3][512];
    static const char *const paths[] = {path[0], path[1], path[2]};
    const char *const names[] = {a, b, c};
    for (int i = 0; i < CVY_COUNT(names); i++)
        snprintf(path[i], sizeof path[i], "%s/%s", root, names[i]);
    return paths;
}

static void put(const char *run, const char *file, const char *text)
{
    char name[256];
    EXPECT_OK(cvy_file_make_folder(path_of(run)));
    snprintf(name, sizeof name, "%s/%s", run, file);
    EXPECT_OK(cvy_file_replace(path_of(name), text, strlen(text)));
}

/* A run of two epochs with this rate, batch and accuracy. */
static void put_run(const char *name, const char *lr, int batch, double accuracy)
{
    char text[2048];
    put(name, "STATUS", "finished step 20 of 20 at 2026-01-31T12:00:00Z\n");
    snprintf(text, sizeof text,
             "model: lenet\ntrain: {epochs: 2, batch: %d, optimizer: {name: sgd, lr: %s}, seed: 7}\n"
             "plan: {kernels: auto}\n",
             batch, lr);
    put(name, "job.resolved.yaml", text);
    snprintf(
        text, sizeof text,
        "{\"kind\": \"step\", \"step\": 10, \"epoch\": 1, \"samples\": 640, \"loss\": 2.5, \"learning_rate\": %s, "
        "\"images_per_s\": 32}\n"
        "{\"kind\": \"epoch\", \"step\": 10, \"epoch\": 1, \"train_loss\": 2.6, \"val_loss\": 2.4, "
        "\"val_accuracy\": %g, \"seconds\": 90}\n"
        "{\"kind\": \"step\", \"step\": 20, \"epoch\": 2, \"samples\": 1280, \"loss\": 1.5, \"learning_rate\": %s, "
        "\"images_per_s\": 32}\n"
        "{\"kind\": \"epoch\", \"step\": 20, \"epoch\": 2, \"train_loss\": 1.6, \"val_loss\": 1.75, "
        "\"val_accuracy\": %g, \"seconds\": 90}\n",
        lr, accuracy / 2, lr, accuracy);
    put(name, "metrics.jsonl", text);
    put(name, "plan.json", "{\"machine\": {\"nodes\": \"1\", \"ranks\": \"2\"}}");
}

static char *page(const char *const *runs, int count)
{
    char *html = NULL;
    size_t bytes = 0;
    EXPECT_OK(cvy_report_compare(runs, count, path_of("page.html")));
    EXPECT_OK(cvy_file_read(path_of("page.html"), (size_t)16 << 20, &html, &bytes));
    expect_well_formed(html);
    return html;
}

static int count_of(const char *html, const char *text)
{
    int n = 0;
    for (const char *at = html; (at = strstr(at, text)) != NULL; at += strlen(text))
        n++;
    return n;
}

static void compares(void)
{
    put_run("a", "0.1", 64, 0.5);
    put_run("b<i>", "0.2", 64, 0.75);
    put_run("c", "0.1", 32, 0.75);
    put("c", "test.json", "{\"loss\": 0.5, \"metrics\": {\"accuracy\": 0.8}}");
    char *html = page(paths_of("a", "b<i>/", "c"), 3);
    says(html, "<h1>a, b&lt;i&gt; and c</h1>");
    says(html, "<header class=\"names\">"); /* a list of names has smaller letters, on small screens too */
    says(html, "The best val_accuracy is 0.7500, of b&lt;i&gt; (epoch 2), c (epoch 2).");
    says(html, "<tr><th>train.optimizer.lr</th><td>0.1</td><td>0.2</td><td>0.1</td></tr>");
    says(html, "<tr><th>train.batch</th><td>64</td><td>64</td><td>32</td></tr>");
    EXPECT(!strstr(html, "seed") && !strstr(html, "plan.kernels") && !strstr(html, "<th>model"));
    says(html, "<tr><th>best val_accuracy</th><td>0.5000</td><td><b>0.7500</b></td><td><b>0.7500</b></td></tr>");
    says(html, "<tr><th>last val_loss</th><td>1.750</td><td>1.750</td><td>1.750</td></tr>"); /* equal: none is bold */
    says(html, "<tr><th>test.json accuracy</th><td>–</td><td>–</td><td>0.8000</td></tr>");
    says(html, "<tr><th>state</th><td>finished</td><td>finished</td><td>finished</td></tr>");
    says(html, "<tr><th>time</th><td>3 min 00 s</td><td>3 min 00 s</td><td>3 min 00 s</td></tr>");
    says(html, "<b>Training loss over epochs</b>");
    says(html, "<b>Training loss over time</b>");
    says(html, "<b>Validation accuracy over epochs</b>");
    says(html, "<b>Validation loss over time</b>");
    says(html, "<b>Learning rate over time</b>");
    says(html, ">time, min</text>");
    /* 8 charts, with a curve of each run in its colour */
    EXPECT_INT(count_of(html, "<figure"), 8);
    EXPECT_INT(count_of(html, "class=\"swatch c0\""), 8);
    EXPECT_INT(count_of(html, "class=\"swatch c2\""), 8);
    EXPECT_INT(count_of(html, "class=\"swatch c3\""), 0);
    cvy_mem_free(&html);
}

static void survives_gaps(void)
{
    put_run("x/run", "0.1", 64, 0.5);
    put_run("y/run", "0.1", 64, 0.5);
    const char *const *same = paths_of("x/run", "y/run", "");
    char *html = page(same, 2);
    says(html, "/x/run and /"); /* the same last part: whole folders */
    EXPECT(!strstr(html, "what differs in the jobs"));
    cvy_mem_free(&html);

    put("y/run", "STATUS", "failed step 0 of 20 at 2026-01-31T12:00:00Z: no room & no time\n");
    put("y/run", "metrics.jsonl", "not json\n");
    put("y/run", "plan.json", "{\"machine\": ");
    put("y/run", "job.resolved.yaml", "train: 5\nlayers: [1, 2]\n");
    html = page(same, 2);
    says(html, "The runs have no score in common");
    says(html, "no room &amp; no time");
    says(html, "plan.json is left out");
    says(html, "<tr><th>layers</th><td>–</td><td>[1, 2]</td></tr>");
    says(html, "<td>finished</td><td>failed</td>");
    cvy_mem_free(&html);

    put("y/run", "job.resolved.yaml", "[1, 2\n");
    put("x/run", "metrics.jsonl", "");
    html = page(same, 2);
    says(html, "job.resolved.yaml is left out");
    says(html, "<tr><th>the job</th><td>known</td><td>–</td></tr>");
    EXPECT_INT(count_of(html, "<figure"), 0);
    cvy_mem_free(&html);
}

static void refuses(void)
{
    put_run("a", "0.1", 64, 0.5);
    const char *const *runs = paths_of("a", "nowhere", "");
    EXPECT_FAULT(cvy_report_compare(runs, 2, path_of("page.html")), CVY_E_IO, "nowhere");
    EXPECT_FAULT(cvy_report_compare(runs, 1, path_of("page.html")), CVY_E_ARGUMENT, "2 to 8");
    EXPECT_FAULT(cvy_report_compare(runs, 9, path_of("page.html")), CVY_E_ARGUMENT, "2 to 8");
    EXPECT(!cvy_file_exists(path_of("page.html")));
}

static void out_of_memory(void)
{
    put_run("a", "0.1", 64, 0.5);
    put_run("b", "0.2", 32, 0.5);
    const char *const *runs = paths_of("a", "b", "");
    EXPECT_SURVIVES_NO_MEMORY(cvy_report_compare(runs, 2, path_of("page.html")));
    EXPECT_INT(cvy_memory_bytes(), 0);
}

int main(void)
{
    TEST_WITH(begin, compares, end);
    TEST_WITH(begin, survives_gaps, end);
    TEST_WITH(begin, refuses, end);
    TEST_WITH(begin, out_of_memory, end);
    return test_end();
}
