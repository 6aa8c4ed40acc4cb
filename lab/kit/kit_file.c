/*
 * kit_file.c: reads kit.yaml, and names the parts of a kit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kit/kit_file.h"

#include <stdarg.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_option.h"

typedef struct fields {
    int64_t kit, ranks_per_node;
    const char *convoy, *commit, *made, *scheduler, *platform;
    const cvy_tree *studies;
    cvy_ints nodes;
    int quick;
} fields;

#define ROW(field) offsetof(fields, field)
static const cvy_option rows[] = {
    {"kit", CVY_TYPE_INT, ROW(kit), NULL, "1..", "", "the number of this format"},
    {"convoy", CVY_TYPE_STRING, ROW(convoy), NULL, "", "", "the version that has made the kit"},
    {"commit", CVY_TYPE_STRING, ROW(commit), "", "", "", "its commit"},
    {"made", CVY_TYPE_STRING, ROW(made), NULL, "", "", "when"},
    {"scheduler", CVY_TYPE_STRING, ROW(scheduler), "", "", "", "whose job scripts it has"},
    {"platform", CVY_TYPE_STRING, ROW(platform), "", "", "", "the name of the platform that was given"},
    {"ranks_per_node", CVY_TYPE_INT, ROW(ranks_per_node), NULL, "1..", "", "the most ranks of a node"},
    {"nodes", CVY_TYPE_INTS, ROW(nodes), NULL, "1..", "", "of the jobs"},
    {"quick", CVY_TYPE_BOOL, ROW(quick), "false", "", "", "whether the studies are a quick look"},
    {"studies", CVY_TYPE_TREE, ROW(studies), NULL, "", "", "their names"},
    {0},
};
#undef ROW

cvy_status cvy_kit_path(const cvy_kit *kit, char **out, const char *fmt, ...)
{
    char name[512];
    va_list args;
    va_start(args, fmt);
    const int length = vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    CVY_CHECK(length >= 0 && length < (int)sizeof name, CVY_E_CONFIG, "%s: a name of %d bytes is too long", name,
              length);
    return cvy_pool_printf(kit->pool, out, "%s/%s", kit->folder, name);
}

cvy_status cvy_kit_text(const cvy_kit *kit, const char *path, const char **out)
{
    char *data = NULL, *text = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_read(path, (size_t)1 << 30, &data, &bytes));
    const cvy_status status = cvy_pool_strdup(kit->pool, data, &text);
    cvy_mem_free(&data);
    *out = text;
    return status;
}

/* A name is a part of paths. */
static cvy_status read_studies(cvy_kit *kit, const char *path, const cvy_tree *list)
{
    CVY_CHECK(list->kind == CVY_TREE_LIST && list->count > 0 && list->count <= CVY_KIT_STUDIES, CVY_E_CONFIG,
              "%s: studies is a list of 1 to %d names", path, CVY_KIT_STUDIES);
    for (int i = 0; i < list->count; i++) {
        const char *name = list->child[i]->text;
        CVY_CHECK(name && *name && *name != '.' && !strchr(name, '/'), CVY_E_CONFIG,
                  "%s: a study has a name without a slash that does not begin with a dot",
                  cvy_tree_where(list->child[i]));
        kit->study[kit->nstudy++] = name;
    }
    return CVY_OK;
}

cvy_status cvy_kit_read(cvy_pool *pool, const char *folder, cvy_kit *out)
{
    cvy_kit kit = {.pool = pool, .folder = folder};
    cvy_tree *root = NULL;
    char *path = NULL;
    fields f;
    CVY_TRY(cvy_kit_path(&kit, &path, "kit.yaml"));
    CVY_CHECK(cvy_file_exists(path), CVY_E_CONFIG,
              "%s is no kit: it has no kit.yaml; `convoy study --kit FOLDER` makes one", folder);
    CVY_TRY(cvy_tree_parse_file(pool, path, &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: this is no description of a kit", path);
    const int64_t format = (int64_t)cvy_tree_real_at(root, "kit");
    CVY_CHECK(format == CVY_KIT_FORMAT, CVY_E_CONFIG,
              "%s: the kit has format %lld, and this version (%s) knows %d: take the version that has made it (%s)",
              path, (long long)format, cvy_version(), CVY_KIT_FORMAT,
              cvy_tree_text_at(root, "convoy") ? cvy_tree_text_at(root, "convoy") : "unknown");
    CVY_TRY(cvy_options_parse(pool, "kit", rows, root, NULL, &f, sizeof f));
    CVY_CHECK(f.nodes.count > 0 && f.nodes.count <= CVY_KIT_NODES, CVY_E_CONFIG,
              "%s: nodes has %d numbers, expected 1 to %d", path, f.nodes.count, CVY_KIT_NODES);
    kit.version = f.convoy;
    kit.commit = f.commit ? f.commit : "";
    kit.made = f.made;
    kit.scheduler = f.scheduler ? f.scheduler : "";
    kit.platform = f.platform ? f.platform : "";
    kit.ranks_per_node = f.ranks_per_node;
    kit.quick = f.quick;
    kit.nnodes = f.nodes.count;
    memcpy(kit.nodes, f.nodes.at, sizeof *kit.nodes * (size_t)kit.nnodes);
    CVY_TRY(read_studies(&kit, path, f.studies));
    *out = kit;
    return CVY_OK;
}

const char *cvy_kit_advice(const char *error)
{
    return strstr(error, ".jsonl, line ")
               ? "; remove this line: the others then count, and its measurement is made again"
               : "";
}
