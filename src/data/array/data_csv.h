/*
 * data_csv.h: what the files of the reader of tables share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_CSV_H
#define CVY_DATA_CSV_H

#include "data/array/data_lines.h"

enum { MARK_AUTO, MARK_COMMA, MARK_SEMICOLON, MARK_TAB, MARK_SPACE, MARK_PIPE };
enum { DECIMAL_POINT, DECIMAL_COMMA };
enum { HEADER_AUTO, HEADER_YES, HEADER_NO };
enum { QUOTE_AUTO, QUOTE_DOUBLE, QUOTE_SINGLE, QUOTE_NONE };
enum { INDEX_AUTO, INDEX_INPUT };
enum { COMMENT_SKIP, COMMENT_NONE };

/* The last four are not read. */
enum {
    COLUMN_X,
    COLUMN_LABEL,
    COLUMN_Y,
    COLUMN_WEIGHT,
    COLUMN_DROP,
    COLUMN_UNKNOWN, /* not in the training data */
    COLUMN_INDEX,   /* names or numbers of the rows */
    COLUMN_EMPTY    /* after a separator at the end of each line */
};

struct csv_opts {
    const char *label, *weight, *group;
    const cvy_tree *y, *drop;
    cvy_ints shape;
    int delimiter, decimal, thousands, header, quote, index, comment, group_input;
    int64_t classes;
    const char *missing;
    int labels; /* CVY_LABELS_.. */
};

/* What the fields of a column are in the rows that the guesses look at. */
struct column_look {
    int number, truth, other, missing, text; /* counts; other: numbers in another notation */
    int whole, quoted, points;               /* of the numbers: without a fraction, in quotes, with a decimal mark */
    const char *word, *gap;                  /* the first text, and how the first missing number is written; or NULL */
};

struct column {
    int role;
    int64_t slot;     /* index in x or y */
    const char *name; /* NULL if there is no header */
    struct column_look look;
};

/* A column of whole numbers that may be the number of the row, watched over all rows. */
struct csv_watch {
    int column, is_alive; /* alive: all are whole numbers so far */
    int64_t n, first, last, low, high;
    int counts;   /* each is the one before it plus 1 */
    uint64_t sum; /* of a hash of each number */
};
enum { CSV_WATCHES = 8 };

struct csv {
    cvy_pool *pool;
    cvy_reader_info *info; /* while it is opened */
    cvy_line_index index;  /* an entry gives position and bytes of the line */
    cvy_classes classes;
    char mark, quote; /* quote 0: none */
    int decimal, thousands, header, ncolumn;
    int skip;                            /* the lines at the start that are the header: 0 or 1 */
    int names_in_comment, has_row_names; /* where names are; 1: the header has no name for the first column */
    int keep_comments;                   /* lines that begin with # are rows */
    int64_t ncomment, nlike_rows;        /* such lines that are skipped, and those that look like rows */
    int has_byte_mark, ends_by_return;   /* of the file's text */
    const float *instead;                /* of the missing numbers of x; NULL: they are faults */
    struct column *column;
    int label, group; /* their columns; -1: there is none */
    cvy_label_kinds labels;
    int64_t nx, ny;
    int has_weight;
    cvy_shape shape;
    struct csv_watch watch[CSV_WATCHES];
    int nwatch;
};

/* ---- text (data_csv_text.c) ---- */
struct fields {
    cvy_line_part rest;
    char mark, quote;
    int ended, quoted; /* quoted: the last field was in quotes */
};
struct fields cvy_csv_fields(const struct csv *c, cvy_line_part line);
/* Returns 1 and the next field without the blanks and quotes around it, or 0 after the last field. Several blanks as
 * separators count as one. */
int cvy_csv_next_field(struct fields *f, cvy_line_part *out);
/* Copies the text of a field without what stands before its quotes: a backslash, or in a quoted field a second quote.
 * to: room for its bytes. Returns the bytes copied. */
size_t cvy_csv_unquote(const struct csv *c, cvy_line_part field, int is_quoted, char *to);
/* Copies a text for a message of one line: control characters become blanks, and a long text is cut. Returns to. */
enum { CSV_SHOWN = 48 };
const char *cvy_csv_show(const char *text, char to[CSV_SHOWN]);
/* Whether a line is skipped: it begins with #, and not with an error of a spreadsheet such as #N/A. */
int cvy_csv_is_comment(const struct csv *c, cvy_line_part line);
int cvy_csv_count_fields(const struct csv *c, cvy_line_part line);
/* For cvy_lines; user: a struct csv. mark 0: each separator that is known may be the one. */
int cvy_csv_is_open(const void *user, cvy_line_part text, cvy_line_quotes *searched);
/* Returns 1 if the whole text is a finite number as the table writes them. */
int cvy_csv_real(const struct csv *c, cvy_line_part s, double *out);
int cvy_csv_is_missing(cvy_line_part s);
/* Booleans, as pandas, R and databases write them. */
int cvy_csv_truth(cvy_line_part s, double *out);
/* Whether it would be a number with another decimal mark, or with groups of thousands. */
int cvy_csv_is_other_number(const struct csv *c, cvy_line_part s);
/* Why a field of a column is not a number, and which options read it. */
const char *cvy_csv_why_no_number(const struct csv *c, cvy_line_part s, const struct column *of, char *text,
                                  size_t room);
/* What a text that is not a number seems to be, for a message: ", a date or a time"; empty: not known. */
const char *cvy_csv_text_kind(const char *text);

/* ---- guesses (data_csv_guess.c) ---- */
/* Finds separator, quote, header and columns from rows at the start, in the middle and at the end. like: see
 * cvy_reader_args. CVY_END: the table has no line. */
cvy_status cvy_csv_guess(struct csv *c, const struct csv_opts *o, const cvy_columns *like);

/* ---- numbers of rows (data_csv_rows.c) ---- */
/* Watches a row; to be called for each. */
void cvy_csv_watch(struct csv *c, cvy_line_part line);
/* How a watched column counts: "counts from 0 to 9", or "has the numbers 0 to 9 in another order"; NULL: it does not.
 */
const char *cvy_csv_counts(const struct csv *c, int column, char *text, size_t room);
/* Takes the numbers and names of rows out of the input, unless the training has them as input. like_elems: see
 * cvy_reader_args. */
void cvy_csv_take_index(struct csv *c, const struct csv_opts *o, const cvy_columns *like, int64_t like_elems);
/* Says what was guessed, in a line, and names inputs that seem to be numbers of rows. */
cvy_status cvy_csv_describe_guess(const struct csv *c, const cvy_columns *like);

/* ---- roles (data_csv_columns.c) ---- */
/* Gives each column that is no input its role: by the options and, if the columns of the training are known, by their
 * names. Messages do not name the file. */
cvy_status cvy_csv_set_targets(struct csv *c, const struct csv_opts *o, const cvy_columns *like);
/* Gives the other columns their places in x. */
cvy_status cvy_csv_set_inputs(struct csv *c, const struct csv_opts *o, const cvy_columns *like);
/* Lists the columns in the order of x and y, if the table has a header. */
cvy_status cvy_csv_describe_columns(const struct csv *c, cvy_columns *out);

#endif
