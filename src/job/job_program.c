/*
 * job_program.c: the keys of a job that are options of its program: their rows among those of the sections, the options
 * that the program gets, and the keys that messages name in place of fields.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "program/program_options.h"
#include "program/program_update.h"

/* ---- rows ---- */

typedef struct row_list {
    cvy_option *at;
    int count;
} row_list;

static int belongs(const cvy_program_option *o, const char *section)
{
    return o->section && strcmp(o->section, section) == 0;
}

/* Adds the program's rows of a section, without the one of `except`. Their fields are in cvy_job.program. */
static void add_program_rows(row_list *list, const char *section, const char *except)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        if (!belongs(o, section) || strcmp(o->row.name, except) == 0)
            continue;
        list->at[list->count] = o->row;
        list->at[list->count++].offset += offsetof(cvy_job, program);
    }
}

static int count_rows(const cvy_option *own)
{
    int n = 1; /* the end */
    for (; own && own->name; own++)
        n++;
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++)
        n++;
    return n;
}

static const cvy_option *own_rows(const char *section)
{
    for (const cvy_job_section *s = cvy_job_sections; s->name; s++)
        if (strcmp(s->name, section) == 0)
            return s->own;
    return *section ? NULL : cvy_job_top_rows;
}

cvy_status cvy_job_rows(cvy_pool *pool, const char *section, const cvy_option **out)
{
    const cvy_option *own = own_rows(section);
    row_list list = {0};
    CVY_TRY(cvy_pool_alloc(pool, sizeof *list.at * (size_t)count_rows(own), &list.at));
    for (; own && own->name; own++)
        if (*own->name)
            list.at[list.count++] = *own;
        else
            add_program_rows(&list, section, "");
    *out = list.at;
    return CVY_OK;
}

cvy_status cvy_job_update_rows(cvy_job *job, cvy_pool *pool, const struct cvy_update_def *def, const cvy_option **out,
                               void **fields_out)
{
    row_list list = {0};
    if (fields_out)
        *fields_out = def->job.has_program_keys ? (void *)job : job->update.options;
    if (def->job.options) {
        *out = def->job.options;
        return CVY_OK;
    }
    CVY_TRY(cvy_pool_alloc(pool, sizeof *list.at * (size_t)count_rows(NULL), &list.at));
    if (def->job.has_program_keys)
        add_program_rows(&list, "update", "mode");
    *out = list.at;
    return CVY_OK;
}

/* ---- values ---- */

cvy_status cvy_job_interpret_program(cvy_job *job)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        const cvy_status status = o->section ? cvy_program_option_check_text(o, &job->program) : CVY_OK;
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s: %s", cvy_job_where(job, *o->section ? o->section : NULL, o->row.name),
                                    cvy_program_option_name(o).text);
    }
    return CVY_OK;
}

cvy_program_opts cvy_job_program_opts(const cvy_job *job, const char *plan_file)
{
    cvy_program_opts opts = job->program;
    opts.plan_file = plan_file;
    opts.shards = cvy_job_shards(job);
    opts.share_weights = !opts.reduce_no_node;
    return opts;
}

cvy_kernels cvy_job_kernels(const cvy_job *job)
{
    cvy_kernels kernels = {0};
    (void)cvy_kernels_parse(job->program.kernels, &kernels); /* it was checked when the job was read */
    return kernels;
}

/* ---- messages ---- */

/* The key in place of a field, the first `length` characters of a text; "": the field is unknown. */
static cvy_option_name key_of(const char *field, size_t length)
{
    static const struct {
        const char *field, *key;
    } others[] = {
        {"update_mode", "update"},
        {"plan_file", "--plan"},
        {"accumulate", "train.accumulate"},
        {"optimizer_options", "train.optimizer"},
    };
    const cvy_program_option *o = cvy_program_option_of_field(field, length);
    cvy_option_name name = {""};
    for (int i = 0; i < CVY_COUNT(others); i++)
        if (strlen(others[i].field) == length && strncmp(others[i].field, field, length) == 0) {
            snprintf(name.text, sizeof name.text, "%s", others[i].key);
            return name;
        }
    return o && o->section ? cvy_program_option_name(o) : name;
}

cvy_status cvy_job_translate(cvy_status status)
{
    static const char prefix[] = "opts.", letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    cvy_text text = {0};
    if (status == CVY_OK || !strstr(cvy_error_text(), prefix))
        return status;
    for (const char *at = cvy_error_text(); *at;) {
        const char *found = strstr(at, prefix), *field = found ? found + strlen(prefix) : at + strlen(at);
        const size_t length = strspn(field, letters);
        const cvy_option_name key = key_of(field, length);
        if (!*key.text) /* an unknown field, or the rest of the text */
            cvy_text_add_bytes(&text, at, (size_t)(field - at));
        else
            cvy_text_add(&text, "%.*s%s", (int)(found - at), at, key.text);
        at = *key.text ? field + length : field;
    }
    if (text.status == CVY_OK)
        (void)cvy_error_set(status, "%s", text.data);
    cvy_text_free(&text);
    return status;
}
