/*
 * job_help.c: prints the option tables as text for --help and as the page docs/reference/job-file.md.
 * tests/job/test_job.c checks that the page is up to date.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "program/program_update.h"

/* Maps within a section: their path, help text and rows. */
static const struct {
    const char *path, *help, *others;
    const cvy_option *rows;
} parts[] = {
    {"data.val", "a source, a share, or a map that says which part of `train`", NULL, cvy_job_split_rows},
    {"train.optimizer", "a name, or a map", "the optimiser's own, such as momentum, beta1, weight_decay",
     cvy_job_optimizer_rows},
    {"train.loss", "a name, a map, or a list of maps whose losses are added", "the loss's own, such as label_smoothing",
     cvy_job_loss_rows},
    {"train.metrics", "a list; of each a name, or a map", "the metric's own, such as k", cvy_job_metric_rows},
    {"train.groups", "a list of maps", NULL, cvy_job_group_rows},
    {"train.turns", "a list of maps", NULL, cvy_job_turn_rows},
    {"train.init", "a file, the folder of a run, or a map", NULL, cvy_job_init_rows},
    {"train.stop", "a map", NULL, cvy_job_stop_rows},
    {"log.mlperf", "a map", NULL, cvy_job_mlperf_rows},
};

/* ---- --help ---- */

static void help_of(cvy_text *t, const char *name, const char *help, const cvy_option *rows)
{
    char *lines = NULL;
    cvy_text_add(t, "%s: %s\n", name, help);
    if (cvy_options_help(rows, &lines) != CVY_OK)
        t->status = CVY_E_MEMORY;
    else
        cvy_text_add(t, "%s\n", lines);
    cvy_mem_free(&lines);
}

static cvy_status add_help(cvy_text *t, cvy_pool *pool)
{
    const cvy_option *rows = NULL;
    CVY_TRY(cvy_job_rows(pool, "", &rows));
    help_of(t, "job", "keys at the top", rows);
    for (const cvy_job_section *s = cvy_job_sections; s->name; s++) {
        CVY_TRY(cvy_job_rows(pool, s->name, &rows));
        help_of(t, s->name, s->help, rows);
    }
    for (int i = 0; i < CVY_COUNT(parts); i++)
        help_of(t, parts[i].path, parts[i].help, parts[i].rows);
    const cvy_update_def *mode;
    for (int i = 0; (mode = cvy_update_by_mode(i)) != NULL; i++) {
        char name[48];
        snprintf(name, sizeof name, "update, mode %s", mode->name);
        CVY_TRY(cvy_job_update_rows(NULL, pool, mode, &rows, NULL));
        help_of(t, name, mode->summary, rows);
    }
    return t->status;
}

/* Makes a text with the rows of a pool. */
static cvy_status write(cvy_status (*add)(cvy_text *t, cvy_pool *pool), char **text_out)
{
    cvy_text t = {0};
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = add(&t, pool);
    cvy_pool_destroy(&pool);
    if (t.status == CVY_OK)
        t.status = status;
    return cvy_text_take(&t, text_out);
}

cvy_status cvy_job_help(char **text_out)
{
    return write(add_help, text_out);
}

/* ---- the page ---- */

static const char introduction[] =
    "# The job file\n"
    "\n"
    "<!-- Written by `test_job --write` from src/job/job_table.c and src/program/program_options.c; change those. -->\n"
    "\n"
    "A run is described by one YAML file:\n"
    "\n"
    "```yaml\n"
    "model: {name: hep-cnn, classes: 2}\n"
    "data:\n"
    "  train: events/train.pack\n"
    "  val: 10%\n"
    "  augment: [mirror]\n"
    "train:\n"
    "  batch: 256\n"
    "  epochs: 20\n"
    "  optimizer: {name: adam, lr: 1e-3}\n"
    "  schedule: {name: cosine, warmup: 2 epochs}\n"
    "checkpoint: {every: 10 min, best: accuracy}\n"
    "```\n"
    "\n"
    "`convoy train JOB.yaml --set train.batch=64` overrides any key.\n"
    "The value is YAML, and `--set train.seed=` restores the default.\n"
    "A key that does not exist is an error that names file, line, column and the nearest existing key.\n"
    "The run folder keeps the whole job, with all defaults, as `job.resolved.yaml`; that file is a job file again.\n"
    "\n"
    "Numbers may be written `1_000`, `64k`, `4 MiB`, `1e-3`.\n"
    "The batch is the global one: the number of ranks does not change what is computed.\n"
    "Bounds are written `1..` for at least 1, `0..1` for a range, `>0` for above, `odd` for an odd number.\n"
    "\n"
    "[networks.md](../guide/networks.md) shows how to describe a network of your own, and\n"
    "[training.md](../guide/training.md) lists optimisers, schedules, losses and metrics by name.\n";

