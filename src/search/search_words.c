/*
 * search_words.c: what a predicted step consists of, in words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "search/search.h"

static const double gib = 1073741824.0;

double cvy_search_exposed_s(const cvy_search_candidate *c)
{
    double sum = 0;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        sum += c->time.exposed_s[a];
    return sum;
}

double cvy_search_share(const cvy_search_candidate *c, double seconds)
{
    const double all = c->time.work_s + c->time.bubble_s + cvy_search_exposed_s(c);
    return all > 0 ? 100 * seconds / all : 0;
}

int cvy_search_is_rough(const cvy_search_candidate *c)
{
    return c->basis.rough_s > 0.05 * (c->basis.known_s + c->basis.rough_s);
}

void cvy_search_explain(const cvy_search_candidate *c, cvy_text *out)
{
    static const char *const axis[CVY_COMM_AXES] = {"data", "pipeline", "tensor", "spatial"};
    const char *between = " (";
    cvy_text_add(out, "%.3g ms a step, of which %.0f %% is computing, %.0f %% exposed communication",
                 1e3 * c->time.step_s, cvy_search_share(c, c->time.work_s),
                 cvy_search_share(c, cvy_search_exposed_s(c)));
    for (int a = 0; a < CVY_COMM_AXES; a++)
        if (cvy_search_share(c, c->time.exposed_s[a]) >= 0.5) {
            cvy_text_add(out, "%s%s %.0f %%", between, axis[a], cvy_search_share(c, c->time.exposed_s[a]));
            between = ", ";
        }
    cvy_text_add(out, "%s", *between == ',' ? ")" : "");
    if (c->grid.length[CVY_AXIS_PIPELINE] > 1)
        cvy_text_add(out, " and %.0f %% bubble", cvy_search_share(c, c->time.bubble_s));
}

void cvy_search_bytes_text(int64_t bytes, cvy_text *out)
{
    if ((double)bytes >= gib)
        cvy_text_add(out, "%.3g GiB", (double)bytes / gib);
    else
        cvy_text_add(out, "%.3g MiB", (double)bytes / 1048576);
}
