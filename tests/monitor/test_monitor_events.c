/* rows: clang asan minimal */
/*
 * test_monitor_events.c: event files are whole records with right checksums, and hold the scalars, the graph and the
 * histograms that were written; a resumed run cuts off later events; a full disk loses events and nothing else.
 * `test_monitor_events --print FOLDER` prints the events of a folder for shell tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base_file.h"
#include "model/model.h"
#include "monitor/monitor_events.h"
#include "test_util.h"

/* ---- buckets ---- */

static void buckets(void)
{
    static const float values[] = {0,    -0.0f, 1,       -1,       1.0624f, 1.0626f, -1.1249f,
                                   0.3f, -0.3f, FLT_MAX, -FLT_MAX, 1e-42f,  -1e-42f, FLT_MIN};
    static cvy_histogram h;
    for (int i = 0; i < CVY_COUNT(values); i++) {
        int at = 0;
        cvy_histogram_begin(&h);
        cvy_histogram_add(&h, &values[i], CVY_DTYPE_F32, 1);
        while (at < CVY_HISTOGRAM_BUCKETS - 1 && h.count[at] == 0)
            at++;
        EXPECT_INT(h.count[at], 1);
        /* a bucket of negative values has its lower end and lacks its upper one, seen from 0 */
        if (values[i] >= 0)
            EXPECT(values[i] >= cvy_histogram_end(at - 1) && values[i] < cvy_histogram_end(at));
        else
            EXPECT(values[i] > cvy_histogram_end(at - 1) && values[i] <= cvy_histogram_end(at));
    }
    for (int i = 1; i < CVY_HISTOGRAM_BUCKETS; i++)
        EXPECT(cvy_histogram_end(i) > cvy_histogram_end(i - 1));
    EXPECT(cvy_histogram_end(CVY_HISTOGRAM_HALF - 1) == 0);
    const double mixed[] = {1.5, -2.5, NAN, 4, INFINITY};
    cvy_histogram_begin(&h);
    cvy_histogram_add(&h, mixed, CVY_DTYPE_F64, CVY_COUNT(mixed));
    EXPECT(h.min == -2.5 && h.max == 4 && h.sum == 3 && h.sum_squares == 24.5);
}

#if CVY_HAVE_PROTOBUF_C
#include "data/tfrecord/data_tfrecord.h"
#include "format/format_protobuf.h"
#include "monitor/tensorboard/event.pb-c.h"

static char folder[] = "/tmp/cvy-events-XXXXXX";

/* ---- reading back ---- */

static void add_value(const Cvy__Tb__SummaryValue *v, long long step, cvy_text *out)
{
    if (v->value_case == CVY__TB__SUMMARY_VALUE__VALUE_SIMPLE_VALUE) {
        cvy_text_add(out, "%lld scalar %s %.6g\n", step, v->tag, v->simple_value);
        return;
    }
    const Cvy__Tb__HistogramProto *h = v->histo;
    double sum = 0;
    int sorted = h->n_bucket == h->n_bucket_limit;
    for (size_t i = 0; i < h->n_bucket; i++) {
        sum += h->bucket[i];
        sorted = sorted && (i == 0 || h->bucket_limit[i] > h->bucket_limit[i - 1]);
    }
    EXPECT(sorted && sum == h->num && h->bucket_limit[h->n_bucket - 1] >= h->max);
    cvy_text_add(out, "%lld histogram %s %.6g of %.6g to %.6g, sum %.6g, squares %.6g, %d buckets\n", step, v->tag,
                 h->num, h->min, h->max, h->sum, h->sum_squares, (int)h->n_bucket);
}

