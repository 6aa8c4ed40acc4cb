/*
 * site.c: the site file: what a computing centre says once for all job scripts of its users.
 *
 * Its values end up in scripts that a shell runs. So words that stand in directives of a scheduler may have only a few
 * signs, and no value may have a line break: the rest of such a value would be a line of the script. Two files, the
 * centre's and the user's, are merged as trees, in which each value keeps its place for messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "base/text/base_option.h"
#include "site/site.h"

#define SITE(field) CVY_FIELD(cvy_site, field)

struct cvy_site {
    cvy_pool *pool;
    int scheduler;
    const char *account, *queue, *partition, *parallel_environment, *launcher, *mpi;
    const cvy_tree *launcher_options, *modules, *header, *environment, *defaults;
    cvy_site_about about;
};

typedef struct site_defaults {
    int64_t nodes, ppn, threads, signal_s;
    const char *time;
} site_defaults;
#define DEFAULT(field) CVY_FIELD(site_defaults, field)

static const char *const schedulers[] = {"none", "slurm", "pbs", "lsf", "flux", "sge"};

static const cvy_option rows[] = {
    {"scheduler", CVY_TYPE_CHOICE, SITE(scheduler), "none", "none|slurm|pbs|lsf|flux|sge", "", "the scheduler"},
    {"account", CVY_TYPE_STRING, SITE(account), "", "", "", "whom the time is charged to"},
    {"queue", CVY_TYPE_STRING, SITE(queue), "", "", "", "the queue; Slurm calls it partition"},
    {"partition", CVY_TYPE_STRING, SITE(partition), "", "", "", "another name of queue"},
    {"parallel_environment", CVY_TYPE_STRING, SITE(parallel_environment), "", "", "", "of SGE: qsub -pe"},
    {"launcher", CVY_TYPE_STRING, SITE(launcher), "", "", "", "srun, mpiexec, mpirun, flux, or a path that ends so"},
    {"mpi", CVY_TYPE_STRING, SITE(mpi), "", "", "", "srun --mpi=, flux run -o pmi="},
    {"launcher_options", CVY_TYPE_TREE, SITE(launcher_options), "", "", "", "further words for the launcher, a list"},
    {"modules", CVY_TYPE_TREE, SITE(modules), "", "", "", "what `module load` loads, a list"},
    {"header", CVY_TYPE_TREE, SITE(header), "", "", "", "further directives of the scheduler, a list"},
    {"environment", CVY_TYPE_TREE, SITE(environment), "", "", "", "a map of names and values"},
    {"defaults", CVY_TYPE_TREE, SITE(defaults), "", "", "", "a map of nodes, ppn, threads, time, signal"},
    {0},
};

static const cvy_option default_rows[] = {
    {"nodes", CVY_TYPE_INT, DEFAULT(nodes), "", "1..2147483647", "nodes", "nodes of a job"},
    {"ppn", CVY_TYPE_INT, DEFAULT(ppn), "", "1..2147483647", "ranks", "ranks of a node"},
    {"threads", CVY_TYPE_INT, DEFAULT(threads), "", "1..2147483647", "threads", "cores and threads of a rank"},
    {"signal", CVY_TYPE_INT, DEFAULT(signal_s), "", "1..65535", "s", "seconds between the signal and the limit"},
    {"time", CVY_TYPE_STRING, DEFAULT(time), "", "", "", "limit of a job"},
    {0},
};

/* ---- values that are safe in a script ---- */

static int has_control(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return 1;
    return 0;
}

static cvy_status check_text(const cvy_tree *node, const char *key)
{
    CVY_CHECK(node->kind == CVY_TREE_SCALAR && node->text && *node->text, CVY_E_CONFIG,
              "%s: site: %s has %s, expected text", cvy_tree_where(node), key,
              node->kind == CVY_TREE_SCALAR ? "an empty value" : "a list or a map");
    CVY_CHECK(!has_control(node->text), CVY_E_CONFIG,
              "%s: site: %s has a line break or another control character: its rest would be a line of the script",
              cvy_tree_where(node), key);
    return CVY_OK;
}

/* A word of a directive. Schedulers differ in what quotes mean to them, so none may occur. */
static cvy_status check_word(const cvy_tree *map, const char *key)
{
    const cvy_tree *node = cvy_tree_get(map, key);
    if (cvy_tree_is_null(node))
        return CVY_OK;
    CVY_TRY(check_text(node, key));
    for (const char *c = node->text; *c; c++)
        CVY_CHECK(
            (isalnum((unsigned char)*c) && (unsigned char)*c < 128) ||
                (strchr("_.,:@/+=%-", *c) && (*c != '-' || c > node->text)),
            CVY_E_CONFIG,
            "%s: site: %s is \"%s\", expected a word of letters, digits and _.,:@/+=%%- that does not begin with -",
            cvy_tree_where(node), key, node->text);
    return CVY_OK;
}

