/*
 * report.h: pages in HTML: of a run, of a search, of a study, of an ensemble, and comparisons.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_H
#define CVY_REPORT_H

#include <convoy/base.h>

/**
 * cvy_report_write - write RUN/report.html from what the run left in its folder
 * @run_folder: the folder of a run, which may have ended or not
 *
 * Reads metrics.jsonl, job.resolved.yaml, plan.json, test.json, analysis.json and STATUS if they exist; the page leaves
 * out what is missing. It names a damaged file, which is not a fault. The page needs no other file and no network. An
 * existing page is replaced as a whole. Collective: no; call it on one rank. Errors: CVY_E_IO (there is no such folder,
 * or the page cannot be written), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_write(const char *run_folder);

/**
 * cvy_report_json - what a run has reached, its curves, and where its time went
 * @run_folder: the folder of a run, which may have ended or not
 * @text_out: a JSON object; released by the caller with cvy_text_release()
 *
 * Members: run, steps, epochs, seconds (of the training with its validation), seconds_per_epoch, images_per_s; the last
 * losses and scores (train_loss, val_loss, val_accuracy, ..); means over the logged steps of rank 0, in ms
 * (data_wait_ms, compute_ms, exposed_comm_ms, hidden_comm_ms, wait_slowest_ms); and curve, an object of lists with a
 * value for each epoch: epoch, seconds (since the beginning), epoch_seconds, images_per_s, the losses and the scores.
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_IO (there is no such folder, or it is not that of a run), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_json(const char *run_folder, char **text_out);

/** The most runs that a page compares. */
enum { CVY_REPORT_RUNS_MAX = 8 };

/**
 * cvy_report_compare - write a page that lays the curves of several runs over each other
 * @run_folders: [count]: the folders of runs, which may have ended or not
 * @count: 2 .. CVY_REPORT_RUNS_MAX
 * @path: the page; an existing file is replaced as a whole
 *
 * The page has a table of the keys of the jobs that differ and of the scores, and losses, scores and learning rates
 * over epochs and over time. Missing and damaged files are handled as by cvy_report_write(). Collective: no; call it on
 * one rank. Errors: CVY_E_ARGUMENT (count), CVY_E_IO (there is no such folder, it is not that of a run, or the page
 * cannot be written), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_compare(const char *const *run_folders, int count, const char *path);

/**
 * cvy_report_ensemble - write FOLDER/ensemble.html, the page of an ensemble
 * @folder: a folder of runs that cvy_run_test_ensemble() has scored
 *
 * The page has the scores of the members, their mean and spread, and those of the ensemble, with its curves and its
 * reliability; it links the pages of the members. Collective: no; call it on one rank. Errors: CVY_E_ARGUMENT, CVY_E_IO
 * (there is no ensemble.json, or the page cannot be written), CVY_E_FORMAT (ensemble.json), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_ensemble(const char *folder);

/**
 * cvy_report_sweep - write SWEEP/sweep.html, the page of a search, and the pages of its trials
 * @folder: the folder of a search (sweep/sweep.h), which may have ended or not
 *
 * The page has the ranking, parallel coordinates of all trials, and the importance of each key. Collective: no; call it
 * on one rank. Errors: CVY_E_ARGUMENT, CVY_E_IO (it is not the folder of a search, or a page cannot be written),
 * CVY_E_FORMAT (sweep.json), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_sweep(const char *folder);

/**
 * cvy_report_study - write the report of a study
 * @folder: as in cvy_run_study()
 *
 * It writes into the folder: report.html with medians over the repeats, their range, and figures; results.csv and
 * tables.tex with the tables; and figures/NAME.svg.
 *
 * Collective: no. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_CONFIG, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_study(const char *folder);

/**
 * cvy_report_publication - write a page that puts the results of studies beside a publication
 * @name: what the file of the publication is called: `convoy study NAME` renews the page
 * @text: that file; docs/guide/studies.md describes it
 * @published: the text of studies/published.csv, or NULL
 * @folder: the folder with the folders of the studies, each of which cvy_report_study() has written
 *
 * It writes FOLDER/PAGE.md in Markdown, which shows the figures of the studies by relative links. What has no results
 * is said. Collective: no. Errors: CVY_E_CONFIG (the file, or a study that lacks a figure), CVY_E_IO, CVY_E_FORMAT,
 * CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_publication(const char *name, const char *text, const char *published,
                                                 const char *folder);

/**
 * cvy_report_study_compare - a page with what is different between two folders of results
 * @before, @after: folders as in cvy_run_study(), of one study or of studies with cases in common
 * @path: the page, an HTML file; an existing one is replaced
 * @moved_out: in how many cases the number that the study shows has moved beyond the noise: the ranges over the repeats
 *             do not touch, and the medians differ by more than 2 %
 *
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (no case in common), CVY_E_IO, CVY_E_FORMAT, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_report_study_compare(const char *before, const char *after, const char *path,
                                                   int *moved_out);

#endif
