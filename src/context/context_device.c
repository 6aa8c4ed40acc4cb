/*
 * context_device.c: finds the device that a name means, opens it on every rank, and says which ranks share one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "context/context_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/gpu/gpu.h"
#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_hash.h"
#include "base/text/base_table.h"

static const double gib = 1073741824.0;

/* ---- names ---- */

typedef struct wish {
    const cvy_backend_def *backend; /* NULL: auto */
    int number;                     /* -1: by the rank's number on its node */
} wish;

/* The message for a name of no driver. Users of other frameworks write the words of those. */
static cvy_status fail_unknown(const char *name, int length)
{
    static const char *const other[] = {"gpu", "mps", "hip", "rocm", "xpu", "sycl", "metal", "vulkan"};
    enum { ROOM = 16 };
    const char *known[ROOM + 2] = {"auto"};
    char word[64];
    cvy_text text = {0};
    int count = 0, n = 1, is_other = 0;
    const cvy_backend_def *const *table = cvy_backend_table(&count);
    for (int i = 0; i < count && n < ROOM; i++)
        known[n++] = table[i]->name;
    snprintf(word, sizeof word, "%.*s", length, name);
    for (int i = 0; i < CVY_COUNT(other); i++)
        is_other |= strcmp(word, other[i]) == 0;
    if (is_other)
        cvy_text_add(&text, ": auto takes a GPU if a driver finds one");
    else if (strcmp(word, "cpu") == 0)
        cvy_text_add(&text, ": the processor is \"host\"");
    else
        cvy_text_add(&text, "%s", cvy_hint_name('"', word, known, n).text);
    cvy_text_add(&text, "; this build of convoy has");
    for (int i = 0; i < n; i++)
        cvy_text_add(&text, "%s %s", i ? "," : "", known[i]);
    const cvy_status status =
        cvy_error_set(CVY_E_CONFIG, "there is no device \"%s\"%s", word, text.data ? text.data : "");
    cvy_text_free(&text);
    return status;
}

static cvy_status parse(const char *name, wish *out)
{
    const char *colon = strchr(name, ':');
    const int length = colon ? (int)(colon - name) : (int)strlen(name);
    char word[64];
    *out = (wish){.number = -1};
    if (length >= (int)sizeof word)
        return fail_unknown(name, length);
    snprintf(word, sizeof word, "%.*s", length, name);
    if (strcmp(word, "auto") != 0) {
        out->backend = cvy_backend_find(word);
        if (!out->backend)
            return fail_unknown(name, length);
    }
    if (!colon)
        return CVY_OK;
    const size_t digits = strspn(colon + 1, "0123456789");
    CVY_CHECK(digits > 0 && digits < 7 && !colon[1 + digits], CVY_E_CONFIG,
              "device is \"%s\", expected a number after the colon, as in \"%s:0\"", name, word);
    CVY_CHECK(out->backend && out->backend->gpu, CVY_E_CONFIG, "device is \"%s\", but %s has no number", name, word);
    out->number = (int)strtol(colon + 1, NULL, 10);
    return CVY_OK;
}

/* The name of the device of a space: "host", "opencl:0". */
struct device_name {
    char text[48];
};

static struct device_name name_of(const cvy_space *space)
{
    struct device_name name;
    cvy_device device;
    cvy_space_about(space, &device);
    if (space->backend && space->backend->gpu)
        snprintf(name.text, sizeof name.text, "%s:%d", space->backend->name, device.number);
    else
        snprintf(name.text, sizeof name.text, "%s", space->backend ? space->backend->name : "host");
    return name;
}

cvy_device_title cvy_device_title_of(const cvy_device *d)
{
    cvy_device_title title;
    int n = snprintf(title.text, sizeof title.text, "%s%s%s", d->name, *d->driver ? ", " : "", d->driver);
    if (d->units > 0)
        n += snprintf(title.text + n, sizeof title.text - (size_t)n, ", %d units", d->units);
    if (d->bytes > 0)
        snprintf(title.text + n, sizeof title.text - (size_t)n, ", %.1f GiB", (double)d->bytes / gib);
    return title;
}

/* ---- opening ---- */