/* A list of texts, or one text. */
static cvy_status read_list(cvy_pool *pool, const cvy_tree *node, const char *key, const char *const **list_out,
                            int *count_out)
{
    const char **list = NULL;
    if (cvy_tree_is_null(node))
        return CVY_OK;
    CVY_CHECK(node->kind != CVY_TREE_MAP, CVY_E_CONFIG, "%s: site: %s is a map, expected a list of texts",
              cvy_tree_where(node), key);
    const int count = node->kind == CVY_TREE_LIST ? node->count : 1;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(count + 1) * sizeof *list, &list));
    for (int i = 0; i < count; i++) {
        const cvy_tree *item = node->kind == CVY_TREE_LIST ? node->child[i] : node;
        CVY_TRY(check_text(item, key));
        list[i] = item->text;
    }
    *list_out = list;
    *count_out = count;
    return CVY_OK;
}

static int is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return 0;
    for (; *text; text++)
        if ((unsigned char)*text > 127 || (!isalnum((unsigned char)*text) && *text != '_'))
            return 0;
    return 1;
}

static cvy_status read_environment(cvy_site *s)
{
    const char **list = NULL;
    const cvy_tree *map = s->environment;
    if (cvy_tree_is_null(map))
        return CVY_OK;
    CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: site: environment is no map of names and values",
              cvy_tree_where(map));
    CVY_TRY(cvy_pool_alloc(s->pool, (size_t)(2 * map->count + 1) * sizeof *list, &list));
    for (int i = 0; i < map->count; i++) {
        CVY_CHECK(is_name(map->key[i]), CVY_E_CONFIG,
                  "%s: site: environment has \"%s\", expected a name of letters, digits and _",
                  cvy_tree_where(map->key_at[i]), map->key[i]);
        const cvy_tree *value = map->child[i];
        if (value->kind != CVY_TREE_SCALAR || (value->text && *value->text))
            CVY_TRY(check_text(value, map->key[i]));
        list[2 * i] = map->key[i];
        list[2 * i + 1] = value->text ? value->text : "";
    }
    s->about.environment = list;
    s->about.variables = map->count;
    return CVY_OK;
}

/* A line that does not begin with '#' gets the scheduler's prefix, so no line of the header can be a command. */
static cvy_status check_header(const cvy_tree *header)
{
    const int count = cvy_tree_is_null(header) ? 0 : header->kind == CVY_TREE_LIST ? header->count : 1;
    for (int i = 0; i < count; i++) {
        const cvy_tree *item = header->kind == CVY_TREE_LIST ? header->child[i] : header;
        CVY_CHECK(
            *item->text == '#' || *item->text == '-', CVY_E_CONFIG,
            "%s: site: header has \"%s\", expected an option such as --constraint=cpu, or a line that begins with "
            "# (a line that does not begin with - needs quotes in YAML)",
            cvy_tree_where(item), item->text);
    }
    return CVY_OK;
}

/* ---- files ---- */

/* Values of `own` replace those of `all`; within environment and defaults key by key. */
static cvy_status merge(cvy_pool *pool, cvy_tree *all, const cvy_tree *own)
{
    for (int i = 0; i < own->count; i++) {
        const char *key = own->key[i];
        cvy_tree *before = cvy_tree_get(all, key);
        const int is_map = strcmp(key, "environment") == 0 || strcmp(key, "defaults") == 0;
        if (is_map && before && before->kind == CVY_TREE_MAP && own->child[i]->kind == CVY_TREE_MAP)
            CVY_TRY(merge(pool, before, own->child[i]));
        else
            CVY_TRY(cvy_tree_set(pool, all, key, own->child[i]));
    }
    return CVY_OK;
}

/* queue and partition are the same key: the one that is given last holds. */
static cvy_status read_file(cvy_site *s, const char *path, cvy_tree *all)
{
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_tree_parse_file(s->pool, path, &tree));
    if (cvy_tree_is_null(tree))
        return CVY_OK;
    cvy_site alone = *s;
    CVY_TRY(cvy_options_parse(s->pool, "site", rows, tree, NULL, &alone, 0));
    CVY_CHECK(!alone.queue || !alone.partition, CVY_E_CONFIG,
              "%s: site: queue and partition are two names of one key, expected one of them",
              cvy_tree_where(cvy_tree_get(tree, "partition")));
    cvy_tree *none = NULL;
    CVY_TRY(cvy_tree_new_scalar(s->pool, path, "null", &none));
    if (alone.partition || alone.queue)
        CVY_TRY(cvy_tree_set(s->pool, all, alone.partition ? "queue" : "partition", none));
    return merge(s->pool, all, tree);
}

