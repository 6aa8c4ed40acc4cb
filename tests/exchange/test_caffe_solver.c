/* rows: clang asan */
/*
 * test_caffe_solver.c: solvers of Caffe become the keys of `train` that do the same, and layers of data become sources
 * and augmentation; what is wrong in a solver is named with its line.
 *
 * The expected keys follow from the formulas in sgd_solver.cpp, adam_solver.cpp and their neighbours, and from
 * data_transformer.cpp of Caffe. test_optim.c compares the optimisers with these formulas.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _DEFAULT_SOURCE
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "data/data.h"
#include "exchange/caffe/caffe_job.h"

/* ---- train ---- */

static cvy_status training_of(const char *text, cvy_text *out)
{
    cvy_caffe_work w = {.path = "solver"};
    cvy_status status =
        cvy_caffe_text_parse("solver", text, strlen(text), &cvy__caffe__solver_parameter__descriptor, &w.solver);
    if (status == CVY_OK)
        status = cvy_caffe_add_training(&w, out);
    cvy_caffe_file_free(&w.solver);
    return status;
}

static void expect(const char *text, const char *expected)
{
    cvy_text out = {0};
    EXPECT_OK(training_of(text, &out));
    test_checks++;
    if (!out.data || !strstr(out.data, expected)) {
        test_failures++;
        printf("%s\n  gave\n%s  expected\n%s\n", text, out.data ? out.data : "", expected);
    }
    cvy_text_free(&out);
}

static void expect_fault(const char *text, const char *words)
{
    cvy_text out = {0};
    EXPECT_FAULT(training_of(text, &out), CVY_E_CONFIG, words);
    cvy_text_free(&out);
}

#define FIXED "base_lr: 0.01 max_iter: 9 lr_policy: \"fixed\" "

static void every_type_of_solver(void)
{
    expect(FIXED "momentum: 0.9 weight_decay: 0.0005",
           "optimizer: {name: sgd, momentum: 0.9, lr_inside: true, lr: 0.01, weight_decay: 0.0005, decay_on: all}");
    expect(FIXED, "optimizer: {name: sgd, momentum: 0, lr: 0.01, weight_decay: 0, decay_on: all}");
    expect(FIXED "type: \"Nesterov\" momentum: 0.95", "{name: sgd, momentum: 0.95, nesterov: true, lr_inside: true,");
    expect(FIXED "type: 'AdaGrad' delta: 1e-5", "{name: adagrad, eps: 1e-05, lr: 0.01,");
    expect(FIXED "type: 'AdaGrad'", "{name: adagrad, eps: 1e-08,");
    expect(FIXED "type: 'RMSProp' rms_decay: 0.98", "{name: rmsprop, alpha: 0.98, eps: 1e-08,");
    expect(FIXED "type: 'RMSProp'", "alpha: 0.99,");
    expect(FIXED "type: 'AdaDelta' momentum: 0.95 delta: 1e-6", "{name: adadelta, rho: 0.95, eps: 1e-06,");
    expect(FIXED "type: 'Adam' momentum: 0.9 momentum2: 0.99",
           "{name: adam, beta1: 0.9, beta2: 0.99, eps: 1e-08, eps_hat: true,");
    expect(FIXED "type: 'Adam' momentum: 0.9", "beta2: 0.999,");
    expect(FIXED "solver_type: NESTEROV momentum: 0.9", "nesterov: true");
    expect(FIXED "solver_type: ADAM momentum: 0.9", "name: adam,");
}

static void every_policy_of_the_rate(void)
{
#define BASE "base_lr: 0.1 max_iter: 100 "
    expect(BASE "lr_policy: 'fixed'", "  schedule: constant   #");
    expect(BASE "lr_policy: 'step' gamma: 0.1 stepsize: 30", "schedule: {name: step, every: 30 steps, factor: 0.1}");
    expect(BASE "lr_policy: 'exp' gamma: 0.999", "schedule: {name: exponential, every: 1 steps, factor: 0.999}");
    expect(BASE "lr_policy: 'inv' gamma: 0.0001 power: 0.75",
           "schedule: {name: inverse, every: 1 steps, gamma: 0.0001, power: 0.75}");
    expect(BASE "lr_policy: 'multistep' gamma: 0.5 stepvalue: 20 stepvalue: 70",
           "schedule: {name: multi_step, at: [20 steps, 70 steps], factor: 0.5}");
    expect(BASE "lr_policy: 'multistep' gamma: 0.5", "schedule: constant");
    expect(BASE "lr_policy: 'poly' power: 0.5", "schedule: {name: polynomial, power: 0.5}");
    expect(BASE "lr_policy: 'sigmoid' gamma: -0.1 stepsize: 50",
           "schedule: {name: sigmoid, middle: 50 steps, every: 1 steps, slope: -0.1}");
}

