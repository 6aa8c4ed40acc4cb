/*
 * context_topology_text.c: where the ranks run as text: a line for each node, or for equal nodes together, and what is
 * wrong with the placement, with a remedy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context/context_topology.h"

enum { NODES_APART = 8 }; /* up to this number, each node has its own line */
enum { BINDINGS_SHOWN = 16, WARNINGS_OF_A_NODE = 3 };

/* ---- text ---- */

/* Adds a range to text such as "0-3,8"; returns 0 if there is no room for it. */
static int add_range(char *text, size_t *n, size_t room, int first, int last)
{
    char range[32];
    snprintf(range, sizeof range, last > first ? "%s%d-%d" : "%s%d", *n ? "," : "", first, last);
    if (*n + strlen(range) + 3 > room) {
        snprintf(text + *n, room - *n, "..");
        return 0;
    }
    *n += (size_t)snprintf(text + *n, room - *n, "%s", range);
    return 1;
}

void cvy_cores_text(const cpu_set_t *cores, char *text, size_t room)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < CPU_SETSIZE; i++) {
        int end = i;
        if (!CPU_ISSET(i, cores))
            continue;
        while (end + 1 < CPU_SETSIZE && CPU_ISSET(end + 1, cores))
            end++;
        if (!add_range(text, &n, room, i, end))
            return;
        i = end;
    }
}

/* ---- nodes ---- */

struct node {
    const cvy_rank_topology **rank; /* its ranks in ascending order */
    int nranks;
    int64_t threads, least, most; /* threads of all ranks together; smallest and largest number of one rank */
    int ncore, nmask, npermitted; /* cores and hardware threads that its ranks may use; cores that they could have */
    int same_mask;                /* 1: all ranks have the same mask */
    cpu_set_t mask;
};

/* The ranks, sorted by node. */
struct nodes {
    const cvy_rank_topology **rank;
    struct node *node;
    int count;
};

static int by_node(const void *a, const void *b)
{
    const cvy_rank_topology *x = *(const cvy_rank_topology *const *)a, *y = *(const cvy_rank_topology *const *)b;
    return x->node != y->node ? (x->node > y->node) - (x->node < y->node) : (x > y) - (x < y);
}

static void sum_up(struct node *n)
{
    cpu_set_t cores, permitted;
    int64_t allotted = 0;
    CPU_ZERO(&cores);
    CPU_ZERO(&permitted);
    CPU_ZERO(&n->mask);
    n->least = n->most = n->rank[0]->threads;
    n->same_mask = 1;
    for (int r = 0; r < n->nranks; r++) {
        const cvy_rank_topology *p = n->rank[r];
        CPU_OR(&cores, &cores, &p->cores);
        CPU_OR(&permitted, &permitted, &p->permitted);
        CPU_OR(&n->mask, &n->mask, &p->mask);
        n->threads += p->threads;
        n->least = CVY_MIN(n->least, p->threads);
        n->most = CVY_MAX(n->most, p->threads);
        n->same_mask &= CPU_EQUAL(&p->mask, &n->rank[0]->mask) != 0;
        allotted = CVY_MAX(allotted, p->allotted);
    }
    n->ncore = CPU_COUNT(&cores);
    n->nmask = CPU_COUNT(&n->mask);
    n->npermitted = CPU_COUNT(&permitted);
    if (allotted > 0) /* if several jobs share a node, the rest belongs to others */
        n->npermitted = CVY_MAX((int)CVY_MIN(allotted, (int64_t)n->npermitted), n->ncore);
}

static void nodes_free(struct nodes *nodes)
{
    cvy_mem_free(&nodes->rank);
    cvy_mem_free(&nodes->node);
}

static cvy_status nodes_make(const cvy_rank_topology *place, int nranks, struct nodes *out)
{
    struct nodes nodes = {0};
    CVY_TRY(cvy_mem_alloc(sizeof *nodes.rank * (size_t)nranks, &nodes.rank));
    const cvy_status status = cvy_mem_alloc(sizeof *nodes.node * (size_t)nranks, &nodes.node);
    if (status != CVY_OK) {
        nodes_free(&nodes);
        return status;
    }
    for (int r = 0; r < nranks; r++)
        nodes.rank[r] = &place[r];
    qsort(nodes.rank, (size_t)nranks, sizeof *nodes.rank, by_node);
    for (int r = 0; r < nranks; r++) {
        if (r == 0 || nodes.rank[r]->node != nodes.rank[r - 1]->node)
            nodes.node[nodes.count++] = (struct node){.rank = nodes.rank + r};
        nodes.node[nodes.count - 1].nranks++;
    }
    for (int n = 0; n < nodes.count; n++)
        sum_up(&nodes.node[n]);
    *out = nodes;
    return CVY_OK;
}

