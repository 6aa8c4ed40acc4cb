/*
 * program_groups.c: which weights a training task trains, and with which factors on the learning rate and the weight
 * decay: the patterns `trains` and the parameter groups of cvy_training_opts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_opts.h"
#include "program/program_impl.h"

enum { PATTERN_ROOM = 256 };

/* ---- options ---- */

static cvy_status check_patterns(const char *what, const char *patterns)
{
    for (const char *at = patterns; *at;) {
        at += strspn(at, ", ");
        const size_t n = strcspn(at, ", ");
        CVY_CHECK(n < PATTERN_ROOM, CVY_E_ARGUMENT, "%s: a pattern has %zu characters, expected at most %d: '%.40s...'",
                  what, n, PATTERN_ROOM - 1, at);
        at += n;
    }
    return CVY_OK;
}

/* The elements of the caller's array are as long as its header says, so they are read one by one. */
cvy_status cvy_program_read_groups(cvy_pool *pool, const cvy_training_opts *o, cvy_program_task *s)
{
    const char *at = (const char *)o->groups;
    if (o->trains) {
        CVY_TRY(check_patterns("trains", o->trains));
        CVY_TRY(cvy_pool_strdup(pool, o->trains, &s->train.trains));
    }
    CVY_CHECK(o->ngroups >= 0 && (at || o->ngroups == 0), CVY_E_ARGUMENT, "ngroups is %d, and groups is %s", o->ngroups,
              at ? "given" : "NULL");
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s->train.group * ((size_t)o->ngroups + 1), &s->train.group));
    for (int k = 0; k < o->ngroups; k++, at += o->groups->size) {
        cvy_training_group *group = &s->train.group[k];
        char *match = NULL;
        CVY_TRY(CVY_OPTS_READ(cvy_training_group, at, group));
        CVY_CHECK(memcmp(at, o->groups, sizeof o->groups->size) == 0, CVY_E_ARGUMENT,
                  "groups[%d] has another size than groups[0]", k);
        CVY_CHECK(group->match && *group->match, CVY_E_ARGUMENT, "groups[%d] has no pattern of names", k);
        CVY_TRY(check_patterns("groups", group->match));
        CVY_CHECK(isfinite(group->lr_mult) && group->lr_mult >= 0 && isfinite(group->decay_mult) &&
                      group->decay_mult >= 0,
                  CVY_E_ARGUMENT, "groups[%d]: lr_mult is %g and decay_mult is %g, expected numbers of at least 0", k,
                  group->lr_mult, group->decay_mult);
        CVY_TRY(cvy_pool_strdup(pool, group->match, &match));
        group->match = match;
        s->train.ngroup++;
    }
    return CVY_OK;
}

/* ---- variables ---- */