/* Caffe clips the sum over iter_size batches, and divides it afterwards. */
static void length_clipping_and_decay(void)
{
    expect(FIXED, "  steps: 9   # max_iter");
    expect(FIXED "clip_gradients: 35", "  clip_norm: 35   # clip_gradients\n");
    expect(FIXED "clip_gradients: 35 iter_size: 4", "  clip_norm: 8.75   # clip_gradients / iter_size\n");
    expect(FIXED "iter_size: 4", "  accumulate: 4   # iter_size");
    expect(FIXED "random_seed: 17", "  seed: 17   # random_seed");
    expect(FIXED "weight_decay: 0.004 regularization_type: 'L1'", "weight_decay: 0, decay_on: all}");
    expect(FIXED "weight_decay: 0.004 regularization_type: 'L1'", "\n  l1: 0.004   #");
    cvy_text out = {0};
    EXPECT_OK(training_of(FIXED "weight_decay: 0.004", &out));
    EXPECT(out.data && !strstr(out.data, "l1") && !strstr(out.data, "seed") && !strstr(out.data, "clip"));
    cvy_text_free(&out);
}

static void wrong_solvers_are_named(void)
{
    expect_fault("base_lr: 0.1\nlr_policy: 'fixed'", "solver: max_iter is 0, expected the number of steps");
    expect_fault("max_iter: 5\nlr_policy: 'fixed'\nbase_lr: -1", "solver:3: base_lr is -1, expected more than 0");
    expect_fault("max_iter: 5 base_lr: 1", "the solver has no lr_policy");
    expect_fault(BASE "\nlr_policy: 'stepp'", "solver:2: lr_policy is \"stepp\", did you mean 'step'?");
    expect_fault(BASE "lr_policy: 'step' stepsize: 3", "no gamma, which lr_policy \"step\" needs");
    expect_fault(BASE "lr_policy: 'step' gamma: 0.1", "stepsize is 0, expected more than 0");
    expect_fault(BASE "lr_policy: 'inv' gamma: 0.1", "no power, which lr_policy \"inv\" needs");
    expect_fault(FIXED "\n\ntype: 'Adamm'", "solver:3: type is \"Adamm\", did you mean 'Adam'?");
    expect_fault(FIXED "type: 'SGD'\nsolver_type: ADAM", "solver:2: solver_type: the solver has type, too");
    expect_fault(FIXED "\nmomentum: 1", "solver:2: momentum is 1, expected 0 or more, and less than 1");
    expect_fault(FIXED "type: 'AdaGrad'\nmomentum: 0.9", "solver:2: momentum is 0.9, but AdaGrad has no momentum");
    expect_fault(FIXED "type: 'RMSProp'\nrms_decay: 1", "solver:2: rms_decay is 1");
    expect_fault(FIXED "type: 'Adam'\ndelta: 0", "solver:2: delta is 0, expected more than 0");
    expect_fault(FIXED "regularization_type: 'L3'", "regularization_type is \"L3\"");
    expect_fault(FIXED "\nweight_decay: -1", "solver:2: weight_decay is -1, expected 0 or more");
}

/* ---- data ---- */

static char folder[] = "/tmp/convoy-test-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    EXPECT_OK(cvy_file_replace(in_folder(name), text, strlen(text)));
}

static cvy_status open_at(const char *name, cvy_caffe_work *w)
{
    return cvy_caffe_work_open(in_folder(name), w);
}

/* The source and the augmentation of a network with this layer, whose relative paths are in `folder`. */
static void expect_source(const char *layer, const char *source, const char *augment)
{
    cvy_caffe_work w = {0};
    cvy_caffe_data d = {0};
    char text[2048];
    snprintf(text, sizeof text, "layer { name: 'd' top: 'data' top: 'label' type: %s }", layer);
    put("net.prototxt", text);
    EXPECT_OK(open_at("net.prototxt", &w));
    EXPECT_OK(cvy_caffe_data_of(&w, w.train.net, w.train.at, &d));
    EXPECT(d.source && strstr(d.source, source));
    if (d.source && !strstr(d.source, source))
        printf("source %s, expected %s\n", d.source, source);
    EXPECT_TEXT(d.augment ? d.augment : "", augment);
    cvy_caffe_work_free(&w);
}

