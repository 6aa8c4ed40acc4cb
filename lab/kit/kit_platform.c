/*
 * kit_platform.c: measures the platform of a kit on the first nodes of a cluster: the network, additions and memory by
 * `convoy doctor` between two nodes, and by `convoy bench` how fast one node trains each network of which steps are
 * predicted, with the samples that a node has in them. The predictions then say what more nodes lose.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kit/kit_platform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "study/study_file.h"

enum { DOCTOR_S = 1800, BENCH_S = 900, NETWORKS = 32, SAMPLES = 16 };

/* Runs a command to its end. CVY_E_UNSUPPORTED: it failed, and the message has the end of what it wrote. *out: what it
 * printed; the caller frees it. */
static cvy_status run_command(const cvy_kit_run *run, const char *const *word, double limit_s, char **out)
{
    cvy_process_result r = {0};
    const double left_s = run->end > 0 ? run->end - cvy_clock_wall_s() : INFINITY;
    cvy_status status = cvy_process_run(word, fmin(limit_s, left_s), run->stop, &r);
    if (status == CVY_OK && r.stopped)
        status = CVY_STOPPED;
    else if (status == CVY_OK && r.timed_out)
        status = left_s < limit_s ? CVY_STOPPED
                                  : cvy_error_set(CVY_E_UNSUPPORTED, "%s takes longer than %.0f s", word[0], limit_s);
    else if (status == CVY_OK && r.code != 0) {
        const char *text = r.err ? r.err : "", *error = strstr(text, "convoy: error: ");
        text = error ? error : text;
        status = cvy_error_set(CVY_E_UNSUPPORTED, "exit code %d: %.*s", r.code, (int)strcspn(text, "\n"), text);
    }
    cvy_mem_free(&r.err);
    if (status != CVY_OK)
        cvy_mem_free(&r.out);
    *out = r.out;
    return status;
}

static const char *launcher(void)
{
    const char *given = getenv("CONVOY_MPIEXEC");
    return given && *given ? given : "mpiexec";
}

/* The network, with one rank on each of two nodes. */
static cvy_status ask_doctor(const cvy_kit *kit, const cvy_kit_run *run, const char *path)
{
    char *scratch = NULL, *out = NULL;
    CVY_TRY(cvy_kit_path(kit, &scratch, "results/scratch"));
    CVY_TRY(cvy_file_make_folder(scratch));
    const char *const word[] = {"env",      "CONVOY_RANKS_PER_NODE=1",
                                launcher(), "-n",
                                "2",        run->program,
                                "doctor",   "--seconds",
                                "60",       "--out",
                                scratch,    "--platform",
                                path,       NULL};
    const cvy_status status = run_command(run, word, DOCTOR_S, &out);
    cvy_mem_free(&out);
    const cvy_status removed = cvy_file_remove_tree(scratch);
    return status == CVY_OK ? removed : status;
}

/* A network whose steps are predicted, and the samples of a node in them, ascending. */
struct network {
    const char *name;
    int64_t samples[SAMPLES];
    int n;
};

/* Notes the samples of a node of a case that is predicted. */
static void add_case(const cvy_kit *kit, const cvy_case *c, struct network *list, int *n)
{
    const char *framework = cvy_case_value(c, "framework"), *model = cvy_case_value(c, "model");
    const cvy_framework counts = {.needs_cores = 1};
    const int64_t nodes = cvy_framework_nodes(&counts, c, kit->ranks_per_node), batch = cvy_case_batch(c);
    int i = 0, k = 0;
    if (!framework || strcmp(framework, CVY_KIT_PREDICTED) != 0 || !model || batch < nodes)
        return;
    while (i < *n && strcmp(list[i].name, model) != 0)
        i++;
    if (i == NETWORKS)
        return;
    if (i == *n)
        list[(*n)++] = (struct network){.name = model};
    struct network *of = &list[i];
    while (k < of->n && of->samples[k] < batch / nodes)
        k++;
    if (of->n == SAMPLES || (k < of->n && of->samples[k] == batch / nodes))
        return;
    memmove(of->samples + k + 1, of->samples + k, sizeof *of->samples * (size_t)(of->n - k));
    of->samples[k] = batch / nodes;
    of->n++;
}

