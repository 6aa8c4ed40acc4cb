/*
 * doctor_print.c: prints the results as tables for people, and as one JSON object.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_json.h"
#include "health/doctor/doctor.h"

struct text {
    char at[96];
};

static struct text cores_text(const cpu_set_t *cores)
{
    struct text t;
    cvy_cores_text(cores, t.at, sizeof t.at);
    return t;
}

/* Bytes as in "4 MiB". */
static struct text bytes_text(int64_t bytes)
{
    struct text t;
    if (bytes % (1 << 20) == 0)
        snprintf(t.at, sizeof t.at, "%lld MiB", (long long)(bytes >> 20));
    else if (bytes % 1024 == 0)
        snprintf(t.at, sizeof t.at, "%lld KiB", (long long)(bytes >> 10));
    else
        snprintf(t.at, sizeof t.at, "%lld B", (long long)bytes);
    return t;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

const char *cvy_doctor_memory_text(const cvy_doctor *d)
{
    return d->most_ranks == 1 ? "one rank a node" : d->shared ? "shared" : "not shared";
}

/* ---- for people ---- */

static cvy_status print_nodes(const cvy_doctor *d, cvy_text *out)
{
    const cvy_comm *comm = d->context->comm;
    cvy_text_add(out, "%d node%s, %d rank%s", comm->nnodes, plural(comm->nnodes), comm->nranks, plural(comm->nranks));
    if (comm->nnodes > 1 && d->shared)
        cvy_text_add(out, ", %lld leader%s a node", (long long)d->least_ranks, plural(d->least_ranks));
    cvy_text_add(out, "; memory of a node: %s\n", cvy_doctor_memory_text(d));
    if (*d->about.library)
        cvy_text_add(out, "%s, thread level %s\n", d->about.library, d->about.threads);
    cvy_text_add(out, "processor %s\n", d->rank[0].cpu);
    for (const char *at = d->rank[0].devices; *at; at += strcspn(at, "\n") + 1)
        cvy_text_add(out, "device %.*s\n", (int)strcspn(at, "\n"), at);
    for (const char *at = d->rank[0].libraries; *at; at += strcspn(at, "\n") + 1)
        cvy_text_add(out, "library %.*s\n", (int)strcspn(at, "\n"), at);
    cvy_text_add(out, "\n");
    return cvy_topology_print(d->topology, comm->nranks, out);
}

static void print_clock(const cvy_doctor *d, cvy_text *out)
{
    const cvy_doctor_clock *c = &d->clock;
    if (!c->is_known)
        return;
    cvy_text_add(out, "\nclock: %s, a reading takes %.0f ns", c->back ? "goes back" : "goes forward", 1e9 * c->read_s);
    if (d->context->comm->nnodes > 1)
        cvy_text_add(out, "; those of the nodes differ by %.2g s at most", fabs(c->apart_s));
    cvy_text_add(out, "\n");
}

static void print_files(const cvy_doctor *d, cvy_text *out)
{
    const cvy_doctor_files *f = &d->files;
    if (!f->is_known)
        return;
    cvy_text_add(out,
                 "files in %s: %.0f MiB written at %.0f MB/s and read back at %.0f MB/s, a small file safe on the disk "
                 "in %.2f ms, %.1f GB free",
                 f->folder, (double)f->bytes / 1048576, 1e-6 * (double)f->bytes / f->write_s,
                 1e-6 * (double)f->bytes / f->read_s, 1e3 * f->small_s, 1e-9 * (double)f->free_bytes);
    if (d->context->comm->nranks > 1)
        cvy_text_add(out, f->nunseen ? "; not seen by all ranks" : "; seen by all ranks");
    cvy_text_add(out, "\n");
}

static void print_link(const char *where, const cvy_doctor_link *link, cvy_text *out)
{
    if (link->from >= 0)
        cvy_text_add(out, "%-16s %5d %5d %10.2f %9.3f\n", where, link->from, link->to, 1e6 * link->alpha_s,
                     1e-9 / link->beta_s);
}

static void print_links(const cvy_doctor *d, cvy_text *out)
{
    cvy_text_add(out, "\n%-16s %5s %5s %10s %9s   time = alpha + beta bytes\n", "single messages", "from", "to",
                 "alpha us", "beta GB/s");
    print_link("inside a node", &d->inside, out);
    print_link("between nodes", &d->between, out);
    if (!d->hop_s)
        return;
    int slowest = 1;
    for (int n = 2; n < d->context->comm->nnodes; n++)
        if (d->hop_s[n] > d->hop_s[slowest])
            slowest = n;
    cvy_text_add(out, "the slowest link from a node to the next one: %d to %d, %s at %.3f GB/s\n", slowest - 1, slowest,
                 bytes_text(d->hop_bytes).at, 1e-9 * (double)d->hop_bytes / d->hop_s[slowest]);
}

static void print_head(const cvy_doctor *d, const char *what, cvy_text *out)
{
    cvy_text_add(out, "\n%-10s", what);
    for (int w = 0; w < d->nmethods; w++)
        cvy_text_add(out, " %*s ", (int)CVY_MAX(strlen(d->method[w].name), 9), d->method[w].name);
}

static void print_cell(const cvy_doctor *d, const cvy_doctor_size *size, int method, double value, cvy_text *out)
{
    cvy_text_add(out, " %*.4g%c", (int)CVY_MAX(strlen(d->method[method].name), 9), value,
                 method == size->chosen ? '*' : ' ');
}

static void print_reductions(const cvy_doctor *d, cvy_text *out)
{
    const int nranks = d->context->comm->nranks;
    cvy_text_add(out,
                 "\nall-reduces of f32 over %d ranks: the slowest rank's time, best of the trials; * is what\n"
                 "`algorithm: auto` uses; then its median, and its time relative to the fastest one\n",
                 nranks);
    print_head(d, "ms", out);
    cvy_text_add(out, " %9s %8s %7s\n", "* median", "* to best", "trials");
    for (int i = 0; i < d->nsize; i++) {
        const cvy_doctor_size *size = &d->size[i];
        cvy_text_add(out, "%-10s", bytes_text(size->bytes).at);
        for (int w = 0; w < d->nmethods; w++)
            print_cell(d, size, w, 1e3 * size->best_s[w], out);
        cvy_text_add(out, " %9.4g %8.2f %7d\n", 1e3 * size->median_s[size->chosen],
                     size->best_s[size->chosen] / size->best_s[cvy_doctor_fastest(d, size)], size->ntrials);
    }
    print_head(d, "GB/s", out);
    for (int i = 0; i < d->nsize; i++) {
        const cvy_doctor_size *size = &d->size[i];
        cvy_text_add(out, "\n%-10s", bytes_text(size->bytes).at);
        for (int w = 0; w < d->nmethods; w++)
            print_cell(d, size, w, 1e-9 * (double)size->bytes / size->best_s[w], out);
    }
    cvy_text_add(out, "\n");
    if (d->left_out_bytes)
        cvy_text_add(out, "all-reduces of %s and more were left out, %s\n", bytes_text(d->left_out_bytes).at,
                     d->left_out_why);
}

cvy_status cvy_doctor_print_table(const cvy_doctor *d, char **text_out)
{
    cvy_text out = {0};
    (void)!print_nodes(d, &out); /* the text keeps the error */
    print_clock(d, &out);
    print_files(d, &out);
    if (d->context->comm->nranks > 1) {
        print_links(d, &out);
        print_reductions(d, &out);
    } else {
        cvy_text_add(&out,
                     "\none rank: there is nothing to reduce; start it under mpiexec as you would start a training\n");
    }
    cvy_text_add(&out, d->nfinding ? "\nfindings:\n" : "\nno findings\n");
    for (int i = 0; i < d->nfinding; i++)
        cvy_text_add(&out, "  - %s\n", d->finding[i]);
    if (out.status != CVY_OK) {
        const cvy_status status = out.status;
        cvy_text_free(&out);
        return status;
    }
    *text_out = out.data;
    return CVY_OK;
}

/* ---- for programs ---- */

static void add_nodes(const cvy_doctor *d, cvy_json *j)
{
    const cvy_comm *comm = d->context->comm;
    cvy_json_open(j, "node", '[');
    for (int n = 0; n < comm->nnodes; n++) {
        const cvy_doctor_node *node = &d->node[n];
        cvy_json_open(j, NULL, '{');
        cvy_json_string(j, "host", d->topology[node->first].host);
        cvy_json_string(j, "cpu", d->rank[node->first].cpu);
        cvy_json_string(j, "devices", d->rank[node->first].devices);
        cvy_json_string(j, "libraries", d->rank[node->first].libraries);
        cvy_json_int(j, "gpus", d->rank[node->first].gpus);
        cvy_json_int(j, "ranks", node->nranks);
        cvy_json_int(j, "threads", node->threads);
        cvy_json_string(j, "cores", cores_text(&node->mask).at);
        cvy_json_int(j, "cores_used", CPU_COUNT(&node->cores));
        cvy_json_int(j, "cores_permitted", CPU_COUNT(&node->permitted));
        if (d->hop_s && n > 0)
            cvy_json_real(j, "gb_per_s_from_the_node_before", 1e-9 * (double)d->hop_bytes / d->hop_s[n]);
        cvy_json_close(j, '}');
    }
    cvy_json_close(j, ']');
    cvy_json_open(j, "rank", '[');
    for (int r = 0; r < comm->nranks; r++) {
        cvy_json_open(j, NULL, '{');
        cvy_json_int(j, "node", d->topology[r].node);
        cvy_json_int(j, "threads", d->topology[r].threads);
        cvy_json_string(j, "cores", cores_text(&d->topology[r].mask).at);
        cvy_json_close(j, '}');
    }
    cvy_json_close(j, ']');
}

static void add_link(const char *where, const cvy_doctor_link *link, cvy_json *j)
{
    if (link->from < 0)
        return;
    cvy_json_open(j, where, '{');
    cvy_json_int(j, "from", link->from);
    cvy_json_int(j, "to", link->to);
    cvy_json_real(j, "alpha_us", 1e6 * link->alpha_s);
    cvy_json_real(j, "gb_per_s", 1e-9 / link->beta_s);
    cvy_json_open(j, "points", '[');
    for (int i = 0; i < link->npoints; i++) {
        cvy_json_open(j, NULL, '{');
        cvy_json_int(j, "bytes", link->bytes[i]);
        cvy_json_real(j, "us", 1e6 * link->best_s[i]);
        cvy_json_close(j, '}');
    }
    cvy_json_close(j, ']');
    cvy_json_close(j, '}');
}

static void add_size(const cvy_doctor *d, const cvy_doctor_size *size, cvy_json *j)
{
    cvy_json_open(j, NULL, '{');
    cvy_json_int(j, "bytes", size->bytes);
    cvy_json_int(j, "trials", size->ntrials);
    cvy_json_string(j, "auto", d->method[size->chosen].name);
    cvy_json_real(j, "auto_to_best", size->best_s[size->chosen] / size->best_s[cvy_doctor_fastest(d, size)]);
    cvy_json_open(j, "methods", '[');
    for (int w = 0; w < d->nmethods; w++) {
        cvy_json_open(j, NULL, '{');
        cvy_json_string(j, "name", d->method[w].name);
        cvy_json_real(j, "ms_best", 1e3 * size->best_s[w]);
        cvy_json_real(j, "ms_median", 1e3 * size->median_s[w]);
        cvy_json_real(j, "gb_per_s", 1e-9 * (double)size->bytes / size->best_s[w]);
        cvy_json_int(j, "wrong", size->wrong[w]);
        cvy_json_close(j, '}');
    }
    cvy_json_close(j, ']');
    cvy_json_close(j, '}');
}

static void add_clock(const cvy_doctor_clock *c, cvy_json *j)
{
    if (!c->is_known)
        return;
    cvy_json_open(j, "clock", '{');
    cvy_json_real(j, "apart_s", c->apart_s);
    cvy_json_int(j, "went_back", c->back);
    cvy_json_real(j, "set_s", c->set_s);
    cvy_json_real(j, "reading_ns", 1e9 * c->read_s);
    cvy_json_close(j, '}');
}

static void add_files(const cvy_doctor_files *f, cvy_json *j)
{
    cvy_json_open(j, "files", '{');
    cvy_json_string(j, "folder", f->folder);
    cvy_json_int(j, "ranks_that_do_not_see_them", f->nunseen);
    if (f->is_known) {
        cvy_json_int(j, "bytes", f->bytes);
        cvy_json_real(j, "write_mb_per_s", 1e-6 * (double)f->bytes / f->write_s);
        cvy_json_real(j, "read_mb_per_s", 1e-6 * (double)f->bytes / f->read_s);
        cvy_json_real(j, "small_ms", 1e3 * f->small_s);
        cvy_json_int(j, "free_bytes", f->free_bytes);
    }
    cvy_json_close(j, '}');
}

/* GB/s over the bytes, as lists: of each method, and of the one that `auto` chooses. */
static void add_curves(const cvy_doctor *d, cvy_json *j)
{
    cvy_json_open(j, "curve", '{');
    cvy_json_open(j, "bytes", '[');
    for (int i = 0; i < d->nsize; i++)
        cvy_json_int(j, NULL, d->size[i].bytes);
    cvy_json_close(j, ']');
    for (int w = -1; w < d->nmethods; w++) {
        cvy_json_open(j, w < 0 ? "auto" : d->method[w].name, '[');
        for (int i = 0; i < d->nsize; i++)
            cvy_json_real(j, NULL,
                          1e-9 * (double)d->size[i].bytes / d->size[i].median_s[w < 0 ? d->size[i].chosen : w]);
        cvy_json_close(j, ']');
    }
    cvy_json_close(j, '}');
}

cvy_status cvy_doctor_print_json(const cvy_doctor *d, char **text_out)
{
    const cvy_comm *comm = d->context->comm;
    cvy_json j = {0};
    cvy_json_open(&j, NULL, '{');
    cvy_json_int(&j, "nodes", comm->nnodes);
    cvy_json_int(&j, "ranks", comm->nranks);
    cvy_json_int(&j, "leaders", d->shared ? d->least_ranks : 0);
    cvy_json_string(&j, "node_memory", cvy_doctor_memory_text(d));
    cvy_json_string(&j, "mpi_library", d->about.library);
    cvy_json_string(&j, "mpi_threads", d->about.threads);
    add_nodes(d, &j);
    add_clock(&d->clock, &j);
    add_files(&d->files, &j);
    add_link("inside_a_node", &d->inside, &j);
    add_link("between_nodes", &d->between, &j);
    cvy_json_open(&j, "sums", '[');
    for (int i = 0; i < d->nsize; i++)
        add_size(d, &d->size[i], &j);
    cvy_json_close(&j, ']');
    add_curves(d, &j);
    if (d->nsize > 0) {
        const cvy_doctor_size *largest = &d->size[d->nsize - 1];
        cvy_json_real(&j, "gb_per_s", 1e-9 * (double)largest->bytes / largest->median_s[largest->chosen]);
    }
    cvy_json_int(&j, "left_out_from_bytes", d->left_out_bytes);
    cvy_json_open(&j, "findings", '[');
    for (int i = 0; i < d->nfinding; i++)
        cvy_json_string(&j, NULL, d->finding[i]);
    cvy_json_close(&j, ']');
    cvy_json_close(&j, '}');
    return cvy_text_take(&j.text, text_out);
}