static void expect_data_fault(const char *layer, cvy_status code, const char *words)
{
    cvy_caffe_work w = {0};
    cvy_caffe_data d = {0};
    char text[2048];
    snprintf(text, sizeof text, "\nlayer { name: 'd' top: 'data' type: %s }", layer);
    put("net.prototxt", text);
    EXPECT_OK(open_at("net.prototxt", &w));
    EXPECT_FAULT(cvy_caffe_data_of(&w, w.train.net, w.train.at, &d), code, words);
    cvy_caffe_work_free(&w);
}

static void pictures_are_fed_as_caffe_does(void)
{
    put("list.txt", "a.jpg 0\n");
    put("mean.binaryproto", "x");
    expect_source("'ImageData' image_data_param { source: 'list.txt' batch_size: 4 }",
                  "format: list, root: \".\", outside: true, separator: space, labels: numbers, channels: rgb}",
                  "[reverse_channels, {scale: 1}]");
    expect_source("'ImageData' image_data_param { source: 'list.txt' batch_size: 4 root_folder: '/p/' is_color: false "
                  "new_height: 256 new_width: 128 } transform_param { scale: 0.00390625 crop_size: 100 mirror: true "
                  "mean_value: 104 }",
                  "root: \"/p/\", outside: true, separator: space, labels: numbers, channels: grey}",
                  "[{resize: {size: [256, 128], fit: stretch, filter: bilinear, decode: full}}, "
                  "{random_crop: 100}, mirror, {mean: [104]}, {scale: 0.00390625}]");
    expect_source("'ImageData' image_data_param { source: 'list.txt' batch_size: 4 } transform_param { mean_value: 104 "
                  "mean_value: 116.7 mean_value: 122.7 }",
                  "channels: rgb}", "[reverse_channels, {mean: [104, 116.7, 122.7]}, {scale: 1}]");
    cvy_caffe_work w = {0};
    cvy_caffe_data d = {0};
    put("net.prototxt",
        "layer { name: 'd' type: 'ImageData' top: 'x' image_data_param { source: 'list.txt' batch_size: "
        "4 shuffle: true } transform_param { mean_file: 'mean.binaryproto' } }");
    EXPECT_OK(open_at("net.prototxt", &w));
    EXPECT_OK(cvy_caffe_data_of(&w, w.train.net, w.train.at, &d));
    EXPECT_INT(d.shuffle, 1);
    EXPECT_INT(d.batch, 4);
    EXPECT(d.augment && strstr(d.augment, "[reverse_channels, {mean_file: \"") &&
           strstr(d.augment, "/mean.binaryproto\"}, {scale: 1}]"));
    EXPECT(w.notes.data && strstr(w.notes.data, "list.txt does not exist relative to the current folder"));
    cvy_caffe_work_free(&w);
}

/* Reads sample number `sample` of a database of tests/data/files, through a layer Data with this transformation, as a
 * validation set reads it. */
static void read_through(const char *database, const char *transform, int64_t sample, float *x)
{
    cvy_caffe_work w = {0};
    cvy_caffe_data d = {0};
    cvy_tree *source = NULL, *augment = NULL;
    cvy_dataset *data = NULL;
    char text[2048];
    int32_t label = -1;
    void *const field[] = {x, &label};
    snprintf(text, sizeof text,
             "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: '%s/tests/data/files/%s' "
             "batch_size: 2 backend: LMDB } transform_param { %s } }",
             getenv("CONVOY_SOURCE"), database, transform);
    put("net.prototxt", text);
    EXPECT_OK(open_at("net.prototxt", &w));
    EXPECT_OK(cvy_caffe_data_of(&w, w.train.net, w.train.at, &d));
    EXPECT_OK(cvy_tree_parse_text(w.pool, "source", d.source, strlen(d.source), &source));
    EXPECT_OK(cvy_tree_parse_text(w.pool, "augment", d.augment, strlen(d.augment), &augment));
    EXPECT_OK(cvy_dataset_open(source, augment, 0, 1, &data));
    if (data)
        EXPECT_OK(cvy_dataset_read(data, sample, 0, field));
    cvy_dataset_destroy(&data);
    cvy_caffe_work_free(&w);
}

