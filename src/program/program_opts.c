/*
 * program_opts.c: sets options of a program by name, from text. The names are the keys of the job file, and the values
 * are what these keys accept. An option without a key has the name of its field.
 *
 * An option is a row of the table: name, kind, field, the words that it accepts, and what a message says is expected.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/text/base_table.h"
#include "comm/comm_allreduce.h"
#include "kernel/kernel_library.h"
#include "pass/pass.h"
#include "program/program_impl.h"

typedef enum option_kind {
    KIND_WORD,  /* int or an enum: one of `words` */
    KIND_COUNT, /* int64_t or uint64_t: a whole number of at least `least`, or one of `words` */
    KIND_REAL,  /* double */
    KIND_TEXT,  /* const char *, borrowed: one of `words`, or what `check` accepts; "" is NULL */
    KIND_OTHER  /* set by the function `set` */
} option_kind;

/* A word that an option accepts, and its value. The words in `old_words` are still accepted, but no message names
 * them. */
typedef struct option_word {
    const char *word; /* NULL ends the list */
    int64_t value;
} option_word;

typedef struct option_row option_row;
struct option_row {
    const char *name;
    option_kind kind;
    size_t offset;
    const option_word *words;
    const char *expected; /* for messages */
    int64_t least;
    int (*fits)(double value);
    cvy_status (*check)(const char *value);
    cvy_status (*set)(const option_row *row, cvy_program_opts *opts, const char *value);
};

_Static_assert(sizeof(cvy_dtype) == sizeof(int) && sizeof(cvy_update_mode) == sizeof(int), "KIND_WORD writes an int");

enum { SHARDS_DEFAULT = 8, SHARDS_MAX = 4096 };

static const char overlap_off[] = "overlap"; /* passes_off, set by comm.overlap: false */

/* ---- words ---- */

static const option_word yes_no[] = {{"true", 1}, {"false", 0}, {0}};
static const option_word no_yes[] = {{"true", 0}, {"false", 1}, {0}};
static const option_word dtypes[] = {{"f32", CVY_DTYPE_F32}, {"f64", CVY_DTYPE_F64}, {"bf16", CVY_DTYPE_BF16}, {0}};
static const option_word wires[] = {{"f32", CVY_DTYPE_F32}, {"bf16", CVY_DTYPE_BF16}, {0}};
static const option_word modes[] = {{"sync", CVY_UPDATE_SYNC},     {"delayed", CVY_UPDATE_DELAYED},
                                    {"local", CVY_UPDATE_LOCAL},   {"parameter_server", CVY_UPDATE_PARAMETER_SERVER},
                                    {"zero1", CVY_UPDATE_ZERO1},   {"pipelined", CVY_UPDATE_DELAYED},
                                    {"sharded", CVY_UPDATE_ZERO1}, {0}};
static const option_word groups[] = {{"batch", -2}, {"rank", -1}, {"shard", -2}, {0}};
static const option_word any_staleness[] = {{"none", -1}, {0}};
static const option_word bucket_by_cost[] = {{"auto", 0}, {0}};
static const option_word progress[] = {{"poll", 0}, {"thread", 0}, {0}};
static const option_word orders[] = {{"1f1b", 0}, {"gpipe", 0}, {0}};
static const option_word plannings[] = {{"estimate", 0}, {"measure", 0}, {"patient", 0}, {0}};
static const option_word overlaps[] = {{"true", 1}, {"false", 0}, {"forward", 2}, {0}};

static const struct {
    const char *old, *current;
} old_words[] = {{"pipelined", "delayed"}, {"sharded", "zero1"}};

static const option_word *find_word(const option_word *words, const char *value)
{
    for (; words && words->word; words++)
        if (strcmp(words->word, value) == 0 || strcmp(words->word, cvy_bool_word(value)) == 0)
            return words;
    return NULL;
}

