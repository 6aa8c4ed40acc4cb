/*
 * network_calibration.c: reads and writes the temperature of a run: see network_calibration.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "network/network_calibration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_json.h"
#include "base/text/base_tree.h"
#include "monitor/monitor_run_layout.h"
#include "network/network_spec.h"

static void read_pair(const cvy_tree *root, const char *key, double pair[2])
{
    const cvy_tree *list = cvy_tree_get(root, key);
    for (int i = 0; i < 2; i++)
        if (!list || list->kind != CVY_TREE_LIST || i >= list->count ||
            cvy_tree_real(list->child[i], &pair[i]) != CVY_OK)
            pair[i] = NAN;
}

static cvy_status read_file(cvy_pool *pool, const char *path, cvy_calibration *c)
{
    cvy_tree *root = NULL;
    CVY_TRY(cvy_tree_parse_file(pool, path, &root));
    const char *checkpoint = cvy_tree_text_at(root, "checkpoint");
    c->temperature = cvy_tree_real_at(root, "temperature");
    CVY_CHECK(checkpoint && c->temperature > 0 && isfinite(c->temperature), CVY_E_FORMAT,
              "%s has no \"checkpoint\" and no \"temperature\" above 0: remove the file, or renew it by "
              "`convoy test RUN --calibrate`",
              path);
    snprintf(c->checkpoint, sizeof c->checkpoint, "%s", checkpoint);
    const double samples = cvy_tree_real_at(root, "samples");
    c->samples = samples >= 0 && samples < 1e15 ? (int64_t)samples : 0;
    read_pair(root, "nll", c->nll);
    read_pair(root, "ece", c->ece);
    return CVY_OK;
}

cvy_status cvy_calibration_read(const char *run, cvy_calibration *out)
{
    char path[CVY_RUN_PATH];
    cvy_calibration c = {0};
    cvy_pool *pool = NULL;
    cvy_run_path(run, CVY_RUN_CALIBRATION, path);
    if (!cvy_file_exists(path))
        return CVY_NOT_APPLICABLE;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = read_file(pool, path, &c);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK)
        *out = c;
    return status == CVY_E_CONFIG ? CVY_E_FORMAT : status; /* nobody wrote it by hand */
}

static void add_pair(cvy_json *json, const char *key, const double pair[2])
{
    cvy_json_open(json, key, '[');
    cvy_json_real(json, NULL, pair[0]);
    cvy_json_real(json, NULL, pair[1]);
    cvy_json_close(json, ']');
}

cvy_status cvy_calibration_write(const char *run, const cvy_calibration *c)
{
    char path[CVY_RUN_PATH];
    cvy_json json = {0};
    cvy_run_path(run, CVY_RUN_CALIBRATION, path);
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "checkpoint", c->checkpoint);
    cvy_json_real(&json, "temperature", c->temperature);
    cvy_json_int(&json, "samples", c->samples);
    add_pair(&json, "nll", c->nll);
    add_pair(&json, "ece", c->ece);
    cvy_json_close(&json, '}');
    cvy_status status = json.text.status;
    if (status == CVY_OK)
        status = cvy_file_replace(path, json.text.data, json.text.bytes);
    cvy_text_free(&json.text);
    return status;
}

/* The folder of the run is two levels above that of the checkpoint. */
static void find_run(const char *checkpoint, char run[CVY_RUN_PATH])
{
    snprintf(run, CVY_RUN_PATH, "%s", checkpoint);
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(run, '/');
        if (slash == run)
            slash[1] = 0;
        else if (slash)
            *slash = 0;
        else
            snprintf(run, CVY_RUN_PATH, "%s", level ? "." : "");
    }
}

cvy_status cvy_calibration_of(const char *checkpoint, double *temperature_out, int *stale_out)
{
    char run[CVY_RUN_PATH];
    cvy_calibration c = {0};
    *temperature_out = 0;
    if (stale_out)
        *stale_out = 0;
    find_run(checkpoint, run);
    const cvy_status status = cvy_calibration_read(run, &c);
    if (status != CVY_OK)
        return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
    const int fits = strcmp(c.checkpoint, cvy_file_base_name(checkpoint)) == 0;
    *temperature_out = fits ? c.temperature : 0;
    if (stale_out)
        *stale_out = !fits;
    return CVY_OK;
}

cvy_status cvy_calibration_describe(const char *checkpoint, const char *network, cvy_text *out)
{
    cvy_network_spec spec = {0};
    double temperature = 0;
    CVY_TRY(cvy_calibration_of(checkpoint, &temperature, NULL));
    if (temperature == 0)
        return CVY_OK;
    CVY_TRY(cvy_network_spec_read(checkpoint, network, &spec));
    spec.temperature = temperature;
    const cvy_status status = cvy_network_spec_print(&spec, out);
    cvy_network_spec_end(&spec);
    return status;
}
