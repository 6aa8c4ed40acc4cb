/*
 * predict_platform.c: cvy_run_platform(): converts the description of a machine, a small YAML file, to the XML that
 * SimGrid reads, for `convoy simulate`.
 *
 * A node is one host with one rank. Links transfer in both directions at the same time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/text/base_option.h"
#include "base/text/base_text.h"
#include "predict/predict.h"

enum { FAT_TREE, DRAGONFLY, STAR };
enum { NODES_MAX = 1 << 20 };

struct platform {
    const char *summary;
    int topology;
    cvy_ints down, up, parallel;      /* fat tree: one number for each level */
    cvy_ints groups, chassis, blades; /* dragonfly: number of them, and number of links between each two */
    int64_t nodes;
    double bandwidth, latency, message, add, memory, gflop_per_s, socket_bandwidth, noise;
    int64_t cores, sockets;
    const cvy_tree *rates;
};

#define ROW(field) CVY_FIELD(platform, field)

static const cvy_option rows[] = {
    {"summary", CVY_TYPE_STRING, ROW(summary), "", "", "", "what it is, in a line"},
    {"topology", CVY_TYPE_CHOICE, ROW(topology), NULL, "fat_tree|dragonfly|star", "", "how nodes are joined"},
    {"down", CVY_TYPE_INTS, ROW(down), "", "1..65536", "",
     "fat_tree: children of a switch, level by level from the leaves"},
    {"up", CVY_TYPE_INTS, ROW(up), "", "1..1024", "", "fat_tree: parents of a node, of a leaf switch .."},
    {"parallel", CVY_TYPE_INTS, ROW(parallel), "", "1..1024", "", "fat_tree: links between a child and its parent"},
    {"groups", CVY_TYPE_INTS, ROW(groups), "", "1..65536", "", "dragonfly: number, and links between each two"},
    {"chassis", CVY_TYPE_INTS, ROW(chassis), "", "1..65536", "", "dragonfly: of a group, and links between each two"},
    {"blades", CVY_TYPE_INTS, ROW(blades), "", "1..65536", "", "dragonfly: of a chassis, and links between each two"},
    {"nodes", CVY_TYPE_INT, ROW(nodes), "0", "0..1048576", "", "dragonfly: of a blade; star: all"},
    {"bandwidth", CVY_TYPE_REAL, ROW(bandwidth), NULL, "1e3..1e15", "bytes/s", "of a link, each way"},
    {"latency", CVY_TYPE_REAL, ROW(latency), NULL, "1e-9..10", "s", "of a link"},
    {"message", CVY_TYPE_REAL, ROW(message), "0", "0..10", "s",
     "for which a node is busy when it sends or receives a message"},
    {"add", CVY_TYPE_REAL, ROW(add), NULL, "1e3..1e15", "bytes/s", "that a node adds to its own data in an all-reduce"},
    {"memory", CVY_TYPE_REAL, ROW(memory), "0", "0..1e16", "bytes/s",
     "that a node reads and writes in its memory; 0: 3 times add"},
    {"cores", CVY_TYPE_INT, ROW(cores), "16", "2..65536", "",
     "of a node: comm.progress: thread takes one from the kernels"},
    {"sockets", CVY_TYPE_INT, ROW(sockets), "1", "1..1024", "",
     "NUMA domains of a node, which share its cores and its memory equally"},
    {"socket_bandwidth", CVY_TYPE_REAL, ROW(socket_bandwidth), "0", "0..1e16", "bytes/s",
     "from one NUMA domain to another, each way; 0: as fast as memory"},
    {"noise", CVY_TYPE_REAL, ROW(noise), "0", "0..0.99", "",
     "standard deviation of the time of a step, by node and step, as a share of it"},
    {"gflop_per_s", CVY_TYPE_REAL, ROW(gflop_per_s), NULL, "1e-3..1e9", "Gflop/s",
     "of a node in training, for networks that are not in rates"},
    {"rates", CVY_TYPE_TREE, ROW(rates), "", "", "",
     "map of networks to the images/s of a node in training, or to a map of samples in its batch to images/s"},
    {0},
};

