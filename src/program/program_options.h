/*
 * program_options.h: the options of a program, each in one row.
 *
 * A row says the option's key in the job file, its type, default, valid values, unit and help, and the field of
 * cvy_program_opts that holds it. From the rows follow: the sections of the job file and their page, --help, and the
 * completions; the names and values that cvy_program_opts_set() accepts; the check of a struct that a program has
 * filled; the comparison between ranks; and the keys that messages name in place of fields. The languages that call
 * the library take the fields from convoy/program.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_OPTIONS_H
#define CVY_PROGRAM_OPTIONS_H

#include <convoy/program.h>

#include "base/text/base_option.h"

/* Values of batch_norm_group that are no numbers of samples. */
enum { CVY_GROUP_RANK = -1, CVY_GROUP_BATCH = -2, CVY_GROUP_SHARD = -3 };

typedef struct cvy_program_option {
    const char *section;                    /* of the job file; "": at its top; NULL: it is not in the job file */
    const char *field;                      /* its name in cvy_program_opts; NULL ends the table */
    cvy_option row;                         /* the offset is in cvy_program_opts */
    int may_differ;                         /* ranks may have different values */
    int any_bits;                           /* a program may set any bits, whatever `valid` says of the key */
    cvy_status (*check)(const char *value); /* of a text: what `valid` cannot say; may be NULL */
} cvy_program_option;

extern const cvy_program_option cvy_program_option_table[];

/* The option with this field, which is the first `length` characters of a text; NULL: there is none. */
const cvy_program_option *cvy_program_option_of_field(const char *field, size_t length);
/* The option with this key; NULL: there is none. */
const cvy_program_option *cvy_program_option_of_key(const char *section, const char *key);
/* The name of the option in the job file, "comm.wire"; or that of the field, if it has no key there. */
typedef struct cvy_option_name {
    char text[64];
} cvy_option_name;
cvy_option_name cvy_program_option_name(const cvy_program_option *option);
/* The place of a word among those of the option: 0 for NULL, the default; -1: it is none of them. The option's enum has
 * the same order. */
int cvy_program_word_index(const char *field, const char *word);
/* Calls option->check, if the option has one and a text. */
cvy_status cvy_program_option_check_text(const cvy_program_option *option, const cvy_program_opts *opts);
/* Checks all fields. CVY_E_CONFIG: "opts.reduce_wire is ..., expected ..." */
cvy_status cvy_program_opts_check(const cvy_program_opts *opts);
/* Adds a line "opts.field value" for each option that must be the same on all ranks. */
void cvy_program_opts_describe(const cvy_program_opts *opts, cvy_text *out);

#endif
