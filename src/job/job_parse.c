/*
 * job_parse.c: makes a cvy_job from YAML and overrides, section by section.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "job/job_table.h"
#include "model/model_import.h"

/* ---- --set ---- */

/* A value from the command line has no useful line or column. */
static void forget_place(cvy_tree *node)
{
    node->line = 0;
    for (int i = 0; i < node->count; i++) {
        forget_place(node->child[i]);
        if (node->kind == CVY_TREE_MAP)
            node->key_at[i]->line = 0;
    }
}

/* Values of which a job may give one key alone, as a word: `optimizer: adam` for {name: adam}. */
static const struct {
    const char *section; /* NULL: the value is a section itself */
    const char *value, *key;
    const char *fallback; /* the word if the job has no value there; NULL: none */
} short_forms[] = {
    {NULL, "model", "name", NULL},   {"train", "optimizer", "name", "sgd"}, {"train", "schedule", "name", "constant"},
    {"data", "train", "path", NULL}, {"data", "test", "path", NULL},        {NULL, "update", "mode", "sync"},
};

/* Writes out the short form above this key, so that train.optimizer.lr can be set beside `optimizer: adam`. */
static cvy_status write_out_short_form(cvy_job *job, cvy_tree *root, const char *key, const char *file)
{
    for (int i = 0; i < CVY_COUNT(short_forms); i++) {
        const char *section = short_forms[i].section, *name = short_forms[i].value, *word = short_forms[i].fallback;
        char path[32];
        const size_t n =
            (size_t)snprintf(path, sizeof path, "%s%s%s", section ? section : "", section ? "." : "", name);
        if (strncmp(key, path, n) != 0 || key[n] != '.')
            continue;
        const cvy_tree *at = section ? cvy_tree_get(root, section) : root;
        cvy_tree *value = at && at->kind == CVY_TREE_MAP ? cvy_tree_get(at, name) : NULL, *map = NULL;
        if (cvy_tree_is_null(value) && word)
            CVY_TRY(cvy_tree_new_scalar(job->pool, file, word, &value));
        if (!value || value->kind != CVY_TREE_SCALAR || !value->text)
            return CVY_OK;
        CVY_TRY(cvy_tree_new_map(job->pool, value->file, &map));
        CVY_TRY(cvy_tree_set(job->pool, map, short_forms[i].key, value));
        return cvy_tree_set(job->pool, root, path, map);
    }
    return CVY_OK;
}

static cvy_status apply_set(cvy_job *job, cvy_tree *root, const char *set)
{
    const char *equals = strchr(set, '=');
    CVY_CHECK(equals && equals > set, CVY_E_CONFIG, "--set %s: expected key=value, such as train.batch=64", set);
    char *key = NULL, *file = NULL;
    cvy_tree *value = NULL;
    CVY_TRY(cvy_pool_printf(job->pool, &key, "%.*s", (int)(equals - set), set));
    CVY_TRY(cvy_pool_printf(job->pool, &file, "--set %s", set));
    CVY_TRY(cvy_tree_parse_text(job->pool, file, equals + 1, strlen(equals + 1), &value));
    if (!value->text && value->kind == CVY_TREE_SCALAR) /* "key=": restores the default */
        CVY_TRY(cvy_tree_new_scalar(job->pool, file, "null", &value));
    forget_place(value);
    CVY_TRY(write_out_short_form(job, root, key, file));
    return cvy_tree_set(job->pool, root, key, value);
}

/* ---- sections ---- */

static cvy_status parse_sections(cvy_job *job, const cvy_tree *root)
{
    enum { SECTION_MAX = 16 };
    const char *names[SECTION_MAX + 1] = {0};
    const cvy_option *rows = NULL;
    for (int i = 0; cvy_job_sections[i].name; i++) {
        CVY_EXPECT(i < SECTION_MAX);
        names[i] = cvy_job_sections[i].name;
    }
    CVY_TRY(cvy_job_rows(job->pool, "", &rows));
    CVY_TRY(cvy_options_parse(job->pool, "job", rows, root, names, job, 0));
    for (const cvy_job_section *s = cvy_job_sections; s->name; s++) {
        cvy_tree *map = cvy_tree_get(root, s->name);
        if (cvy_tree_is_null(map))
            CVY_TRY(cvy_tree_new_map(job->pool, job->file, &map));
        CVY_TRY(cvy_job_rows(job->pool, s->name, &rows));
        CVY_TRY(cvy_options_parse(job->pool, s->name, rows, map, NULL, job, 0));
    }
    return CVY_OK;
}

/* The default name of the job, as "cifar10" for "examples/cifar10.yaml". */
static cvy_status name_from_file(cvy_job *job)
{
    const char *base = cvy_file_base_name(job->file);
    const char *dot = strrchr(base, '.');
    const int length = dot && dot > base ? (int)(dot - base) : (int)strlen(base);
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(job->pool, &name, "%.*s", length, base));
    job->name = *name ? name : "job";
    return CVY_OK;
}

