/*
 * gpu_vendor.c: loads cuDNN and NCCL, and checks their versions. A variable of the environment names another file, or
 * is "off".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "backend/gpu/gpu_vendor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    const char *key, *title, *file, *variable;
    const char *needs, *instead;                       /* which versions convoy can use; what it does without it */
    const char *version;                               /* the function that says the version */
    int (*read_version)(void *function, int *numbers); /* writes three numbers; not 0: the fault of the function */
    int oldest[2], newest;                             /* newest: the last major version */
    const char *others[4]; /* files of other major versions, which are only named; the last is NULL */
};

/* 91900: 9.19.0. Until cuDNN 8 a version was 8907: 8.9.7. */
static int read_cudnn(void *function, int *numbers)
{
    size_t (*get)(void) = NULL;
    memcpy(&get, &function, sizeof get);
    const int version = (int)get(), unit = version < 10000 ? 1000 : 10000;
    numbers[0] = version / unit;
    numbers[1] = version % unit / 100;
    numbers[2] = version % 100;
    return 0;
}

static int read_nccl(void *function, int *numbers)
{
    int (*get)(int *) = NULL, version = 0;
    memcpy(&get, &function, sizeof get);
    const int result = get(&version), unit = version < 10000 ? 1000 : 10000;
    numbers[0] = version / unit;
    numbers[1] = version % unit / 100;
    numbers[2] = version % 100;
    return result;
}

static const struct kind kinds[CVY_VENDORS] = {
    [CVY_VENDOR_CUDNN] = {"cudnn",
                          "cuDNN",
                          "libcudnn.so.9",
                          "CONVOY_CUDNN",
                          "cuDNN 9",
                          "convoy's own kernels are used instead",
                          "cudnnGetVersion",
                          read_cudnn,
                          {9, 0},
                          9,
                          {"libcudnn.so.10", "libcudnn.so.8", "libcudnn.so.7"}},
    [CVY_VENDOR_NCCL] = {"nccl",
                         "NCCL",
                         "libnccl.so.2",
                         "CONVOY_NCCL",
                         "NCCL 2.13 or newer",
                         "ranks exchange tensors through the host's memory instead",
                         "ncclGetVersion",
                         read_nccl,
                         {2, 13},
                         2,
                         {"libnccl.so.3", "libnccl.so.1"}},
};

static cvy_vendor vendors[CVY_VENDORS];

/* Names the file of another major version, if there is one. */
static void name_other(const struct kind *k, cvy_vendor *v)
{
    for (int i = 0; k->others[i]; i++) {
        void *other = dlopen(k->others[i], RTLD_LAZY | RTLD_LOCAL);
        const size_t n = strlen(v->why);
        if (!other)
            continue;
        snprintf(v->why + n, sizeof v->why - n, "; there is %s, which is another major version", k->others[i]);
        dlclose(other);
        return;
    }
}

static void check_version(const struct kind *k, cvy_vendor *v)
{
    int n[3] = {0};
    Dl_info where;
    void *function = dlsym(v->library, k->version);
    v->path = function && dladdr(function, &where) && where.dli_fname ? where.dli_fname : k->file;
    if (!function) {
        snprintf(v->why, sizeof v->why, "%s has no function %s, and convoy needs %s", v->path, k->version, k->needs);
        return;
    }
    const int result = k->read_version(function, n);
    snprintf(v->version, sizeof v->version, "%d.%d.%d", n[0], n[1], n[2]);
    if (result != 0)
        snprintf(v->why, sizeof v->why, "%s does not say its version: %s fails with %d", v->path, k->version, result);
    else if (n[0] > k->newest || n[0] < k->oldest[0] || (n[0] == k->oldest[0] && n[1] < k->oldest[1]))
        snprintf(v->why, sizeof v->why, "%s is %s %d.%d.%d, and convoy needs %s", v->path, k->title, n[0], n[1], n[2],
                 k->needs);
}

static void load(const struct kind *k, cvy_vendor *v)
{
    const char *given = getenv(k->variable), *file = given && *given ? given : k->file;
    if (strcmp(file, "off") == 0) {
        snprintf(v->why, sizeof v->why, "the variable %s says off", k->variable);
        return;
    }
    v->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (v->library) {
        check_version(k, v);
        return;
    }
    const char *error = dlerror();
    snprintf(v->why, sizeof v->why, "%s cannot be loaded (%.300s)", k->title, error ? error : file);
    if (file == k->file)
        name_other(k, v);
    const size_t n = strlen(v->why);
    snprintf(v->why + n, sizeof v->why - n, ": install %s, or name its file in the variable %s", k->file, k->variable);
}

const cvy_vendor *cvy_vendor_load(cvy_vendor_name name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int is_loaded[CVY_VENDORS];
    pthread_mutex_lock(&lock);
    if (!is_loaded[name])
        load(&kinds[name], &vendors[name]);
    is_loaded[name] = 1;
    pthread_mutex_unlock(&lock);
    return &vendors[name];
}

int cvy_vendor_find(cvy_vendor_name name, const char *function, void *out)
{
    const struct kind *k = &kinds[name];
    cvy_vendor *v = &vendors[name];
    void *at = v->library ? dlsym(v->library, function) : NULL;
    if (!at && !v->why[0])
        snprintf(v->why, sizeof v->why, "%s has no function %s, and convoy needs %s", v->path, function, k->needs);
    memcpy(out, &at, sizeof at);
    return at != NULL;
}

void cvy_vendors_print(cvy_text *out)
{
    for (int i = 0; i < CVY_VENDORS; i++) {
        const cvy_vendor *v = cvy_vendor_load(i);
        if (v->why[0])
            cvy_text_add(out, "%s none: %s; %s\n", kinds[i].key, v->why, kinds[i].instead);
        else
            cvy_text_add(out, "%s %s, %s\n", kinds[i].key, v->version, v->path);
    }
}