/* Whether two nodes would have the same line except for their names and ranks. */
static int are_equal(const struct node *a, const struct node *b)
{
    int equal =
        a->nranks == b->nranks && a->ncore == b->ncore && a->nmask == b->nmask && a->npermitted == b->npermitted;
    for (int r = 0; equal && r < a->nranks; r++)
        equal = a->rank[r]->threads == b->rank[r]->threads && a->rank[r]->domains == b->rank[r]->domains &&
                CPU_EQUAL(&a->rank[r]->mask, &b->rank[r]->mask);
    return equal;
}

/* The number of nodes from `first` on that are equal to it, itself included; 0: an earlier node is equal to it.
 * *last_out: the last of them. */
static int count_equal(const struct nodes *nodes, int first, int *last_out)
{
    int count = 0;
    *last_out = first;
    for (int n = 0; n < nodes->count; n++) {
        if (n != first && !are_equal(&nodes->node[first], &nodes->node[n]))
            continue;
        if (n < first)
            return 0;
        count++;
        *last_out = n;
    }
    return count;
}

/* ---- a line for each node ---- */

static void add_ranks(const struct node *n, const cvy_rank_topology *first, cvy_text *out)
{
    char text[96] = "";
    size_t used = 0;
    for (int r = 0; r < n->nranks; r++) {
        const int begin = (int)(n->rank[r] - first);
        while (r + 1 < n->nranks && n->rank[r + 1] == n->rank[r] + 1)
            r++;
        if (!add_range(text, &used, sizeof text, begin, (int)(n->rank[r] - first)))
            break;
    }
    cvy_text_add(out, "rank%s %s", n->nranks > 1 ? "s" : "", text);
}

static void add_binding(const struct node *n, cvy_text *out)
{
    char text[64];
    if (n->same_mask && n->ncore >= n->npermitted) {
        cvy_text_add(out, ", not bound");
        return;
    }
    cvy_text_add(out, n->same_mask && n->nranks > 1 ? ", all bound to" : ", bound to");
    for (int r = 0; r < (n->same_mask ? 1 : CVY_MIN(n->nranks, BINDINGS_SHOWN)); r++) {
        cvy_cores_text(&n->rank[r]->mask, text, sizeof text);
        cvy_text_add(out, " %s", text);
    }
    if (!n->same_mask && n->nranks > BINDINGS_SHOWN)
        cvy_text_add(out, " ..");
}

/* Prints "8 cores, 2 threads each, bound to 0-1 2-3 4-5 6-7". */
static void add_shape(const struct node *n, cvy_text *out)
{
    cvy_text_add(out, "%d core%s", n->ncore, n->ncore == 1 ? "" : "s");
    if (n->nmask != n->ncore)
        cvy_text_add(out, " (%d hardware threads)", n->nmask);
    if (n->least != n->most)
        cvy_text_add(out, ", %lld to %lld threads each", (long long)n->least, (long long)n->most);
    else
        cvy_text_add(out, ", %lld thread%s%s", (long long)n->most, n->most == 1 ? "" : "s",
                     n->nranks > 1 ? " each" : "");
    add_binding(n, out);
    cvy_text_add(out, "\n");
}