/* Escapes the bar, which would end the cell. Braces and stars need no escape within backquotes. */
static void add_cell(cvy_text *t, const char *text)
{
    for (; *text; text++)
        cvy_text_add(t, *text == '|' ? "\\|" : "%c", *text);
}

static void add_row(cvy_text *t, const cvy_option *row)
{
    static const char *const types[] = {
        [CVY_TYPE_INT] = "integer",   [CVY_TYPE_REAL] = "number", [CVY_TYPE_BOOL] = "true or false",
        [CVY_TYPE_CHOICE] = "word",   [CVY_TYPE_STRING] = "text", [CVY_TYPE_INTS] = "integers",
        [CVY_TYPE_REALS] = "numbers", [CVY_TYPE_TREE] = "any",    [CVY_TYPE_DTYPE] = "word",
        [CVY_TYPE_WORD] = "word",     [CVY_TYPE_NAMES] = "names", [CVY_TYPE_INT3] = "integers",
    };
    cvy_text valid = {0};
    cvy_text_add(t, "| `%s` | %s", row->name, types[row->type]);
    if (row->unit[0])
        cvy_text_add(t, ", %s", row->unit);
    cvy_text_add(t, " | ");
    cvy_option_print_valid(row, &valid);
    add_cell(t, valid.data ? valid.data : "");
    t->status = t->status == CVY_OK ? valid.status : t->status;
    cvy_text_free(&valid);
    cvy_text_add(t, " | %s", !row->fallback ? "required" : row->fallback[0] ? "`" : "");
    if (row->fallback && row->fallback[0])
        cvy_text_add(t, "%s`", row->fallback);
    cvy_text_add(t, " | ");
    add_cell(t, row->help);
    cvy_text_add(t, " |\n");
}

static void add_table(cvy_text *t, const cvy_option *rows)
{
    cvy_text_add(t, "\n| key | type | valid | default | meaning |\n|---|---|---|---|---|\n");
    for (; rows->name; rows++)
        add_row(t, rows);
}

static cvy_status add_modes(cvy_text *t, cvy_pool *pool)
{
    const cvy_option *rows = NULL;
    cvy_text_add(t, "\n### `update`: a word, or a map `{mode: ..., keys of the mode}`\n\nWhen to use which: "
                    "[update-modes.md](../guide/update-modes.md).\n\n");
    const cvy_update_def *mode;
    for (int i = 0; (mode = cvy_update_by_mode(i)) != NULL; i++)
        cvy_text_add(t, "- `%s`: %s\n", mode->name, mode->summary);
    for (int i = 0; (mode = cvy_update_by_mode(i)) != NULL; i++) {
        CVY_TRY(cvy_job_update_rows(NULL, pool, mode, &rows, NULL));
        if (!rows->name)
            continue;
        cvy_text_add(t, "\nWith `mode: %s`:\n", mode->name);
        add_table(t, rows);
    }
    return CVY_OK;
}

static cvy_status add_manual(cvy_text *t, cvy_pool *pool)
{
    const cvy_option *rows = NULL;
    cvy_text_add(t, "%s\n## At the top\n", introduction);
    CVY_TRY(cvy_job_rows(pool, "", &rows));
    add_table(t, rows);
    CVY_TRY(add_modes(t, pool));
    for (const cvy_job_section *s = cvy_job_sections; s->name; s++) {
        cvy_text_add(t, "\n## `%s`: %s\n", s->name, s->help);
        CVY_TRY(cvy_job_rows(pool, s->name, &rows));
        add_table(t, rows);
        for (int i = 0; i < CVY_COUNT(parts); i++) {
            const size_t length = strlen(s->name);
            if (strncmp(parts[i].path, s->name, length) != 0 || parts[i].path[length] != '.')
                continue;
            cvy_text_add(t, "\n### `%s`: %s\n", parts[i].path, parts[i].help);
            add_table(t, parts[i].rows);
            if (parts[i].others)
                cvy_text_add(t, "\nOther keys are %s.\n", parts[i].others);
        }
    }
    return t->status;
}

cvy_status cvy_job_manual(char **text_out)
{
    return write(add_manual, text_out);
}