int cvy_names_match(const char *patterns, const char *name)
{
    char pattern[PATTERN_ROOM];
    for (const char *at = patterns; *at;) {
        at += strspn(at, ", ");
        const size_t n = strcspn(at, ", ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        if (n && n < sizeof pattern && fnmatch(pattern, name, 0) == 0)
            return 1;
        at += n;
    }
    return 0;
}

static int matches(const char *patterns, const cvy_variable *v)
{
    return cvy_names_match(patterns, v->name);
}

int cvy_program_trains(void *user, const cvy_variable *v)
{
    return matches(user, v);
}

static cvy_status check_trains(const cvy_program *p, const cvy_program_task *s)
{
    int found = !s->train.trains;
    for (int i = 0; i < p->vars->count && !found; i++)
        found = matches(s->train.trains, p->vars->at[i]);
    CVY_CHECK(found, CVY_E_ARGUMENT, "trains: no variable on which the losses depend matches '%s'; the first one is %s",
              s->train.trains, p->vars->count ? p->vars->at[0]->name : "missing");
    return CVY_OK;
}

static const cvy_training_group *group_of(const cvy_program_task *s, const cvy_variable *v)
{
    for (int k = 0; k < s->train.ngroup; k++)
        if (matches(s->train.group[k].match, v))
            return &s->train.group[k];
    return NULL;
}

int cvy_groups_idle(const cvy_vars *vars, cvy_group_match_fn match, const void *groups, int n, int *hidden_by_out)
{
    for (int k = 0; k < n; k++) {
        int found = 0;
        *hidden_by_out = -1;
        for (int i = 0; i < vars->count && !found; i++) {
            int first = 0;
            if (vars->at[i]->role != CVY_ROLE_WEIGHT || !matches(match(groups, k), vars->at[i]))
                continue;
            while (!matches(match(groups, first), vars->at[i]))
                first++;
            found = first == k;
            *hidden_by_out = *hidden_by_out < 0 ? first : *hidden_by_out;
        }
        if (!found)
            return k;
    }
    return -1;
}

/* What a layer of the model does not train is frozen, whatever the groups say. */
static void keep_constants(const cvy_program *p, const cvy_model *m)
{
    for (int i = 0; i < m->nlayer; i++)
        for (int k = 0; m->layer[i].trained && k < p->vars->count; k++)
            p->vars->at[k]->frozen |= cvy_model_keeps(m, &m->layer[i], p->vars->at[k]->name);
}

/* Sets what the passes read of a weight. Tasks may have different groups, so this is done for each task. */
void cvy_program_set_groups(const cvy_program *p, const cvy_program_task *s)
{
    for (int i = 0; i < p->vars->count; i++) {
        cvy_variable *v = p->vars->at[i];
        const cvy_training_group *group = group_of(s, v);
        v->frozen = 0;
        v->lr_mult = v->decay_mult = 1;
        if (p->group)
            p->group(p->group_user, v);
        if (!group || v->role != CVY_ROLE_WEIGHT)
            continue;
        v->frozen = group->frozen;
        v->lr_mult = group->lr_mult > 0 ? group->lr_mult : 1;
        v->decay_mult = group->no_decay ? 0 : group->decay_mult > 0 ? group->decay_mult : 1;
    }
    keep_constants(p, s->model);
}

/* The parameters that a layer names as trained must be there, if the task has the layer. */
static cvy_status check_layer(const cvy_program *p, const cvy_layer *layer)
{
    char name[PATTERN_ROOM];
    const char *known = NULL;
    const size_t n = strlen(layer->name);
    for (int i = 0; i < p->vars->count && !known; i++)
        if (strncmp(p->vars->at[i]->name, layer->name, n) == 0 && p->vars->at[i]->name[n] == '.')
            known = p->vars->at[i]->name + n + 1;
    for (const char *at = layer->trained; known && *(at += strspn(at, ", "));) {
        const int length = (int)strcspn(at, ", ");
        snprintf(name, sizeof name, "%s.%.*s", layer->name, length, at);
        CVY_CHECK(cvy_vars_find(p->vars, name), CVY_E_ARGUMENT,
                  "layer %s: `trained` names the parameter '%.*s', which it does not have; its first one is '%s'",
                  layer->name, length, at, known);
        at += length;
    }
    return CVY_OK;
}

static const char *match_of(const void *groups, int k)
{
    return ((const cvy_training_group *)groups)[k].match;
}

static const char *first_weight(const cvy_program *p)
{
    for (int i = 0; i < p->vars->count; i++)
        if (p->vars->at[i]->role == CVY_ROLE_WEIGHT)
            return p->vars->at[i]->name;
    return "missing";
}

cvy_status cvy_program_check_groups(const cvy_program *p, const cvy_program_task *s)
{
    CVY_TRY(check_trains(p, s));
    for (int i = 0; i < s->model->nlayer; i++)
        if (s->model->layer[i].trained)
            CVY_TRY(check_layer(p, &s->model->layer[i]));
    const cvy_training_group *group = s->train.group;
    int hidden_by = -1;
    const int idle = cvy_groups_idle(p->vars, match_of, group, s->train.ngroup, &hidden_by);
    CVY_CHECK(idle < 0 || hidden_by >= 0, CVY_E_ARGUMENT,
              "groups: no weight of the model matches '%s'; its first one is %s", group[idle].match, first_weight(p));
    CVY_CHECK(
        idle < 0, CVY_E_ARGUMENT,
        "groups: '%s' gets no weight, because groups before it take all that it matches, '%s' the first: put it before "
        "them, or leave it out",
        group[idle].match, group[hidden_by].match);
    return CVY_OK;
}
