/*
 * data_lines.h: text files with a sample a line: going through them, where each line lies, and its number for messages.
 *
 * Below the list and CSV readers. Blank lines and those that begin with # are passed over everywhere. The index takes
 * 16 bytes a sample; texts are read again, by position, when a sample is.
 */
#ifndef CVY_DATA_LINES_H
#define CVY_DATA_LINES_H

#include "data/data_index.h"

/* A stretch of text that is not NUL-terminated. */
typedef struct cvy_line_part {
    const char *at;
    size_t bytes;
} cvy_line_part;

cvy_line_part cvy_line_part_trim(cvy_line_part s); /* without blanks and tabs at both ends */
/* The whole span is a whole number within 18 digits. */
int cvy_line_part_int(cvy_line_part s, int64_t *out);
/* The whole span is a finite decimal number, in any locale. */
int cvy_line_part_real(cvy_line_part s, double *out);

/* ---- from front to back ---- */
enum { CVY_LINE_MAX = 1 << 24 };
typedef struct cvy_lines { /* {.file = f} is at the start */
    const cvy_data_file *file;
    cvy_bytes room;
    int64_t from; /* room's first byte in the file */
    size_t at;    /* the next line in room */
    int64_t line; /* number of the latest, from 1 */
} cvy_lines;
/* The next line with something in it, without its end; valid until the next call. CVY_END after the last. */
cvy_status cvy_lines_next(cvy_lines *l, cvy_line_part *out, int64_t *offset_out);
void cvy_lines_end(cvy_lines *l);

/* ---- samples' lines ---- */
typedef struct cvy_line_index {
    cvy_data_file file;
    cvy_entries entries;
    struct cvy_line_gap {
        int64_t number, shift; /* from this sample on, line = number + shift */
    } * gap;
    int ngap, room;
} cvy_line_index;
cvy_status cvy_line_index_add(cvy_line_index *x, int64_t line, const cvy_entry *entry);
int64_t cvy_line_index_line(const cvy_line_index *x, int64_t number);
/* The entry's bytes of the file. */
cvy_status cvy_line_index_text(const cvy_line_index *x, int64_t number, char *to);
void cvy_line_index_free(cvy_line_index *x); /* closes the file too */

#endif
