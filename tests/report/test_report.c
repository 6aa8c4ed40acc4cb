/* rows: clang asan */
/*
 * test_report.c: the page shows what the run's files contain, is well-formed whatever that is, and leaves out what does
 * not exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "report/report.h"
#include "report/report_page.h"
#include "report/report_svg.h"
#include "report/well_formed.h"
#include "test_util.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/cvy-report-XXXXXX";

static void begin(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    EXPECT(mkdtemp(folder) != NULL);
}

static void end(void)
{
    EXPECT_OK(cvy_file_remove_tree(folder));
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(cvy_file_replace(path, text, strlen(text)));
}

static char *page(void)
{
    char path[256], *html = NULL;
    size_t bytes = 0;
    if (cvy_report_write(folder) != CVY_OK)
        TEST_FAIL("%s", cvy_error_text());
    snprintf(path, sizeof path, "%s/report.html", folder);
    EXPECT_OK(cvy_file_read(path, (size_t)16 << 20, &html, &bytes));
    expect_well_formed(html);
    return html;
}

static const char metrics[] = "{\"kind\": \"step\", \"step\": 10, \"epoch\": 0.5, \"samples\": 640, \"loss\": 2.3, "
                              "\"learning_rate\": 0.1, \"images_per_s\": 900, "
                              "\"seconds_data\": 0.01, \"seconds_compute\": 0.08, \"seconds_exposed_comm\": 0.01}\n"
                              "{\"kind\": \"step\", \"step\": 20, \"epoch\": 1, \"samples\": 1280, \"loss\": 1.9, "
                              "\"learning_rate\": 0.1, \"images_per_s\": 1100, "
                              "\"seconds_data\": 0.01, \"seconds_compute\": 0.08, \"seconds_exposed_comm\": 0.01}\n"
                              "not json\n{\"kind\": \"other\", \"x\": 1}\n{\"kind\": \"step\", \"step\": null}\n"
                              "{\"kind\": \"epoch\", \"epoch\": 1, \"train_loss\": 2.1, \"val_loss\": 9.9, "
                              "\"val_accuracy\": 0.1, \"seconds\": 60}\n"
                              "{\"kind\": \"epoch\", \"epoch\": 1, \"train_loss\": 2.1, \"val_loss\": 2.0, "
                              "\"val_accuracy\": 0.25, \"val_top5\": 0.7, \"seconds\": 60}\n"
                              "{\"kind\": \"epoch\", \"epoch\": 2, \"train_loss\": 1.8, \"val_loss\": 1.7, "
                              "\"val_accuracy\": 0.375, \"val_top5\": 0.8, \"seconds\": 64.5}\n"
                              "{\"kind\": \"epoch\", \"epoch\": 3, \"train_l";

static const char plan[] = "{\"version\": \"9.9.9\", \"machine\": {\"cpu\": \"a <b> & \\\"c\\\"\", \"ranks\": 2}, "
                           "\"train\": {\"params\": 12345, \"memory\": {\"arena_bytes\": 3145728, "
                           "\"gradient_bytes\": 1048576, \"weight_bytes\": 1048576, \"state_bytes\": 0}, \"layers\": ["
                           "{\"name\": \"conv1\", \"layer\": \"conv1\", \"op\": \"conv\", \"phase\": \"forward\", "
                           "\"out_shape\": \"8x4x6x6\", \"params\": 112, \"flop\": 2000000, "
                           "\"kernel\": \"onednn.conv\", \"layout\": \"aBcd16b\"},"
                           "{\"name\": \"conv1.grad\", \"layer\": \"conv1\", \"op\": \"conv_grad\", \"phase\": "
                           "\"backward\", \"params\": 0, \"flop\": 4000000}]}}";

static const char test[] =
    "{\"checkpoint\": \"step-00000020\", \"data\": \"x<y>\", \"samples\": 4000, \"loss\": 0.5, \"metrics\": "
    "{\"accuracy\": 0.75, \"<k>\": 1.5},"
    "\"classes\": [\"a\", \"b<i>\", \"c\"], \"positive\": \"signal\", \"confusion\": [[10, 2, 0], [7, 20, 1], [0, 0, "
    "5]],"
    "\"roc\": {\"fpr\": [0, 0.01, 0.5, 1], \"tpr\": [0, 0.5, 0.9, 1], \"threshold\": [1, 0.9, 0.2, 0]},"
    "\"network\": {\"area\": 0.85, \"area_error\": 0.01, \"at_fpr\": 0.01, \"efficiency\": 0.5, \"efficiency_error\": "
    "0.02},"
    "\"baselines\": [{\"name\": \"undefined\", \"area\": null}, {\"name\": \"cuts & <more>\", \"fpr\": [0, 0.5, 1], "
    "\"tpr\": [0, 0.6, 1], \"area\": 0.55, "
    "\"area_error\": 0.01, "
    "\"area_gain\": 0.3, \"area_gain_error\": 0.02}, {\"name\": \"no curve\", \"area\": 0.5}],"
    "\"reliability\": {\"count\": [0, 100, 300], \"confidence\": [null, 0.6, 0.95], \"accuracy\": [null, 0.55, "
    "0.8]},"
    "\"regression\": [{\"name\": \"u\", \"unit\": \"m/s\", \"truth\": [1, 2, 3, null], \"prediction\": [1.1, 2.2, 2.9, "
    "4], \"rmse\": 0.14, \"r2\": 0.97}],"
    "\"mistakes\": [{\"sample\": 7, \"name\": \"set/a/7<&>.png\", \"truth\": \"a\", \"answer\": \"c\", \"share\": 0.5, "
    "\"picture\": \"data:image/png;base64,AA==\"}, {\"sample\": 8, \"truth\": \"a\", \"answer\": \"c\", \"picture\": "
    "\"http://elsewhere/8.png\"}],"
    "\"fields\": [{\"field\": \"y[1]\", \"kind\": \"worst\", \"sample\": 3, \"name\": \"flow.h5, row 3\", \"rmse\": "
    "0.25, "
    "\"low\": -1.5, \"high\": 2, \"spread\": 0.125, \"truth\": \"data:image/png;base64,AB==\", \"prediction\": "
    "\"data:image/png;base64,AC==\", \"difference\": \"http://elsewhere/d.png\"}],"
    "\"rmse_by_output\": [0.5, 0.125], \"spectrum\": [{\"output\": [1, 0.5, 0.01], \"target\": [1, 0.25, 0.125]}, "
    "{\"output\": [1, null, 0], \"target\": [1, 0.25, 0.125]}],"
    "\"histograms\": [{\"name\": \"H_T\", \"unit\": \"GeV\", \"edges\": [0, 1, 2], \"classes\": [{\"name\": \"s\", "
    "\"counts\": [3, 1]}, {\"name\": \"broken\", \"counts\": [1]}]},"
    " {\"name\": \"nothing\"}]}";

static void whole_run(void)
{
    put("metrics.jsonl", metrics);
    put("plan.json", plan);
    put("test.json", test);
    put("job.resolved.yaml",
        "model: lenet\ntrain: {batch: 64, optimizer: {name: adam}}\n# </pre><script>alert(1)</script>\n");
    put("STATUS", "finished\nmore\n");
    char *html = page();
    says(html, "lenet was trained for 2 epochs in 2 min 04 s on 2 ranks.");
    says(html, "On 4000 test samples it identifies signal with an area under the ROC curve of 0.8500 ± 0.0100");
    says(html,
         "the best baseline (cuts &amp; &lt;more&gt;) reaches 0.5500, so the network is better by 15 standard errors.");
    says(html, "lowest validation loss 1.700, epoch 2");
    says(html, "best validation 37.5 %, epoch 2");
    says(html, "top5 per epoch");
    says(html, "compute 80.0 %, exposed communication 10.0 %, waiting for data 10.0 %");
    says(html, "b&lt;i&gt; taken for a");
    says(html, "7 (25.0 %)");
    says(html, "root mean square error 0.1400, R² 0.9700");
    says(html, "<span title=\"set/a/7&lt;&amp;&gt;.png\">7&lt;&amp;&gt;.png</span>");
    says(html, "<span>sample 8</span>");
    says(html, "y[1], worst sample: root mean square error 0.25");
    says(html, "<img alt=\"prediction\" src=\"data:image/png;base64,AC==\"/>");
    says(html, "<div class=\"ramp values\"><i></i><span>-1.50</span><span>2</span></div>");
    says(html, "<div class=\"ramp differences\"><i></i><span>-0.125</span><span>0.125</span></div>");
    EXPECT(strstr(html, "elsewhere") == NULL); /* the page shows nothing from outside */
    says(html, "y[0]: power spectrum");
    says(html, "root mean square error of the channel 0.5");
    says(html, "y[1]: power spectrum");
    says(html, "H_T, GeV");
    says(html, "1 layer, 12,345 parameters");
    says(html, "Memory of a rank: 4.00 MiB");
    says(html, "a &lt;b&gt; &amp; &quot;c&quot;");
    says(html, "&lt;script&gt;");
    says(html, "convoy 9.9.9");
    says(html, "status <b>finished</b>");
    says(html, "<dt>samples per second</dt><dd>990</dd>"); /* 1280 samples in 640 / 900 + 640 / 1100 s */
    says(html, "990 a second on average");
    EXPECT(strstr(html, "9.9</title>") == NULL); /* epoch 1 was written twice; the later line counts */
    cvy_mem_free(&html);
}

