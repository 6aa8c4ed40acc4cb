/*
 * kit_journal.c: what the jobs of a kit say about themselves: a line when a job begins, with the seal that it found,
 * and one after each study. Each number of nodes has a file of its own, because jobs may run at the same time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "base/base_index.h"
#include "kit/kit_file.h"
#include "study/study_file.h"

static cvy_status name_journal(const cvy_kit *kit, int64_t nodes, char **out)
{
    return nodes > 0 ? cvy_kit_path(kit, out, "journal/nodes-%lld.jsonl", (long long)nodes)
                     : cvy_kit_path(kit, out, "journal/predictions.jsonl");
}

cvy_status cvy_kit_note(const cvy_kit *kit, int64_t nodes, const cvy_json *line)
{
    char *path = NULL;
    CVY_TRY(line->text.status);
    CVY_TRY(cvy_kit_path(kit, &path, "journal"));
    CVY_TRY(cvy_file_make_folder(path));
    CVY_TRY(name_journal(kit, nodes, &path));
    CVY_TRY(cvy_study_results_mend(path));
    return cvy_study_results_add(path, line->text.data);
}

static int is_text(const cvy_tree *line, const char *member, const char *expected)
{
    const char *text = cvy_tree_text_at(line, member);
    return text && strcmp(text, expected) == 0;
}

/* Takes what a line of the journal says about the study. */
static void follow(const cvy_tree *line, const char *study, cvy_kit_part *part)
{
    if (is_text(line, "event", "begin")) {
        if (!part->began) {
            part->began = cvy_tree_text_at(line, "time");
            part->seal = cvy_tree_text_at(line, "seal");
            part->seal = part->seal ? part->seal : "";
        }
        part->state = part->state == CVY_KIT_COMPLETE ? CVY_KIT_COMPLETE : CVY_KIT_BROKEN_OFF;
    } else if (is_text(line, "event", "study") && is_text(line, "study", study)) {
        part->left = (int64_t)cvy_tree_real_at(line, "left");
        part->made = (int64_t)cvy_tree_real_at(line, "made");
        part->left_out = (int64_t)cvy_tree_real_at(line, "left_out");
        part->state = part->left > 0 ? CVY_KIT_STOPPED : CVY_KIT_COMPLETE;
    }
}

/* A line that is damaged says nothing. */
static cvy_status read_journal(const cvy_kit *kit, const char *study, int64_t nodes, cvy_kit_part *part)
{
    char *path = NULL;
    const char *text = NULL;
    CVY_TRY(name_journal(kit, nodes, &path));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_kit_text(kit, path, &text));
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "\n");
        cvy_tree *line = NULL;
        if (at[length] && cvy_tree_parse_text(kit->pool, path, at, length, &line) == CVY_OK &&
            line->kind == CVY_TREE_MAP)
            follow(line, study, part);
        at += length + (at[length] == '\n');
    }
    return CVY_OK;
}

/* Counts a line of the results. last: [room] whether the last line of a measurement is an error; what comes before the
 * experiment names the measurement. */
static cvy_status count_line(cvy_pool *pool, const char *line, size_t length, cvy_keys *known, unsigned char *last)
{
    const char *command = strstr(line, ", \"command\": "),
               *end = command ? CVY_MIN(command, line + length) : line + length;
    char *text = NULL;
    int number = 0;
    CVY_TRY(cvy_pool_printf(pool, &text, "%.*s", (int)(end - line), line));
    char *experiment = strstr(text, ", \"experiment\": ");
    if (!experiment)
        return CVY_OK;
    const int is_error = strstr(experiment, ", \"error\": ") != NULL;
    *experiment = '\0';
    CVY_TRY(cvy_keys_add(known, text, &number));
    last[number] = (unsigned char)is_error;
    return CVY_OK;
}

/* Counts the measurements of a job; of one that was made again, the last line counts. */
static cvy_status count_results(const cvy_kit *kit, const char *study, int64_t nodes, cvy_kit_part *part)
{
    char *folder = NULL, *path = NULL;
    const char *text = NULL;
    unsigned char *last = NULL;
    cvy_keys known = {0};
    size_t lines = 0;
    CVY_TRY(cvy_kit_path(kit, &folder, "results/%s", study));
    CVY_TRY(cvy_study_results_path(kit->pool, folder, CVY_STUDY_MEASURED, nodes, &path));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_kit_text(kit, path, &text));
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    CVY_TRY(cvy_pool_alloc(kit->pool, lines + 1, &last));
    cvy_status status = CVY_OK;
    for (const char *at = text; *at && status == CVY_OK;) {
        const size_t length = strcspn(at, "\n");
        if (length > 0 && at[length] && at[length - 1] == '}')
            status = count_line(kit->pool, at, length, &known, last);
        at += length + (at[length] == '\n');
    }
    part->results = known.count;
    for (int i = 0; i < known.count; i++)
        part->failed += last[i];
    cvy_keys_free(&known);
    return status;
}

cvy_status cvy_kit_read_part(const cvy_kit *kit, const char *study, int64_t nodes, cvy_kit_part *out)
{
    cvy_kit_part part = {.state = CVY_KIT_NOT_BEGUN, .made = -1, .left = -1};
    CVY_TRY(read_journal(kit, study, nodes, &part));
    CVY_TRY(count_results(kit, study, nodes, &part));
    if (part.state == CVY_KIT_NOT_BEGUN && part.results > 0)
        part.state = CVY_KIT_BROKEN_OFF; /* the journal did not come back */
    if (part.state == CVY_KIT_COMPLETE && part.results < part.made)
        part.state = CVY_KIT_PARTLY;
    *out = part;
    return CVY_OK;
}