cvy_status cvy_topology_print(const cvy_rank_topology *place, int nranks, cvy_text *out)
{
    struct nodes nodes;
    CVY_TRY(nodes_make(place, nranks, &nodes));
    for (int n = 0, lines = 0, last = 0; n < nodes.count; n++) {
        const struct node *node = &nodes.node[n];
        const int count = nodes.count > NODES_APART ? count_equal(&nodes, n, &last) : 1;
        if (count == 0)
            continue;
        if (++lines > NODES_APART) {
            cvy_text_add(out, "..., more kinds of nodes\n");
            break;
        }
        if (count == 1) {
            cvy_text_add(out, "node %s: ", node->rank[0]->host);
            add_ranks(node, place, out);
        } else {
            cvy_text_add(out, "%d nodes, %s to %s: %d rank%s each", count, node->rank[0]->host,
                         nodes.node[last].rank[0]->host, node->nranks, node->nranks > 1 ? "s" : "");
        }
        cvy_text_add(out, ", ");
        add_shape(node, out);
    }
    nodes_free(&nodes);
    return out->status;
}

/* ---- what is wrong ---- */

/* Prints "node cn01", and the number of other nodes that are equal. */
static void add_name(const struct node *n, int count, cvy_text *out)
{
    cvy_text_add(out, "node %s", n->rank[0]->host);
    if (count > 1)
        cvy_text_add(out, " and %d like it", count - 1);
}

/* Prints how to give each rank so many cores of its own. */
static void add_remedy(const struct node *n, int each, cvy_text *out)
{
    const int siblings = CVY_MAX(n->nmask / CVY_MAX(n->ncore, 1), 1);
    switch (n->rank[0]->launcher) {
    case CVY_LAUNCHER_SLURM: cvy_text_add(out, "srun --cpus-per-task=%d --cpu-bind=cores", each * siblings); break;
    case CVY_LAUNCHER_HYDRA: cvy_text_add(out, "mpiexec -bind-to none"); break;
    case CVY_LAUNCHER_OPEN_MPI:
        cvy_text_add(out, "mpiexec --bind-to none, or --map-by slot:PE=%d --bind-to core", each);
        break;
    default:
        cvy_text_add(out, "let the launcher bind each rank to %d core%s of its own, or bind no rank", each,
                     each == 1 ? "" : "s");
        break;
    }
}

/* Warns if the ranks of the node have more threads than the node has hardware threads, whatever the masks are. */
static int check_load(const struct node *n, int count, cvy_text *out)
{
    if (n->threads <= n->nmask)
        return 0;
    add_name(n, count, out);
    cvy_text_add(out, " has %lld compute threads on %d ", (long long)n->threads, n->nmask);
    if (n->nmask != n->ncore)
        cvy_text_add(out, "hardware threads");
    else if (n->npermitted > n->ncore)
        cvy_text_add(out, "of its %d cores", n->npermitted);
    else
        cvy_text_add(out, "core%s", n->nmask == 1 ? "" : "s");
    cvy_text_add(out, ", so some threads share a core, and each step waits for them: ");
    if (n->npermitted > n->ncore)
        add_remedy(n, CVY_MAX(n->npermitted / n->nranks, 1), out);
    else if (n->nranks > n->nmask)
        cvy_text_add(out, "start at most %d rank%s a node", n->nmask, n->nmask == 1 ? "" : "s");
    else
        cvy_text_add(out, "give --threads %d, or start fewer ranks a node", n->nmask / n->nranks);
    cvy_text_add(out, "\n");
    return 1;
}

static int is_within(const cpu_set_t *a, const cpu_set_t *b)
{
    cpu_set_t both;
    CPU_AND(&both, a, b);
    return CPU_EQUAL(&both, a);
}

/* Warns if the ranks that may only use hardware threads in the mask of rank r have more threads than this mask has
 * hardware threads. This also finds masks that are inside each other. */
static int check_mask(const struct node *n, int r, const cvy_rank_topology *first, cvy_text *out)
{
    const cpu_set_t *mask = &n->rank[r]->mask;
    const int room = CPU_COUNT(mask);
    int64_t threads = 0;
    int sharing = 0, second = -1;
    char cores[64];
    for (int k = 0; k < n->nranks; k++) {
        const cvy_rank_topology *p = n->rank[k];
        if (k < r && CPU_EQUAL(&p->mask, mask))
            return 0; /* an earlier rank has the same mask */
        if (!is_within(&p->mask, mask))
            continue;
        threads += p->threads;
        sharing++;
        second = k != r && second < 0 ? k : second;
    }
    if (threads <= room)
        return 0;
    cvy_cores_text(mask, cores, sizeof cores);
    if (sharing == 1)
        cvy_text_add(out, "rank %d on node %s has %lld threads on core%s %s: ", (int)(n->rank[r] - first),
                     n->rank[r]->host, (long long)threads, room == 1 ? "" : "s", cores);
    else
        cvy_text_add(out, "%d ranks on node %s, such as %d and %d, are bound to the same core%s %s, for %lld threads: ",
                     sharing, n->rank[r]->host, (int)(n->rank[CVY_MIN(r, second)] - first),
                     (int)(n->rank[CVY_MAX(r, second)] - first), room == 1 ? "" : "s", cores, (long long)threads);
    add_remedy(n, (int)CVY_MAX(n->most, 1), out);
    if (sharing == 1)
        cvy_text_add(out, "; or --threads %d", room);
    cvy_text_add(out, "\n");
    return 1;
}