/* ---- topologies, in SimGrid's format ---- */

static void add_list(cvy_text *t, const cvy_ints *list)
{
    cvy_text_add(t, ";");
    for (int i = 0; i < list->count; i++)
        cvy_text_add(t, "%s%lld", i ? "," : "", (long long)list->at[i]);
}

static cvy_status count_node(int64_t *nodes, int64_t times)
{
    CVY_CHECK(times <= NODES_MAX / *nodes, CVY_E_CONFIG, "a platform of more than %d nodes", (int)NODES_MAX);
    *nodes *= times;
    return CVY_OK;
}

/* Routes are fixed, so 28 messages at once over 20 links upwards put two on some of them. All nodes wait for those. */
static double shared_bandwidth(const struct platform *p)
{
    double most = 1, nodes = 1;
    for (int i = 1; p->topology == FAT_TREE && i < p->down.count; i++) {
        nodes *= (double)p->down.at[i - 1] / (double)(p->up.at[i] * p->parallel.at[i]);
        most = CVY_MAX(most, ceil(nodes - 1e-9));
    }
    return 1 / most;
}

double cvy_platform_share(const cvy_platform *platform, int64_t nodes)
{
    const int64_t below = platform->switch_nodes, others = nodes - below;
    if (others <= 0)
        return 1;
    return others < below ? 1 / ceil((double)others / (double)platform->switch_uplinks) : platform->shared_bandwidth;
}

static cvy_status fat_tree(const struct platform *p, cvy_text *t, int64_t *nodes)
{
    CVY_CHECK(p->down.count > 0 && p->up.count == p->down.count && p->parallel.count == p->down.count, CVY_E_CONFIG,
              "a fat_tree has lists down, up and parallel with a number for each level; they have %d, %d and %d",
              p->down.count, p->up.count, p->parallel.count);
    for (int i = 0; i < p->down.count; i++)
        CVY_TRY(count_node(nodes, p->down.at[i]));
    cvy_text_add(t, " topology=\"FAT_TREE\" topo_parameters=\"%d", p->down.count);
    add_list(t, &p->down);
    add_list(t, &p->up);
    add_list(t, &p->parallel);
    cvy_text_add(t, "\"");
    return CVY_OK;
}

static cvy_status dragonfly(const struct platform *p, cvy_text *t, int64_t *nodes)
{
    const cvy_ints *const level[] = {&p->groups, &p->chassis, &p->blades};
    cvy_text_add(t, " topology=\"DRAGONFLY\" topo_parameters=\"");
    for (int i = 0; i < CVY_COUNT(level); i++) {
        CVY_CHECK(level[i]->count == 2 && p->nodes > 0, CVY_E_CONFIG,
                  "a dragonfly has groups, chassis and blades with two numbers each (how many, links between each "
                  "two), and nodes");
        CVY_TRY(count_node(nodes, level[i]->at[0]));
        cvy_text_add(t, "%lld,%lld;", (long long)level[i]->at[0], (long long)level[i]->at[1]);
    }
    cvy_text_add(t, "%lld\"", (long long)p->nodes);
    return count_node(nodes, p->nodes);
}

static cvy_status star(const struct platform *p, int64_t *nodes)
{
    CVY_CHECK(p->nodes > 0, CVY_E_CONFIG, "a star has nodes, their number");
    return count_node(nodes, p->nodes);
}

/* Refuses keys of another topology, because nobody would notice that they have no effect. */
static cvy_status check_keys(const struct platform *p)
{
    static const char *const names[] = {"fat_tree", "dragonfly", "star"};
    const char *is = names[p->topology];
    CVY_CHECK(p->topology == FAT_TREE || p->down.count + p->up.count + p->parallel.count == 0, CVY_E_CONFIG,
              "down, up and parallel belong to a fat_tree, but topology is %s", is);
    CVY_CHECK(p->topology == DRAGONFLY || p->groups.count + p->chassis.count + p->blades.count == 0, CVY_E_CONFIG,
              "groups, chassis and blades belong to a dragonfly, but topology is %s", is);
    CVY_CHECK(p->topology != FAT_TREE || p->nodes == 0, CVY_E_CONFIG,
              "nodes is of a dragonfly (of a blade) and a star (all); a fat_tree has as many as down multiplies to");
    return CVY_OK;
}

