/*
 * checkpoint_adopt.c: fills the weights of a new run with those of another network or program (train.init). It compares
 * names, shapes and dtypes of all variables first, so that no run begins with half of them by mistake.
 *
 * No step calls it. It runs before step 0. The names of other programs come from model/model_foreign.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fnmatch.h>
#include <regex.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_adopt.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/checkpoint_tiles.h"

enum { EXAMPLES = 3, LINES = 24 }; /* of variables that do not match in an error; of lines of a report */

typedef struct tensor {
    cvy_tensor_place place;
    const char *name, *given; /* after and before renaming */
    int is_taken, is_skipped;
} tensor;

struct adopt {
    const cvy_adopt_opts *o;
    cvy_pool *pool;
    cvy_tensor_files files;
    tensor *tensor;
    const char **name; /* of the tensors, for the search of the nearest */
    int ntensor;
    cvy_index index; /* of the tensors by name */
    char *skip_used;
    int ntaken, nwanted, nskipped, nwrong, nlines, nleft_out;
    cvy_text wrong, *report; /* examples for the error; the report may be NULL */
};

/* ---- names ---- */

static cvy_status replace(cvy_pool *pool, const char *name, const regmatch_t group[10], const char *with,
                          const char **out)
{
    cvy_text t = {0};
    char *text = NULL;
    cvy_text_add_bytes(&t, name, (size_t)group[0].rm_so);
    for (; *with; with++) {
        const int k = with[0] == '\\' && with[1] >= '0' && with[1] <= '9' ? *++with - '0' : -1;
        if (k < 0)
            cvy_text_add_bytes(&t, with, 1);
        else if (group[k].rm_so >= 0)
            cvy_text_add_bytes(&t, name + group[k].rm_so, (size_t)(group[k].rm_eo - group[k].rm_so));
    }
    cvy_text_add(&t, "%s", name + group[0].rm_eo);
    const cvy_status status = t.status == CVY_OK ? cvy_pool_strdup(pool, t.data, &text) : t.status;
    cvy_text_free(&t);
    *out = text;
    return status;
}

static cvy_status rename_by(struct adopt *a, int k)
{
    const char *pattern = a->o->pattern[k];
    regex_t regex;
    regmatch_t group[10];
    int found = 0;
    cvy_status status = CVY_OK;
    CVY_CHECK(regcomp(&regex, pattern, REG_EXTENDED) == 0, CVY_E_CONFIG,
              "rename: '%s' is not a regular expression (POSIX, extended)", pattern);
    for (int i = 0; i < a->ntensor && status == CVY_OK; i++)
        if (regexec(&regex, a->tensor[i].name, 10, group, 0) == 0) {
            status = replace(a->pool, a->tensor[i].name, group, a->o->replacement[k], &a->tensor[i].name);
            found = 1;
        }
    regfree(&regex);
    CVY_TRY(status);
    CVY_CHECK(found, CVY_E_CONFIG, "rename: '%s' matches none of the %d tensors of %s, such as %s", pattern, a->ntensor,
              a->o->from, a->ntensor ? a->tensor[0].name : "(it has none)");
    return CVY_OK;
}

static cvy_status list_tensors(struct adopt *a)
{
    for (int k = 0; k < a->files.count; k++)
        a->ntensor += cvy_safetensors_count(a->files.file[k]);
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *a->tensor * ((size_t)a->ntensor + 1), &a->tensor));
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *a->name * ((size_t)a->ntensor + 1), &a->name));
    for (int k = 0, n = 0; k < a->files.count; k++)
        for (int i = 0; i < cvy_safetensors_count(a->files.file[k]); i++, n++) {
            const char *name = cvy_safetensors_at(a->files.file[k], i)->name;
            a->tensor[n] = (tensor){.place = {a->files.file[k], i}, .name = name, .given = name};
        }
    for (int k = 0; k < a->o->nrename; k++)
        CVY_TRY(rename_by(a, k));
    for (int i = 0; i < a->ntensor; i++) {
        const int before = cvy_index_find(&a->index, a->tensor[i].name);
        CVY_CHECK(before < 0, CVY_E_CONFIG, "%s: %s and %s would both be %s; change `rename`", a->o->from,
                  a->tensor[CVY_MAX(before, 0)].given, a->tensor[i].given, a->tensor[i].name);
        CVY_TRY(cvy_index_add(&a->index, a->tensor[i].name, i));
        a->name[i] = a->tensor[i].name;
    }
    return CVY_OK;
}

static int is_skipped(struct adopt *a, const char *name)
{
    int found = 0;
    for (int k = 0; k < a->o->nskip; k++)
        if (fnmatch(a->o->skip[k], name, 0) == 0)
            found = a->skip_used[k] = 1;
    return found;
}

/* ---- what is said ---- */

static void note(struct adopt *a, const char *name, const char *what, const char *more)
{
    if (!a->report)
        return;
    if (a->nlines++ < LINES)
        cvy_text_add(a->report, "%s %s%s\n", name, what, more);
    else
        a->nleft_out++;
}

