/*
 * job_update.c: the key `update`: how ranks update the weights, a word or a map, with a table of keys for each mode.
 */
#include <convoy/program.h>

#include <math.h>
#include <string.h>

#include "job/job_table.h"

#define UPDATE(field) CVY_FIELD(cvy_job_update, field)
#define MODE {"mode", CVY_TYPE_CHOICE, UPDATE(mode), NULL, "sync|pipelined|local|parameter_server|sharded", "", "how ranks update the weights"}

static const cvy_option plain_rows[] = {MODE, {0}};

static const cvy_option pipelined_rows[] = {
    MODE,
    {"warm_up", CVY_TYPE_STRING, UPDATE(warm_up_text), "5 %", "", "", "part of the run that is trained in sync first: a share of it, or steps or epochs"},
    {"cool_down", CVY_TYPE_STRING, UPDATE(cool_down_text), "20 %", "", "", "part of the run that is trained in sync at the end: a share of it, or steps or epochs"},
    {0},
};

static const cvy_option local_rows[] = {
    MODE,
    {"every", CVY_TYPE_INT, UPDATE(every), "8", "1..", "steps", "steps of each rank on its own between two averagings"},
    {0},
};

static const cvy_option server_rows[] = {
    MODE,
    {"servers", CVY_TYPE_INT, UPDATE(servers), "1", "1..", "ranks", "ranks that hold the weights and train nothing, the last ones; at least one rank is left to train"},
    {"staleness", CVY_TYPE_STRING, UPDATE(staleness_text), "0", "", "steps", "steps that a worker may be ahead of the slowest: 0 trains all together, none lets each go on as it likes"},
    {0},
};

const cvy_job_mode cvy_job_modes[] = {
    [CVY_UPDATE_SYNC] = {"sync", "all ranks together, every step", plain_rows},
    [CVY_UPDATE_PIPELINED] = {"pipelined", "the gradients of a step are summed during the next one and applied behind it; in sync at the start and at the end", pipelined_rows},
    [CVY_UPDATE_LOCAL] = {"local", "each rank by its own gradients; every few steps all take the average of weights and optimiser state", local_rows},
    [CVY_UPDATE_PARAMETER_SERVER] = {"parameter_server", "by some ranks that hold the weights; the others make gradients", server_rows},
    [CVY_UPDATE_SHARDED] = {"sharded", "as sync, but each rank updates a part of the weights and alone keeps the optimiser's state of that part", plain_rows},
    {0},
};

/* ---- parts of a run ---- */

/* "5 %", "5%", "100 steps", "2 epochs" */
static int parse_stretch(const char *text, cvy_stretch *out)
{
    char number[32] = "";
    size_t length = strlen(text);
    double percent = -1;
    *out = (cvy_stretch){.share = -1};
    if (length > 0 && text[length - 1] == '%') {
        for (length--; length > 0 && text[length - 1] == ' '; length--) {}
        if (length == 0 || length >= sizeof number)
            return 0;
        memcpy(number, text, length);
        if (cvy_text_real(number, &percent) != CVY_OK || !(percent >= 0) || percent > 100)
            return 0;
        out->share = percent / 100;
        return 1;
    }
    return cvy_duration_parse(text, &out->length) == CVY_OK && out->length.amount <= 1e15 &&
           (out->length.unit == CVY_DURATION_STEPS || out->length.unit == CVY_DURATION_EPOCHS);
}

int64_t cvy_stretch_steps(const cvy_stretch *s, int64_t steps, int64_t steps_per_epoch)
{
    const double each = s->length.unit == CVY_DURATION_EPOCHS ? (double)steps_per_epoch : 1;
    const double length = s->share >= 0 ? s->share * (double)steps : s->length.amount * each;
    return length >= (double)steps ? steps : (int64_t)llround(length);
}

/* ---- the key ---- */

static const char *where(const cvy_job *job, const char *key)
{
    const cvy_tree *node = cvy_tree_get(job->update_tree, key);
    return node ? cvy_tree_where(node) : cvy_tree_where(job->update_tree);
}