/* Opens the first driver that finds a GPU, or the host. */
static cvy_status open_auto(cvy_place place, cvy_space *out)
{
    int count = 0;
    const cvy_backend_def *const *table = cvy_backend_table(&count);
    for (int i = 0; i < count; i++) {
        cvy_device device;
        char why[400] = "";
        if (!table[i]->gpu || (table[i]->count && table[i]->count(why, sizeof why) < 1) ||
            cvy_space_open_def(table[i], &place, out) != CVY_OK)
            continue;
        cvy_space_about(out, &device);
        if (!device.is_processor)
            return CVY_OK;
        cvy_space_close(out);
    }
    return cvy_space_open("host", &place, out);
}

static cvy_status open_here(const cvy_context *context, const char *name, cvy_space *out)
{
    wish w;
    CVY_TRY(parse(name, &w));
    const cvy_place place = {.device = w.number, .node_rank = context->turn};
    return w.backend ? cvy_space_open_def(w.backend, &place, out) : open_auto(place, out);
}

/* ---- ranks and their devices ---- */

typedef struct seat {
    char host[64], device[48], title[96];
    int32_t node, count;
    uint64_t id; /* equal for the same device of a node */
} seat;

/* Launchers give each rank devices of its own by such variables; then equal numbers are different devices. */
static const char *const masks[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                    "GPU_DEVICE_ORDINAL",   "ZE_AFFINITY_MASK",     "ONEAPI_DEVICE_SELECTOR"};

int cvy_device_is_masked(void)
{
    int is_masked = 0;
    for (int i = 0; i < CVY_COUNT(masks); i++)
        is_masked |= getenv(masks[i]) != NULL;
    return is_masked;
}

static uint64_t hash_of_device(const cvy_device *device)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    if (*device->id) {
        cvy_hash_add(&h, device->id, strlen(device->id));
        return cvy_hash_end(&h);
    }
    cvy_hash_add(&h, &device->number, sizeof device->number);
    for (int i = 0; i < CVY_COUNT(masks); i++) {
        const char *mask = getenv(masks[i]);
        cvy_hash_add(&h, mask ? mask : "", mask ? strlen(mask) + 1 : 1);
    }
    return cvy_hash_end(&h);
}

static seat seat_here(const cvy_context *context, const cvy_space *space)
{
    seat s = {.node = context->comm->node};
    cvy_device device;
    cvy_space_about(space, &device);
    if (gethostname(s.host, sizeof s.host - 1) != 0)
        snprintf(s.host, sizeof s.host, "%d", s.node);
    snprintf(s.device, sizeof s.device, "%s", name_of(space).text);
    snprintf(s.title, sizeof s.title, "%.95s", device.name);
    s.count = device.count;
    s.id = hash_of_device(&device);
    return s;
}

static int is_same(const seat *a, const seat *b)
{
    return a->node == b->node && a->id == b->id && strcmp(a->device, b->device) == 0;
}

static int ranks_of(const seat *all, int nranks, int first)
{
    int n = 0;
    for (int r = 0; r < nranks; r++)
        n += is_same(&all[r], &all[first]);
    return n;
}

/* Adds "ranks 0, 2 compute on opencl:0 (NVIDIA H200)" for each device of the node of rank `of`. */
static void add_seats(const seat *all, int nranks, int of, cvy_text *out)
{
    for (int first = of, begun = 0; first < nranks; first++) {
        int is_new = all[first].node == all[of].node;
        for (int r = 0; r < first && is_new; r++)
            is_new = !is_same(&all[r], &all[first]);
        if (!is_new)
            continue;
        cvy_text_add(out, "%s%s", begun ? "; " : "", ranks_of(all, nranks, first) > 1 ? "ranks " : "rank ");
        for (int r = first, n = 0; r < nranks; r++)
            if (is_same(&all[r], &all[first]))
                cvy_text_add(out, "%s%d", n++ ? ", " : "", r);
        cvy_text_add(out, " on %s (%s)", all[first].device, all[first].title);
        begun = 1;
    }
}

/* Warns of the first node on which several ranks compute on one device. */
static cvy_status warn_of_sharing(const cvy_context *context, const seat *all, int has_number)
{
    const int nranks = context->comm->nranks;
    int first = 0;
    cvy_text text = {0};
    while (first < nranks && ranks_of(all, nranks, first) == 1)
        first++;
    if (first == nranks)
        return CVY_OK;
    const int node = all[first].node;
    for (first = 0; all[first].node != node; first++)
        ;
    add_seats(all, nranks, first, &text);
    if (text.status == CVY_OK)
        cvy_log(
            context, CVY_LOG_WARN,
            "several ranks of node %s compute on one device, in turns, and share its memory: %s: start one rank for "
            "each device (%d there)%s",
            all[first].host, text.data, all[first].count, has_number ? ", and leave out the number of `device`" : "");
    const cvy_status status = text.status;
    cvy_text_free(&text);
    return status;
}