static cvy_status write_xml(const struct platform *p, const cvy_platform_opts *o, cvy_text *xml, int64_t *nodes_out)
{
    cvy_text topology = {0};
    int64_t nodes = 1;
    CVY_TRY(check_keys(p));
    cvy_status status = p->topology == FAT_TREE    ? fat_tree(p, &topology, &nodes)
                        : p->topology == DRAGONFLY ? dragonfly(p, &topology, &nodes)
                                                   : star(p, &nodes);
    cvy_text_add(xml, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
                      "\"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n");
    cvy_text_add(xml,
                 "  <cluster id=\"machine\" prefix=\"node\" suffix=\"\" radical=\"0-%lld\" speed=\"1Gf\" "
                 "bw=\"%.9gBps\" lat=\"%.9gs\"\n    loopback_bw=\"10GBps\" loopback_lat=\"100ns\"%s/>\n</platform>\n",
                 (long long)(nodes - 1), p->bandwidth * (o->bandwidth_factor > 0 ? o->bandwidth_factor : 1),
                 p->latency * (o->latency_factor > 0 ? o->latency_factor : 1), topology.data ? topology.data : "");
    status = status == CVY_OK ? topology.status : status;
    cvy_text_free(&topology);
    *nodes_out = nodes;
    return status == CVY_OK ? xml->status : status;
}

/* ---- the file ---- */

static cvy_status read_rate(const cvy_tree *at, double *rate_out)
{
    CVY_TRY(cvy_tree_real(at, rate_out));
    CVY_CHECK(*rate_out > 0, CVY_E_CONFIG, "%s: a rate of %g images/s, expected one above 0", cvy_tree_where(at),
              *rate_out);
    return CVY_OK;
}

/* Reads {1: 25, 8: 123}. */
static cvy_status read_rate_table(const cvy_tree *map, cvy_platform_rate *rate, int *n_out)
{
    CVY_CHECK(map->count >= 1 && map->count <= CVY_PLATFORM_RATES, CVY_E_CONFIG,
              "%s: %d rates, expected 1 .. %d, such as {1: 25, 8: 123}", cvy_tree_where(map), map->count,
              CVY_PLATFORM_RATES);
    for (int i = 0; i < map->count; i++) {
        cvy_platform_rate *row = &rate[i];
        CVY_CHECK(cvy_text_int(map->key[i], &row->samples) == CVY_OK && row->samples > (i > 0 ? row[-1].samples : 0),
                  CVY_E_CONFIG,
                  "%s: '%s' is not a number of samples above %lld: a table of rates has the samples of a node in "
                  "ascending order, such as {1: 25, 8: 123}",
                  cvy_tree_where(map->child[i]), map->key[i], (long long)(i > 0 ? row[-1].samples : 0));
        CVY_TRY(read_rate(map->child[i], &row->images_per_s));
        CVY_CHECK(i == 0 || (double)row->samples / row->images_per_s >= (double)row[-1].samples / row[-1].images_per_s,
                  CVY_E_CONFIG, "%s: %lld samples would take less time than %lld", cvy_tree_where(map->child[i]),
                  (long long)row->samples, (long long)row[-1].samples);
    }
    *n_out = map->count;
    return CVY_OK;
}

