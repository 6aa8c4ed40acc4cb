/*
 * model_line.c: shorthand for zoo files: short names, auxiliary heads, and layers from a line of text, as the papers on
 * Inception draw them. model.h describes the grammar.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

cvy_label cvy_labelf(const char *fmt, ...)
{
    cvy_label label;
    va_list args;
    va_start(args, fmt);
    vsnprintf(label.text, sizeof label.text, fmt, args);
    va_end(args);
    return label;
}

cvy_label cvy_model_here(const cvy_model *m)
{
    return cvy_labelf("%s", cvy_model_last(m));
}

cvy_status cvy_model_end_aux(cvy_model *m, int first, double weight)
{
    CVY_EXPECT(m->naux < CVY_COUNT(m->aux) && first < m->nlayer);
    for (int i = first; i < m->nlayer; i++)
        m->layer[i].training_only = 1;
    m->aux[m->naux++] = (cvy_aux_head){m->layer[m->nlayer - 1].output, weight};
    return CVY_OK;
}

/* ---- lines ---- */

struct line {
    cvy_model *m;
    const char *name, *norm;
    cvy_label from;                     /* source of all branches */
    cvy_label at, before;               /* output of the last step, and the source of that step */
    char joined[8 * sizeof(cvy_label)]; /* last outputs of the branches, "a, b" */
    int has_branches, branch, step;
};

struct step {
    char pool[4]; /* "max", "avg", or "" */
    int kernel[2], channels, stride, valid;
};

/* Parses "1x7-64", "3x3-96/2v", "max3/2v". */
static cvy_status parse_step(const char *word, struct step *out)
{
    struct step s = {.stride = 1};
    int used = 0, more = 0;
    if (sscanf(word, "%3[a-z]%d%n", s.pool, &s.kernel[0], &used) == 2)
        s.kernel[1] = s.kernel[0];
    else if (s.pool[0] = '\0', sscanf(word, "%dx%d-%d%n", &s.kernel[0], &s.kernel[1], &s.channels, &used) != 3)
        used = 0;
    if (used && sscanf(word + used, "/%d%n", &s.stride, &more) == 1)
        used += more;
    s.valid = used && word[used] == 'v';
    CVY_CHECK(used && word[used + s.valid] == '\0', CVY_E_INTERNAL,
              "'%s' is not a step of a line: expected 3x3-64, 3x3-64/2v or max3/2v", word);
    *out = s;
    return CVY_OK;
}

static cvy_label step_name(const struct line *l)
{
    return l->has_branches ? cvy_labelf("%s_%d_%d", l->name, l->branch, l->step)
                           : cvy_labelf("%s_%d", l->name, l->step);
}

static cvy_status add_step(struct line *l, const char *word, const char *from)
{
    struct step s;
    CVY_TRY(parse_step(word, &s));
    l->step++;
    const cvy_label name = step_name(l);
    const int pad[2] = {s.valid ? 0 : (s.kernel[0] - 1) / 2, s.valid ? 0 : (s.kernel[1] - 1) / 2};
    if (s.pool[0]) {
        CVY_TRY(cvy_model_addf(l->m, cvy_labelf("%s_pool", s.pool).text, name.text, from,
                               "kernel: %d, stride: %d, pad: %d", s.kernel[0], s.stride, pad[0]));
    } else {
        CVY_TRY(cvy_model_addf(l->m, "conv", name.text, from,
                               "channels: %d, kernel: [%d, %d], stride: %d, pad: [%d, %d], bias: %s", s.channels,
                               s.kernel[0], s.kernel[1], s.stride, pad[0], pad[1], l->norm ? "false" : "true"));
        if (l->norm)
            CVY_TRY(cvy_model_add(l->m, "batch_norm", cvy_labelf("%s_bn", name.text).text, l->norm, NULL));
        CVY_TRY(cvy_model_add(l->m, "relu", cvy_labelf("%s_relu", name.text).text, NULL, NULL));
    }
    l->before = cvy_labelf("%s", from);
    l->at = cvy_model_here(l->m);
    return CVY_OK;
}

/* The last step ends a branch: its output is one of those that are joined. */
static void join(struct line *l)
{
    const size_t n = strlen(l->joined);
    snprintf(l->joined + n, sizeof l->joined - n, "%s%s", n ? ", " : "", l->at.text);
}

static cvy_status add_word(struct line *l, const char *word, int is_sibling)
{
    if (strcmp(word, "|") == 0) {
        join(l);
        l->at = l->from;
        l->branch++;
        l->step = 0;
        return CVY_OK;
    }
    if (is_sibling)
        join(l);
    const cvy_label from = is_sibling ? l->before : l->at;
    return add_step(l, word, from.text);
}

cvy_status cvy_model_add_line(cvy_model *m, const char *name, const char *from, const char *norm, const char *line)
{
    struct line l = {.m = m, .name = name, .norm = norm, .branch = 1, .has_branches = strpbrk(line, "|&") != NULL};
    int is_sibling = 0;
    l.from = from ? cvy_labelf("%s", from) : cvy_model_here(m);
    l.at = l.from;
    while (*(line += strspn(line, " "))) {
        char word[24];
        const size_t n = strcspn(line, " ");
        snprintf(word, sizeof word, "%.*s", (int)CVY_MIN(n, sizeof word - 1), line);
        line += n;
        if (strcmp(word, "&") == 0) {
            is_sibling = 1;
            continue;
        }
        CVY_TRY(add_word(&l, word, is_sibling));
        is_sibling = 0;
    }
    join(&l);
    return l.has_branches ? cvy_model_add(m, "concat", name, NULL, l.joined) : CVY_OK;
}
