/*
 * selftest_result.c: the result of cvy_run_selftest() as a struct, as lines and as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "health/selftest/selftest.h"

#include <stdio.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "table/table.h"

/* The size of the struct's first version; without `owned` the caller could not release what it is given. */
#define FIRST_SIZE (offsetof(cvy_selftest_result, owned) + sizeof(void *))

struct owned {
    cvy_pool *pool;
};

/* "ok", in lines */
static const char *const line_word[] = {
    [CVY_SELFTEST_PASSED] = "ok", [CVY_SELFTEST_FAILED] = "FAILED", [CVY_SELFTEST_SKIPPED] = "skipped"};
static const char *const json_word[] = {
    [CVY_SELFTEST_PASSED] = "passed", [CVY_SELFTEST_FAILED] = "failed", [CVY_SELFTEST_SKIPPED] = "skipped"};

static void add_line(const cvy_selftest_result_check *check, cvy_text *text)
{
    cvy_text_add(text, "%-7s  %-13s  %s", line_word[check->verdict], check->name, check->text);
    if (check->note)
        cvy_text_add(text, "\nnote     %-13s  %s", check->name, check->note);
}

cvy_status cvy_selftest_line(cvy_selftest *t, const cvy_selftest_result_check *check, char **text_out)
{
    cvy_text text = {0};
    add_line(check, &text);
    const cvy_status status = text.status == CVY_OK ? cvy_pool_strdup(t->pool, text.data, text_out) : text.status;
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_selftest_result_make(cvy_selftest *t, cvy_pool **pool_take, cvy_selftest_result *given)
{
    cvy_selftest_result own = cvy_selftest_result_default();
    struct owned *owned = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *owned, &owned));
    for (int i = 0; i < t->ncheck; i++) {
        own.passed += t->check[i].verdict == CVY_SELFTEST_PASSED;
        own.failed += t->check[i].verdict == CVY_SELFTEST_FAILED;
        own.skipped += t->check[i].verdict == CVY_SELFTEST_SKIPPED;
    }
    own.ranks = t->context->comm->nranks;
    own.seconds = cvy_clock_s() - t->begin_s;
    own.nchecks = t->ncheck;
    own.check = t->check;
    owned->pool = *pool_take; /* *t is in it */
    *pool_take = NULL;
    own.owned = owned;
    cvy_result_write(given, &own, sizeof own);
    return CVY_OK;
}

cvy_status cvy_selftest_result_size(const cvy_selftest_result *given)
{
    CVY_CHECK(given, CVY_E_ARGUMENT, "cvy_run_selftest() needs a place for what it finds");
    CVY_TRY(CVY_RESULT_CHECK(cvy_selftest_result, given));
    CVY_CHECK(
        given->size >= FIRST_SIZE, CVY_E_ARGUMENT,
        "the size of cvy_selftest_result is %zu, and its first version had %zu: set it to sizeof(cvy_selftest_result)",
        given->size, FIRST_SIZE);
    return CVY_OK;
}

void cvy_selftest_result_clear(cvy_selftest_result *given)
{
    const cvy_selftest_result empty = {0};
    cvy_result_write(given, &empty, sizeof empty);
}

static cvy_status check_full(const cvy_selftest_result *result)
{
    CVY_TRY(cvy_selftest_result_size(result));
    CVY_CHECK(result->owned, CVY_E_ARGUMENT, "the result is empty: cvy_run_selftest() fills it on rank 0");
    return CVY_OK;
}

cvy_status cvy_selftest_result_lines(const cvy_selftest_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_text text = {0};
    CVY_TRY(check_full(result));
    for (int i = 0; i < result->nchecks; i++) {
        add_line(&result->check[i], &text);
        cvy_text_add(&text, "\n");
    }
    cvy_text_add(&text, "selftest: %d check%s passed, %d failed, %d skipped, %.0f s\n", result->passed,
                 result->passed == 1 ? "" : "s", result->failed, result->skipped, result->seconds);
    return cvy_text_take(&text, text_out);
}

static void verdict_words(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, "%s", json_word[*(const cvy_selftest_verdict *)cell.value]);
}

static const cvy_column sums[] = {
    CVY_COLUMN(cvy_selftest_result, INT, passed),   CVY_COLUMN(cvy_selftest_result, INT, failed),
    CVY_COLUMN(cvy_selftest_result, INT, skipped),  CVY_COLUMN(cvy_selftest_result, INT, ranks),
    CVY_COLUMN(cvy_selftest_result, REAL, seconds), {0},
};

static const cvy_column columns[] = {
    CVY_COLUMN(cvy_selftest_result_check, STRING, name),
    CVY_COLUMN(cvy_selftest_result_check, WORDS, verdict, .words = verdict_words),
    CVY_COLUMN(cvy_selftest_result_check, STRING, text),
    CVY_COLUMN(cvy_selftest_result_check, STRING, note, .is_optional = 1),
    CVY_COLUMN(cvy_selftest_result_check, REAL, seconds),
    {0},
};

cvy_status cvy_selftest_result_json(const cvy_selftest_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_json json = {0};
    CVY_TRY(check_full(result));
    cvy_json_open(&json, NULL, '{');
    cvy_row_json(sums, result, &json);
    cvy_table_json(columns, CVY_ROWS(result->check, result->nchecks), "checks", &json);
    cvy_json_close(&json, '}');
    cvy_text_add(&json.text, "\n");
    return cvy_text_take(&json.text, text_out);
}

/* A struct that cvy_run_selftest() has refused holds nothing. */
void cvy_selftest_result_release(cvy_selftest_result *result)
{
    CVY_ENTRY();
    if (result->size < FIRST_SIZE)
        return;
    struct owned *owned = result->owned;
    if (owned)
        cvy_pool_destroy(&owned->pool);
    cvy_mem_free(&owned);
    cvy_selftest_result_clear(result);
}
