/*
 * kit_collect.c: cvy_kit_collect(): what of a kit has come back, its page, and an archive of the folder.
 *
 * The archive is made by the system's tar and gzip. Every cluster has both, and the folder is small text; a library
 * would be one more dependency for one call a kit, and xz is missing on some login nodes. It is written under another
 * name and takes its own when it is whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "kit/kit_file.h"
#include "study/study_file.h"

enum { LINE = 512, TAR_S = 3600 };

struct collector {
    cvy_kit kit;
    cvy_kit_page page;
    void (*show)(void *user, const char *line);
    void *user;
};

/* ---- what is wanted ---- */

/* Marks the numbers of nodes on which the study measures something. */
static cvy_status mark_wanted(struct collector *c, int study)
{
    const cvy_kit *kit = &c->kit;
    char *path = NULL, *folder = NULL;
    const char *text = NULL;
    cvy_study_spec spec;
    cvy_case *list = NULL;
    cvy_framework f[CVY_STUDY_WORDS];
    int n = 0, known = 0;
    CVY_TRY(cvy_kit_path(kit, &path, "studies/%s.yaml", kit->study[study]));
    CVY_TRY(cvy_kit_path(kit, &folder, "frameworks"));
    CVY_TRY(cvy_kit_text(kit, path, &text));
    CVY_TRY(cvy_study_read(kit->pool, path, text, kit->quick, &spec));
    CVY_TRY(cvy_study_cases(&spec, &list, &n));
    for (int i = 0; i < n; i++) {
        const cvy_study_paths paths = {.out = ""};
        const char *name = cvy_case_value(&list[i], "framework");
        int at = 0;
        while (at < known && strcmp(f[at].name, name) != 0)
            at++;
        if (at == known && known == CVY_COUNT(f))
            continue;
        if (at == known)
            CVY_TRY(cvy_framework_read(kit->pool, folder, "convoy", &paths, name, &f[known++]));
        const int64_t nodes = cvy_framework_nodes(&f[at], &list[i], kit->ranks_per_node);
        for (int k = 0; k < kit->nnodes; k++)
            c->page.part[study * kit->nnodes + k].is_wanted |= !f[at].is_predicted && kit->nodes[k] == nodes;
    }
    return CVY_OK;
}

/* ---- what there is ---- */

static void say_part(const struct collector *c, const char *study, int64_t nodes, const cvy_kit_part *part)
{
    char line[LINE];
    static const char *const states[] = {[CVY_KIT_NOT_BEGUN] = "not begun",
                                         [CVY_KIT_BROKEN_OFF] = "broken off",
                                         [CVY_KIT_STOPPED] = "stopped in time",
                                         [CVY_KIT_PARTLY] = "came back in part"};
    if (!c->show || part->state == CVY_KIT_COMPLETE)
        return;
    int n = snprintf(line, sizeof line, "%s on %lld node%s: %s, %lld results", study, (long long)nodes,
                     nodes > 1 ? "s" : "", states[part->state], (long long)part->results);
    if (part->state == CVY_KIT_STOPPED)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %lld left", (long long)part->left);
    if (part->state == CVY_KIT_PARTLY)
        snprintf(line + n, sizeof line - (size_t)n, " of %lld: copy results/%s again", (long long)part->made, study);
    c->show(c->user, line);
}

static cvy_status read_parts(struct collector *c)
{
    const cvy_kit *kit = &c->kit;
    CVY_TRY(cvy_pool_alloc(kit->pool, sizeof *c->page.part * (size_t)(kit->nstudy * kit->nnodes), &c->page.part));
    for (int i = 0; i < kit->nstudy; i++) {
        for (int k = 0; k < kit->nnodes; k++)
            CVY_TRY(cvy_kit_read_part(kit, kit->study[i], kit->nodes[k], &c->page.part[i * kit->nnodes + k]));
        CVY_TRY(mark_wanted(c, i));
        for (int k = 0; k < kit->nnodes; k++) {
            const cvy_kit_part *part = &c->page.part[i * kit->nnodes + k];
            if (!part->is_wanted)
                continue;
            c->page.result.all++;
            c->page.result.complete += part->state == CVY_KIT_COMPLETE;
            c->page.result.measured += (int)part->results;
            say_part(c, kit->study[i], kit->nodes[k], part);
        }
    }
    return CVY_OK;
}

/* ---- the archive ---- */

