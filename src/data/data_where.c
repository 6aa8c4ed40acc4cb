/*
 * data_where.c: conditions on the numbers of a sample; see data_where.h. A recursive-descent parser turns the text into
 * a short list of steps on a stack of truth values; these steps run for each sample.
 *
 *     any        := all { "or" all }
 *     all        := one { "and" one }
 *     one        := "not" one | "(" any ")" | comparison
 *     comparison := operand { sign operand }        a < b < c is a < b and b < c
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_where.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STEP_MAX = 256, NAME_MAX_COUNT = 32, DEPTH_MAX = 16 }; /* the stack has at most 2 DEPTH_MAX + 2 values: a u64 */

enum step_kind { LESS_EQUAL, GREATER_EQUAL, EQUAL, NOT_EQUAL, LESS, GREATER, AND, OR, NOT };

/* Longer signs come first, because "<=" begins with "<". */
static const char *const sign_text[] = {"<=", ">=", "==", "!=", "<", ">"};

struct operand {
    int name; /* index of the name; -1: `number` is the operand */
    double number;
};

struct step {
    enum step_kind kind;
    struct operand left, right; /* of a comparison */
};

struct cvy_where {
    struct step step[STEP_MAX];
    const char *name[NAME_MAX_COUNT];
    int nstep, nname;
};

struct parser {
    cvy_pool *pool;
    const char *text, *at;
    cvy_where *where;
    int depth;
};

static cvy_status mistake(const struct parser *p, const char *expected)
{
    const char *at = p->at + strspn(p->at, " \t\n");
    CVY_FAIL(CVY_E_CONFIG, "condition \"%s\": at %s%.24s%s (character %d) expected %s", p->text, *at ? "\"" : "its end",
             at, *at ? "\"" : "", (int)(at - p->text) + 1, expected);
}

static cvy_status add_step(struct parser *p, enum step_kind kind, struct operand left, struct operand right)
{
    CVY_CHECK(p->where->nstep < STEP_MAX, CVY_E_CONFIG, "condition \"%.60s...\": longer than %d comparisons and words",
              p->text, STEP_MAX);
    p->where->step[p->where->nstep++] = (struct step){kind, left, right};
    return CVY_OK;
}

/* ---- words and signs ---- */

static int is_name_sign(int c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '/';
}

static int take(struct parser *p, const char *sign)
{
    const char *at = p->at + strspn(p->at, " \t\n");
    if (strncmp(at, sign, strlen(sign)) != 0)
        return 0;
    p->at = at + strlen(sign);
    return 1;
}

static int take_word(struct parser *p, const char *word)
{
    const size_t n = strlen(word);
    const char *at = p->at + strspn(p->at, " \t\n");
    if (strncasecmp(at, word, n) != 0 || is_name_sign((unsigned char)at[n]))
        return 0;
    p->at = at + n;
    return 1;
}

static cvy_status name_number(struct parser *p, const char *from, size_t length, int *out)
{
    cvy_where *w = p->where;
    for (int i = 0; i < w->nname; i++)
        if (strlen(w->name[i]) == length && memcmp(w->name[i], from, length) == 0) {
            *out = i;
            return CVY_OK;
        }
    char *copy = NULL;
    CVY_CHECK(w->nname < NAME_MAX_COUNT, CVY_E_CONFIG, "condition \"%.60s...\": more than %d names", p->text,
              NAME_MAX_COUNT);
    CVY_TRY(cvy_pool_printf(p->pool, &copy, "%.*s", (int)length, from));
    w->name[w->nname] = copy;
    *out = w->nname++;
    return CVY_OK;
}

static cvy_status operand(struct parser *p, struct operand *out)
{
    const char *at = p->at + strspn(p->at, " \t\n");
    char *end = NULL;
    *out = (struct operand){.name = -1};
    if (*at == '\'' || *at == '"') {
        const char *close = strchr(at + 1, *at);
        if (!close || close == at + 1)
            return mistake(p, "a name between two quotes");
        p->at = close + 1;
        return name_number(p, at + 1, (size_t)(close - at - 1), &out->name);
    }
    if (isalpha((unsigned char)*at) || *at == '_' || *at == '/') {
        const char *last = at;
        while (is_name_sign((unsigned char)*last))
            last++;
        p->at = last;
        return name_number(p, at, (size_t)(last - at), &out->name);
    }
    out->number = *at == '+' || *at == '-' || *at == '.' || isdigit((unsigned char)*at) ? strtod(at, &end) : 0;
    if (!end || end == at || is_name_sign((unsigned char)*end))
        return mistake(p, "a name or a number");
    p->at = end;
    return CVY_OK;
}