/* Samples that chose the checkpoint, or were trained on, are not called test samples. */
static void no_test(void)
{
    put("test.json",
        "{\"samples\": 40, \"role\": \"chose\", \"r2_mean_of\": \"positions\", \"metrics\": {\"r2\": 0.5}}");
    char *html = page();
    says(html, "On 40 samples that are no test, because they chose the checkpoint or the end of the training, ");
    says(html, "<b>This is no test</b>: these samples chose the checkpoint");
    says(html, "r2, mean of positions");
    EXPECT(!strstr(html, "test samples"));
    cvy_mem_free(&html);
    put("test.json", "{\"samples\": 40, \"role\": \"trained\", \"metrics\": {\"accuracy\": 0.5}}");
    html = page();
    says(html, "because they are those of the training, it gives the right answer for 50.0 %");
    cvy_mem_free(&html);
}

/* Before and after the calibration; an empty bin is left out; a damaged list shows nothing. */
static void reliability(void)
{
    static const char bins[] =
        "{\"samples\": 400, \"temperature\": 1.25, \"metrics\": {\"ece\": 0.125, \"ece_calibrated\": 0.06}, "
        "\"reliability\": {\"count\": [0, 100, 300], \"confidence\": [null, 0.6, 0.95], \"accuracy\": [null, 0.55, "
        "0.8]}, \"reliability_calibrated\": {\"count\": [10, 90, 300], \"confidence\": [0.3, 0.6, 0.9], \"accuracy\": "
        "[0.3, 0.55, 0.8]}}";
    put("test.json", bins);
    char *html = page();
    says(html, "<b>Reliability</b>");
    says(html, "expected calibration error 12.5 %, with the temperature 1.250 it is 6.0 %");
    says(html, "as trained");
    says(html, "calibrated");
    says(html, "number of test samples in each bin of confidence");
    cvy_mem_free(&html);
    put("test.json", "{\"samples\": 4, \"reliability\": {\"count\": [1, 2], \"confidence\": [0.3], \"accuracy\": 7}}");
    html = page();
    EXPECT(!strstr(html, "Reliability"));
    cvy_mem_free(&html);
}

