/*
 * study_results.c: results.jsonl: a line for each measurement, appended as soon as there is one. Each job of a
 * batch system has a file of its own, because jobs run at the same time and file systems of clusters may mix the lines
 * of two writers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "study/study_file.h"

#define NAME "results"
#define ENDING ".jsonl"

cvy_status cvy_study_results_path(cvy_pool *pool, const char *folder, cvy_study_part part, int64_t nodes, char **out)
{
    if (part == CVY_STUDY_PREDICTED)
        return cvy_pool_printf(pool, out, "%s/" NAME "-predictions" ENDING, folder);
    return nodes > 0 ? cvy_pool_printf(pool, out, "%s/" NAME "-nodes-%lld" ENDING, folder, (long long)nodes)
                     : cvy_pool_printf(pool, out, "%s/" NAME ENDING, folder);
}

/* The kind of a member that has to be a map if it is there. what: what its values are. */
static cvy_status check_map(const cvy_tree *root, const char *where, const char *name, const char *what)
{
    const cvy_tree *member = root->kind == CVY_TREE_MAP ? cvy_tree_get(root, name) : NULL;
    CVY_CHECK(!member || member->kind == CVY_TREE_MAP, CVY_E_FORMAT, "%s: \"%s\" is a %s, expected a map of %s", where,
              name, member->kind == CVY_TREE_LIST ? "list" : "single value", what);
    return CVY_OK;
}

/* A case has one value for each axis. */
static cvy_status check_case(const cvy_tree *values, const char *where)
{
    for (int i = 0; i < values->count; i++)
        CVY_CHECK(values->child[i]->kind == CVY_TREE_SCALAR, CVY_E_FORMAT,
                  "%s: \"case\" has a %s for the axis %s, expected one value", where,
                  values->child[i]->kind == CVY_TREE_LIST ? "list" : "map", values->key[i]);
    return CVY_OK;
}

static cvy_status read_line(cvy_pool *pool, const char *path, const char *text, size_t bytes, int number,
                            cvy_study_results *out)
{
    cvy_tree *root = NULL;
    cvy_study_result_line line = {0};
    char *where = NULL;
    CVY_TRY(cvy_pool_printf(pool, &where, "%s, line %d", path, number));
    CVY_TRY(cvy_tree_parse_text(pool, where, text, bytes, &root));
    CVY_TRY(check_map(root, where, "case", "axes and values"));
    CVY_TRY(check_map(root, where, "environment", "names and values"));
    CVY_TRY(check_map(root, where, "result", "names and numbers"));
    line.key = cvy_tree_text_at(root, "key");
    line.machine = cvy_tree_text_at(root, "machine");
    line.framework = cvy_tree_text_at(root, "framework");
    line.error = cvy_tree_text_at(root, "error");
    const char *predicted = cvy_tree_text_at(root, "predicted");
    line.is_predicted = predicted && strcmp(predicted, "true") == 0;
    line.seconds = cvy_tree_real_at(root, "seconds");
    const char *quick = cvy_tree_text_at(root, "quick");
    line.is_quick = quick && strcmp(quick, "true") == 0;
    line.experiment = cvy_tree_text_at(root, "experiment");
    line.values = cvy_tree_at(root, "case");
    line.environment = cvy_tree_at(root, "environment");
    line.result = cvy_tree_at(root, "result");
    const double repeat = cvy_tree_real_at(root, "repeat");
    CVY_CHECK(line.key && line.machine && line.experiment && line.values && repeat >= 1 && repeat < 0x1p53 &&
                  (line.result || line.error),
              CVY_E_FORMAT, "%s: this is no result of a study", where);
    CVY_TRY(check_case(line.values, where));
    line.repeat = (int64_t)repeat;
    if (out->n == out->room) {
        const int room = out->room ? 2 * out->room : 256;
        cvy_study_result_line *more = NULL;
        CVY_TRY(cvy_pool_alloc(pool, sizeof *more * (size_t)room, &more));
        if (out->n)
            memcpy(more, out->line, sizeof *more * (size_t)out->n);
        out->line = more;
        out->room = room;
    }
    out->line[out->n++] = line;
    return CVY_OK;
}

static cvy_status read_results(cvy_pool *pool, const char *path, cvy_study_results *out)
{
    char *data = NULL;
    size_t bytes = 0, at = 0;
    cvy_status status = cvy_file_read(path, (size_t)1 << 30, &data, &bytes);
    for (int number = 1; status == CVY_OK && at < bytes; number++) {
        const char *end = memchr(data + at, '\n', bytes - at);
        if (!end)
            break;
        const size_t length = (size_t)(end - data) - at;
        if (at + length + 1 == bytes && length > 0 && end[-1] != '}')
            break;
        if (length > 0)
            status = read_line(pool, path, data + at, length, number, out);
        at += length + 1;
    }
    cvy_mem_free(&data);
    return status;
}

static int is_results(const char *name)
{
    const size_t n = strlen(name), head = strlen(NAME), tail = strlen(ENDING);
    return n >= head + tail && strncmp(name, NAME, head) == 0 && strcmp(name + n - tail, ENDING) == 0 &&
           (name[head] == '.' || name[head] == '-');
}

cvy_status cvy_study_results_read(cvy_pool *pool, const char *folder, cvy_study_results *out)
{
    char **name = NULL, *path = NULL;
    int64_t n = 0;
    *out = (cvy_study_results){0};
    CVY_TRY(cvy_file_list(pool, folder, &name, &n));
    for (int64_t i = 0; i < n; i++)
        if (is_results(name[i])) {
            CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", folder, name[i]));
            CVY_TRY(read_results(pool, path, out));
        }
    return CVY_OK;
}

cvy_status cvy_study_results_mend(const char *path)
{
    char *data = NULL;
    size_t bytes = 0;
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, (size_t)1 << 30, &data, &bytes));
    size_t whole = bytes; /* after the last "}\n" */
    while (whole > 0 && (data[whole - 1] != '\n' || whole < 2 || data[whole - 2] != '}'))
        whole--;
    cvy_mem_free(&data);
    if (whole == bytes)
        return CVY_OK;
    const char *why = "";
    const int fd = cvy_file_open(path, O_WRONLY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s cannot be written: %s", path, why);
    const cvy_status status = cvy_file_cut(fd, (int64_t)whole, path);
    close(fd);
    return status;
}

cvy_status cvy_study_results_add(const char *path, const char *line)
{
    cvy_text text = {0};
    const char *why = "";
    const int fd = cvy_file_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s cannot be written: %s", path, why);
    cvy_text_add(&text, "%s\n", line);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_write_all(fd, text.data, text.bytes, path);
    if (status == CVY_OK && cvy_file_flush(fd, path, CVY_PROTECTION_SYNC) != 0)
        status = cvy_error_set(CVY_E_IO, "%s: cannot sync: %s", path, strerror(errno));
    close(fd);
    cvy_text_free(&text);
    return status;
}