static void add_graph(const ProtobufCBinaryData *data, cvy_text *out)
{
    Cvy__Tb__GraphDef *g = cvy__tb__graph_def__unpack(NULL, data->len, data->data);
    EXPECT(g != NULL);
    for (size_t i = 0; g && i < g->n_node; i++) {
        const Cvy__Tb__NodeDef *n = g->node[i];
        cvy_text_add(out, "0 node %s %s(", n->name, n->op);
        for (size_t k = 0; k < n->n_input; k++)
            cvy_text_add(out, "%s%s", k ? ", " : "", n->input[k]);
        cvy_text_add(out, ")");
        for (size_t k = 0; k < n->n_attr; k++) {
            const Cvy__Tb__AttrValue *a = n->attr[k]->value;
            if (a->value_case == CVY__TB__ATTR_VALUE__VALUE_S && strcmp(n->attr[k]->key, "channels") == 0)
                cvy_text_add(out, " channels %.*s", (int)a->s.len, (const char *)a->s.data);
            for (size_t s = 0; a->value_case == CVY__TB__ATTR_VALUE__VALUE_LIST && s < a->list->n_shape; s++)
                for (size_t d = 0; d < a->list->shape[s]->n_dim; d++)
                    cvy_text_add(out, "%s%lld", d ? "x" : " ", (long long)a->list->shape[s]->dim[d]->size);
        }
        cvy_text_add(out, "\n");
    }
    if (g)
        cvy__tb__graph_def__free_unpacked(g, NULL);
}

static void add_event(const uint8_t *data, size_t bytes, cvy_text *out)
{
    Cvy__Tb__Event *e = cvy__tb__event__unpack(NULL, bytes, data);
    EXPECT(e != NULL);
    if (!e)
        return;
    const long long step = e->step;
    EXPECT(e->wall_time > 1.6e9);
    if (e->what_case == CVY__TB__EVENT__WHAT_FILE_VERSION)
        cvy_text_add(out, "%lld version %s\n", step, e->file_version);
    if (e->what_case == CVY__TB__EVENT__WHAT_SESSION_LOG)
        cvy_text_add(out, "%lld session %d\n", step, e->session_log->status);
    if (e->what_case == CVY__TB__EVENT__WHAT_GRAPH_DEF)
        add_graph(&e->graph_def, out);
    for (size_t i = 0; e->what_case == CVY__TB__EVENT__WHAT_SUMMARY && i < e->summary->n_value; i++)
        add_value(e->summary->value[i], step, out);
    cvy__tb__event__free_unpacked(e, NULL);
}

/* Adds a line for each value of each event in the folder. Every byte must belong to a sound record. */
static void read_back(const char *from, cvy_text *out)
{
    cvy_pool *pool = NULL;
    char **name = NULL, *path = NULL;
    int64_t count = 0;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_file_list(pool, from, &name, &count));
    for (int64_t i = 0; i < count; i++) {
        char *file = NULL;
        size_t bytes = 0, at = 0;
        EXPECT_OK(cvy_pool_printf(pool, &path, "%s/%s", from, name[i]));
        EXPECT_OK(cvy_file_read(path, 1 << 26, &file, &bytes));
        const uint8_t *p = (const uint8_t *)file;
        while (p && at < bytes) {
            const size_t n = (size_t)cvy_wire_little(p + at, 8);
            const int sound = n <= bytes - at - 16 && cvy_wire_little(p + at + 8, 4) == cvy_tfrecord_crc(p + at, 8) &&
                              cvy_wire_little(p + at + 12 + n, 4) == cvy_tfrecord_crc(p + at + 12, n);
            EXPECT(sound);
            if (!sound)
                break;
            add_event(p + at + 12, n, out);
            at += 16 + n;
        }
        cvy_mem_free(&file);
    }
    cvy_pool_destroy(&pool);
}

static void content(const char *expected)
{
    cvy_text text = {0};
    read_back(folder, &text);
    EXPECT_TEXT(text.data, expected);
    cvy_text_free(&text);
}

static void clear(void)
{
    EXPECT_OK(cvy_file_remove_tree(folder));
}

/* ---- writing ---- */

