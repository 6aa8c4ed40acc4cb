/*
 * report_page.h: the report page of a run or of several, and the schema of the files that it is made from. The
 * functions that write pages are in report.h.
 *
 * metrics.jsonl has one object per line (keys that do not exist are left out):
 *     {"kind": "step", "step": 200, "epoch": 1.6, "samples": 25600, "loss": 1.2, "learning_rate": 0.1,
 *      "images_per_s": 900, "seconds_data": 0.001, "seconds_data_wait": 0.0005, "steps_ready": 1.9,
 *      "seconds_compute": 0.12, "seconds_exposed_comm": 0.004}
 *     {"kind": "epoch", "step": 391, "epoch": 1, "train_loss": .., "val_loss": .., "val_accuracy": ..,
 *      "test_loss": .., "test_accuracy": .., "seconds": 48.1, "images_per_s": 920, "val_<metric>": ..,
 *      "test_<metric>": .., "cached_samples": .., "cached_bytes": ..}
 *     {"kind": "stage", "step": 391, "epoch": 1, "stage": 2, "ranks": 4, "seconds_data": .., "seconds_compute": ..,
 *      "seconds_exposed_<axis>": .., "seconds_bubble": .., "seconds_agreement": ..}
 *     {"kind": "forecast", "step": 13, "seconds_step": .., "seconds_predicted": ..}      with `parallel: auto`
 *     {"kind": "early_stop", "step": 391, "epoch": 1, "metric": "loss", "best": .., "patience": 3, "text": ".."}
 *     {"kind": "save", "step": 391, "bytes": .., "writers": .., "seconds_stall": .., "seconds": ..}
 *
 * Seconds of a step are averages over the steps since the last line. seconds_data: waiting for samples and copying
 * them. steps_ready: number of steps whose samples were ready in the ring. With a pipeline a step also has
 * "seconds_exposed_data", "seconds_exposed_pipeline" and "seconds_bubble", an epoch has its "bubble", and each stage
 * has a line at the end of an epoch: means over the epoch's steps and the stage's ranks.
 *
 * plan.json: {"layers": [{"name", "layer", "op", "phase", "out_shape", "params", "flop", "kernel", "layout"}],
 *     "params": n, "memory": {"arena_bytes", ...}, "version": "..", "machine": {"<what>": "<text>"},
 *     "turns": [{"label", "optimizer", "predicted_ms", and the members above of each turn of train.turns}]}.
 *
 * Layers with a phase other than "forward" only add to their layer's flop. If the object has no "layers", the first of
 * its members that has them is used.
 *
 * test.json, which `train` writes at its end and `test` writes too (every member may be missing):
 *     {"checkpoint": "step-00004500", "data": "cifar10 test", "samples": 10000, "loss": 0.61, "temperature": 1.3,
 *      "role": "chose" or "trained" (only if the samples chose the checkpoint or were trained on),
 *      "metrics": {"accuracy": 0.809, "auc": 0.97},
 *      "classes": ["cat", ..], "positive": "signal",
 *      "roc": {"fpr": [..], "tpr": [..]},
 *      "confusion": [[..], ..],
 *      "reliability": {"count": [..], "confidence": [..], "accuracy": [..]}, "reliability_calibrated": {..},
 *      "coverage": {"expected": 0.9, "levels": [..], "below": [..]},
 *      "mistakes": [{"sample": 17, "name": "test/cat/17.jpg", "truth": "cat", "answer": "dog", "share": 0.98,
 *                    "picture": "data:image/png;base64,.."}, ..],
 *      "regression": [{"name": "u", "unit": "m/s", "truth": [..], "prediction": [..],
 *                      "rmse": .., "mae": .., "r2": ..}],
 *      "fields": [{"field": "y[0]", "kind": "worst", "sample": 17, "name": "flow.h5, row 17", "rmse": 0.1,
 *                  "low": -1.2, "high": 3.4, "spread": 0.5,
 *                  "truth": "data:image/png;base64,..", "prediction": .., "difference": ..}, ..],
 *      "spectrum": [{"output": [..], "target": [..]}, ..], "rmse_by_output": [..],
 *      "power_spectrum": {"wave": [1, 2, ..], "output": {"mean": [..], "std": [..]}, "target": {..}, "error": [..],
 *                         "ks": [..], "p": [..]},
 *      "pixel_histogram": {"from": [..], "to": [..], "output": .., and so on},
 *      "moments": {"name": ["mean", ..], "output": .., and so on},
 *      "generated": {"low": 0.1, "high": 3, "maps": [{"output": "data:image/png;base64,..", "target": ..}, ..]}}
 *
 * The metric auc writes "roc", and balanced_accuracy writes "confusion", which has a row for each true class. The
 * metric ece writes "reliability", with a number for each bin of confidence, and again for the probabilities of a
 * calibrated run. "mistakes" are the worst samples, the worst one first; "name" says where a sample is stored. "fields"
 * are maps of targets with two or more axes: the colours of truth and prediction go from low to high, those of the
 * difference from -spread to spread (score_fields.c). "spectrum" has the power of each channel at the wave numbers 1,
 * 2,
 * .. (base_spectrum.h). "power_spectrum" and the three after it are those of a generator, whose outputs are compared
 * with the data as a set (src/metric/metric_samples.h). The details of metrics are members of the top level. The writer
 * should thin curves of more than some thousand points.
 *
 * ensemble.json, which `test FOLDER` writes for a folder of runs, has the members of test.json for the ensemble, and:
 *     {"calibrated": true, "members": [{"run": "runs/1", "temperature": 1.3, "reliability": {..},
 *      "metrics": {"accuracy": 0.76}}, ..], "mean": {"accuracy": 0.76}, "spread": {"accuracy": 0.002}}
 *
 * "mean" and "spread", the standard deviation, are those of the members.
 *
 * analysis.json, which any program may write that compares the network with other methods on the test data, as
 * examples/collider does (every member may be missing):
 *     {"checkpoint": "step-00004500",
 *      "network": {"area": 0.97, "area_error": 0.001, "at_fpr": 0.01, "efficiency": 0.55,
 *                  "efficiency_error": 0.004},
 *      "baselines": [{"name": "cuts", "fpr": [..], "tpr": [..], .. as in network ..,
 *                     "area_gain": 0.08, "area_gain_error": 0.002,
 *                     "efficiency_gain": .., "efficiency_gain_error": ..}],
 *      "histograms": [{"name": "H_T", "unit": "GeV", "edges": [n + 1 numbers],
 *                      "classes": [{"name": "signal", "counts": [n numbers]}, ..]}]}
 *
 * Gains are those of the network over the baseline, with paired errors. The page leaves the analysis out if test.json
 * is of another checkpoint. Older runs have these members in test.json.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_PAGE_H
#define CVY_REPORT_PAGE_H

#include "base/text/base_text.h"
#include "base/text/base_tree.h"
#include "monitor/monitor_metrics_read.h"
#include "report/report.h"

/* ---- state that the sections of the page share ---- */
typedef struct cvy_report {
    cvy_pool *pool;
    const char *folder;
    cvy_frame steps, epochs, stages;
    const cvy_tree *analysis;          /* of analysis.json, or test.json if there is none; NULL: neither */
    const cvy_tree *job, *plan, *test; /* NULL: the file does not exist or cannot be read */
    const char *job_text;              /* NULL: none */
    const char *status_text;
    char *read_errors[8]; /* texts about files that could not be read */
    int nread_errors;
    cvy_text html;
} cvy_report;

