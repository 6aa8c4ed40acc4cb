/*
 * base_option.h: option tables. Every tunable of the product is a row: name, type, field, default, valid values, unit,
 * help.
 *
 * The rows make the parser, --help, the printed job file and the documentation. Operators, optimisers, readers,
 * schedules, sections of the job file all use them. A struct of options is filled from a map node; unknown keys name
 * the nearest row.
 */
#ifndef CVY_BASE_OPTION_H
#define CVY_BASE_OPTION_H

#include "base/base_tree.h"

typedef enum {
    CVY_TYPE_INT,    /* int64_t */
    CVY_TYPE_REAL,   /* double */
    CVY_TYPE_BOOL,   /* int */
    CVY_TYPE_CHOICE, /* int: index into the words of `valid`, "sgd|adam|..." */
    CVY_TYPE_STRING, /* const char *, in the pool; default "" gives NULL */
    CVY_TYPE_INTS,   /* cvy_ints: a number or a list of numbers */
    CVY_TYPE_REALS,  /* cvy_reals: a number or a list of numbers */
    CVY_TYPE_TREE,   /* const cvy_tree *: anything, interpreted by the owner; default "" gives NULL */
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
    size_t offset;        /* of the field, by CVY_FIELD */
    const char *fallback; /* default, as text; NULL: the key must be given */
    const char *valid;    /* "" any; "1.." "0..1" ">0" "0.. <1" "odd 1.." bounds (of each item for lists), all of which
                             must hold; CHOICE: "a|b|c" */
    const char *unit;     /* "" or "samples", "channels", "s", "bytes" */
    const char *help;     /* one sentence without a full stop */
} cvy_option;

/* Fills *fields (zeroed by the callee, size bytes) from map, which may be NULL (all defaults). who: for messages,
 * "layer conv1". Keys that no row names are faults, unless listed in extra (NULL-terminated, may be NULL). Strings and
 * trees live in pool. */
cvy_status cvy_options_parse(cvy_pool *pool, const char *who, const cvy_option *rows, const cvy_tree *map,
                             const char *const *extra, void *fields, size_t size);
/* The same from text, a YAML flow map with or without its braces: "kernel: 3, pad: 1". NULL or "" is all defaults. */
cvy_status cvy_options_parse_text(cvy_pool *pool, const char *who, const cvy_option *rows, const char *text,
                                  void *fields, size_t size);
/* "name: value, ..." of all rows (a TREE row that is set prints as "..."), into a string of its own. */
cvy_status cvy_options_print(const cvy_option *rows, const void *fields, char **text_out);
/* The same as a map that parses back to the same fields; rows that hold nothing (NULL strings and trees,
 * empty lists, numbers without a default that are 0) are left out. */
cvy_status cvy_options_tree(cvy_pool *pool, const cvy_option *rows, const void *fields, cvy_tree **out);
/* The word of a CHOICE row's value, in the pool. */
cvy_status cvy_option_word(cvy_pool *pool, const cvy_option *row, int value, const char **out);
/* Help text, a line per row, two spaces of indent. */
cvy_status cvy_options_help(const cvy_option *rows, char **text_out);

/* Value i of a list, where a list of one stands for all and an empty one for fallback. */
static inline int64_t cvy_ints_at(const cvy_ints *list, int i, int64_t fallback)
{
    return list->count == 0 ? fallback : list->count == 1 ? list->at[0] : i < list->count ? list->at[i] : fallback;
}

#endif
