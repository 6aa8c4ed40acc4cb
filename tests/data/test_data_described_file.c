/*
 * test_data_described_file.c: what files say of their variables is kept in a description and read back: names, units,
 * calendars, axes with few or many coordinates, variables on one grid; damaged descriptions are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_described_file.h"
#include "test_data_support.h"

enum { MANY = 361 };

static cvy_pool *pool;

static cvy_status read_text(const char *text, cvy_descriptions *out)
{
    cvy_tree *root = NULL;
    OK(cvy_tree_parse_text(pool, "text", text, strlen(text), &root));
    return cvy_descriptions_read(pool, root, out);
}

static void write_text(const cvy_descriptions *d, cvy_text *out)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_descriptions_write(d, &json);
    cvy_json_close(&json, '}');
    OK(json.text.status);
    *out = json.text;
}

static void test_kept(void)
{
    static double lat[] = {60, 20, -20}, lon[MANY];
    for (int i = 0; i < MANY; i++)
        lon[i] = i;
    cvy_described x[3] = {{.name = "t\"2", .cf = {"K", [CVY_CF_STANDARD_NAME] = "air_temperature"}, .ndim = 3}};
    x[0].axis[0] = (cvy_coordinates){.n = 1};
    x[0].axis[1] = (cvy_coordinates){.name = "lat", .cf = {"degrees_north"}, .n = 3, .value = lat};
    x[0].axis[2] = (cvy_coordinates){.name = "lon", .n = MANY, .value = lon};
    x[0].samples = (cvy_coordinates){.name = "time", .cf = {"days since 2000-01-01", "noleap"}, .n = 7};
    x[1] = x[2] = x[0];
    x[1].name = NULL;
    x[2].axis[2].value = NULL;
    const cvy_descriptions all = {.nx = 3, .x = x};
    cvy_descriptions kept, copy;
    cvy_text text[3] = {{0}}, shown = {0};
    write_text(&all, &text[0]);
    OK(read_text(text[0].data, &kept));
    TRUE_THAT(kept.nx == 3 && kept.ny == 0 && kept.x[0].ndim == 3 && kept.x[1].ndim == 3);
    TRUE_THAT(strcmp(kept.x[0].name, "t\"2") == 0 && !kept.x[1].name && !kept.x[0].axis[0].name);
    TRUE_THAT(strcmp(kept.x[0].cf[CVY_CF_STANDARD_NAME], "air_temperature") == 0 && !kept.x[0].cf[CVY_CF_AXIS]);
    TRUE_THAT(kept.x[1].axis[1].nkept == 0 && kept.x[1].axis[1].value[2] == -20);
    const cvy_coordinates *few = &kept.x[0].axis[2];
    TRUE_THAT(few->n == MANY && few->nkept == CVY_COORDINATES_KEPT && few->value[few->nkept - 1] == MANY - 1);
    for (int64_t k = 0; k < few->nkept; k++)
        TRUE_THAT(few->value[k] == (double)cvy_coordinates_kept_at(few, k));
    TRUE_THAT(!kept.x[2].axis[2].value && kept.x[2].axis[2].n == MANY);
    OK(cvy_descriptions_copy(pool, &all, &copy));
    write_text(&kept, &text[1]);
    write_text(&copy, &text[2]);
    TRUE_THAT(strcmp(text[0].data, text[1].data) == 0 && strcmp(text[0].data, text[2].data) == 0);
    cvy_descriptions_print(&kept, &shown);
    TRUE_THAT(strstr(shown.data, "x: t\"2, in K; samples along time 7 days since 2000-01-01 (noleap); "));
    TRUE_THAT(strstr(shown.data, "; lat 3, 60 .. -20 degrees_north; lon 361, 0 .. 360\n") &&
              strstr(shown.data, "; same axes\n") && strstr(shown.data, "; lon 361\n"));
    for (int i = 0; i < 3; i++)
        cvy_text_free(&text[i]);
    cvy_text_free(&shown);
    OK(read_text("{}", &(cvy_descriptions){0})); /* of an older version */
}

static void test_damaged(void)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"{described: 3}", "no map"},
        {"{described: {x: 3, y: []}}", "no lists"},
        {"{described: {x: [3], y: []}}", "no map"},
        {"{described: {x: [{samples: {n: 1}}], y: []}}", "no \"axes\""},
        {"{described: {x: [{axes: []}], y: []}}", "no \"n\""},
        {"{described: {x: [{samples: {n: -1}, axes: []}], y: []}}", "-1 elements"},
        {"{described: {x: [{samples: {n: 2, at: [1, 2, 3]}, axes: []}], y: []}}", "of 2 has 3 coordinates"},
        {"{described: {x: [{samples: {n: 9, at: [1]}, axes: []}], y: []}}", "of 9 has 1 coordinates"},
        {"{described: {x: [{samples: {n: 1}, axes: [{n: 1}, {n: 1}, {n: 1}, {n: 1}, {n: 1}, {n: 1}, {n: 1}, {n: 1}, "
         "{n: 1}, {n: 1}]}], y: []}}",
         "at most"},
    };
    cvy_descriptions d;
    for (int i = 0; i < CVY_COUNT(bad); i++)
        FAILS(read_text(bad[i].text, &d), CVY_E_FORMAT, bad[i].words);
}

int main(void)
{
    OK(cvy_pool_create(&pool));
    test_kept();
    test_damaged();
    cvy_pool_destroy(&pool);
    return 0;
}
