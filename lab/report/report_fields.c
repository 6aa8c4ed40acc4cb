/*
 * report_fields.c: targets with two or more axes: maps of truth, prediction and difference of the worst samples and of
 * typical ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "report/report_page.h"

enum { SHOWN = 24 };

/* A strip of colours with the numbers at its ends. */
static void scale(cvy_text *html, const char *colours, double low, double high)
{
    cvy_text_add(html, "<div class=\"ramp %s\"><i></i><span>%s</span><span>%s</span></div>\n", colours,
                 cvy_number_text(low, 3).at, cvy_number_text(high, 3).at);
}

static void field(cvy_report *r, const cvy_tree *f)
{
    static const char *const maps[] = {"truth", "prediction", "difference"};
    const char *name = cvy_tree_text_at(f, "field"), *kind = cvy_tree_text_at(f, "kind");
    const double spread = cvy_tree_real_at(f, "spread");
    cvy_html_add(&r->html, "<figure class=\"half\"><figcaption><b>%s, %s sample: root mean square error %s</b>",
                 name ? name : "target", kind ? kind : "", cvy_number_text(cvy_tree_real_at(f, "rmse"), 3).at);
    cvy_html_sample(&r->html, f);
    cvy_text_add(&r->html, "</figcaption>\n<div class=\"maps\">\n");
    for (int i = 0; i < (int)(sizeof maps / sizeof maps[0]); i++) {
        cvy_text_add(&r->html, "<div>");
        cvy_html_picture(&r->html, cvy_tree_text_at(f, maps[i]), maps[i]);
        cvy_text_add(&r->html, "<span>%s</span></div>\n", maps[i]);
    }
    scale(&r->html, "values", cvy_tree_real_at(f, "low"), cvy_tree_real_at(f, "high"));
    scale(&r->html, "differences", -spread, spread);
    cvy_text_add(&r->html, "</div></figure>\n");
}

void cvy_report_fields(cvy_report *r)
{
    const cvy_tree *list = cvy_tree_at(r->test, "fields");
    if (!list || list->kind != CVY_TREE_LIST || list->count == 0)
        return;
    cvy_text_add(&r->html, "<h3>Fields</h3>\n<p class=\"soft\">difference: prediction less truth</p>\n<div "
                           "class=\"charts\">\n");
    for (int i = 0; i < list->count && i < SHOWN; i++)
        field(r, list->child[i]);
    cvy_text_add(&r->html, "</div>\n");
}