static cvy_status interpret(cvy_site *s, const cvy_tree *all)
{
    static const char *const words[] = {"account", "queue", "partition", "parallel_environment", "launcher", "mpi"};
    cvy_site_about *a = &s->about;
    site_defaults d = {0};
    CVY_TRY(cvy_options_parse(s->pool, "site", rows, all, NULL, s, 0));
    for (int i = 0; i < CVY_COUNT(words); i++)
        CVY_TRY(check_word(all, words[i]));
    CVY_TRY(read_list(s->pool, s->launcher_options, "launcher_options", &a->launcher_option, &a->launcher_options));
    CVY_TRY(read_list(s->pool, s->modules, "modules", &a->module, &a->modules));
    CVY_TRY(read_list(s->pool, s->header, "header", &a->header, &a->headers));
    CVY_TRY(check_header(s->header));
    CVY_TRY(read_environment(s));
    CVY_TRY(cvy_options_parse(s->pool, "site defaults", default_rows, s->defaults, NULL, &d, sizeof d));
    a->scheduler = s->scheduler ? schedulers[s->scheduler] : NULL;
    a->account = s->account;
    a->queue = s->queue ? s->queue : s->partition;
    a->parallel_environment = s->parallel_environment;
    a->launcher = s->launcher;
    a->mpi = s->mpi;
    a->nodes = d.nodes;
    a->ppn = d.ppn;
    a->threads = d.threads;
    a->signal_s = d.signal_s;
    a->time = d.time;
    return CVY_OK;
}

/* The path of the centre's file; NULL: there is none. */
static cvy_status find_site(cvy_site *s, const char *program, char **path_out)
{
    const char *given = getenv("CONVOY_SITE");
    char *beside = NULL;
    if (given && *given)
        return cvy_pool_strdup(s->pool, given, path_out);
    const char *name = program ? cvy_file_base_name(program) : NULL;
    if (name && name > program)
        CVY_TRY(cvy_pool_printf(s->pool, &beside, "%.*s../etc/convoy/site.yaml", (int)(name - program), program));
    if (beside && cvy_file_exists(beside))
        *path_out = beside;
    else if (cvy_file_exists("/etc/convoy/site.yaml"))
        return cvy_pool_strdup(s->pool, "/etc/convoy/site.yaml", path_out);
    return CVY_OK;
}

static cvy_status find_user(cvy_site *s, char **path_out)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    if (config && *config == '/')
        CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/convoy/site.yaml", config));
    else if (home && *home == '/')
        CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/.config/convoy/site.yaml", home));
    if (path && cvy_file_exists(path))
        *path_out = path;
    return CVY_OK;
}

static cvy_status read_site(cvy_site *s, const char *program)
{
    const char *given = getenv("CONVOY_SITE");
    char *path = NULL, *user = NULL;
    cvy_tree *all = NULL;
    if (given && strcmp(given, "off") == 0)
        return CVY_OK;
    CVY_TRY(find_site(s, program, &path));
    CVY_TRY(find_user(s, &user));
    CVY_TRY(cvy_tree_new_map(s->pool, path ? path : "site", &all));
    if (path)
        CVY_TRY(read_file(s, path, all));
    if (user && !(path && strcmp(path, user) == 0))
        CVY_TRY(read_file(s, user, all));
    s->about.path = path;
    s->about.user_path = user;
    return interpret(s, all);
}

cvy_status cvy_site_open(const char *program, cvy_site **site_out)
{
    CVY_ENTRY();
    cvy_status status = CVY_OK;
    cvy_site *s = NULL;
    CVY_CHECK(site_out, CVY_E_ARGUMENT, "cvy_site_open() needs an output pointer for the site");
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    CVY_TRY_OUT(cvy_pool_create(&s->pool));
    s->about.size = sizeof s->about;
    CVY_TRY_OUT(read_site(s, program));
    *site_out = s;
    s = NULL;
out:
    cvy_site_destroy(&s);
    return status;
}

void cvy_site_destroy(cvy_site **site)
{
    CVY_ENTRY();
    if (!site || !*site)
        return;
    cvy_pool_destroy(&(*site)->pool);
    cvy_mem_free(site);
}

cvy_status cvy_site_describe(const cvy_site *site, cvy_site_about *about_out)
{
    CVY_ENTRY();
    CVY_CHECK(site && about_out, CVY_E_ARGUMENT, "cvy_site_describe() needs a site and an output pointer");
    CVY_TRY(CVY_RESULT_CHECK(cvy_site_about, about_out));
    cvy_result_write(about_out, &site->about, sizeof site->about);
    return CVY_OK;
}