/* make_lmdb.py says what the pictures are. In both databases the values that Caffe feeds begin with blue: OpenCV
 * decodes in this order, and convert_imageset has stored plain pictures so. */
static void values_are_those_of_caffe(void)
{
    static const double mean[] = {10, 20, 30};
    static float x[3 * 16 * 24];
    read_through("lmdb-imageset", "scale: 0.5 crop_size: 4 mean_value: 10 mean_value: 20 mean_value: 30 mirror: true",
                 5, x);
    for (int i = 0; i < 48; i++) {
        const int c = i / 16, row = i % 16 / 4, column = i % 4; /* the crop of 5 x 4 begins at 0, 0 */
        const uint8_t pixel = (uint8_t)(7 * 5 + 50 * (2 - c) + 3 * row + 2 * column);
        EXPECT_NEAR(x[i], (pixel - mean[c]) * 0.5, 0);
    }
#if CVY_HAVE_SPNG
    read_through("lmdb-encoded", "scale: 0.5 crop_size: 8 mean_value: 10 mean_value: 20 mean_value: 30", 3, x);
    for (int i = 0; i < 192; i++) {
        const int c = i / 64, row = i % 64 / 8 + 4, column = i % 8 + 8;
        EXPECT_NEAR(x[i], (20 + 8 * 3 + 20 * (2 - c) + 3 * row + 2 * column - mean[c]) * 0.5, 0);
    }
    read_through("lmdb-encoded", "force_gray: true", 3, x);
    EXPECT_NEAR(x[0], 20 + 8 * 3 + 20 * (0.587 + 2 * 0.114), 1);
#endif
}

static void other_layers_of_data(void)
{
    cvy_caffe_work w = {0};
    cvy_caffe_data d = {0};
    put("one.h5", "x");
    put("files.txt", "one.h5\n\n  one.h5\n");
    put("net.prototxt", "layer { name: 'd' type: 'HDF5Data' top: 'data' top: 'target' hdf5_data_param { source: "
                        "'files.txt' batch_size: 10 shuffle: true } }");
    EXPECT_OK(open_at("net.prototxt", &w));
    EXPECT_OK(cvy_caffe_data_of(&w, w.train.net, w.train.at, &d));
    EXPECT(d.source && strstr(d.source, "/one.h5\", format: hdf5, x: \"data\", y: \"target\"}, {path: "));
    EXPECT_INT(d.reals, 1);
    EXPECT_INT(d.shuffle, 1);
    EXPECT_TEXT(d.augment ? d.augment : "", "[{scale: 1}]");
    cvy_caffe_work_free(&w);
    expect_source("'HDF5Data' hdf5_data_param { source: 'files.txt' batch_size: 10 } } layer { name: 'l' type: "
                  "'SoftmaxWithLoss' bottom: 'data' bottom: 'label'",
                  "x: \"data\", label: \"label\"}", "[{scale: 1}]");
    put("net.prototxt", "input: 'data' input_dim: 10 input_dim: 3 input_dim: 8 input_dim: 9");
    EXPECT_OK(open_at("net.prototxt", &w));
    EXPECT_OK(cvy_caffe_data_of(&w, w.train.net, w.train.at, &d));
    EXPECT_INT(d.is_input, 1);
    EXPECT_INT(d.batch, 10);
    EXPECT_TEXT(cvy_shape_text(&d.shape), "3x8x9");
    cvy_caffe_work_free(&w);
}

