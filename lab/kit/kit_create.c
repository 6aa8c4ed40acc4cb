/*
 * kit_create.c: cvy_kit_create(): the folder of a kit, its study files, the frameworks that they need, and the
 * platform.
 *
 * The text of a study may have these words, which stand for numbers of the kit:
 *
 *     @full_ranks@    one rank, and the ranks of 1, 2, 4 .. nodes that are full: "1, 4, 8, 16"
 *     @many_ranks@    those above 1
 *     @ranks@         the same, and one rank on each of these nodes
 *     @ppns@          the ranks of a node that are meant then: "1, 4"
 *     @node_ranks@    1, 2, 4 .. to the ranks of a node
 *     @batch@         64, doubled until no rank has less than one sample
 *     @frameworks@    those that are compared
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "kit/kit_file.h"

enum { NUMBERS = 64, FRAMEWORK_BYTES = 1 << 20 };

struct maker {
    cvy_kit_opts o;
    cvy_pool *pool;
    cvy_kit kit;
    cvy_kit_about about;
    int made_folder;
};

/* ---- numbers of nodes and ranks ---- */

typedef struct numbers {
    int64_t at[NUMBERS];
    int n;
} numbers;

/* Puts a number into its place, once. */
static void add_number(numbers *list, int64_t number)
{
    int i = 0;
    while (i < list->n && list->at[i] < number)
        i++;
    if ((i < list->n && list->at[i] == number) || list->n == NUMBERS)
        return;
    memmove(list->at + i + 1, list->at + i, sizeof *list->at * (size_t)(list->n - i));
    list->at[i] = number;
    list->n++;
}

/* 1, 2, 4 .. and the last one itself, each times `each`. */
static void add_doubling(numbers *list, int64_t last, int64_t each)
{
    for (int64_t i = 1; i < last; i *= 2)
        add_number(list, i * each);
    add_number(list, last * each);
}

static void add_list(cvy_text *to, const numbers *list, int64_t least)
{
    int n = 0;
    for (int i = 0; i < list->n; i++)
        if (list->at[i] >= least)
            cvy_text_add(to, "%s%lld", n++ ? ", " : "", (long long)list->at[i]);
}

/* ---- study files ---- */

/* Adds what a word stands for; 0: it is none of ours. */
static int add_word(const struct maker *k, const char *word, size_t length, cvy_text *to)
{
    static const char *const words[] = {"full_ranks", "many_ranks", "ranks",     "ppns",
                                        "node_ranks", "batch",      "frameworks"};
    const int64_t each = k->o.ranks_per_node;
    numbers list = {.n = 0};
    int64_t batch = 64;
    int which = 0;
    while (which < CVY_COUNT(words) && (strlen(words[which]) != length || strncmp(words[which], word, length) != 0))
        which++;
    switch (which) {
    case 0:
    case 1:
    case 2:
        add_number(&list, 1);
        add_doubling(&list, k->o.nodes, each);
        if (which == 2)
            add_doubling(&list, k->o.nodes, 1);
        break;
    case 3:
        add_number(&list, 1);
        add_number(&list, each);
        break;
    case 4: add_doubling(&list, each, 1); break;
    case 5:
        while (batch < k->o.nodes * each)
            batch *= 2;
        add_number(&list, batch);
        break;
    case 6: cvy_text_add(to, "%s", k->o.peers ? k->o.peers : "convoy"); return 1;
    default: return 0;
    }
    add_list(to, &list, which == 1 ? 2 : 1);
    return 1;
}

static cvy_status fill(const struct maker *k, const cvy_kit_study *study, cvy_text *out)
{
    for (const char *at = study->text; *at;) {
        const size_t length = *at == '@' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
        if (length > 0 && at[length + 1] == '@' && add_word(k, at + 1, length, out)) {
            at += length + 2;
            continue;
        }
        cvy_text_add_bytes(out, at, 1);
        at++;
    }
    return out->status;
}

/* ---- which jobs there are ---- */