/* The parts of a step add up to its exposed communication, and only the last epoch's stages are shown. */
static void stages_of_a_pipeline(void)
{
    put("metrics.jsonl",
        "{\"kind\": \"step\", \"step\": 1, \"seconds_data\": 0, \"seconds_compute\": 0.06, \"seconds_exposed_comm\": "
        "0.04, "
        "\"seconds_exposed_data\": 0.005, \"seconds_exposed_pipeline\": 0.03, \"seconds_bubble\": 0.029}\n"
        "{\"kind\": \"step\", \"step\": 2, \"seconds_data\": 0, \"seconds_compute\": 0.06, \"seconds_exposed_comm\": "
        "0.04, "
        "\"seconds_exposed_data\": 0.005, \"seconds_exposed_pipeline\": 0.03, \"seconds_bubble\": 0.029}\n"
        "{\"kind\": \"stage\", \"epoch\": 1, \"stage\": 1, \"ranks\": 2, \"seconds_compute\": 99}\n"
        "{\"kind\": \"stage\", \"epoch\": 1, \"stage\": 2, \"ranks\": 2, \"seconds_compute\": 99}\n"
        "{\"kind\": \"stage\", \"epoch\": 2, \"stage\": 1, \"ranks\": 2, \"seconds_data\": 0.001, \"seconds_compute\": "
        "0.049, "
        "\"seconds_exposed_pipeline\": 0.05, \"seconds_bubble\": 0.025}\n"
        "{\"kind\": \"stage\", \"epoch\": 2, \"stage\": 2, \"ranks\": 2, \"seconds_compute\": 0.1, \"seconds_bubble\": "
        "null}\n"
        "{\"kind\": \"stage\", \"epoch\": 2, \"stage\": 3, \"ranks\": [2]}\n");
    char *html = page();
    says(html,
         "compute 60.0 %, waiting for ranks with other samples 5.0 %, waiting for other stages 30.0 %, agreement of "
         "all ranks 5.0 %, waiting for data 0.00 %");
    says(html, "The first stage of the pipeline waits 29.0 % of the step for other stages: more micro-batches");
    says(html, "The stages of the pipeline in epoch 2");
    says(html, "<tr><th>1</th><td>2</td><td>1</td><td>49</td><td>50</td><td>25</td><td>25.0 %</td></tr>");
    says(html, "<tr><th>2</th><td>2</td><td>0</td><td>100</td><td>0</td><td>0</td><td>0.00 %</td></tr>");
    EXPECT(strstr(html, "<td>99") == NULL);
    EXPECT(strstr(html, "<tr><th>3</th>") == NULL);
    cvy_mem_free(&html);
}