/* Reads the files of the folder; pool and folder are set. A file that cannot be read is named in read_errors. */
cvy_status cvy_report_read(cvy_report *r);

/* The sections, in the order of the page. A section that has nothing to show writes nothing. */
void cvy_report_head(cvy_report *r);
void cvy_report_training(cvy_report *r);
void cvy_report_step_time(cvy_report *r); /* this and the next are parts of the training's section */
void cvy_report_stages(cvy_report *r);
void cvy_report_test(cvy_report *r);
void cvy_report_fields(cvy_report *r); /* this and the next three are parts of the test's section */
void cvy_report_spectrum(cvy_report *r);
void cvy_report_reliability(cvy_report *r);
void cvy_report_generated(cvy_report *r);
void cvy_report_ensemble_charts(cvy_report *r); /* curves and reliability of ensemble.json, in r->test */
void cvy_report_network(cvy_report *r);
void cvy_report_foot(cvy_report *r);

/* ---- small helpers ---- */
/* The head of a page with its style, and its end. */
void cvy_page_begin(cvy_text *html, const char *title);
void cvy_page_end(cvy_text *html);
const char *cvy_report_model(const cvy_report *r); /* the model's name in the job; NULL if unknown */
double cvy_report_area(const cvy_report *r);       /* area under the ROC curve: network.area, else the metric auc */
void cvy_html_escape(cvy_text *html, const char *text);
/* As cvy_text_add(), with %s escaped; otherwise %d, %lld, and reals with a precision. */
void cvy_html_add(cvy_text *html, const char *fmt, ...) CVY_PRINTF(2, 3);
/* Writes an image of test.json, if it is a PNG, and refuses any other address. */
void cvy_html_picture(cvy_text *html, const char *picture, const char *alt);
/* Writes what follows the last slash of a sample's name, with the whole name as a tooltip; without a name, the
 * sample's number. */
void cvy_html_sample(cvy_text *html, const cvy_tree *sample);
/* Formats with `digits` significant digits: 12345.6 -> "12,300", 0.000123 -> "1.23e-4". */
typedef struct {
    char at[40];
} cvy_number;
cvy_number cvy_number_text(double x, int digits);
cvy_number cvy_number_bytes(double bytes);
cvy_number cvy_number_seconds(double s);
cvy_number cvy_number_count(double n); /* with thousands separators */
cvy_number cvy_number_percent(double share);
/* Copies the numbers of a list to the pool. *count_out is 0 if it is not a list. */
cvy_status cvy_tree_reals(cvy_pool *pool, const cvy_tree *list, double **out, int64_t *count_out);

#endif