/* Something does not match: an example of the error, or a line of the report. */
static void add_wrong(struct adopt *a, const char *text)
{
    if (a->nwrong++ < EXAMPLES)
        cvy_text_add(&a->wrong, "%s%s", a->nwrong > 1 ? "; " : "", text);
}

static void wrong_missing(struct adopt *a, const cvy_variable *v, const char *wanted)
{
    cvy_text t = {0};
    const char *near = cvy_text_nearest(wanted, a->name, a->ntensor);
    cvy_text_add(&t, "%s lacks %s (%s", a->o->from, wanted, cvy_shape_text(cvy_whole_shape(v)));
    if (strcmp(wanted, v->name) != 0)
        cvy_text_add(&t, ", %s in this job", v->name);
    cvy_text_add(&t, ")");
    if (near)
        cvy_text_add(&t, "; the nearest name is %s", near);
    add_wrong(a, t.data ? t.data : wanted);
    cvy_text_free(&t);
    note(a, v->name, "is not in the file and keeps its first values",
         cvy_labelf(" (%s)", cvy_shape_text(cvy_whole_shape(v))).text);
}

static void wrong_unused(struct adopt *a, const tensor *from)
{
    cvy_text t = {0};
    const cvy_tensor_entry *e = cvy_safetensors_at(from->place.file, from->place.at);
    cvy_text_add(&t, "no variable takes %s (%s)", from->given, cvy_shape_text(&e->shape));
    add_wrong(a, t.data ? t.data : from->given);
    cvy_text_free(&t);
    note(a, from->given, "of the file is not used", cvy_labelf(" (%s)", cvy_shape_text(&e->shape)).text);
}

static void wrong_shape(struct adopt *a, const cvy_variable *v, const tensor *from)
{
    cvy_text t = {0};
    const cvy_tensor_entry *e = cvy_safetensors_at(from->place.file, from->place.at);
    cvy_text_add(&t, "%s is %s %s in this job and %s %s in %s", v->name, cvy_dtype_text(v->dtype),
                 cvy_shape_text(cvy_whole_shape(v)), cvy_safetensors_dtype(from->place.file, from->place.at),
                 cvy_shape_text(&e->shape), a->o->from);
    if (strcmp(from->given, v->name) != 0)
        cvy_text_add(&t, " (%s)", from->given);
    add_wrong(a, t.data ? t.data : v->name);
    cvy_text_free(&t);
    note(a, v->name, "has another shape or dtype in the file and keeps its first values",
         cvy_labelf(" (%s)", cvy_shape_text(&e->shape)).text);
}

/* ---- comparing ---- */

/* timm has fully connected layers of VGG as convolutions: the same numbers in the same order, [K, C, R, S] for
 * [K, C R S]. */
static int fits(const struct adopt *a, const cvy_variable *v, const tensor *from)
{
    const cvy_tensor_entry *e = cvy_safetensors_at(from->place.file, from->place.at);
    const cvy_shape *whole = cvy_whole_shape(v);
    const int is_flat = a->o->names == CVY_NAMES_TIMM && whole->ndim == 2 && e->shape.ndim == 4 &&
                        e->shape.dim[0] == whole->dim[0] && cvy_shape_elems(&e->shape) == cvy_shape_elems(whole);
    return (is_flat || cvy_shape_equal(&e->shape, whole)) &&
           (e->dtype == v->dtype ||
            cvy_tensor_converts(cvy_safetensors_dtype(from->place.file, from->place.at), v->dtype));
}

static cvy_status match(struct adopt *a, const cvy_variable *v, cvy_tensor_place *place)
{
    cvy_label foreign = {{0}};
    if (a->o->names != CVY_NAMES_OWN)
        CVY_TRY(cvy_model_foreign_name(a->o->model, a->o->names, v->name, &foreign));
    const char *wanted = a->o->names == CVY_NAMES_OWN ? v->name : foreign.text;
    const int at = cvy_index_find(&a->index, wanted), skip = is_skipped(a, v->name) | is_skipped(a, wanted);
    tensor *from = at >= 0 ? &a->tensor[at] : NULL;
    a->nwanted++;
    if (from)
        from->is_taken = 1;
    if (skip) {
        a->nskipped++;
        note(a, v->name, "is skipped and keeps its first values", "");
    } else if (!from) {
        wrong_missing(a, v, wanted);
    } else if (!fits(a, v, from)) {
        wrong_shape(a, v, from);
    } else {
        *place = from->place;
        a->ntaken++;
    }
    return CVY_OK;
}

/* Tensors that no network for inference or fine-tuning needs. */
static int may_be_left(const struct adopt *a, const tensor *t)
{
    static const char *const heads[] = {"aux*.*", "AuxLogits.*"};
    for (int i = 0; i < CVY_COUNT(heads) && a->o->names != CVY_NAMES_OWN; i++)
        if (fnmatch(heads[i], t->name, 0) == 0)
            return 1;
    return a->o->others_stay || fnmatch("*num_batches_tracked", t->name, 0) == 0;
}