static cvy_status refuse(const option_row *row, const char *value)
{
    const char *names[16], *near = NULL;
    int count = 0;
    for (const option_word *w = row->words; w && w->word && count < CVY_COUNT(names); w++)
        names[count++] = w->word;
    near = cvy_text_nearest(value, names, count);
    for (int i = 0; near && i < CVY_COUNT(old_words); i++)
        if (strcmp(near, old_words[i].old) == 0)
            near = old_words[i].current;
    return cvy_error_set(CVY_E_CONFIG, "%s is \"%s\", expected %s%s", row->name, value, row->expected,
                         near ? cvy_hint_name('"', near, &near, 1).text : "");
}

/* ---- checks of values ---- */

static int is_scale(double value)
{
    return isfinite(value) && value > 0;
}

static int is_share(double value)
{
    return value >= 0 && value < 1;
}

static cvy_status check_kernels(const char *value)
{
    cvy_kernels kernels;
    return cvy_kernels_parse(value, &kernels);
}

/* ---- options with a function of their own ---- */

/* The field holds the number of shards. If a number is already there, it stays. */
static cvy_status set_deterministic(const option_row *row, cvy_program_opts *opts, const char *value)
{
    const option_word *word = find_word(row->words, value);
    if (!word)
        return refuse(row, value);
    opts->shards = !word->value ? 0 : opts->shards > 0 ? opts->shards : SHARDS_DEFAULT;
    return CVY_OK;
}

static cvy_status set_shards(const option_row *row, cvy_program_opts *opts, const char *value)
{
    int64_t n = 0;
    if (cvy_text_int(value, &n) != CVY_OK || n < 1 || n > SHARDS_MAX || (n & (n - 1)) != 0)
        return refuse(row, value);
    opts->shards = n;
    return CVY_OK;
}

/* "2", "2,2" or "[2, 2]": dimensions that are not named are not split. */
static cvy_status set_spatial(const option_row *row, cvy_program_opts *opts, const char *value)
{
    int64_t parts[CVY_COUNT(opts->spatial)] = {0};
    int n = 0;
    for (const char *at = value + strspn(value, "[ "); *at; n++) {
        char *end = NULL;
        const long long number = strtoll(at, &end, 10);
        if (end == at || number < 1 || n == CVY_COUNT(parts))
            return refuse(row, value);
        parts[n] = number;
        at = end + strspn(end, ", ]");
    }
    if (n == 0)
        return refuse(row, value);
    memcpy(opts->spatial, parts, sizeof parts);
    return CVY_OK;
}

/* Without overlap, the pass of that name is off. Strings are borrowed, so a list of the caller cannot be extended. */
static cvy_status set_overlap(const option_row *row, cvy_program_opts *opts, const char *value)
{
    const option_word *word = find_word(row->words, value);
    if (!word)
        return refuse(row, value);
    const int is_ours = opts->passes_off == overlap_off;
    if (word->value == 0) {
        CVY_CHECK(!opts->passes_off || !cvy_pass_is_on(opts->passes_off, overlap_off), CVY_E_CONFIG,
                  "%s is \"%s\", and plan.passes_off is \"%s\": name overlap in plan.passes_off instead", row->name,
                  value, opts->passes_off);
        opts->passes_off = opts->passes_off ? opts->passes_off : overlap_off;
    } else if (is_ours)
        opts->passes_off = NULL;
    opts->overlap_forward = word->value == 2;
    return CVY_OK;
}

static cvy_status set_passes_off(const option_row *row, cvy_program_opts *opts, const char *value)
{
    if (cvy_passes_check(value) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s is \"%s\"", row->name, value);
    CVY_CHECK(opts->passes_off != overlap_off || !cvy_pass_is_on(value, overlap_off), CVY_E_CONFIG,
              "%s is \"%s\", and comm.overlap is false: name overlap in %s too", row->name, value, row->name);
    opts->passes_off = *value ? value : NULL;
    return CVY_OK;
}

/* ---- the table ---- */

#define AT(field) offsetof(cvy_program_opts, field)
#define TRUE_FALSE "true or false"