static cvy_study_opts study_opts(const struct maker *k, const char *name, const char *text, const char *frameworks)
{
    return (cvy_study_opts){.size = sizeof(cvy_study_opts),
                            .name = name,
                            .text = text,
                            .out = k->o.folder,
                            .frameworks = frameworks,
                            .program = k->o.program,
                            .quick = k->o.quick,
                            .ranks_per_node = k->o.ranks_per_node};
}

/* Counts the work of a study on each number of nodes. *any: whether there is some. */
static cvy_status count_jobs(struct maker *k, const cvy_study_opts *opts, numbers *nodes, int *any)
{
    int64_t needed[NUMBERS];
    cvy_study_opts o = *opts;
    int n = 0;
    o.part = CVY_STUDY_MEASURED;
    CVY_TRY(cvy_study_nodes(&o, needed, NUMBERS, &n));
    *any = 0;
    for (int i = 0; i < CVY_MIN(n, NUMBERS); i++)
        if (needed[i] <= k->o.nodes) {
            add_number(nodes, needed[i]);
            *any = 1;
        }
    return CVY_OK;
}

static cvy_status count_effort(struct maker *k, const cvy_study_opts *opts)
{
    cvy_study_opts o = *opts;
    cvy_study_effort one = {.size = sizeof one};
    for (int i = 0; i < k->about.nnodes; i++) {
        o.part = CVY_STUDY_MEASURED;
        o.nodes = k->about.nodes[i];
        CVY_TRY(cvy_study_count(&o, &one));
        k->about.effort[i].count += one.count;
        k->about.effort[i].seconds += one.seconds;
        k->about.effort[i].limit_s += one.limit_s;
    }
    o.part = CVY_STUDY_PREDICTED;
    o.nodes = 0;
    CVY_TRY(cvy_study_count(&o, &one));
    k->about.npredicted += (int)one.count;
    return CVY_OK;
}

/* ---- files ---- */

static cvy_status write_text(const struct maker *k, const char *name, const char *text)
{
    char *path = NULL;
    CVY_TRY(cvy_kit_path(&k->kit, &path, "%s", name));
    return cvy_file_replace(path, text, strlen(text));
}

static cvy_status make_folders(const struct maker *k)
{
    static const char *const names[] = {"studies", "frameworks", "jobs", "results", "journal"};
    for (int i = 0; i < CVY_COUNT(names); i++) {
        char *path = NULL;
        CVY_TRY(cvy_kit_path(&k->kit, &path, "%s", names[i]));
        CVY_TRY(cvy_file_make_folder(path));
    }
    return CVY_OK;
}

/* All of them, so that the study files of the kit may name any. */
static cvy_status copy_frameworks(const struct maker *k)
{
    char **name = NULL;
    int64_t n = 0;
    CVY_TRY(cvy_file_list(k->pool, k->o.frameworks, &name, &n));
    for (int64_t i = 0; i < n; i++) {
        char *from = NULL, *to = NULL, *data = NULL;
        size_t bytes = 0;
        CVY_TRY(cvy_pool_printf(k->pool, &from, "%s/%s", k->o.frameworks, name[i]));
        CVY_TRY(cvy_kit_path(&k->kit, &to, "frameworks/%s", name[i]));
        if (cvy_file_is_folder(from))
            continue;
        CVY_TRY(cvy_file_read(from, FRAMEWORK_BYTES, &data, &bytes));
        const cvy_status status = cvy_file_replace(to, data, bytes);
        cvy_mem_free(&data);
        CVY_TRY(status);
    }
    return CVY_OK;
}

/* Above 32 nodes the simulation lets 32 stand for all, which needs powers of two. */
static cvy_status write_predicted(const struct maker *k)
{
    static const char head[] =
        "# Steps as `convoy simulate` predicts them on the platform of this kit; docs/guide/study-kit.md.\n"
        "summary: convoy simulate, platform.yaml of this kit\n"
        "command: [\"{program}\", simulate, \"{model}\", --global-batch, \"{batch}\", --ranks, \"{nodes}\", "
        "--node-ranks,\n"
        "          \"{node_ranks}\", --platform, \"{folder}/../" CVY_KIT_PLATFORM
        "\", --planning, measure, --steps, \"1\",";
    static const char tail[] = " --json]\n"
                               "set: [--set, \"{key}={value}\"]\n"
                               "arg: [\"--{key}\", \"{value}\"]\n"
                               "version: [\"{program}\", --version]\n"
                               "ignores: [threads] # a node has the threads of the platform\n"
                               "predicted: true\n"
                               "exact: true\n"
                               "cores: false\n";
    const int stands = k->o.nodes <= 32 || (k->o.nodes & (k->o.nodes - 1)) == 0;
    char *text = NULL;
    CVY_TRY(cvy_pool_printf(k->pool, &text, "%s%s%s", head, stands ? " --representatives, \"32\"," : "", tail));
    return write_text(k, "frameworks/" CVY_KIT_PREDICTED ".yaml", text);
}

