/*
 * data_csv.h: what the files of the reader of tables share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_CSV_H
#define CVY_DATA_CSV_H

#include "data/array/data_lines.h"

enum { COLUMN_X, COLUMN_LABEL, COLUMN_Y, COLUMN_WEIGHT, COLUMN_DROP, COLUMN_UNKNOWN /* not in the training data */ };

struct csv_opts {
    const char *label, *weight;
    const cvy_tree *y, *drop;
    cvy_ints shape;
    int delimiter, decimal, header;
    int64_t classes;
    const char *missing;
    int labels; /* CVY_LABELS_.. */
};

struct column {
    int role;
    int64_t slot;     /* index in x or y */
    const char *name; /* NULL if there is no header */
};

struct csv {
    cvy_pool *pool;
    cvy_reader_info *info; /* while it is opened */
    cvy_line_index index;  /* an entry gives position and bytes of the line */
    cvy_classes classes;
    char mark;
    int decimal, header, ncolumn;
    const float *instead; /* of the missing numbers of x; NULL: they are faults */
    struct column *column;
    int label; /* its column; -1: there is none */
    cvy_label_kinds labels;
    int64_t nx, ny;
    int has_weight;
    cvy_shape shape;
};

/* Gives each column its role and place: by the options and, if the columns of the training are known, by their names.
 * Messages do not name the file. */
cvy_status cvy_csv_set_columns(struct csv *c, const struct csv_opts *o, const cvy_columns *like);
/* Lists the columns in the order of x and y, if the table has a header. */
cvy_status cvy_csv_describe_columns(const struct csv *c, cvy_columns *out);

#endif