static void says_why_it_ended(void)
{
    static const struct {
        const char *status, *fact, *why;
    } rows[] = {
        {"finished step 20 of 20 at 2026-01-31T12:00:00Z\n", "finished step 20 of 20 at 2026-01-31T12:00:00Z", NULL},
        {"finished step 9 of 20 at 2026-01-31T12:00:00Z: early stop: the loss <b> stays\n",
         "finished step 9 of 20 at 2026-01-31T12:00:00Z",
         "It ended at step 9 of 20: early stop: the loss &lt;b&gt; stays."},
        {"failed step 3 of 20 at 2026-01-31T12:00:00Z: no room\n", "failed step 3 of 20 at 2026-01-31T12:00:00Z",
         "It failed at step 3 of 20: no room."},
        {"failed step of 20\n", "failed step of 20", NULL},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        char fact[160];
        put("STATUS", rows[i].status);
        char *html = page();
        snprintf(fact, sizeof fact, "status <b>%s</b>", rows[i].fact);
        says(html, fact);
        if (rows[i].why)
            says(html, rows[i].why);
        else
            EXPECT(!strstr(html, " at step "));
        cvy_mem_free(&html);
    }
}

static void missing_pieces(void)
{
    char *html = page();
    says(html, "The network has not finished a step yet.");
    cvy_mem_free(&html);

    put("metrics.jsonl", "");
    put("plan.json", "{\"layers\": [");
    put("test.json", "[]");
    html = page();
    says(html, "plan.json is left out");
    cvy_mem_free(&html);

    put("plan.json", "{\"layers\": [1, {}, {\"name\": {}}], \"memory\": 7, \"machine\": [1]}");
    put("test.json", "{\"roc\": 1, \"baselines\": [2], \"confusion\": [1, [2]], \"network\": 4, \"regression\": [[]], "
                     "\"mistakes\": [1, {}], \"fields\": [2, {}, {\"field\": {}, \"truth\": 1}], "
                     "\"spectrum\": [3, {}, {\"target\": 1, \"output\": [0, -1]}], \"rmse_by_output\": 5, "
                     "\"histograms\": [3], \"metrics\": []}");
    put("metrics.jsonl", "{\"kind\": \"epoch\", \"epoch\": 1, \"train_loss\": 0.5}\n{\"kind\": \"step\", \"step\": 1, "
                         "\"loss\": 1e400}\n");
    html = page();
    says(html, "trained for 1 epoch.");
    cvy_mem_free(&html);
    EXPECT_INT(cvy_report_write("/nonexistent/run"), CVY_E_IO);
}

