/*
 * data_lines.h: text files with one sample per line: reads the lines in order, and keeps where each sample's line is,
 * and its line number for messages.
 *
 * The list and CSV readers use it. Blank lines are skipped everywhere, and so are lines that begin with #, unless the
 * reader asks for them. The index takes 16 bytes per sample; the text of a line is read again, by position, when its
 * sample is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_LINES_H
#define CVY_DATA_LINES_H

#include "data/data_index.h"

/* A part of a text; it does not end with NUL. */
typedef struct cvy_line_part {
    const char *at;
    size_t bytes;
} cvy_line_part;

/* Whatever the locale, and for characters below 0 too. */
static inline int cvy_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

cvy_line_part cvy_line_part_trim(cvy_line_part s); /* removes blanks and tabs at both ends */
/* Returns 1 if the whole text is an integer of at most 18 digits. */
int cvy_line_part_int(cvy_line_part s, int64_t *out);
/* Returns 1 if the whole text is a finite decimal number. The locale has no influence. */
int cvy_line_part_real(cvy_line_part s, double *out);

/* ---- reading all lines in order ---- */
enum { CVY_LINE_MAX = 1 << 24, CVY_LINE_QUOTED_MAX = 1 << 20 };
/* How far a line has been searched for quoted text. {0}: at its start. */
typedef struct cvy_line_quotes {
    size_t at;
    int inside;
} cvy_line_quotes;
typedef struct cvy_lines { /* start with {.file = f} */
    const cvy_data_file *file;
    cvy_bytes room;
    int64_t from; /* position in the file of the buffer's (`room`'s) first byte */
    size_t at;    /* position of the next line in the buffer */
    int64_t line; /* number of the line read last, from 1; the first one of a line with quoted line ends */
    int keep_comments;
    /* Whether the text of a line so far ends inside quotes, so that the line end belongs to it; it continues the search
     * of the last call. NULL: no line end does. It is no longer asked after a quote that has no end. */
    int (*is_open)(const void *user, cvy_line_part text, cvy_line_quotes *searched);
    const void *user;
    char end;       /* of lines: '\n', or '\r' in a file without '\n' among its first bytes; 0: not known yet */
    int has_mark;   /* 1: the file begins with the byte order mark of UTF-8 */
    int64_t quoted; /* line ends inside the line read last */
} cvy_lines;
/* Returns the next line that is neither blank nor a comment, without its line end. It is valid until the next call.
 * CVY_END after the last line. */
cvy_status cvy_lines_next(cvy_lines *l, cvy_line_part *out, int64_t *offset_out);
void cvy_lines_end(cvy_lines *l);
/* Whether a line is a comment: it begins with #. */
int cvy_line_is_comment(cvy_line_part line);

/* ---- lines of samples ---- */
typedef struct cvy_line_index {
    cvy_data_file file;
    cvy_entries entries;
    struct cvy_line_gap {
        int64_t number, shift; /* from this sample on, line number = sample number + shift */
    } * gap;
    int ngap, room;
} cvy_line_index;
cvy_status cvy_line_index_add(cvy_line_index *x, int64_t line, const cvy_entry *entry);
int64_t cvy_line_index_line(const cvy_line_index *x, int64_t number);
/* Reads the text of the sample's line; `to` has room for the entry's bytes. */
cvy_status cvy_line_index_text(const cvy_line_index *x, int64_t number, char *to);
void cvy_line_index_clear(cvy_line_index *x); /* forgets the samples */
void cvy_line_index_free(cvy_line_index *x);  /* also closes the file */

/* ---- labels that are numbers, or names of classes ---- */
enum { CVY_LABELS_AUTO, CVY_LABELS_NUMBERS, CVY_LABELS_NAMES };
/* How the labels of a file are written: as the user says, or as at least half of them are if these are names. Then
 * numbers are names like others. If they are numbers, a word among them is damage. */
typedef enum { CVY_LABEL_NUMBER, CVY_LABEL_WORD, CVY_LABEL_EITHER /* such as NA: it does not count */ } cvy_label_kind;
typedef struct cvy_label_kinds {
    int asked;                       /* CVY_LABELS_.. */
    int names;                       /* whether labels are names: a guess until cvy_label_kinds_changed() */
    int is_guessed, is_final;        /* names is set; later labels are not counted */
    int64_t count[CVY_LABEL_EITHER]; /* labels of the file, by their kind */
} cvy_label_kinds;
/* Counts a label. Returns 1 if it is to be read as a name. */
int cvy_label_kinds_add(cvy_label_kinds *k, cvy_label_kind kind);
/* Ends the counting after all lines. Returns 1 if the guess was wrong: read the labels again. */
int cvy_label_kinds_changed(cvy_label_kinds *k);
/* Whether numbers are names because there are words, which is to be said. */
int cvy_label_kinds_mixed(const cvy_label_kinds *k);

#endif
