/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_json.c: the output of the JSON writer, and that our own reader accepts it. */
#include "base/text/base_json.h"
#include "base/text/base_tree.h"
#include "test_util.h"

static void json(void)
{
    cvy_json j = {0};
    cvy_json_open(&j, NULL, '{');
    cvy_json_int(&j, "step", -5);
    cvy_json_real(&j, "loss", 0.1);
    cvy_json_real(&j, "nan", NAN);
    cvy_json_real(&j, "third", 1.0 / 3);
    cvy_json_string(&j, "s", "a\"b\\c\n\x01\xff\xc3\xa9");
    cvy_json_string(&j, "none", NULL);
    cvy_json_open(&j, "list", '[');
    cvy_json_bool(&j, NULL, 1);
    cvy_json_open(&j, NULL, '{');
    cvy_json_close(&j, '}');
    cvy_json_int(&j, NULL, INT64_MAX);
    cvy_json_close(&j, ']');
    cvy_json_close(&j, '}');
    const char *expected = "{\"step\": -5, \"loss\": 0.1, \"nan\": null, \"third\": 0.3333333333333333, \"s\": "
                           "\"a\\\"b\\\\c\\n\\u0001\\ufffd\xc3\xa9\", "
                           "\"none\": null, \"list\": [true, {}, 9223372036854775807]}";
    EXPECT_TEXT(j.text.data, expected);
    EXPECT_OK(j.text.status);
    cvy_pool *pool = NULL;
    cvy_tree *t = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "json", j.text.data, j.text.bytes, &t)); /* our own reader accepts it */
    cvy_pool_destroy(&pool);
    cvy_text_free(&j.text);

    cvy_text text = {0};
    cvy_mem_fail_at(1, 1);
    cvy_text_add(&text, "abc");
    cvy_text_add_bytes(&text, "d", 1);
    cvy_mem_fail_at(0, 0);
    EXPECT_INT(text.status, CVY_E_MEMORY);
    cvy_text_free(&text);
}

int main(void)
{
    TEST(json);
    return test_end();
}