/* ---- grammar ---- */

static cvy_status any(struct parser *p);

static int sign(struct parser *p)
{
    for (int i = 0; i < CVY_COUNT(sign_text); i++)
        if (take(p, sign_text[i]))
            return i;
    return -1;
}

static cvy_status comparison(struct parser *p)
{
    const struct operand nothing = {.name = -1};
    struct operand left, right;
    int count = 0;
    CVY_TRY(operand(p, &left));
    for (int kind = sign(p); kind >= 0; kind = sign(p)) {
        CVY_TRY(operand(p, &right));
        CVY_TRY(add_step(p, (enum step_kind)kind, left, right));
        if (count++ > 0)
            CVY_TRY(add_step(p, AND, nothing, nothing));
        left = right;
    }
    if (count > 0)
        return CVY_OK;
    if (left.name < 0 || take(p, "="))
        return mistake(p, "one of < <= > >= == !=");
    return add_step(p, NOT_EQUAL, left, nothing);
}

static cvy_status one(struct parser *p)
{
    const struct operand nothing = {.name = -1};
    if (take_word(p, "not")) {
        if (++p->depth > DEPTH_MAX)
            return mistake(p, "fewer nested brackets");
        CVY_TRY(one(p));
        p->depth--;
        return add_step(p, NOT, nothing, nothing);
    }
    if (!take(p, "("))
        return comparison(p);
    if (++p->depth > DEPTH_MAX)
        return mistake(p, "fewer nested brackets");
    CVY_TRY(any(p));
    p->depth--;
    return take(p, ")") ? CVY_OK : mistake(p, "\")\", \"and\" or \"or\"");
}

static cvy_status all(struct parser *p)
{
    const struct operand nothing = {.name = -1};
    CVY_TRY(one(p));
    while (take_word(p, "and") || take(p, "&&") || take(p, "&")) {
        CVY_TRY(one(p));
        CVY_TRY(add_step(p, AND, nothing, nothing));
    }
    return CVY_OK;
}

static cvy_status any(struct parser *p)
{
    const struct operand nothing = {.name = -1};
    CVY_TRY(all(p));
    while (take_word(p, "or") || take(p, "||") || take(p, "|")) {
        CVY_TRY(all(p));
        CVY_TRY(add_step(p, OR, nothing, nothing));
    }
    return CVY_OK;
}

cvy_status cvy_where_parse(cvy_pool *pool, const char *text, cvy_where **out)
{
    struct parser p = {.pool = pool, .text = text, .at = text};
    CVY_TRY(cvy_pool_alloc(pool, sizeof *p.where, &p.where));
    CVY_TRY(any(&p));
    if (p.at[strspn(p.at, " \t\n")])
        return mistake(&p, "\"and\", \"or\" or the end");
    *out = p.where;
    return CVY_OK;
}

int cvy_where_name_count(const cvy_where *w)
{
    return w->nname;
}

const char *cvy_where_name(const cvy_where *w, int i)
{
    return w->name[i];
}

/* ---- evaluation ---- */

static int compare(const struct step *s, const double *value)
{
    const double a = s->left.name < 0 ? s->left.number : value[s->left.name];
    const double b = s->right.name < 0 ? s->right.number : value[s->right.name];
    switch (s->kind) {
    case LESS_EQUAL: return a <= b;
    case GREATER_EQUAL: return a >= b;
    case EQUAL: return a == b;
    case NOT_EQUAL: return a != b;
    case LESS: return a < b;
    default: return a > b;
    }
}

/* The stack's top is bit 0. */
int cvy_where_holds(const cvy_where *w, const double *value)
{
    uint64_t stack = 0;
    for (int i = 0; i < w->nstep; i++) {
        const struct step *s = &w->step[i];
        const uint64_t top = stack & 1, next = stack >> 1 & 1;
        switch (s->kind) {
        case AND: stack = (stack >> 2) << 1 | (top & next); break;
        case OR: stack = (stack >> 2) << 1 | (top | next); break;
        case NOT: stack ^= 1; break;
        default: stack = stack << 1 | (uint64_t)compare(s, value); break;
        }
    }
    return (int)(stack & 1);
}