static cvy_status interpret_stretch(const cvy_job *job, const char *key, const char *text, cvy_stretch *out)
{
    CVY_CHECK(text && parse_stretch(text, out), CVY_E_CONFIG, "%s: update.%s is \"%s\", expected a share of the run such as 5 %%, or a number of steps or epochs",
              where(job, key), key, text ? text : "");
    return CVY_OK;
}

static cvy_status interpret_staleness(const cvy_job *job, struct cvy_job_update *u)
{
    const char *text = u->staleness_text ? u->staleness_text : "";
    u->staleness = -1;
    if (strcmp(text, "none") == 0)
        return CVY_OK;
    CVY_CHECK(cvy_text_int(text, &u->staleness) == CVY_OK && u->staleness >= 0, CVY_E_CONFIG,
              "%s: update.staleness is \"%s\", expected a number of steps, 0 or more, or none", where(job, "staleness"), text);
    return CVY_OK;
}

/* As a map, a word too. */
static cvy_status as_map(const cvy_job *job, const cvy_tree **out)
{
    const cvy_tree *node = job->update_tree;
    cvy_tree *map = NULL, *word = NULL;
    CVY_CHECK(node->kind != CVY_TREE_LIST, CVY_E_CONFIG, "%s: update is a list, expected a word or a map {mode: ...}", cvy_tree_where(node));
    *out = node;
    if (node->kind == CVY_TREE_MAP)
        return CVY_OK;
    CVY_TRY(cvy_tree_new_map(job->pool, node->file, &map));
    CVY_TRY(cvy_tree_copy(job->pool, node, &word));
    CVY_TRY(cvy_tree_set(job->pool, map, "mode", word));
    *out = map;
    return CVY_OK;
}

/* The mode, then all keys by its table. */
static cvy_status parse(const cvy_job *job, const cvy_tree *map, struct cvy_job_update *u)
{
    char who[48];
    const cvy_tree *word = cvy_tree_get(map, "mode");
    cvy_tree *alone = NULL;
    CVY_CHECK(word, CVY_E_CONFIG, "%s: update: the key \"mode\" is missing", cvy_tree_where(map));
    CVY_TRY(cvy_tree_new_map(job->pool, map->file, &alone));
    CVY_TRY(cvy_tree_set(job->pool, alone, "mode", (cvy_tree *)(uintptr_t)word));
    CVY_TRY(cvy_options_parse(job->pool, "update", plain_rows, alone, NULL, u, sizeof *u));
    const cvy_job_mode *mode = &cvy_job_modes[u->mode];
    snprintf(who, sizeof who, "update (%s)", mode->name);
    return cvy_options_parse(job->pool, who, mode->rows, map, NULL, u, sizeof *u);
}

/* With its defaults, so that the resolved file shows what was used; a mode without keys is a word. */
static cvy_status resolve(cvy_job *job)
{
    const cvy_job_mode *mode = &cvy_job_modes[job->update.mode];
    cvy_tree *tree = NULL;
    if (mode->rows[1].name)
        CVY_TRY(cvy_options_tree(job->pool, mode->rows, &job->update, &tree));
    else
        CVY_TRY(cvy_tree_new_scalar(job->pool, job->file, mode->name, &tree));
    job->update_tree = tree;
    return CVY_OK;
}

cvy_status cvy_job_interpret_update(cvy_job *job)
{
    struct cvy_job_update *u = &job->update;
    const cvy_tree *map = NULL;
    CVY_TRY(as_map(job, &map));
    CVY_TRY(parse(job, map, u));
    if (u->mode == CVY_UPDATE_PIPELINED) {
        CVY_TRY(interpret_stretch(job, "warm_up", u->warm_up_text, &u->warm_up));
        CVY_TRY(interpret_stretch(job, "cool_down", u->cool_down_text, &u->cool_down));
    }
    if (u->mode == CVY_UPDATE_PARAMETER_SERVER)
        CVY_TRY(interpret_staleness(job, u));
    return resolve(job);
}