static const option_row rows[] = {
    {"train.dtype", KIND_WORD, AT(dtype), dtypes, "f32, f64 or bf16", 0, NULL, NULL, NULL},
    {"train.seed", KIND_COUNT, AT(seed), NULL, "a whole number of at least 0", 0, NULL, NULL, NULL},
    {"train.precise", KIND_WORD, AT(precise), yes_no, TRUE_FALSE, 0, NULL, NULL, NULL},
    {"batch_norm.group", KIND_COUNT, AT(batch_norm_group), groups, "a number of samples, batch, rank or shard", 1, NULL,
     NULL, NULL},
    {"batch_norm.frozen", KIND_TEXT, AT(batch_norm_frozen), NULL, "", 0, NULL, NULL, NULL},
    {"plan.kernels", KIND_TEXT, AT(kernels), NULL, "", 0, NULL, check_kernels, NULL},
    {"plan.passes_off", KIND_OTHER, AT(passes_off), NULL, "", 0, NULL, NULL, set_passes_off},
    {"plan.planning", KIND_TEXT, AT(planning), plannings, "estimate, measure or patient", 0, NULL, NULL, NULL},
    {"plan.wisdom", KIND_TEXT, AT(wisdom), NULL, "", 0, NULL, NULL, NULL},
    {"plan.memory_limit", KIND_COUNT, AT(memory_limit), NULL, "a number of bytes of at least 0, such as 8 GiB", 0, NULL,
     NULL, NULL},
    {"plan.clock_scale", KIND_REAL, AT(clock_scale), NULL, "a number above 0", 0, is_scale, NULL, NULL},
    {"plan.clock_noise", KIND_REAL, AT(clock_noise), NULL, "a number from 0 to below 1", 0, is_share, NULL, NULL},
    {"comm.bucket", KIND_COUNT, AT(bucket_bytes), bucket_by_cost, "auto or a size of at least one byte, such as 4 MiB",
     1, NULL, NULL, NULL},
    {"comm.overlap", KIND_OTHER, AT(overlap_forward), overlaps, "true, false or forward", 0, NULL, NULL, set_overlap},
    {"comm.blocking", KIND_WORD, AT(reduce_blocking), yes_no, TRUE_FALSE, 0, NULL, NULL, NULL},
    {"comm.algorithm", KIND_TEXT, AT(reduce), NULL, "", 0, NULL, cvy_allreduce_check_name, NULL},
    {"comm.progress", KIND_TEXT, AT(reduce_progress), progress, "poll or thread", 0, NULL, NULL, NULL},
    {"comm.wire", KIND_WORD, AT(reduce_wire), wires, "f32 or bf16", 0, NULL, NULL, NULL},
    {"comm.node_memory", KIND_WORD, AT(reduce_no_node), no_yes, TRUE_FALSE, 0, NULL, NULL, NULL},
    {"update", KIND_WORD, AT(update_mode), modes, "sync, delayed, local, parameter_server or zero1", 0, NULL, NULL,
     NULL},
    {"update.mode", KIND_WORD, AT(update_mode), modes, "sync, delayed, local, parameter_server or zero1", 0, NULL, NULL,
     NULL},
    {"update.servers", KIND_COUNT, AT(update_servers), NULL, "a number of ranks of at least 1", 1, NULL, NULL, NULL},
    {"update.staleness", KIND_COUNT, AT(update_staleness), any_staleness, "a number of steps of at least 0, or none", 0,
     NULL, NULL, NULL},
    {"deterministic", KIND_OTHER, AT(shards), yes_no, TRUE_FALSE, 0, NULL, NULL, set_deterministic},
    {"deterministic_shards", KIND_OTHER, AT(shards), NULL, "a power of two from 1 to 4096", 0, NULL, NULL, set_shards},
    {"parallel.pipeline", KIND_COUNT, AT(pipeline), NULL, "a number of stages of at least 1", 1, NULL, NULL, NULL},
    {"parallel.order", KIND_TEXT, AT(pipeline_order), orders, "1f1b or gpipe", 0, NULL, NULL, NULL},
    {"parallel.tensor", KIND_COUNT, AT(tensor), NULL, "a number of parts of at least 1", 1, NULL, NULL, NULL},
    {"parallel.tensor_layers", KIND_TEXT, AT(tensor_layers), NULL, "", 0, NULL, NULL, NULL},
    {"parallel.spatial", KIND_OTHER, AT(spatial), NULL, "one to three numbers of parts, such as 2,2", 0, NULL, NULL,
     set_spatial},
    {"parallel.interleave", KIND_COUNT, AT(interleave), NULL, "a number of stages of each rank of at least 1", 1, NULL,
     NULL, NULL},
    {"parallel.first_layers", KIND_TEXT, AT(first_layers), NULL, "", 0, NULL, NULL, NULL},
    {"plan_file", KIND_TEXT, AT(plan_file), NULL, "", 0, NULL, NULL, NULL},
    {"share_weights", KIND_WORD, AT(share_weights), yes_no, TRUE_FALSE, 0, NULL, NULL, NULL},
    {"gradients_only", KIND_WORD, AT(gradients_only), yes_no, TRUE_FALSE, 0, NULL, NULL, NULL},
    {"outputs_in_parts", KIND_WORD, AT(outputs_in_parts), yes_no, TRUE_FALSE, 0, NULL, NULL, NULL},
};