static cvy_status compare_seats(const cvy_context *context, const char *name, const seat *all)
{
    for (int r = 1; r < context->comm->nranks; r++) {
        const size_t n = strcspn(all[0].device, ":");
        CVY_CHECK(strcspn(all[r].device, ":") == n && strncmp(all[r].device, all[0].device, n) == 0, CVY_E_DISAGREE,
                  "device %s: rank 0 on node %s computes on %s, and rank %d on node %s on %s: `convoy info` there says "
                  "why; name the device",
                  name, all[0].host, all[0].device, r, all[r].host, all[r].device);
    }
    return warn_of_sharing(context, all, strchr(name, ':') != NULL);
}

static cvy_status look_at_ranks(const cvy_context *context, const char *name, cvy_device_use *use)
{
    cvy_comm *comm = context->comm;
    const seat mine = seat_here(context, &use->space);
    seat *all = NULL;
    if (comm->nranks == 1 || strcmp(name, "host") == 0)
        return CVY_OK;
    cvy_status status = cvy_comm_agree(comm, cvy_mem_alloc(sizeof *all * (size_t)comm->nranks, &all));
    if (status == CVY_OK)
        status = comm->ops->allgather(comm, &mine, sizeof mine, all);
    if (status == CVY_OK)
        status = compare_seats(context, name, all);
    if (status == CVY_OK)
        use->ranks = ranks_of(all, comm->nranks, comm->rank);
    cvy_mem_free(&all);
    return status;
}

cvy_status cvy_device_open(const cvy_context *context, const char *name, cvy_device_use *out)
{
    const char *device = name ? name : "host";
    *out = (cvy_device_use){.ranks = 1};
    cvy_status status = cvy_comm_agree(context->comm, open_here(context, device, &out->space));
    if (status == CVY_OK)
        status = look_at_ranks(context, device, out);
    if (status != CVY_OK)
        cvy_space_close(&out->space);
    return status;
}

void cvy_device_put(cvy_context *context, const cvy_device_use *use)
{
    context->space = use->space;
    context->device_ranks = use->ranks;
    snprintf(context->device, sizeof context->device, "%s", name_of(&context->space).text);
}

cvy_status cvy_device_take(cvy_context *context, const char *name, cvy_device_use *before_out)
{
    cvy_device_use use;
    *before_out = (cvy_device_use){.ranks = 0};
    CVY_TRY(cvy_device_open(context, name, &use));
    const struct device_name wanted = name_of(&use.space);
    if (strcmp(wanted.text, context->device) == 0) {
        cvy_space_close(&use.space);
        return CVY_OK;
    }
    if (context->nprograms > 0) {
        cvy_space_close(&use.space);
        return cvy_error_set(CVY_E_ARGUMENT,
                             "the context has programs on %s, so a job on %s needs a context of its own",
                             context->device, wanted.text);
    }
    *before_out = (cvy_device_use){context->space, context->device_ranks};
    cvy_device_put(context, &use);
    return CVY_OK;
}

void cvy_device_return(cvy_context *context, cvy_device_use *before)
{
    if (!before->space.backend)
        return;
    cvy_space_close(&context->space);
    cvy_device_put(context, before);
    *before = (cvy_device_use){.ranks = 0};
}

/* A rank that has the message of another one, or a message that says it already. */
static int is_explained(const cvy_context *context, const char *text)
{
    char begin[80];
    int at = 0;
    snprintf(begin, sizeof begin, "%s on node ", context->device);
    return (sscanf(text, "rank %*d: %n", &at) >= 0 && at > 0) || strstr(text, begin) || strstr(text, " of rank ");
}