static cvy_status write_about(const struct maker *k, const char *studies)
{
    char time[32];
    cvy_text text = {0};
    cvy_clock_text(time);
    cvy_text_add(&text,
                 "# What this kit is. `convoy study --predict`, --measure and --collect read it.\nkit: %d\nconvoy: ",
                 CVY_KIT_FORMAT);
    cvy_text_add_quoted(&text, cvy_version());
    if (k->o.commit && *k->o.commit) {
        cvy_text_add(&text, "\ncommit: ");
        cvy_text_add_quoted(&text, k->o.commit);
    }
    cvy_text_add(&text, "\nmade: ");
    cvy_text_add_quoted(&text, time);
    cvy_text_add(&text, "\nscheduler: %s", k->o.scheduler ? k->o.scheduler : "\"\"");
    if (k->o.platform_name) {
        cvy_text_add(&text, "\nplatform: ");
        cvy_text_add_quoted(&text, k->o.platform_name);
    }
    cvy_text_add(&text, "\nranks_per_node: %lld\nnodes: ", (long long)k->o.ranks_per_node);
    cvy_text_add_ints(&text, k->about.nodes, k->about.nnodes);
    cvy_text_add(&text, "\nquick: %s\nstudies: [%s]\n", k->o.quick ? "true" : "false", studies);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = write_text(k, "kit.yaml", text.data);
    cvy_text_free(&text);
    return status;
}

/* ---- all ---- */

static cvy_status check_folder(struct maker *k)
{
    char **name = NULL;
    int64_t n = 0;
    if (!cvy_file_exists(k->o.folder)) {
        k->made_folder = 1;
        return CVY_OK;
    }
    CVY_CHECK(cvy_file_is_folder(k->o.folder), CVY_E_CONFIG, "%s exists and is no folder: name a new one for the kit",
              k->o.folder);
    CVY_TRY(cvy_file_list(k->pool, k->o.folder, &name, &n));
    for (int64_t i = 0; i < n; i++)
        CVY_CHECK(strcmp(name[i], "kit.yaml") != 0, CVY_E_CONFIG,
                  "%s is a kit already: name a new folder, or remove it; what it has measured would be lost",
                  k->o.folder);
    CVY_CHECK(n == 0, CVY_E_CONFIG, "%s has other content, such as %s: name a new folder for the kit", k->o.folder,
              name[0]);
    return CVY_OK;
}

static cvy_status write_studies(struct maker *k, const char *frameworks, char **text, char **names_out)
{
    numbers nodes = {.n = 0};
    int any[CVY_KIT_STUDIES] = {0};
    cvy_text names = {0};
    for (int i = 0; i < k->o.nstudy; i++) {
        const cvy_study_opts opts = study_opts(k, k->o.study[i].name, text[i], frameworks);
        CVY_TRY(count_jobs(k, &opts, &nodes, &any[i]));
    }
    CVY_CHECK(nodes.n > 0, CVY_E_CONFIG, "no study has a case for %lld nodes with up to %lld ranks each",
              (long long)k->o.nodes, (long long)k->o.ranks_per_node);
    CVY_CHECK(nodes.n <= CVY_KIT_NODES, CVY_E_CONFIG, "the studies need %d numbers of nodes, expected at most %d",
              nodes.n, CVY_KIT_NODES);
    k->about.nnodes = nodes.n;
    memcpy(k->about.nodes, nodes.at, sizeof *nodes.at * (size_t)nodes.n);
    for (int i = 0; i < k->o.nstudy; i++) {
        char *name = NULL;
        if (!any[i])
            continue;
        const cvy_study_opts opts = study_opts(k, k->o.study[i].name, text[i], frameworks);
        CVY_TRY(count_effort(k, &opts));
        CVY_TRY(cvy_pool_printf(k->pool, &name, "studies/%s.yaml", k->o.study[i].name));
        CVY_TRY(write_text(k, name, text[i]));
    }
    for (int i = 0; i < k->o.nstudy; i++)
        if (any[i])
            cvy_text_add(&names, "%s%s", names.bytes > 0 ? ", " : "", k->o.study[i].name);
    cvy_status status = names.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(k->pool, names.data, names_out);
    cvy_text_free(&names);
    return status;
}