static cvy_status list_networks(const cvy_kit *kit, struct network *list, int *n_out)
{
    *n_out = 0;
    for (int i = 0; i < kit->nstudy; i++) {
        cvy_study_spec spec;
        cvy_case *c = NULL;
        char *path = NULL;
        const char *text = NULL;
        int n = 0;
        CVY_TRY(cvy_kit_path(kit, &path, "studies/%s.yaml", kit->study[i]));
        CVY_TRY(cvy_kit_text(kit, path, &text));
        CVY_TRY(cvy_study_read(kit->pool, path, text, kit->quick, &spec));
        CVY_TRY(cvy_study_cases(&spec, &c, &n));
        for (int k = 0; k < n; k++)
            add_case(kit, &c[k], list, n_out);
    }
    return CVY_OK;
}

/* The images/s of one process with all cores of the node. */
static cvy_status measure_rate(const cvy_kit *kit, const cvy_kit_run *run, const char *network, int64_t samples,
                               double *out)
{
    char batch[32], *text = NULL;
    cvy_tree *root = NULL;
    snprintf(batch, sizeof batch, "%lld", (long long)samples);
    const char *const word[] = {run->program, "bench",   "--model",   network,
                                "--batch",    batch,     "--seconds", kit->quick ? "1" : "5",
                                "--planning", "measure", "--json",    NULL};
    CVY_TRY(run_command(run, word, BENCH_S, &text));
    const char *object = strchr(text, '{');
    const size_t length = object ? strcspn(object, "\n") : 0;
    const cvy_status status = object ? cvy_tree_parse_text(kit->pool, "convoy bench", object, length, &root)
                                     : cvy_error_set(CVY_E_UNSUPPORTED, "convoy bench prints no JSON object");
    cvy_mem_free(&text);
    CVY_TRY(status);
    *out = cvy_tree_real_at(root, "images_per_s");
    CVY_CHECK(*out > 0, CVY_E_UNSUPPORTED, "convoy bench prints no images_per_s");
    return CVY_OK;
}

/* A table of rates over the samples. Those that cannot be measured are left out; without any, gflop_per_s of the
 * platform stands for the network. */
static cvy_status add_rates(const cvy_kit *kit, const cvy_kit_run *run, const struct network *network,
                            cvy_tree *platform)
{
    cvy_tree *table = NULL;
    char *key = NULL;
    CVY_TRY(cvy_tree_new_map(kit->pool, "convoy bench", &table));
    for (int i = 0; i < network->n; i++) {
        double rate = 0;
        char text[32], samples[32];
        cvy_tree *value = NULL;
        const cvy_status status = measure_rate(kit, run, network->name, network->samples[i], &rate);
        if (status == CVY_STOPPED)
            return status;
        if (status != CVY_OK)
            continue;
        snprintf(text, sizeof text, "%.4g", rate);
        snprintf(samples, sizeof samples, "%lld", (long long)network->samples[i]);
        CVY_TRY(cvy_tree_new_scalar(kit->pool, "convoy bench", text, &value));
        CVY_TRY(cvy_tree_set(kit->pool, table, samples, value));
    }
    if (table->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(kit->pool, &key, "rates.%s", network->name));
    return cvy_tree_set(kit->pool, platform, key, table);
}

cvy_status cvy_kit_measure_platform(const cvy_kit *kit, const cvy_kit_run *run, const char *path)
{
    cvy_tree *root = NULL;
    cvy_text text = {0};
    char *draft = NULL, *printed = NULL;
    struct network list[NETWORKS];
    int n = 0;
    CVY_TRY(cvy_pool_printf(kit->pool, &draft, "%s.draft", path));
    if (!cvy_file_exists(draft))
        CVY_TRY(ask_doctor(kit, run, draft));
    CVY_TRY(cvy_tree_parse_file(kit->pool, draft, &root));
    CVY_TRY(list_networks(kit, list, &n));
    for (int i = 0; i < n; i++)
        CVY_TRY(add_rates(kit, run, &list[i], root));
    CVY_TRY(cvy_tree_print(root, &printed));
    cvy_text_add(
        &text,
        "# Measured by `convoy doctor` between two nodes and by `convoy bench` on one. How more nodes are joined\n"
        "# was not measured: in a star no link is shared.\n%s",
        printed);
    cvy_mem_free(&printed);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_file_replace(path, text.data, text.bytes);
    cvy_text_free(&text);
    return status == CVY_OK ? cvy_file_remove_tree(draft) : status;
}