/* Warns of cores that no rank may use. */
static void check_idle(const struct node *n, int count, cvy_text *out)
{
    if (n->ncore >= n->npermitted)
        return;
    cvy_text_add(out, "the ranks of ");
    add_name(n, count, out);
    cvy_text_add(out, " are bound to %d of its %d cores, and the others idle: ", n->ncore, n->npermitted);
    add_remedy(n, CVY_MAX(n->npermitted / n->nranks, 1), out);
    cvy_text_add(out, "\n");
}

/* Prints how to start `ranks` ranks in each of the node's NUMA domains. */
static void add_domains_remedy(const struct node *n, int domains, int ranks, cvy_text *out)
{
    const int cores = CVY_MAX(n->ncore / (domains * ranks), 1);
    cvy_text_add(out, "start %d ranks a node with %d threads each, bound to the domains: ", domains * ranks, cores);
    switch (n->rank[0]->launcher) {
    case CVY_LAUNCHER_SLURM:
        cvy_text_add(out, "srun --ntasks-per-node=%d --cpus-per-task=%d --cpu-bind=ldoms", domains * ranks,
                     cores * CVY_MAX(n->nmask / CVY_MAX(n->ncore, 1), 1));
        break;
    case CVY_LAUNCHER_HYDRA: cvy_text_add(out, "mpiexec -ppn %d -bind-to numa", domains * ranks); break;
    case CVY_LAUNCHER_OPEN_MPI:
        cvy_text_add(out, "mpiexec --map-by ppr:%d:numa:PE=%d --bind-to core", ranks, cores);
        break;
    default: cvy_text_add(out, "the launcher's option that binds each rank to a NUMA domain"); break;
    }
    cvy_text_add(out, "\n");
}

/* Warns of threads that may be in several NUMA domains. Memory is then in another domain for some of them, and the
 * system may move threads between domains. */
static void check_domains(const struct node *n, int count, cvy_text *out)
{
    uint64_t all = 0;
    int most = 1;
    for (int r = 0; r < n->nranks; r++) {
        all |= n->rank[r]->domains;
        if (n->rank[r]->threads > 1)
            most = CVY_MAX(most, __builtin_popcountll(n->rank[r]->domains));
    }
    if (most == 1)
        return;
    const int domains = __builtin_popcountll(all);
    add_name(n, count, out);
    cvy_text_add(
        out, ": the threads of a rank may be in %d NUMA domains, and then wait for memory of another domain: ", most);
    add_domains_remedy(n, domains, n->nranks % domains == 0 ? n->nranks / domains : 1, out);
}

cvy_status cvy_topology_check(const cvy_rank_topology *place, int nranks, cvy_text *out)
{
    struct nodes nodes;
    CVY_TRY(nodes_make(place, nranks, &nodes));
    for (int n = 0, last = 0, kinds = 0; n < nodes.count && kinds < NODES_APART; n++) {
        const struct node *node = &nodes.node[n];
        const int count = count_equal(&nodes, n, &last);
        kinds += count > 0;
        if (count == 0)
            continue;
        const int loaded = check_load(node, count, out);
        for (int r = 0, nwarnings = 0;
             r < node->nranks && !node->same_mask && !loaded && nwarnings < WARNINGS_OF_A_NODE; r++)
            nwarnings += check_mask(node, r, place, out);
        if (loaded)
            continue;
        check_idle(node, count, out);
        check_domains(node, count, out);
    }
    nodes_free(&nodes);
    return out->status;
}