cvy_status cvy_device_explain(const cvy_context *context, cvy_status status)
{
    char host[64] = "", rank[24] = "", saved[96] = "", text[640];
    const int of_driver = status == CVY_E_UNSUPPORTED || status == CVY_E_MEMORY || status == CVY_E_INTERNAL;
    if (!of_driver || cvy_space_is_host(&context->space) || is_explained(context, cvy_error_text()))
        return status;
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "%d", context->comm->node);
    if (context->comm->nranks > 1)
        snprintf(rank, sizeof rank, " of rank %d", context->comm->rank);
    if (context->saved_step > 0)
        snprintf(saved, sizeof saved, "; the checkpoint of step %lld is complete, and --resume continues from it",
                 (long long)context->saved_step);
    snprintf(text, sizeof text, "%s", cvy_error_text());
    return cvy_error_set(status, "%s%s on node %s: %s%s", context->device, rank, host, text, saved);
}

/* ---- what there is ---- */

static int print_device(const cvy_backend_def *backend, int number, cvy_text *out)
{
    const cvy_place place = {.device = number};
    cvy_space space = {0};
    cvy_device device;
    if (cvy_space_open_def(backend, &place, &space) != CVY_OK) {
        cvy_text_add(out, "%s:%d cannot be opened: %s\n", backend->name, number, cvy_error_text());
        return 0;
    }
    cvy_space_about(&space, &device);
    cvy_text_add(out, "%s:%d %s%s\n", backend->name, number, cvy_device_title_of(&device).text,
                 device.is_processor ? " (the host's processor: `device: auto` does not take it)" : "");
    cvy_space_close(&space);
    return !device.is_processor;
}

cvy_status cvy_device_print(cvy_text *out, int *gpus_out)
{
    int count = 0, gpus = 0;
    const cvy_backend_def *const *table = cvy_backend_table(&count);
    for (int i = 0; i < count; i++) {
        char why[400] = "";
        if (!table[i]->gpu)
            continue;
        const int n = table[i]->count ? table[i]->count(why, sizeof why) : 1;
        if (n < 1)
            cvy_text_add(out, "%s no device: %s\n", table[i]->name, *why ? why : "the driver reports none");
        for (int d = 0; d < n; d++)
            gpus += print_device(table[i], d, out);
    }
    if (gpus_out)
        *gpus_out = gpus;
    return out->status;
}

cvy_status cvy_device_libraries(cvy_text *out)
{
    int count = 0;
    const cvy_backend_def *const *table = cvy_backend_table(&count);
    for (int i = 0; i < count; i++) {
        char why[400] = "";
        if (table[i]->gpu && table[i]->gpu->libraries && table[i]->count && table[i]->count(why, sizeof why) > 0)
            table[i]->gpu->libraries(out);
    }
    return out->status;
}

cvy_status cvy_device_list(char **text_out)
{
    CVY_ENTRY();
    cvy_text text = {0};
    CVY_CHECK(text_out, CVY_E_ARGUMENT, "cvy_device_list() needs a place for the text");
    cvy_text_add(&text, "%s", "");
    (void)cvy_device_print(&text, NULL);
    return cvy_text_take(&text, text_out);
}

/* The file by which a driver of the system would reach a GPU, or NULL. No driver is loaded for it: those of some GPUs
 * take seconds and start threads. */
const char *cvy_device_file(void)
{
    static const char *const files[] = {"/dev/nvidia0", "/dev/kfd"};
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && (!*visible || *visible == '-' || strncmp(visible, "NoDev", 5) == 0))
        return NULL;
    for (int i = 0; i < CVY_COUNT(files); i++)
        if (access(files[i], R_OK | W_OK) == 0)
            return files[i];
    return NULL;
}

void cvy_device_note(const cvy_context *context, const char *given, cvy_text *notes)
{
    const char *file = given || context->opts.device || context->opts.backend ? NULL : cvy_device_file();
    cvy_device device;
    cvy_space_about(&context->space, &device);
    if (!cvy_space_is_host(&context->space))
        cvy_text_add(notes, "device: %s: %s\n", name_of(&context->space).text, cvy_device_title_of(&device).text);
    else if (given && strcmp(given, "auto") == 0)
        cvy_log(context, CVY_LOG_WARN, "device: auto found no GPU, so the host computes: `convoy info` says why");
    else if (file)
        cvy_log(
            context, CVY_LOG_WARN,
            "this node seems to have a GPU (%s), and the host computes: `convoy info` lists the devices, and `device: "
            "auto` uses one; `device: host` silences this",
            file);
}

const char *cvy_context_device(const cvy_context *context)
{
    CVY_ENTRY();
    if (CVY_KNOWN(CONTEXT, context) != CVY_OK)
        return NULL;
    return context->device;
}