static void look_at_unused(struct adopt *a)
{
    for (int i = 0; i < a->ntensor; i++) {
        const tensor *t = &a->tensor[i];
        if (t->is_taken || (is_skipped(a, t->name) | is_skipped(a, t->given)) || may_be_left(a, t))
            continue;
        wrong_unused(a, t);
    }
}

static cvy_status check_skips(const struct adopt *a)
{
    for (int k = 0; k < a->o->nskip; k++)
        CVY_CHECK(a->skip_used[k], CVY_E_CONFIG, "skip: '%s' matches no variable of this job and no tensor of %s",
                  a->o->skip[k], a->o->from);
    return CVY_OK;
}

static cvy_status judge(struct adopt *a)
{
    CVY_TRY(a->wrong.status);
    CVY_TRY(check_skips(a));
    const cvy_label more =
        a->nwrong > EXAMPLES ? cvy_labelf("; and %d more", a->nwrong - EXAMPLES) : cvy_labelf("%s", "");
    CVY_CHECK(a->ntaken > 0, a->nwrong ? CVY_E_SHAPE : CVY_E_FORMAT,
              "%s: none of the %d variables of this job agrees in name and shape with its %d tensors: %s%s", a->o->from,
              a->nwanted, a->ntensor, a->wrong.data ? a->wrong.data : "all are skipped", more.text);
    CVY_CHECK(a->nwrong == 0 || a->o->lenient, CVY_E_SHAPE, "%s%s; %d of %d variables agree, and none is loaded",
              a->wrong.data, more.text, a->ntaken, a->nwanted);
    return CVY_OK;
}

/* On the rank that reads: finds the place of each variable of the list. */
static cvy_status compare(struct adopt *a, cvy_variable *const *list, int count, cvy_tensor_place *place)
{
    CVY_TRY(cvy_pool_create(&a->pool));
    CVY_TRY(cvy_pool_alloc(a->pool, (size_t)a->o->nskip + 1, &a->skip_used));
    CVY_TRY(cvy_tensor_files_open(a->o->path, a->o->npath, &a->files));
    CVY_TRY(list_tensors(a));
    for (int i = 0; i < count; i++)
        if (list[i]->role != CVY_ROLE_STATE)
            CVY_TRY(match(a, list[i], &place[i]));
    look_at_unused(a);
    return judge(a);
}

/* The number of variables goes before the lines about single ones. */
static cvy_status finish_report(const struct adopt *a, cvy_text *out)
{
    const cvy_text *lines = a->report;
    if (!out)
        return CVY_OK;
    cvy_text_add(out, "%s: %d of %d variables are taken", a->o->from, a->ntaken, a->nwanted);
    if (a->nskipped)
        cvy_text_add(out, ", %d skipped", a->nskipped);
    if (a->nwanted > a->ntaken + a->nskipped)
        cvy_text_add(out, ", %d do not match", a->nwanted - a->ntaken - a->nskipped);
    cvy_text_add(out, "\n%s", lines->data ? lines->data : "");
    if (a->nleft_out)
        cvy_text_add(out, "and %d more\n", a->nleft_out);
    return lines->status != CVY_OK ? lines->status : out->status;
}

cvy_status cvy_weights_adopt(const cvy_adopt_opts *opts, cvy_comm *comm, cvy_vars *vars, cvy_text *report)
{
    cvy_status status = CVY_OK;
    cvy_text lines = {0};
    struct adopt a = {.o = opts, .report = &lines};
    cvy_tensor_place *place = NULL;
    cvy_variable **list = NULL; /* ranks may have created their variables in another order */
    status = cvy_mem_alloc(sizeof *place * ((size_t)vars->count + 1), &place);
    if (status == CVY_OK)
        status = cvy_vars_by_name(vars, &list);
    if (status == CVY_OK && (!comm || comm->rank == 0))
        status = compare(&a, list, vars->count, place);
    if (comm)
        status = cvy_comm_agree(comm, status);
    CVY_TRY_OUT(status);
    CVY_TRY_OUT(cvy_tensor_files_fill(place, comm, list, vars->count));
    if (!comm || comm->rank == 0)
        status = finish_report(&a, report);
out:
    cvy_index_free(&a.index);
    cvy_tensor_files_close(&a.files);
    cvy_pool_destroy(&a.pool);
    cvy_text_free(&a.wrong);
    cvy_text_free(&lines);
    cvy_mem_free(&list);
    cvy_mem_free(&place);
    return status;
}

cvy_status cvy_weights_load(const char *path, cvy_vars *vars)
{
    const cvy_adopt_opts opts = {.from = path, .path = &path, .npath = 1, .others_stay = 1};
    return cvy_weights_adopt(&opts, NULL, vars, NULL);
}
