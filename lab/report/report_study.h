/*
 * report_study.h: what the parts of the page of a study share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_STUDY_H
#define CVY_REPORT_STUDY_H

#include "base/text/base_text.h"
#include "report/report_published.h"
#include "study/study.h"
#include "study/study_file.h"

typedef struct cvy_study_row { /* the measurements of a case on one machine */
    const cvy_study_result_line *first;
    const cvy_experiment *of; /* NULL: the study file has it no more */
    const char *failed;       /* why its last measurement failed, if none is good */
    int n;                    /* good ones */
    const cvy_study_result_line **line;
} cvy_study_row;

typedef struct cvy_study_page {
    cvy_pool *pool;
    const char *folder;
    cvy_study_spec spec;
    cvy_study_results results;
    cvy_study_row *row;
    int nrow;
    const char *machine; /* whose rows are shown: that of the last measurement */
    cvy_published_list published;
    cvy_text html;
} cvy_study_page;

typedef struct cvy_study_band { /* points of a line of a figure, with the range over the repeats */
    double *x, *median, *low, *high;
    int64_t n;
} cvy_study_band;

typedef struct cvy_spread {
    double median, low, high;
    int n;
} cvy_spread;

/* Median and range of n numbers, which it sorts; NaN if there are none. */
cvy_spread cvy_spread_of(double *value, int n);
/* Reads the study and its results, and makes the rows. */
cvy_status cvy_study_page_read(cvy_study_page *p);
/* Median and range of a number in the results of a row; n is 0 if it has none. target_seconds and target_epoch: when
 * the curve reaches the target of the experiment. */
cvy_spread cvy_study_spread(const cvy_study_row *row, const char *member);
/* The measurement whose number is the median of the row (the lower one of two); NULL: none has such a number. */
const cvy_study_result_line *cvy_study_median_line(const cvy_study_row *row, const char *member);
/* Whether the row has good measurements, is of this experiment, and of the machine that the page shows. */
int cvy_study_shows(const cvy_study_page *p, const cvy_study_row *row, const char *experiment);
/* The value of an axis, or "". */
const char *cvy_study_value(const cvy_study_row *row, const char *axis);
/* The value as a number; 1 if it is none. */
double cvy_study_number(const cvy_study_row *row, const char *axis);
/* Adds a text to a list that has room for `most`, unless it is there. Returns whether it was added. */
int cvy_study_know(const char **list, int *n, int most, const char *text);
/* What the study file calls it, or the value. */
const char *cvy_study_name(const cvy_study_page *p, const char *axis, const char *value);

/* Room for so many points. */
cvy_status cvy_study_band_new(cvy_study_page *p, int64_t n, cvy_study_band *out);

/* ---- report_study_curves.c ---- */
/* The points of lists of the results, such as curve.seconds and curve.val_accuracy. */
cvy_status cvy_study_curve(cvy_study_page *p, const cvy_study_row *row, const char *x_path, const char *y_path,
                           cvy_study_band *out);
/* When the curve of a measurement reaches the target of its experiment; NaN: never. */
double cvy_study_reached(const cvy_study_row *row, const cvy_study_result_line *line, const char *member);

/* ---- report_study_files.c ---- */
/* "figures/NAME.svg" of a chart. */
void cvy_study_svg_name(const char *figure, const char *panel, char *name, size_t room);
/* Writes this file from the chart in html. */
cvy_status cvy_study_write_svg(cvy_study_page *p, const char *figure, const char *panel, const char *html);
/* Writes tables.tex. */
cvy_status cvy_study_write_latex(cvy_study_page *p);

/* ---- report_study.c ---- */
/* All of the page between its begin and its end. */
cvy_status cvy_study_sections(cvy_study_page *p);
/* Whether the ranks of a framework are those of a simulation, which need no cores. */
int cvy_study_is_simulated(const char *framework);
/* ---- report_study_figures.c ---- */
enum { CVY_STUDY_LINES = 8, CVY_STUDY_PANEL = 160 };
typedef struct cvy_study_line {
    const char *name;  /* in the legend */
    const char *value; /* of the axis of the lines, or a member of the curves */
    int is_predicted;
    cvy_study_band band;
} cvy_study_line;
/* The names of the charts of a figure that have results. */
cvy_status cvy_study_panels(cvy_study_page *p, const cvy_figure *f, const char *const **out, int *n_out);
/* The lines of a chart: [CVY_STUDY_LINES]. */
cvy_status cvy_study_lines(cvy_study_page *p, const cvy_figure *f, const char *panel, cvy_study_line *out, int *n_out);
/* Writes the figures into the page and into files. */
cvy_status cvy_study_figures(cvy_study_page *p);
/* The name of the chart that would show a case. */
void cvy_study_panel_of_case(const cvy_study_page *p, const cvy_case *c, const cvy_figure *f, char *text, size_t room);

/* ---- report_study_coverage.c ---- */
typedef struct cvy_study_extent { /* what a figure or a table is of */
    const char *experiment;
    const cvy_figure *figure; /* NULL: a table */
    const char *panel;        /* of the figure: a part of the names of its charts; NULL: all */
    const char *only;         /* of the table: "AXIS=VALUE"; NULL: all */
} cvy_study_extent;
typedef struct cvy_study_coverage {
    int points, shown; /* shown: measured or predicted for one framework at least */
    int few_cores;     /* those of the others that need more cores than the machine has */
    double cores;
    const char *without[CVY_STUDY_LINES]; /* frameworks that have no result at all */
    int nwithout;
} cvy_study_coverage;
/* Counts the points, without those on GPUs. */
cvy_status cvy_study_cover(const cvy_study_page *p, const cvy_study_extent *e, cvy_study_coverage *out);
/* Why a chart has no point of this line at x: "failed", "needs 8 cores" or "not run"; "" if the study asks for none. */
cvy_status cvy_study_gap(const cvy_study_page *p, const cvy_figure *f, const char *panel, const char *line, double x,
                         char *text, size_t room);

/* ---- report_study_origin.c ---- */
/* Whether the page shows rows of the experiment that were made with --quick. */
int cvy_study_has_quick(const cvy_study_page *p, const char *experiment);
/* What a reader has to know of the rows of an experiment (NULL: of all): "Made with --quick" and "of the commits a and
 * b". Empty if there is nothing. */
cvy_status cvy_study_origin(cvy_study_page *p, const char *experiment, const char **out);
/* The machines, and the versions of the frameworks, of all results, each once. between: what is put between them. */
cvy_status cvy_study_sources(cvy_study_page *p, cvy_text *out, const char *between);
/* The same as a section of the page. */
cvy_status cvy_study_environment(cvy_study_page *p);
/* Which parts of a step the efficiency of more ranks has been lost to. */
cvy_status cvy_study_limits(cvy_study_page *p);
/* Whether all frameworks did the same work. */
cvy_status cvy_study_work(cvy_study_page *p);
/* What others have published, from published.csv of the folder. */
void cvy_study_published(cvy_study_page *p);

#endif
