/*
 * report_network.c: the network according to the plan: its layers with shapes, work and kernels, and how the memory is
 * used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "report/report_page.h"

/* Finds the object that has the layers: plan.json itself, or one of its members (a program has several plans). */
static const cvy_tree *find_plan(const cvy_tree *root)
{
    if (!root || root->kind == CVY_TREE_SCALAR)
        return NULL;
    const cvy_tree *layers = cvy_tree_at(root, "layers");
    if (layers && layers->kind == CVY_TREE_LIST)
        return root;
    for (int i = 0; i < root->count; i++) {
        const cvy_tree *child = root->child[i];
        layers = child->kind == CVY_TREE_LIST && child->count > 0 ? cvy_tree_at(child->child[0], "layers")
                                                                  : cvy_tree_at(child, "layers");
        if (layers && layers->kind == CVY_TREE_LIST)
            return child->kind == CVY_TREE_LIST ? child->child[0] : child;
    }
    return NULL;
}

static int is_forward(const cvy_tree *layer)
{
    const char *phase = cvy_tree_text_at(layer, "phase");
    return !phase || strcmp(phase, "forward") == 0;
}

static double flop_of(const cvy_tree *layer)
{
    const double flop = cvy_tree_real_at(layer, "flop");
    return isfinite(flop) ? flop : 0;
}

/* FLOP of all nodes of a model's layer, forward and backward. */
static double layer_flop(const cvy_tree *layers, const char *layer)
{
    double sum = 0;
    for (int i = 0; i < layers->count; i++) {
        const char *of = cvy_tree_text_at(layers->child[i], "layer");
        sum += of && strcmp(of, layer) == 0 ? flop_of(layers->child[i]) : 0;
    }
    return sum;
}

static void add_cell(cvy_text *html, const char *text, const char *class)
{
    cvy_text_add(html, "<td%s>", class);
    cvy_html_add(html, "%s</td>", text ? text : "");
}

static cvy_number flop_text(double flop)
{
    cvy_number n;
    snprintf(n.at, sizeof n.at, "%.*f", flop >= 1e8 ? 0 : flop >= 1e7 ? 1 : 2, flop / 1e6);
    return flop >= 1e10 ? cvy_number_count(round(flop / 1e6)) : n;
}

static void layer_row(cvy_report *r, const cvy_tree *layers, int i, int first_of_layer, double all_flop)
{
    cvy_text *html = &r->html;
    const cvy_tree *at = layers->child[i];
    const char *layer = cvy_tree_text_at(at, "layer");
    const double params = cvy_tree_real_at(at, "params"), flop = !layer           ? flop_of(at)
                                                                 : first_of_layer ? layer_flop(layers, layer)
                                                                                  : 0;
    cvy_text_add(html, "<tr>");
    add_cell(html, cvy_tree_text_at(at, "name"), " class=\"t\"");
    add_cell(html, cvy_tree_text_at(at, "op"), " class=\"t\"");
    add_cell(html, cvy_tree_text_at(at, "out_shape"), "");
    cvy_text_add(html, "<td>%s</td><td>%s</td>", params > 0 ? cvy_number_count(params).at : "",
                 flop > 0 ? flop_text(flop).at : "");
    cvy_text_add(html, "<td class=\"share\"><i style=\"width:%.1f%%\"></i></td>",
                 all_flop > 0 ? 100 * flop / all_flop : 0);
    add_cell(html, cvy_tree_text_at(at, "kernel"), " class=\"t\"");
    add_cell(html, cvy_tree_text_at(at, "layout"), " class=\"t\"");
    cvy_text_add(html, "</tr>\n");
}

static void layer_table(cvy_report *r, const cvy_tree *plan)
{
    const cvy_tree *layers = cvy_tree_at(plan, "layers");
    double most = 0, all = 0, params = cvy_tree_real_at(plan, "params");
    const char *last = "";
    int nforward = 0;
    for (int i = 0; i < layers->count; i++) {
        const char *layer = cvy_tree_text_at(layers->child[i], "layer");
        all += flop_of(layers->child[i]);
        nforward += is_forward(layers->child[i]);
        most = CVY_MAX(most,
                       layer && is_forward(layers->child[i]) ? layer_flop(layers, layer) : flop_of(layers->child[i]));
    }
    cvy_text_add(&r->html, "<details%s><summary>%d layer%s", nforward <= 80 ? " open=\"open\"" : "", nforward,
                 nforward == 1 ? "" : "s");
    if (isfinite(params))
        cvy_text_add(&r->html, ", %s parameters", cvy_number_count(params).at);
    cvy_text_add(&r->html,
                 ", %s Gflop a step on this rank</summary>\n<div class=\"wide\"><table class=\"layers\"><thead><tr><td "
                 "class=\"t\">layer</td>"
                 "<td class=\"t\">operator</td><td>output</td><td>parameters</td><td>Mflop</td><td class=\"t\">share "
                 "of work</td><td class=\"t\">kernel</td>"
                 "<td class=\"t\">layout</td></tr></thead><tbody>\n",
                 cvy_number_text(all / 1e9, 3).at);
    for (int i = 0; i < layers->count; i++) {
        const char *layer = cvy_tree_text_at(layers->child[i], "layer");
        if (!is_forward(layers->child[i]))
            continue;
        layer_row(r, layers, i, !layer || strcmp(layer, last) != 0, most);
        last = layer ? layer : "";
    }
    cvy_text_add(&r->html, "</tbody></table></div></details>\n");
}