static void wrong_layers_of_data_are_named(void)
{
    expect_data_fault("'Data' data_param { batch_size: 1 }", CVY_E_CONFIG,
                      "net.prototxt:2: layer d (Data): data_param "
                      "has no source");
    expect_data_fault("'Data' data_param { source: 'nowhere' }", CVY_E_CONFIG, "batch_size is missing or 0");
    expect_data_fault("'Data' data_param { batch_size: 1 source: 'nowhere' }", CVY_E_IO,
                      "net.prototxt:2: source is nowhere, which exists neither here nor in ");
    EXPECT_OK(cvy_file_make_folder(in_folder("leveldb")));
    put("leveldb/CURRENT", "x");
    expect_data_fault("'Data' data_param { batch_size: 1 source: 'leveldb' }", CVY_E_UNSUPPORTED,
                      "is a LevelDB database, which convoy does not read: write the data as an LMDB");
    expect_data_fault("'ImageData' image_data_param { source: 'list.txt' new_height: 3 }", CVY_E_CONFIG,
                      "new_height is 3 and new_width is 0");
    expect_data_fault("'ImageData' image_data_param { source: 'list.txt' } transform_param { mean_value: 1 mean_file: "
                      "'mean.binaryproto' }",
                      CVY_E_CONFIG, "has mean_file and mean_value");
    expect_data_fault("'Data' } layer { name: 'e' type: 'HDF5Data'", CVY_E_CONFIG, "data_param has no source");
    expect_data_fault("'WindowData' window_data_param { source: 'w' }", CVY_E_UNSUPPORTED, "layer d (WindowData)");
    expect_data_fault("'ImageData' image_data_param { source: 'list.txt' } } layer { name: 'e' type: 'Data' top: 'z'",
                      CVY_E_UNSUPPORTED, "layer e (Data) on line 2 has data, too; a job has one source");
}

/* ---- the networks of a solver ---- */

static cvy_status open_solver(const char *text, cvy_caffe_work *w)
{
    put("solver.prototxt", text);
    return open_at("solver.prototxt", w);
}

#define TWO                                                                                                            \
    "layer { name: 'a' type: 'Input' top: 'x' include { phase: TRAIN stage: 's' } } layer { name: 'b' type: "          \
    "'Input' top: 'x' include { phase: TEST } } layer { name: 'c' type: 'ReLU' bottom: 'x' top: 'y' }"

static void phases_and_stages_select_layers(void)
{
    cvy_caffe_work w = {0};
    put("two.prototxt", TWO);
    EXPECT_OK(open_solver("net: 'two.prototxt' test_iter: 3 train_state { stage: 's' }", &w));
    EXPECT_INT(w.train.net ? (int)w.train.net->n_layer : 0, 2);
    EXPECT_TEXT(w.train.net->layer[0]->name, "a");
    EXPECT_INT(w.test.net ? (int)w.test.net->n_layer : 0, 2);
    EXPECT_TEXT(w.test.net->layer[0]->name, "b");
    cvy_caffe_work_free(&w);
    EXPECT_OK(open_solver("train_net: 'two.prototxt'", &w));
    EXPECT_INT(w.train.net->n_layer, 1); /* the stage is not given */
    EXPECT(!w.test.net);
    cvy_caffe_work_free(&w);
    EXPECT_OK(open_solver("net_param { " TWO " } test_iter: 1 test_state { level: 1 }", &w));
    EXPECT_INT(w.train.net->n_layer, 1);
    EXPECT_INT(w.test.net->n_layer, 2);
    EXPECT_INT(w.test.state.level, 1);
    cvy_caffe_work_free(&w);
    EXPECT_OK(open_solver("train_net: 'two.prototxt' test_net_param { " TWO " } test_iter: 1", &w));
    EXPECT_TEXT(w.test.net->layer[0]->name, "b");
    cvy_caffe_work_free(&w);
}

static void wrong_solver_files_are_named(void)
{
    cvy_caffe_work w = {0};
    EXPECT_FAULT(open_solver("base_lr: 0.1", &w), CVY_E_CONFIG, "one of net, net_param, train_net and train_net_param");
    cvy_caffe_work_free(&w);
    EXPECT_FAULT(open_solver("base_lr: 0.1\nnet: 'nowhere.prototxt'", &w), CVY_E_IO,
                 "solver.prototxt:2: net is nowhere.prototxt, which exists neither here nor in ");
    cvy_caffe_work_free(&w);
    EXPECT_FAULT(open_solver("base_lr: 0.1\nmax_iterr: 3", &w), CVY_E_FORMAT, "solver.prototxt:2:1");
    EXPECT(strstr(cvy_error_text(), "max_iter") != NULL);
    cvy_caffe_work_free(&w);
    EXPECT_FAULT(open_solver("name: 'net'\n\nlayerr { }", &w), CVY_E_FORMAT, "solver.prototxt:3:1");
    cvy_caffe_work_free(&w);
}

/* ---- the state of a solver ---- */

#define NET                                                                                                            \
    "layer { name: 'x' type: 'Input' top: 'x' } layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'x' } "          \
    "layer { name: 'f/1' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 2 } } "

/* A network with the history 0, 1, 2, .. in each number of blob b times 10: of BatchNorm's three blobs, weight and
 * bias; once or twice. */
