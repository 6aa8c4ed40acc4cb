/*
 * job_preset.c: train.preset: published recipes for large batches. They are applied before the sections are parsed.
 * Keys of the preset fill in the keys that the job does not give, so they are parsed like the user's and appear in the
 * resolved file.
 *
 * A map of the preset (optimiser, schedule) fills in a map of the user's if that has the same name or no name. If the
 * user names another optimiser or schedule, only the user's map is used. A resolved file holds all keys of its preset,
 * so it parses back to itself even if a later release changes the presets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_table.h"
#include "job/job_table.h"

struct preset {
    const char *name, *source, *train;
};

static const struct preset presets[] = {
    {"goyal2017",
     "Goyal et al. 2017, arXiv:1706.02677: ResNet-50 on ImageNet, batches of 256 to 8192. The rate is in proportion to "
     "the batch; the warm-up begins at the rate for 256.",
     "epochs: 90\n"
     "lr_rule: linear\n"
     "optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4}\n"
     "schedule: {name: multi_step, at: [30 epochs, 60 epochs, 80 epochs], factor: 0.1, warmup: 5 epochs}\n"},
    {"you2017",
     "You, Gitman and Ginsburg 2017, arXiv:1708.03888: LARS, batches to 32 thousand. The paper finds the rate of each "
     "batch by trial, below proportion; the square-root rule from 2 at 256 stands for that here, and is the first "
     "thing "
     "to tune.",
     "epochs: 90\n"
     "lr_rule: sqrt\n"
     "optimizer: {name: lars, lr: 2, momentum: 0.9, trust_coefficient: 0.001, weight_decay: 5e-4}\n"
     "schedule: {name: polynomial, power: 2, warmup: 5 epochs}\n"},
};

static cvy_status find_preset(const cvy_tree *name, const struct preset **out)
{
    static const cvy_table_query query = {.what = "preset"};
    const struct preset *table[CVY_COUNT(presets)];
    for (int i = 0; i < CVY_COUNT(presets); i++)
        table[i] = &presets[i];
    const cvy_status status = cvy_table_find(table, CVY_COUNT(presets), &query, name->text, out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s: train.preset", cvy_tree_where(name));
}

/* Whether `own` is a map that may be filled in: it has no name, or the same name as the preset's map. */
static int takes(const cvy_tree *own, const cvy_tree *preset)
{
    if (own->kind != CVY_TREE_MAP || preset->kind != CVY_TREE_MAP)
        return 0;
    const cvy_tree *name = cvy_tree_get(own, "name");
    return cvy_tree_is_null(name) || (name->text && strcmp(name->text, cvy_tree_get(preset, "name")->text) == 0);
}

static cvy_status fill_in(cvy_pool *pool, cvy_tree *own, const cvy_tree *preset)
{
    const int has_steps = !cvy_tree_is_null(cvy_tree_get(own, "steps")); /* steps replace epochs */
    for (int i = 0; i < preset->count; i++) {
        cvy_tree *mine = cvy_tree_get(own, preset->key[i]), *its = preset->child[i];
        if (has_steps && strcmp(preset->key[i], "epochs") == 0)
            continue;
        if (cvy_tree_is_null(mine))
            CVY_TRY(cvy_tree_set(pool, own, preset->key[i], its));
        else if (takes(mine, its))
            CVY_TRY(fill_in(pool, mine, its));
    }
    return CVY_OK;
}

cvy_status cvy_job_apply_preset(cvy_pool *pool, const cvy_tree *given)
{
    cvy_tree *train = cvy_tree_get(given, "train"), *tree = NULL;
    if (!train || train->kind != CVY_TREE_MAP)
        return CVY_OK;
    const cvy_tree *name = cvy_tree_get(train, "preset");
    const struct preset *preset = NULL;
    char *file = NULL;
    /* a value that is not a word is refused later, with the section */
    if (cvy_tree_is_null(name) || name->kind != CVY_TREE_SCALAR)
        return CVY_OK;
    CVY_TRY(find_preset(name, &preset));
    CVY_TRY(cvy_pool_printf(pool, &file, "preset %s", preset->name));
    CVY_TRY(cvy_tree_parse_text(pool, file, preset->train, strlen(preset->train), &tree));
    return fill_in(pool, train, tree);
}

void cvy_job_add_presets(cvy_text *t)
{
    cvy_text_add(t, "\n### `train.preset`: published recipes for large batches\n\n"
                    "A preset fills in what `train` leaves open; `job.resolved.yaml` shows all of it. Keys of "
                    "`optimizer` and `schedule` may be given one by one (`optimizer: {lr: 0.2}`).\n"
                    "An optimiser or schedule of another name stands alone.\n");
    for (int i = 0; i < CVY_COUNT(presets); i++)
        cvy_text_add(t, "\n`%s`: %s\n\n```yaml\n%s```\n", presets[i].name, presets[i].source, presets[i].train);
}