/* ---- memory ---- */

struct part {
    const char *name;
    double bytes;
};

static double bytes_at(const cvy_tree *memory, const char *key)
{
    const double bytes = cvy_tree_real_at(memory, key);
    return isfinite(bytes) && bytes > 0 ? bytes : 0;
}

static void memory_bar(cvy_report *r, const cvy_tree *memory)
{
    double all = 0;
    const double gradients = bytes_at(memory, "gradient_bytes");
    const struct part part[] = {
        {"weights", bytes_at(memory, "weight_bytes")},
        {"optimiser state", bytes_at(memory, "state_bytes")},
        {"gradients", gradients},
        {"activations and scratch", CVY_MAX(bytes_at(memory, "arena_bytes") - gradients, 0)},
        {"inputs", bytes_at(memory, "feed_bytes")},
    };
    for (int i = 0; i < CVY_COUNT(part); i++)
        all += part[i].bytes;
    if (all <= 0)
        return;
    cvy_text_add(&r->html, "<h3>Memory of a rank: %s</h3>\n<div class=\"bar\">", cvy_number_bytes(all).at);
    for (int i = 0; i < CVY_COUNT(part); i++)
        if (part[i].bytes > 0)
            cvy_text_add(&r->html, "<i class=\"f%d\" style=\"width:%.2f%%\"></i>", i, 100 * part[i].bytes / all);
    cvy_text_add(&r->html, "</div>\n<p class=\"keys\">");
    for (int i = 0; i < CVY_COUNT(part); i++)
        if (part[i].bytes > 0)
            cvy_text_add(&r->html, "<span><i class=\"f%d\"></i>%s %s</span> ", i, part[i].name,
                         cvy_number_bytes(part[i].bytes).at);
    cvy_text_add(&r->html, "</p>\n");
}

/* ---- turns ---- */

static double all_flop(const cvy_tree *layers)
{
    double sum = 0;
    for (int i = 0; layers && i < layers->count; i++)
        sum += flop_of(layers->child[i]);
    return sum;
}

static void turn_row(cvy_report *r, const cvy_tree *turn)
{
    const cvy_tree *memory = cvy_tree_at(turn, "memory");
    const double ms = cvy_tree_real_at(turn, "predicted_ms");
    cvy_text_add(&r->html, "<tr>");
    add_cell(&r->html, cvy_tree_text_at(turn, "label"), " class=\"t\"");
    add_cell(&r->html, cvy_tree_text_at(turn, "optimizer"), " class=\"t\"");
    cvy_text_add(&r->html, "<td>%s</td><td>%s</td>", cvy_number_text(all_flop(cvy_tree_at(turn, "layers")) / 1e9, 3).at,
                 memory ? cvy_number_bytes(bytes_at(memory, "arena_bytes")).at : "");
    cvy_text_add(&r->html, "<td>%s</td><td>%s</td></tr>\n",
                 memory ? cvy_number_bytes(bytes_at(memory, "gradient_bytes")).at : "",
                 isfinite(ms) ? cvy_number_text(ms, 3).at : "");
}

/* The trainings of a step, which follow each other in the same memory, and the layers of each. */
static void turn_tables(cvy_report *r, const cvy_tree *turns)
{
    cvy_text_add(&r->html, "<div class=\"wide\"><table class=\"layers\"><thead><tr><td class=\"t\">turn</td>"
                           "<td class=\"t\">optimiser</td><td>Gflop a step</td><td>activations and gradients</td>"
                           "<td>of it gradients</td><td>predicted ms</td></tr></thead><tbody>\n");
    for (int i = 0; i < turns->count; i++)
        turn_row(r, turns->child[i]);
    cvy_text_add(&r->html, "</tbody></table></div>\n");
    for (int i = 0; i < turns->count; i++) {
        const char *label = cvy_tree_text_at(turns->child[i], "label");
        const cvy_tree *layers = cvy_tree_at(turns->child[i], "layers");
        if (!layers || layers->kind != CVY_TREE_LIST)
            continue;
        cvy_html_add(&r->html, "<h3>%s</h3>\n", label ? label : "");
        layer_table(r, turns->child[i]);
    }
}

/* The memory of the turn that needs most; all turns use the same memory. */
static const cvy_tree *largest_memory(const cvy_tree *plan, const cvy_tree *turns)
{
    const cvy_tree *most = cvy_tree_at(plan, "memory");
    for (int i = 0; turns && turns->kind == CVY_TREE_LIST && i < turns->count; i++) {
        const cvy_tree *memory = cvy_tree_at(turns->child[i], "memory");
        if (memory && (!most || bytes_at(memory, "arena_bytes") > bytes_at(most, "arena_bytes")))
            most = memory;
    }
    return most;
}

void cvy_report_network(cvy_report *r)
{
    const cvy_tree *plan = find_plan(r->plan), *turns = plan ? cvy_tree_at(plan, "turns") : NULL;
    if (!plan)
        return;
    const cvy_tree *memory = largest_memory(plan, turns);
    cvy_text_add(&r->html, "<section><h2>Network</h2>\n");
    if (turns && turns->kind == CVY_TREE_LIST && turns->count > 0)
        turn_tables(r, turns);
    else
        layer_table(r, plan);
    if (memory)
        memory_bar(r, memory);
    cvy_text_add(&r->html, "</section>\n");
}