/* All rates are read, so that a mistake is found whichever network is simulated. */
static cvy_status find_rates(const struct platform *p, const char *model, cvy_platform *out)
{
    const cvy_tree *rates = p->rates;
    CVY_CHECK(!rates || rates->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: rates is a map of networks to images/s, such as {resnet-50: 120}", cvy_tree_where(rates));
    for (int i = 0; rates && i < rates->count; i++) {
        cvy_platform_rate rate[CVY_PLATFORM_RATES] = {{0}};
        int n = 1;
        if (rates->child[i]->kind == CVY_TREE_MAP)
            CVY_TRY(read_rate_table(rates->child[i], rate, &n));
        else
            CVY_TRY(read_rate(rates->child[i], &rate[0].images_per_s));
        if (!model || strcmp(rates->key[i], model) != 0)
            continue;
        memcpy(out->rate, rate, sizeof rate);
        out->nrate = n;
    }
    return CVY_OK;
}

double cvy_platform_images_per_s(const cvy_platform *platform, double samples)
{
    const cvy_platform_rate *rate = platform->rate;
    const int n = platform->nrate;
    int i = 1;
    if (n == 0)
        return 0;
    if (n == 1 || samples <= (double)rate[0].samples)
        return rate[0].images_per_s;
    while (i < n && samples > (double)rate[i].samples)
        i++;
    if (i == n)
        return rate[n - 1].images_per_s;
    const double from = (double)rate[i - 1].samples, to = (double)rate[i].samples;
    const double begin_s = from / rate[i - 1].images_per_s, end_s = to / rate[i].images_per_s;
    return samples / (begin_s + (end_s - begin_s) * (samples - from) / (to - from));
}

static cvy_status read_platform(cvy_pool *pool, const cvy_platform_opts *o, cvy_platform *out)
{
    struct platform p;
    cvy_tree *tree = NULL;
    cvy_text xml = {0};
    if (o->file)
        CVY_TRY(cvy_tree_parse_file(pool, o->file, &tree));
    else
        CVY_TRY(cvy_tree_parse_text(pool, o->name, o->text, strlen(o->text), &tree));
    CVY_CHECK(!cvy_tree_is_null(tree), CVY_E_CONFIG,
              "%s: an empty platform: it says at least topology, bandwidth, latency, add and gflop_per_s",
              o->file ? o->file : o->name);
    CVY_TRY(cvy_options_parse(pool, "platform", rows, tree, NULL, &p, sizeof p));
    CVY_TRY(find_rates(&p, o->model, out));
    const cvy_status status = write_xml(&p, o, &xml, &out->nodes);
    if (status != CVY_OK) {
        cvy_text_free(&xml);
        return cvy_error_prefix(status, "%s", o->file ? o->file : o->name);
    }
    out->gflop_per_s = p.gflop_per_s;
    out->add_bytes_per_s = p.add;
    out->memory_bytes_per_s = p.memory > 0 ? p.memory : 3 * p.add;
    out->cores = p.cores;
    out->message_s = p.message;
    out->shared_bandwidth = shared_bandwidth(&p);
    out->switch_nodes = p.topology == FAT_TREE ? p.down.at[0] : 0;
    out->switch_uplinks = p.topology != FAT_TREE ? 0 : p.down.count > 1 ? p.up.at[1] * p.parallel.at[1] : 1;
    out->sockets = p.sockets;
    out->socket_bytes_per_s = p.socket_bandwidth;
    out->noise = p.noise;
    snprintf(out->summary, sizeof out->summary, "%s", p.summary ? p.summary : "");
    out->xml = xml.data;
    return CVY_OK;
}

cvy_status cvy_run_platform(const cvy_platform_opts *opts, cvy_platform *out)
{
    CVY_ENTRY();
    cvy_platform_opts o;
    cvy_platform machine = cvy_platform_default();
    cvy_pool *pool = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_platform_opts, opts, &o));
    CVY_TRY(CVY_RESULT_CHECK(cvy_platform, out));
    CVY_CHECK(o.file || (o.text && o.name), CVY_E_ARGUMENT, "a platform is a file, or a text with a name");
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = read_platform(pool, &o, &machine);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK)
        cvy_result_write(out, &machine, sizeof machine);
    return status;
}
