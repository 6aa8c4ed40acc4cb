/*
 * table.h: prints results for people and for programs from one list of columns.
 *
 * A row is a struct. A column says where its value lies in the row, its key in JSON and its title in a table. So a
 * figure of a result is declared once, and tables, lines and JSON cannot differ in what they show.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TABLE_H
#define CVY_TABLE_H

#include "base/text/base_json.h"

typedef enum {
    CVY_CELL_TEXT,   /* char[] */
    CVY_CELL_STRING, /* const char *; NULL: an empty text */
    CVY_CELL_COUNT,  /* int64_t */
    CVY_CELL_INT,    /* int */
    CVY_CELL_BOOL,   /* int */
    CVY_CELL_REAL,   /* double; a table shows "-" if it is not finite */
    CVY_CELL_WORDS   /* a text that `words` writes */
} cvy_cell_kind;

typedef struct cvy_cell {
    const void *row, *value; /* value: its member at the offset of the column */
} cvy_cell;

/* A list of columns ends with {0}. */
typedef struct cvy_column {
    const char *key; /* in JSON and in lines; NULL: it is in tables only */
    cvy_cell_kind kind;
    size_t offset;      /* of the value in the row */
    int is_optional;    /* 1: left out of JSON and of lines if the value is 0, empty or not finite */
    const char *title;  /* in tables; NULL: it is in JSON and in lines only */
    int width;          /* in a table, the least; negative: the cells begin at the left */
    int widest;         /* up to which it is widened for its longest cell; 0: it is not widened */
    int gap;            /* blanks before it; 0: one */
    double scale;       /* by what a real number is multiplied; 0: one */
    const char *format; /* of a real number in a table; NULL: "%.6g" */
    double shown_times; /* by what it is also multiplied in a table: 100 for a share in %; 0: one */
    void (*words)(cvy_cell cell, cvy_text *out); /* of another kind than WORDS: how a table shows the value; or NULL */
} cvy_column;

/* A column of a member: CVY_COLUMN_AS(struct of the row, "took", REAL, seconds, .title = "taken", .width = 8); the key
 * is NULL for one that is in tables only. CVY_COLUMN: its key is the name of the member. */
#define CVY_COLUMN_AS(type, key_of_it, kind_of_it, member, ...)                                                        \
    {                                                                                                                  \
        .key = key_of_it, .kind = CVY_CELL_##kind_of_it, .offset = offsetof(type, member), __VA_ARGS__                 \
    }
#define CVY_COLUMN(type, kind_of_it, member, ...) CVY_COLUMN_AS(type, #member, kind_of_it, member, __VA_ARGS__)

/* Rows that lie one behind the other. */
typedef struct cvy_table_rows {
    const void *at; /* [n] */
    int n;
    size_t bytes; /* of a row */
} cvy_table_rows;
#define CVY_ROWS(array, count)                                                                                         \
    (cvy_table_rows)                                                                                                   \
    {                                                                                                                  \
        (array), (count), sizeof *(array)                                                                              \
    }

/* Adds the columns of a row as members of the open object. */
void cvy_row_json(const cvy_column *columns, const void *row, cvy_json *json);
/* Adds a line for each column: its key and its value. */
void cvy_row_lines(const cvy_column *columns, const void *row, cvy_text *out);
/* Adds a list of objects. key: NULL within a list. */
void cvy_table_json(const cvy_column *columns, cvy_table_rows rows, const char *key, cvy_json *json);
/* Adds a line of titles and one for each row. after: NULL, or adds lines after that of a row. */
void cvy_table_print(const cvy_column *columns, cvy_table_rows rows, void (*after)(const void *row, cvy_text *out),
                     cvy_text *out);

/* The two usual texts of a result that is one row. The caller frees them. */
cvy_status cvy_row_json_text(const cvy_column *columns, const void *row, char **text_out);
cvy_status cvy_row_lines_text(const cvy_column *columns, const void *row, char **text_out);

#endif