static cvy_status fill_studies(struct maker *k, char **text)
{
    for (int i = 0; i < k->o.nstudy; i++) {
        cvy_text one = {0};
        cvy_status status = fill(k, &k->o.study[i], &one);
        if (status == CVY_OK)
            status = cvy_pool_strdup(k->pool, one.data ? one.data : "", &text[i]);
        cvy_text_free(&one);
        CVY_TRY(status);
    }
    return CVY_OK;
}

static cvy_status create(struct maker *k)
{
    char *text[CVY_KIT_STUDIES], *frameworks = NULL, *names = NULL;
    CVY_TRY(fill_studies(k, text));
    CVY_TRY(make_folders(k));
    CVY_TRY(copy_frameworks(k));
    CVY_TRY(write_predicted(k));
    CVY_TRY(cvy_kit_path(&k->kit, &frameworks, "frameworks"));
    CVY_TRY(write_studies(k, frameworks, text, &names));
    if (k->o.platform)
        CVY_TRY(write_text(k, CVY_KIT_PLATFORM, k->o.platform));
    snprintf(k->about.studies, sizeof k->about.studies, "%s", names);
    return write_about(k, names);
}

static cvy_status check_opts(const cvy_kit_opts *o)
{
    CVY_CHECK(o->folder && *o->folder && o->study && o->nstudy > 0 && o->frameworks && o->program, CVY_E_ARGUMENT,
              "a kit needs folder, studies, frameworks and program");
    CVY_CHECK(o->nstudy <= CVY_KIT_STUDIES, CVY_E_CONFIG, "%d studies, expected at most %d", o->nstudy,
              CVY_KIT_STUDIES);
    CVY_CHECK(o->nodes >= 1 && o->ranks_per_node >= 1 && o->nodes <= INT32_MAX / o->ranks_per_node, CVY_E_CONFIG,
              "%lld nodes with %lld ranks each, expected one or more and at most %d ranks", (long long)o->nodes,
              (long long)o->ranks_per_node, INT32_MAX);
    for (int i = 0; i < o->nstudy; i++)
        for (int k = 0; k < i; k++)
            CVY_CHECK(strcmp(o->study[i].name, o->study[k].name) != 0, CVY_E_CONFIG, "the study %s is named twice",
                      o->study[i].name);
    return CVY_OK;
}

cvy_status cvy_kit_create(const cvy_kit_opts *opts, cvy_kit_about *out)
{
    CVY_ENTRY();
    struct maker k = {.made_folder = 0};
    CVY_TRY(CVY_RESULT_CHECK(cvy_kit_about, out));
    CVY_TRY(CVY_OPTS_READ(cvy_kit_opts, opts, &k.o));
    CVY_TRY(check_opts(&k.o));
    CVY_TRY(cvy_pool_create(&k.pool));
    k.kit = (cvy_kit){.pool = k.pool, .folder = k.o.folder};
    k.about = (cvy_kit_about){.size = sizeof k.about, .ranks_per_node = k.o.ranks_per_node};
    cvy_status status = check_folder(&k);
    const int may_remove = status == CVY_OK && k.made_folder;
    status = status == CVY_OK ? create(&k) : status;
    if (status == CVY_OK)
        cvy_result_write(out, &k.about, sizeof k.about);
    else if (may_remove) {
        const cvy_status removed = cvy_file_remove_tree(k.o.folder);
        status = removed == CVY_OK ? status : removed;
    }
    cvy_pool_destroy(&k.pool);
    return status;
}