/* ---- setting ---- */

static cvy_status find_row(const char *name, const option_row **out)
{
    const char *names[CVY_COUNT(rows)];
    cvy_text known = {0};
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        names[i] = rows[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = &rows[i];
            return CVY_OK;
        }
    }
    cvy_text_add_known(&known, name, names, CVY_COUNT(rows));
    const cvy_status status = known.status == CVY_OK
                                  ? cvy_error_set(CVY_E_CONFIG, "a program has no option '%s'%s", name, known.data)
                                  : known.status;
    cvy_text_free(&known);
    return status;
}

static cvy_status set_text(const option_row *row, const char **field, const char *value)
{
    if (*value && row->words && !find_word(row->words, value))
        return refuse(row, value);
    const cvy_status status = *value && row->check ? row->check(value) : CVY_OK;
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", row->name);
    *field = *value ? value : NULL;
    return CVY_OK;
}

static cvy_status set_count(const option_row *row, int64_t *field, const char *value)
{
    const option_word *word = find_word(row->words, value);
    int64_t n = 0;
    if (!word && (cvy_text_int(value, &n) != CVY_OK || n < row->least))
        return refuse(row, value);
    *field = word ? word->value : n;
    return CVY_OK;
}

static cvy_status set_field(const option_row *row, cvy_program_opts *opts, const char *value)
{
    void *field = (char *)opts + row->offset;
    const option_word *word = find_word(row->words, value);
    switch (row->kind) {
    case KIND_WORD:
        if (!word)
            return refuse(row, value);
        *(int *)field = (int)word->value;
        return CVY_OK;
    case KIND_COUNT: return set_count(row, field, value);
    case KIND_REAL: {
        double number = 0;
        if (cvy_text_real(value, &number) != CVY_OK || !row->fits(number))
            return refuse(row, value);
        *(double *)field = number;
        return CVY_OK;
    }
    case KIND_TEXT: return set_text(row, field, value);
    case KIND_OTHER: return row->set(row, opts, value);
    }
    CVY_FAIL(CVY_E_INTERNAL, "option %s has the unknown kind %d", row->name, (int)row->kind);
}

cvy_status cvy_program_opts_set(cvy_program_opts *opts, const char *name, const char *value)
{
    CVY_ENTRY();
    cvy_program_opts own;
    const option_row *row = NULL;
    CVY_CHECK(opts && name, CVY_E_ARGUMENT, "an option of a program needs the options and a name, not NULL");
    CVY_CHECK(value, CVY_E_ARGUMENT, "the value of %s is NULL", name);
    CVY_TRY(CVY_OPTS_READ(cvy_program_opts, opts, &own));
    CVY_TRY(find_row(name, &row));
    CVY_CHECK(row->offset < opts->size, CVY_E_ARGUMENT,
              "the caller was compiled with an older convoy/program.h, whose options lack %s: compile it again", name);
    CVY_TRY(set_field(row, &own, value));
    cvy_result_write(opts, &own, sizeof own);
    return CVY_OK;
}