static cvy_status add(cvy_events *e, const char *kind, int64_t step, const char *key, double value)
{
    cvy_json line = {0};
    cvy_json_open(&line, NULL, '{');
    cvy_json_string(&line, "kind", kind);
    cvy_json_int(&line, "step", step);
    cvy_json_int(&line, "stage", 2);
    cvy_json_string(&line, "update", "sync");
    cvy_json_string(&line, "number", "7");
    cvy_json_real(&line, key, value);
    cvy_json_real(&line, "seconds_data", NAN);
    cvy_json_close(&line, '}');
    const cvy_status status = cvy_events_add_line(e, &line);
    cvy_text_free(&line.text);
    return status;
}

static void scalars(void)
{
    cvy_events *e = NULL;
    EXPECT_OK(cvy_events_open(folder, -1, &e));
    EXPECT_INT(cvy_events_had_files(e), 0);
    EXPECT_OK(add(e, "step", 10, "loss", 0)); /* a zero is a value too */
    EXPECT_OK(add(e, "step", 10, "learning_rate", 0.25));
    EXPECT_OK(add(e, "step", 10, "images_per_s", 1500));
    EXPECT_OK(add(e, "step", 10, "seconds_exposed_comm", 1e-3));
    EXPECT_OK(add(e, "epoch", 12, "train_loss", 1.5));
    EXPECT_OK(add(e, "epoch", 12, "val_top_5", 0.75));
    EXPECT_OK(add(e, "epoch", 12, "test_loss", 2));
    EXPECT_OK(add(e, "stage", 12, "seconds_compute", 3));
    EXPECT_OK(add(e, "save", 12, "bytes", 4));
    EXPECT_OK(add(NULL, "step", 12, "loss", 4));
    EXPECT_INT(cvy_events_close(&e), 0);
    EXPECT(e == NULL);
    content("0 version brain.Event:2\n0 session 1\n10 scalar train/loss 0\n10 scalar train/learning_rate 0.25\n"
            "10 scalar speed/images_per_s 1500\n10 scalar time/seconds_exposed_comm 0.001\n"
            "12 scalar epoch/train_loss 1.5\n12 scalar val/top_5 0.75\n12 scalar test/loss 2\n"
            "12 scalar stage-2/seconds_compute 3\n");
    clear();
}

static void histogram(void)
{
    const float values[] = {-1, -1, 0.5f, 0.5f, 0.53f, 2};
    static cvy_histogram h;
    cvy_events *e = NULL;
    EXPECT_OK(cvy_events_open(folder, -1, &e));
    cvy_histogram_begin(&h);
    EXPECT_OK(cvy_events_add_histogram(e, 5, "nothing", &h));
    cvy_histogram_add(&h, values, CVY_DTYPE_F32, CVY_COUNT(values));
    EXPECT_OK(cvy_events_add_histogram(e, 5, "weights/w", &h));
    EXPECT_INT(cvy_events_close(&e), 0);
    /* one empty bucket to -1, that of -1, one empty to 0.5, that of 0.5 to 0.5625, one empty to 2, that of 2 */
    content("0 version brain.Event:2\n0 session 1\n"
            "5 histogram weights/w 6 of -1 to 2, sum 1.53, squares 6.7809, 6 buckets\n");
    clear();
}

static void graph(void)
{
    static const char layers[] = "layers: [{conv: {name: c, channels: 4, kernel: 3}}, relu, {fc: {channels: 2}}]";
    const cvy_shape input = {3, {3, 8, 8}};
    const cvy_graph_opts opts = {.name = "g", .batch = cvy_batch_share(1, 0, 1), .training = 1};
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    cvy_model *model = NULL;
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_events *e = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "model", layers, strlen(layers), &tree));
    EXPECT_OK(cvy_model_from_fields(tree, NULL, &input, 2, NULL, 0, &model));
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(cvy_model_instantiate(model, vars, &opts, NULL, 0, NULL, &g));
    EXPECT_OK(cvy_events_open(folder, -1, &e));
    EXPECT_OK(cvy_events_add_graph(e, g));
    EXPECT_INT(cvy_events_close(&e), 0);
    content(
        "0 version brain.Event:2\n0 session 1\n0 node x Placeholder() -1x3x8x8\n0 node c/weight Variable() 4x3x3x3\n"
        "0 node c/bias Variable() 4\n0 node c conv(x, c/weight, c/bias) channels 4 -1x4x6x6\n"
        "0 node relu1 relu(c) -1x4x6x6\n0 node fc1/weight Variable() 2x144\n0 node fc1/bias Variable() 2\n"
        "0 node fc1 fc(relu1, fc1/weight, fc1/bias) channels 2 -1x2\n");
    clear();
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
    cvy_model_destroy(&model);
    cvy_pool_destroy(&pool);
}