static cvy_status run_tar(const char *folder, const char *name, const char *temporary)
{
    const char *const word[] = {"tar", "-C", folder, "-czf", temporary, "--", name, NULL};
    cvy_process_result r = {0};
    cvy_status status = cvy_process_run(word, TAR_S, NULL, &r);
    if (status == CVY_OK && (r.code != 0 || r.timed_out))
        status = cvy_error_set(CVY_E_IO, "tar cannot write %s: %.*s", temporary, r.err ? (int)strcspn(r.err, "\n") : 0,
                               r.err ? r.err : "");
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    return status;
}

static cvy_status flush_file(const char *path)
{
    const char *why = "";
    const int fd = cvy_file_open(path, 0, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s cannot be opened: %s", path, why);
    const int failed = cvy_file_flush(fd, path, CVY_PROTECTION_SYNC);
    close(fd);
    CVY_CHECK(!failed, CVY_E_IO, "%s cannot be made safe on the disk", path);
    return CVY_OK;
}

/* The path without links and "..": that of its folder, which exists, and its name. */
static cvy_status find_place(cvy_pool *pool, const char *path, char **out)
{
    const char *name = cvy_file_base_name(path);
    char *folder = NULL;
    CVY_TRY(cvy_pool_printf(pool, &folder, "%.*s", (int)(name - path), path));
    char *real = realpath(*folder ? folder : ".", NULL);
    CVY_CHECK(real && *name, CVY_E_IO, "%s cannot be written: %s", path,
              real ? "it is a folder" : "there is no such folder");
    const cvy_status status = cvy_pool_printf(pool, out, "%s/%s", real, name);
    free(real);
    return status;
}

/* folder: absolute. The archive has one folder, that of the kit. */
static cvy_status write_archive(const struct collector *c, const char *folder, const char *archive)
{
    char *parent = NULL, *temporary = NULL, *absolute = NULL;
    const char *name = cvy_file_base_name(folder);
    const size_t length = strlen(folder);
    CVY_TRY(cvy_pool_printf(c->kit.pool, &parent, "%.*s", (int)(name - folder), folder));
    CVY_TRY(find_place(c->kit.pool, archive, &absolute));
    CVY_CHECK(strncmp(absolute, folder, length) != 0 || absolute[length] != '/', CVY_E_CONFIG,
              "%s would lie in the folder that it archives: name another place with --out", archive);
    CVY_TRY(cvy_pool_printf(c->kit.pool, &temporary, "%s.aside-%lld", absolute, (long long)getpid()));
    cvy_status status = run_tar(parent, name, temporary);
    if (status == CVY_OK)
        status = flush_file(temporary);
    if (status == CVY_OK && rename(temporary, absolute) != 0)
        status = cvy_error_set(CVY_E_IO, "%s cannot be written", archive);
    if (status != CVY_OK)
        unlink(temporary);
    return status;
}

/* ---- all ---- */

static cvy_status collect(struct collector *c, const char *folder, const char *archive)
{
    CVY_TRY(read_parts(c));
    CVY_TRY(cvy_kit_read_seal(&c->kit, &c->page.seal));
    const cvy_status status = cvy_kit_write_page(&c->page);
    c->page.result.has_page = status == CVY_OK;
    if (status == CVY_E_IO && archive && c->show) { /* the archive may have room elsewhere */
        char line[LINE];
        snprintf(line, sizeof line, "there is no page: %.480s", cvy_error_text());
        c->show(c->user, line);
    } else if (status != CVY_OK)
        return status;
    return archive ? write_archive(c, folder, archive) : CVY_OK;
}

cvy_status cvy_kit_collect(const char *folder, const char *archive, void (*show)(void *user, const char *line),
                           void *user, cvy_kit_result *out)
{
    CVY_ENTRY();
    struct collector c = {.show = show, .user = user};
    cvy_pool *pool = NULL;
    CVY_CHECK(folder, CVY_E_ARGUMENT, "the folder of a kit is needed");
    CVY_TRY(CVY_RESULT_CHECK(cvy_kit_result, out));
    CVY_TRY(cvy_pool_create(&pool));
    char *absolute = realpath(folder, NULL);
    cvy_status status = cvy_kit_read(pool, folder, &c.kit);
    if (status == CVY_OK && !absolute)
        status = cvy_error_set(CVY_E_IO, "%s cannot be opened", folder);
    c.page.kit = &c.kit;
    c.page.name = absolute ? cvy_file_base_name(absolute) : "";
    c.page.result = (cvy_kit_result){.size = sizeof c.page.result, .median_error = NAN};
    status = status == CVY_OK ? collect(&c, absolute, archive) : status;
    if (status == CVY_OK)
        cvy_result_write(out, &c.page.result, sizeof c.page.result);
    free(absolute);
    cvy_pool_destroy(&pool);
    return status;
}
