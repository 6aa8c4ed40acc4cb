/*
 * selftest_result.c: the result of cvy_run_selftest(): its lines and its JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "health/selftest/selftest.h"

#include "base/base_entry.h"
#include "base/machine/base_clock.h"
#include "table/table.h"

/* "ok", in lines */
static const char *const line_word[] = {
    [CVY_SELFTEST_PASSED] = "ok", [CVY_SELFTEST_FAILED] = "FAILED", [CVY_SELFTEST_SKIPPED] = "skipped"};
static const char *const json_word[] = {
    [CVY_SELFTEST_PASSED] = "passed", [CVY_SELFTEST_FAILED] = "failed", [CVY_SELFTEST_SKIPPED] = "skipped"};

cvy_status cvy_selftest_line(cvy_selftest *t, const cvy_selftest_result_check *check, char **text_out)
{
    CVY_TRY(cvy_pool_printf(t->pool, text_out, "%-7s  %-13s  %s", line_word[check->verdict], check->name, check->text));
    return check->note
               ? cvy_pool_printf(t->pool, text_out, "%s\nnote     %-13s  %s", *text_out, check->name, check->note)
               : CVY_OK;
}

void cvy_selftest_result_make(cvy_selftest *t, cvy_selftest_result *out)
{
    *out = (cvy_selftest_result){.ranks = t->context->comm->nranks,
                                 .seconds = cvy_clock_s() - t->begin_s,
                                 .nchecks = t->ncheck,
                                 .check = t->check,
                                 .pool = t->pool};
    for (int i = 0; i < t->ncheck; i++) {
        out->passed += t->check[i].verdict == CVY_SELFTEST_PASSED;
        out->failed += t->check[i].verdict == CVY_SELFTEST_FAILED;
        out->skipped += t->check[i].verdict == CVY_SELFTEST_SKIPPED;
    }
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
    cvy_json_open(&json, NULL, '{');
    cvy_row_json(sums, result, &json);
    cvy_table_json(columns, CVY_ROWS(result->check, result->nchecks), "checks", &json);
    cvy_json_close(&json, '}');
    cvy_text_add(&json.text, "\n");
    return cvy_text_take(&json.text, text_out);
}

void cvy_selftest_result_release(cvy_selftest_result *result)
{
    cvy_pool_destroy(&result->pool);
    *result = (cvy_selftest_result){0};
}
