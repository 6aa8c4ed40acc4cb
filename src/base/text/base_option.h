/*
 * base_option.h: option tables. Every option of the product is a row: name, type, field, default, valid values, unit,
 * help.
 *
 * The parser, --help, the printed job file and the documentation are made from the rows. Operators, optimisers,
 * readers, schedules and sections of the job file all use option tables. A struct of options is filled from a map node;
 * for an unknown key the message has the nearest row.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_OPTION_H
#define CVY_BASE_OPTION_H

#include "base/text/base_text.h"
#include "base/text/base_tree.h"

typedef enum {
    CVY_TYPE_INT,    /* int64_t */
    CVY_TYPE_REAL,   /* double */
    CVY_TYPE_BOOL,   /* int */
    CVY_TYPE_CHOICE, /* int: index into the words of `valid`, "sgd|adam|..." */
    CVY_TYPE_STRING, /* const char *, in the pool; the default "" gives NULL */
    CVY_TYPE_INTS,   /* cvy_ints: a number or a list of numbers */
    CVY_TYPE_REALS,  /* cvy_reals: a number or a list of numbers */
    CVY_TYPE_TREE,   /* const cvy_tree *: any value, which the owner interprets; the default "" gives NULL */
    CVY_TYPE_DTYPE,  /* cvy_dtype: one of the words of `valid` */
    CVY_TYPE_WORD,   /* const char *, in the pool: one of the words of `valid` */
    CVY_TYPE_NAMES,  /* const char *, in the pool: a name or a list of names, as "conv1, fc"; no names give NULL */
    CVY_TYPE_INT3,   /* int64_t[3]: a number or a list of up to three numbers; the others are 0 */
} cvy_option_type;

#define CVY_LIST_MAX 64
typedef struct {
    int count;
    int64_t at[CVY_LIST_MAX];
} cvy_ints;
typedef struct {
    int count;
    double at[CVY_LIST_MAX];
} cvy_reals;

#define CVY_FIELD(type, field) offsetof(struct type, field)

typedef struct cvy_option {
    const char *name; /* NULL ends the table */
    cvy_option_type type;
    size_t offset;        /* offset of the field, by CVY_FIELD */
    const char *fallback; /* the default as text; NULL: the key is required */
    const char *valid;    /* "": any value; else bounds, all of which must hold (for each item of a list): "1.." "0..1"
                             ">0" "0.. <1" "odd 1.." "2^n"; CHOICE, DTYPE, WORD: "a|b|c". INT and NAMES also accept
                             words that stand for a value: "auto=0 1..", "all|true=*|false=" */
    const char *unit;     /* "" or "samples", "channels", "s", "bytes" */
    const char *help;     /* one sentence without a full stop */
} cvy_option;

/* Fills *fields (size bytes; the function zeroes it first) from map. map may be NULL: then all options have their
 * defaults. who: for messages, "layer conv1". A key without a row is an error, unless it is in extra (NULL-terminated,
 * may be NULL). Strings and trees are allocated in pool. */
cvy_status cvy_options_parse(cvy_pool *pool, const char *who, const cvy_option *rows, const cvy_tree *map,
                             const char *const *extra, void *fields, size_t size);
/* The same from text: a YAML flow map with or without its braces, "kernel: 3, pad: 1". NULL or "": all defaults. */
cvy_status cvy_options_parse_text(cvy_pool *pool, const char *who, const cvy_option *rows, const char *text,
                                  void *fields, size_t size);
/* Sets the field of one row from a value. pool NULL: texts are not copied and must live as long as the fields. who
 * NULL: messages have the row's name alone. */
cvy_status cvy_option_set(cvy_pool *pool, const char *who, const cvy_option *row, const cvy_tree *value, void *fields);
/* Checks a field that a program has set; 0 and NULL stand for the default. CVY_E_CONFIG: "<name> is 5, expected 0..1".
 */
cvy_status cvy_option_check(const char *name, const cvy_option *row, const void *fields);
/* Adds the value of one row, as cvy_options_print writes it. */
void cvy_option_print(const cvy_option *row, const void *fields, cvy_text *out);
/* Adds what a row accepts, for messages and pages: "auto or 1..". */
void cvy_option_print_valid(const cvy_option *row, cvy_text *out);
/* A word of `valid`, and the value that it stands for; neither ends with a NUL. */
typedef struct cvy_option_term {
    const char *word, *value; /* value: of "word=value"; NULL: the word stands for itself */
    int word_length, value_length;
} cvy_option_term;
/* Reads the next word from *at, which begins as row->valid, and moves *at to its end; 0: there are no more words. */
int cvy_option_next_word(const cvy_option *row, const char **at, cvy_option_term *out);
/* Prints "name: value, ..." of all rows (a TREE row that is set prints as "..."). The caller frees the text. */
cvy_status cvy_options_print(const cvy_option *rows, const void *fields, char **text_out);
/* The same as a map from which cvy_options_parse makes the same fields again. Rows without a value are left out: NULL
 * strings and trees, empty lists, and numbers without a default that are 0. */
cvy_status cvy_options_tree(cvy_pool *pool, const cvy_option *rows, const void *fields, cvy_tree **out);
/* The word of a CHOICE row's value, in the pool. */
cvy_status cvy_option_word(cvy_pool *pool, const cvy_option *row, int value, const char **out);
/* The help text: one line for each row, indented by two spaces. The caller frees it. */
cvy_status cvy_options_help(const cvy_option *rows, char **text_out);

/* Value i of a list. A list with one item means this item for every i; if the list is empty or too short, fallback. */
static inline int64_t cvy_ints_at(const cvy_ints *list, int i, int64_t fallback)
{
    return list->count == 0 ? fallback : list->count == 1 ? list->at[0] : i < list->count ? list->at[i] : fallback;
}

#endif
