/*
 * study_publication.c: reads the file of a publication.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "study/study_publication.h"

#include <string.h>

#include "base/base_entry.h"
#include "base/text/base_option.h"
#include "base/text/base_text.h"
#include "study/study.h"

static const char expected_item[] = "a map with study and either figure or experiment";

typedef struct item_fields {
    const char *study, *figure, *panel, *experiment, *only;
    int stands_in;
} item_fields;

#define ROW(field) offsetof(item_fields, field)
static const cvy_option item_rows[] = {
    {"study", CVY_TYPE_STRING, ROW(study), NULL, "", "", "the name of a study"},
    {"figure", CVY_TYPE_STRING, ROW(figure), "", "", "", "the title of one of its figures"},
    {"panel", CVY_TYPE_STRING, ROW(panel), "", "", "", "only charts whose names have this text"},
    {"experiment", CVY_TYPE_STRING, ROW(experiment), "", "", "", "the experiment whose results make a table"},
    {"only", CVY_TYPE_STRING, ROW(only), "", "", "", "of a table: AXIS=VALUE, the cases that it has"},
    {"stands_in", CVY_TYPE_BOOL, ROW(stands_in), "false", "", "",
     "whether its predictions stand for points of the part that need more cores than there are"},
    {0},
};
#undef ROW

typedef struct part_fields {
    const char *title, *shows, *lacks, *needs, *text, *metrics;
    const cvy_tree *beside;
    int64_t plots;
} part_fields;

#define ROW(field) offsetof(part_fields, field)
static const cvy_option part_rows[] = {
    {"title", CVY_TYPE_STRING, ROW(title), NULL, "", "", "of the section"},
    {"shows", CVY_TYPE_STRING, ROW(shows), NULL, "", "", "what the publication shows"},
    {"plots", CVY_TYPE_INT, ROW(plots), "0", "0..99", "", "how many of its plots this is; 0: a table or a sentence"},
    {"metrics", CVY_TYPE_STRING, ROW(metrics), "", "", "", "metrics of published.csv, with semicolons between them"},
    {"beside", CVY_TYPE_TREE, ROW(beside), "", "", "", "a list of figures and tables of studies"},
    {"lacks", CVY_TYPE_STRING, ROW(lacks), "", "", "", "what these have not"},
    {"needs", CVY_TYPE_STRING, ROW(needs), "", "", "", "what a counterpart would need"},
    {"text", CVY_TYPE_STRING, ROW(text), "", "", "", "what there is to say of it"},
    {0},
};
#undef ROW

typedef struct file_fields {
    const char *page, *title, *source, *summary, *published;
    const cvy_tree *parts;
} file_fields;

#define ROW(field) offsetof(file_fields, field)
static const cvy_option file_rows[] = {
    {"page", CVY_TYPE_STRING, ROW(page), NULL, "", "", "the name of the page, without .md"},
    {"title", CVY_TYPE_STRING, ROW(title), NULL, "", "", "of the publication"},
    {"source", CVY_TYPE_STRING, ROW(source), NULL, "", "", "authors, place and year"},
    {"summary", CVY_TYPE_STRING, ROW(summary), "", "", "", "what it asks and what is answered here"},
    {"published", CVY_TYPE_STRING, ROW(published), "", "", "", "its name in published.csv"},
    {"parts", CVY_TYPE_TREE, ROW(parts), NULL, "", "", "a list of what the publication shows, in its order"},
    {0},
};
#undef ROW

static cvy_status know_study(cvy_publication *p, const char *study, const cvy_tree *at)
{
    for (int i = 0; i < p->nstudy; i++)
        if (strcmp(p->study[i], study) == 0)
            return CVY_OK;
    CVY_CHECK(p->nstudy < CVY_PUBLICATION_STUDIES_MAX, CVY_E_CONFIG, "%s: more than %d studies", cvy_tree_where(at),
              CVY_PUBLICATION_STUDIES_MAX);
    CVY_CHECK(!strchr(study, '/'), CVY_E_CONFIG, "%s: the name of a study has no slash: '%s'", cvy_tree_where(at),
              study);
    p->study[p->nstudy++] = study;
    return CVY_OK;
}

static cvy_status read_items(cvy_pool *pool, cvy_publication *p, const cvy_tree *list, cvy_part *out)
{
    CVY_CHECK(!list || list->kind == CVY_TREE_LIST, CVY_E_CONFIG, "%s: beside is a list, each of it %s",
              cvy_tree_where(list), expected_item);
    for (int i = 0; list && i < list->count; i++) {
        const cvy_tree *map = list->child[i];
        item_fields f;
        CVY_CHECK(i < CVY_PART_ITEMS_MAX, CVY_E_CONFIG, "%s: more than %d figures and tables", cvy_tree_where(list),
                  CVY_PART_ITEMS_MAX);
        CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: expected %s", cvy_tree_where(map), expected_item);
        CVY_TRY(cvy_options_parse(pool, "beside", item_rows, map, NULL, &f, sizeof f));
        CVY_CHECK(f.study && !f.figure != !f.experiment, CVY_E_CONFIG, "%s: expected %s", cvy_tree_where(map),
                  expected_item);
        CVY_TRY(know_study(p, f.study, map));
        out->item[out->nitem++] = (cvy_part_item){f.study, f.figure, f.panel, f.experiment, f.only, f.stands_in};
    }
    return CVY_OK;
}

static cvy_status read_part(cvy_pool *pool, cvy_publication *p, const cvy_tree *map, cvy_part *out)
{
    part_fields f;
    CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: a part is a map with title and shows", cvy_tree_where(map));
    CVY_TRY(cvy_options_parse(pool, "part", part_rows, map, NULL, &f, sizeof f));
    CVY_CHECK(f.title && f.shows, CVY_E_CONFIG, "%s: a part needs title and shows", cvy_tree_where(map));
    *out = (cvy_part){.title = f.title,
                      .shows = f.shows,
                      .lacks = f.lacks,
                      .needs = f.needs,
                      .text = f.text,
                      .metrics = f.metrics,
                      .plots = (int)f.plots};
    CVY_TRY(read_items(pool, p, f.beside, out));
    CVY_CHECK(out->nitem > 0 || out->needs || out->text, CVY_E_CONFIG,
              "%s: '%s' has nothing beside it: write beside, needs or text", cvy_tree_where(map), f.title);
    return CVY_OK;
}

cvy_status cvy_publication_read(cvy_pool *pool, const char *file, const char *text, cvy_publication *out)
{
    cvy_tree *root = NULL;
    file_fields f;
    *out = (cvy_publication){.file = file};
    CVY_TRY(cvy_tree_parse_text(pool, file, text, strlen(text), &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: a publication is a map with page, title and parts", file);
    CVY_TRY(cvy_options_parse(pool, "publication", file_rows, root, NULL, &f, sizeof f));
    CVY_CHECK(f.page && f.title && f.source, CVY_E_CONFIG, "%s: page, title and source are needed", file);
    CVY_CHECK(!strchr(f.page, '/'), CVY_E_CONFIG, "%s: page: '%s' is a name, without a folder", file, f.page);
    CVY_CHECK(f.parts && f.parts->kind == CVY_TREE_LIST && f.parts->count <= CVY_PARTS_MAX, CVY_E_CONFIG,
              "%s: parts is a list of at most %d maps", file, CVY_PARTS_MAX);
    out->page = f.page;
    out->title = f.title;
    out->source = f.source;
    out->summary = f.summary;
    out->published = f.published;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->part * ((size_t)f.parts->count + 1), &out->part));
    for (int i = 0; i < f.parts->count; i++)
        CVY_TRY(read_part(pool, out, f.parts->child[i], &out->part[out->npart++]));
    return CVY_OK;
}

static cvy_status list_studies(cvy_pool *pool, const char *name, const char *text, char **out)
{
    cvy_publication p;
    cvy_tree *root = NULL;
    cvy_text list = {0};
    CVY_TRY(cvy_tree_parse_text(pool, name, text, strlen(text), &root));
    if (root->kind != CVY_TREE_MAP || !cvy_tree_get(root, "parts"))
        return CVY_OK;
    CVY_TRY(cvy_publication_read(pool, name, text, &p));
    cvy_text_add(&list, "%s", "");
    for (int i = 0; i < p.nstudy; i++)
        cvy_text_add(&list, "%s\n", p.study[i]);
    return cvy_text_take(&list, out);
}

cvy_status cvy_publication_studies(const char *name, const char *text, char **names_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    CVY_CHECK(name && text && names_out, CVY_E_ARGUMENT, "the name and the text of a file, and a place for the names");
    *names_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = list_studies(pool, name, text, names_out);
    cvy_pool_destroy(&pool);
    return status;
}