static void out_of_memory(void)
{
    int k = 1;
    put("metrics.jsonl", metrics);
    put("plan.json", plan);
    put("test.json", test);
    for (cvy_status status = CVY_E_MEMORY; status != CVY_OK; k += 1 + k / 16) {
        cvy_mem_fail_at(k, 1);
        status = cvy_report_write(folder);
        cvy_mem_fail_at(0, 0);
        EXPECT(status == CVY_OK || status == CVY_E_MEMORY);
        if (k >= 100000)
            break;
    }
    EXPECT(k > 10 && k < 100000);
}

static void ticks(void)
{
    static const struct {
        double min, max;
        int wanted, whole;
        double first, step;
        int count;
    } rows[] = {
        {0, 1, 5, 0, 0, 0.2, 6},
        {0, 97, 5, 0, 0, 20, 5},
        {1, 12, 6, 1, 2, 2, 6},
        {1, 3, 6, 1, 1, 1, 3},
        {-1e-5, 1e-5, 4, 0, -1e-5, 5e-6, 5},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        double first, step;
        EXPECT_INT(cvy_ticks(rows[i].min, rows[i].max, rows[i].wanted, rows[i].whole, &first, &step), rows[i].count);
        EXPECT(fabs(first - rows[i].first) < 1e-9 * step && fabs(step - rows[i].step) < 1e-9 * step);
    }
}

static void numbers(void)
{
    EXPECT_TEXT(cvy_number_text(0.000123456, 3).at, "0.000123");
    EXPECT_TEXT(cvy_number_text(0.0000123456, 3).at, "1.23e-05");
    EXPECT_TEXT(cvy_number_text(12345.6, 3).at, "12,346");
    EXPECT_TEXT(cvy_number_text(0.25, 3).at, "0.250");
    EXPECT_TEXT(cvy_number_text(-3, 4).at, "-3");
    EXPECT_TEXT(cvy_number_text(NAN, 4).at, "–");
    EXPECT_TEXT(cvy_number_count(-1234567).at, "-1,234,567");
    EXPECT_TEXT(cvy_number_count(1000).at, "1000");
    EXPECT_TEXT(cvy_number_bytes(1536).at, "1.50 KiB");
    EXPECT_TEXT(cvy_number_seconds(0.0123).at, "12.3 ms");
    EXPECT_TEXT(cvy_number_seconds(3725).at, "1 h 02 min");
    EXPECT_TEXT(cvy_number_percent(0.8054).at, "80.5 %");
    EXPECT_TEXT(cvy_number_percent(0.0004).at, "0.04 %");
}

static void texts_are_escaped(void)
{
    cvy_text html = {0};
    cvy_html_add(&html, "<b>%s</b> %d of %lld, %.1f%% or %g%s", "a<b>&\x01\"", -3, (long long)1 << 40, 12.34, 0.5, "");
    EXPECT_OK(html.status);
    EXPECT_TEXT(html.data, "<b>a&lt;b&gt;&amp;&quot;</b> -3 of 1099511627776, 12.3% or 0.5");
    cvy_text_free(&html);
}

int main(void)
{
    TEST_WITH(begin, whole_run, end);
    TEST_WITH(begin, no_test, end);
    TEST_WITH(begin, reliability, end);
    TEST_WITH(begin, stages_of_a_pipeline, end);
    TEST_WITH(begin, says_why_it_ended, end);
    TEST_WITH(begin, missing_pieces, end);
    TEST_WITH(begin, out_of_memory, end);
    TEST(ticks);
    TEST(numbers);
    TEST(texts_are_escaped);
    return test_end();
}