static void resume_cuts(void)
{
    cvy_events *e = NULL;
    EXPECT_OK(cvy_events_open(folder, -1, &e));
    EXPECT_OK(add(e, "step", 10, "loss", 1));
    EXPECT_OK(add(e, "step", 20, "loss", 2));
    EXPECT_OK(add(e, "step", 30, "loss", 3));
    EXPECT_INT(cvy_events_close(&e), 0);
    EXPECT_OK(cvy_events_open(folder, 20, &e)); /* within the same second, and still its file is the later one */
    EXPECT_INT(cvy_events_had_files(e), 1);
    EXPECT_OK(add(e, "step", 30, "loss", 4));
    EXPECT_INT(cvy_events_close(&e), 0);
    content("0 version brain.Event:2\n0 session 1\n10 scalar train/loss 1\n20 scalar train/loss 2\n"
            "0 version brain.Event:2\n21 session 1\n30 scalar train/loss 4\n");
    EXPECT_OK(cvy_events_open(folder, 10, &e));
    EXPECT_INT(cvy_events_close(&e), 0);
    content("0 version brain.Event:2\n0 session 1\n10 scalar train/loss 1\n0 version brain.Event:2\n"
            "0 version brain.Event:2\n11 session 1\n");
    clear();
    EXPECT_INT(cvy_events_open("/dev/null/events", -1, &e), CVY_E_IO);
    EXPECT(e == NULL);
}

static void full_disk(void)
{
    struct rlimit before, tight;
    cvy_events *e = NULL;
    EXPECT_OK(cvy_events_open(folder, -1, &e));
    EXPECT_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    tight = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const cvy_status first = add(e, "step", 10, "loss", 1), second = add(e, "step", 20, "loss", 2);
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_INT(first, CVY_E_IO);
    EXPECT_INT(second, CVY_OK);
    EXPECT_OK(add(e, "step", 30, "loss", 3));
    EXPECT_INT(cvy_events_close(&e), 0);
    content("0 version brain.Event:2\n0 session 1\n30 scalar train/loss 3\n");
    clear();
}

static cvy_status open_and_add(void)
{
    cvy_events *e = NULL;
    clear(); /* or the folder would have more files each time */
    cvy_status status = cvy_events_open(folder, 0, &e);
    if (status == CVY_OK)
        status = add(e, "step", 1, "loss", 1);
    cvy_events_close(&e);
    return status;
}

static void no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(open_and_add());
    clear();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--print") == 0) {
        cvy_text text = {0};
        read_back(argv[2], &text);
        printf("%s", text.data ? text.data : "");
        cvy_text_free(&text);
        return test_end();
    }
    EXPECT(mkdtemp(folder) != NULL);
    TEST(buckets);
    TEST(scalars);
    TEST(histogram);
    TEST(graph);
    TEST(resume_cuts);
    TEST(full_disk);
    TEST(no_memory);
    return test_end();
}
#else
static void is_refused(void)
{
    cvy_events *e = NULL;
    EXPECT_FAULT(cvy_events_open("/tmp", -1, &e), CVY_E_UNSUPPORTED, "build it with protobuf-c");
}

int main(void)
{
    TEST(buckets);
    TEST(is_refused);
    return test_end();
}
#endif