const char *cvy_job_where(const cvy_job *job, const char *section, const char *key)
{
    const cvy_tree *map = section ? cvy_tree_get(job->given, section) : job->given;
    const cvy_tree *node = cvy_tree_get(map, key);
    return node ? cvy_tree_where(node) : job->file;
}

static cvy_status read_old_words(cvy_job *job, cvy_tree *root)
{
    cvy_text notes = {0};
    char *copy = NULL;
    cvy_status status = cvy_job_read_old_words(job->pool, root, &notes);
    if (status == CVY_OK && notes.bytes)
        status = cvy_pool_strdup(job->pool, notes.data, &copy);
    job->renamed = copy;
    cvy_text_free(&notes);
    return status;
}

/* `parallel: auto` is short for {strategy: auto}. */
static cvy_status read_parallel_word(cvy_job *job, cvy_tree *root)
{
    cvy_tree *word = cvy_tree_get(root, "parallel"), *map = NULL;
    if (!word || word->kind != CVY_TREE_SCALAR || cvy_tree_is_null(word))
        return CVY_OK;
    CVY_CHECK(strcmp(word->text, "auto") == 0, CVY_E_CONFIG, "%s: parallel is \"%s\", expected auto or a map",
              cvy_tree_where(word), word->text);
    CVY_TRY(cvy_tree_new_map(job->pool, job->file, &map));
    map->line = word->line;
    map->column = word->column;
    CVY_TRY(cvy_tree_set(job->pool, map, "strategy", word));
    return cvy_tree_set(job->pool, root, "parallel", map);
}

static cvy_status fill(cvy_job *job, cvy_tree *root, const char *const *sets, int nsets)
{
    if (cvy_tree_is_null(root))
        CVY_TRY(cvy_tree_new_map(job->pool, job->file, &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: a job file is a map with keys such as model, data and train", cvy_tree_where(root));
    for (int i = 0; i < nsets; i++)
        CVY_TRY(apply_set(job, root, sets[i]));
    CVY_TRY(read_old_words(job, root));
    CVY_TRY(read_parallel_word(job, root));
    job->given = root;
    CVY_TRY(parse_sections(job, root));
    if (!job->name)
        CVY_TRY(name_from_file(job));
    CVY_CHECK(!strchr(job->name, '/'), CVY_E_CONFIG, "%s: name is \"%s\", expected a word without /: it names a folder",
              cvy_job_where(job, NULL, "name"), job->name);
    CVY_TRY(cvy_job_interpret(job));
    return cvy_job_read_import(job);
}

/* text NULL: reads the file. */
static cvy_status parse_tree(cvy_pool *pool, const char *file, const char *text, cvy_tree **out)
{
    if (text)
        return cvy_tree_parse_text(pool, file, text, strlen(text), out);
    const cvy_importer_def *network = cvy_importer_of_file(file);
    CVY_CHECK(!network, CVY_E_ARGUMENT,
              "%s is %s, and a job file is expected: name it in one, model: {%s: %s}; `convoy plan`, `convoy time` and "
              "`convoy bench --model` take it as it is",
              file, network->title, network->name, file);
    return cvy_tree_parse_file(pool, file, out);
}

static cvy_status parse(const char *file, const char *text, const char *const *sets, int nsets, cvy_job **out)
{
    cvy_status status = CVY_OK;
    cvy_job *job = NULL;
    cvy_tree *root = NULL;
    char *copy = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *job, &job));
    CVY_TRY_OUT(cvy_pool_create(&job->pool));
    CVY_TRY_OUT(cvy_pool_strdup(job->pool, file, &copy));
    job->file = copy;
    job->is_file = !text;
    job->program.size = sizeof job->program;
    CVY_TRY_OUT(parse_tree(job->pool, file, text, &root));
    CVY_TRY_OUT(fill(job, root, sets, nsets));
    *out = job;
    job = NULL;
out:
    cvy_job_destroy(&job);
    return status;
}

cvy_status cvy_job_parse_file(const char *path, const char *const *sets, int nsets, cvy_job **out)
{
    return parse(path, NULL, sets, nsets, out);
}

cvy_status cvy_job_parse_text(const char *name, const char *text, const char *const *sets, int nsets, cvy_job **out)
{
    return parse(name, text, sets, nsets, out);
}

void cvy_job_destroy(cvy_job **job)
{
    if (!*job)
        return;
    if ((*job)->import)
        cvy_import_free((*job)->import);
    cvy_mem_free(&(*job)->import);
    cvy_pool_destroy(&(*job)->pool);
    cvy_mem_free(job);
}
