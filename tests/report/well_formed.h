/*
 * well_formed.h: what the tests of the report's pages share: checks of the HTML.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_WELL_FORMED_H
#define CVY_TEST_WELL_FORMED_H

#include <string.h>

#include "base/base_status.h"
#include "test_util.h"

/* Every tag is closed by its own name, in order. Attributes are quoted, and there is no entity but the page's own. */
static inline void expect_well_formed(const char *html)
{
    char stack[64][32];
    int depth = 0;
    const char *at = strstr(html, "<html");
    while (at && (at = strchr(at, '<'))) {
        const size_t n = strcspn(at + 1, " />\n\t");
        const char *close = at;
        int quoted = 0;
        if (at[1] == '/') {
            const size_t m = strcspn(at + 2, ">");
            if (depth == 0 || strlen(stack[depth - 1]) != m || strncmp(stack[depth - 1], at + 2, m) != 0)
                TEST_FAIL("closing tag does not fit: %.60s", at);
            depth = CVY_MAX(depth - 1, 0);
            at++;
            continue;
        }
        for (close = at + 1; *close && (quoted || *close != '>'); close++) {
            quoted ^= *close == '"';
            if (*close == '<')
                TEST_FAIL("tag within a tag: %.80s", at);
            if (*close == '=' && !quoted && close[1] != '"')
                TEST_FAIL("attribute without quotes: %.80s", at);
        }
        EXPECT_INT(*close, '>');
        if (close[-1] != '/') {
            EXPECT(depth < 64 && n < 32);
            if (depth == 64)
                return;
            snprintf(stack[depth++], 32, "%.*s", (int)n, at + 1);
        }
        at = close;
    }
    EXPECT_INT(depth, 0);
    for (at = html; (at = strchr(at, '&')); at++)
        EXPECT(strncmp(at, "&lt;", 4) == 0 || strncmp(at, "&gt;", 4) == 0 || strncmp(at, "&amp;", 5) == 0 ||
               strncmp(at, "&quot;", 6) == 0 || strncmp(at, "&#39;", 5) == 0 || strncmp(at, "&#xFFFD;", 8) == 0);
    EXPECT(strstr(html, "<script") == NULL);
    EXPECT(strstr(html, "http") == NULL);
    EXPECT(strstr(html, "nan") == NULL);
    EXPECT(strstr(html, "inf\"") == NULL);
}

static inline void says(const char *html, const char *text)
{
    if (!strstr(html, text))
        TEST_FAIL("the page does not say: %s", text);
}

#endif