static cvy_status read_history(const char *type, int nstate, int nblob, int weight_elems, cvy_import_job *out,
                               cvy_caffe_work *w)
{
    static float number[12][8];
    static const char *const parameter[] = {"f.1.weight", "f.1.bias"};
    Cvy__Caffe__SolverState state = CVY__CAFFE__SOLVER_STATE__INIT;
    Cvy__Caffe__BlobProto blob[12], *history[12];
    cvy_caffe_file file = {.path = (char *)(uintptr_t) "s.solverstate", .message = &state.base};
    char text[1024];
    snprintf(text, sizeof text, "net_param { " NET " } momentum: 0.9 type: '%s'", type);
    CVY_TRY(open_solver(text, w));
    CVY_TRY(cvy_pool_create(&out->import.pool));
    for (int i = 0; i < 2; i++) {
        const cvy_tensor_entry entry = {.name = parameter[i], .dtype = CVY_DTYPE_F32, .shape = {2 - i, {2, 3}}};
        CVY_TRY(cvy_import_add_tensor(&out->import, &entry));
    }
    for (int i = 0; i < nstate * nblob; i++) {
        blob[i] = (Cvy__Caffe__BlobProto)CVY__CAFFE__BLOB_PROTO__INIT;
        for (int k = 0; k < 8; k++)
            number[i][k] = (float)(10 * i + k);
        blob[i].data = number[i];
        blob[i].n_data = i % nblob == 3 ? (size_t)weight_elems : 2;
        history[i] = &blob[i];
    }
    state.has_iter = 1;
    state.iter = 70;
    state.history = history;
    state.n_history = (size_t)(nstate * nblob);
    return cvy_caffe_add_state(w, &file, type, out);
}

static void expect_state(const cvy_import_job *job, int at, const char *name, double first)
{
    const cvy_tensor_entry *e = &job->import.tensor[at];
    EXPECT_TEXT(e->name, name);
    EXPECT_NEAR(((const float *)e->data)[1], first + 1, 0);
}

static void history_becomes_states(void)
{
    cvy_import_job job = {.first_step = 0};
    cvy_caffe_work w = {0};
    EXPECT_OK(read_history("SGD", 1, 5, 6, &job, &w));
    EXPECT_INT(job.first_step, 70);
    EXPECT_INT(job.import.ntensor, 4);
    expect_state(&job, 2, "f.1.weight.momentum", 30);
    expect_state(&job, 3, "f.1.bias.momentum", 40);
    EXPECT(w.notes.data && strstr(w.notes.data, "the history of 2 blobs is taken; that of 3 others begins at 0"));
    cvy_import_job_free(&job);
    cvy_caffe_work_free(&w);
    EXPECT_OK(read_history("Adam", 2, 5, 6, &job, &w));
    EXPECT_INT(job.import.ntensor, 6);
    expect_state(&job, 2, "f.1.weight.exp_avg", 30);
    expect_state(&job, 3, "f.1.weight.exp_avg_sq", 80);
    expect_state(&job, 4, "f.1.bias.exp_avg", 40);
    expect_state(&job, 5, "f.1.bias.exp_avg_sq", 90);
    cvy_import_job_free(&job);
    cvy_caffe_work_free(&w);
    EXPECT_FAULT(read_history("Adam", 1, 5, 6, &job, &w), CVY_E_SHAPE,
                 "s.solverstate has 5 arrays of history, and the network has 5 blobs with 2 each");
    cvy_import_job_free(&job);
    cvy_caffe_work_free(&w);
    EXPECT_FAULT(read_history("AdaDelta", 2, 5, 5, &job, &w), CVY_E_SHAPE,
                 "the history of f.1.weight has 5 numbers, and the variable is 2x3");
    cvy_import_job_free(&job);
    cvy_caffe_work_free(&w);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    TEST(every_type_of_solver);
    TEST(every_policy_of_the_rate);
    TEST(length_clipping_and_decay);
    TEST(wrong_solvers_are_named);
    TEST(pictures_are_fed_as_caffe_does);
    TEST(values_are_those_of_caffe);
    TEST(other_layers_of_data);
    TEST(wrong_layers_of_data_are_named);
    TEST(phases_and_stages_select_layers);
    TEST(wrong_solver_files_are_named);
    TEST(history_becomes_states);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}

#else

int main(void)
{
    printf("skipped: this build has no protobuf-c\n");
    return 77;
}

#endif
