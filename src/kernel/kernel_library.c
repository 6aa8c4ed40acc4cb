/*
 * kernel_library.c: finds a kernel's library, and reads the user's choice of kernels, which comes from plan.kernels of
 * a job, from cvy_program_opts.kernels, or from --kernels and --against of the command.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/kernel_library.h"

#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "base/text/base_text.h"

const cvy_library_def *cvy_kernel_library(const cvy_kernel_def *kernel)
{
    int count = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(table[i]->name);
        if (strncmp(kernel->name, table[i]->name, length) == 0 && kernel->name[length] == '.')
            return table[i];
    }
    return NULL;
}

int cvy_kernel_fits(const cvy_kernel_def *kernel, const cvy_space *space)
{
    const cvy_library_def *library = cvy_kernel_library(kernel);
    return library ? cvy_library_fits(library, space) : cvy_space_is_host(space);
}

void cvy_kernel_libraries_about(const cvy_space *space, char *text, size_t room)
{
    int count = 0;
    size_t length = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    text[0] = 0;
    for (int i = 0; i < count && length + 2 < room; i++)
        if (table[i]->about && cvy_library_fits(table[i], space)) {
            if (length)
                length += (size_t)snprintf(text + length, room - length, ", ");
            table[i]->about(space, text + length, room - length);
            length += strlen(text + length);
        }
    if (!length)
        snprintf(text, room, cvy_space_is_host(space) ? "no oneDNN" : "no cuDNN");
}

/* ---- the choice ---- */

struct word {
    const char *name, *help;
    cvy_kernels kernels;
};

/* Each of these words stands alone. All other words are names of libraries. */
static const struct word words[] = {
    {"auto", "all kernels: the fastest known one for each node", {0}},
    {"direct", "all kernels but Winograd convolutions", {.no_winograd = 1}},
    {"clock", "nothing is computed: a step waits for the measured times of its kernels", {.by_clock = 1}},
    {"reference",
     "the operators' reference kernels alone, which are slow; they also run what a library has no kernel for",
     {.listed = 1}},
};

/* Libraries that a build may leave out. */
static const char *const optional[] = {"onednn"};

const char *cvy_kernels_word(int i, const char **help_out)
{
    int count = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    const int library = i - CVY_COUNT(words);
    if (i < 0 || library >= count)
        return NULL;
    *help_out = library < 0 ? words[i].help : table[library]->help;
    return library < 0 ? words[i].name : table[library]->name;
}

static cvy_status unknown_word(const char *text, const char *word)
{
    const char *known[CVY_COUNT(words) + CVY_KERNELS_MAX], *help;
    int nknown = 0;
    cvy_text t = {0};
    for (int i = 0; i < CVY_COUNT(optional); i++)
        CVY_CHECK(strcmp(word, optional[i]) != 0, CVY_E_UNSUPPORTED,
                  "\"%s\": this build of convoy has no %s kernels (CONVOY_WITH_ONEDNN was off)", text, word);
    while (nknown < CVY_COUNT(known) && (known[nknown] = cvy_kernels_word(nknown, &help)) != NULL)
        nknown++;
    cvy_text_add(&t, "\"%s\" is not a choice of kernels%s", word, cvy_hint_name('"', word, known, nknown).text);
    for (int i = 0; i < nknown; i++)
        cvy_text_add(&t, "%s%s", i == 0 ? " (expected " : i + 1 < nknown ? ", " : " or ", known[i]);
    const cvy_status status =
        cvy_error_set(CVY_E_CONFIG, "%s; or libraries separated by commas)", t.data ? t.data : word);
    cvy_text_free(&t);
    return status;
}

static cvy_status add_library(const char *text, const char *word, cvy_kernels *out)
{
    const cvy_library_def *library = cvy_library_find(word);
    for (int i = 0; i < CVY_COUNT(words); i++)
        CVY_CHECK(
            strcmp(word, words[i].name) != 0, CVY_E_CONFIG,
            "\"%s\": \"%s\" cannot be combined with others; only libraries can be listed, and reference after them",
            text, word);
    if (!library)
        return unknown_word(text, word);
    for (int i = 0; i < out->nlibrary; i++)
        CVY_CHECK(out->library[i] != library, CVY_E_CONFIG, "\"%s\" names %s twice", text, word);
    CVY_CHECK(out->nlibrary < CVY_KERNELS_MAX, CVY_E_CONFIG, "\"%s\": more than %d libraries", text, CVY_KERNELS_MAX);
    out->library[out->nlibrary++] = library;
    return CVY_OK;
}

cvy_status cvy_kernels_parse(const char *text, cvy_kernels *out)
{
    static const char blank[] = ", \t";
    cvy_kernels kernels = {.listed = 1};
    const char *whole = text ? text : "auto";
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strcmp(whole, words[i].name) == 0) {
            *out = words[i].kernels;
            return CVY_OK;
        }
    for (const char *at = whole + strspn(whole, blank); *at; at += strspn(at, blank)) {
        char word[32];
        const size_t length = strcspn(at, blank);
        snprintf(word, sizeof word, "%.*s", (int)CVY_MIN(length, sizeof word - 1), at);
        at += length;
        const int last = at[strspn(at, blank)] == 0;
        if (!last || strcmp(word, "reference") != 0 || kernels.nlibrary == 0)
            CVY_TRY(add_library(whole, word, &kernels));
    }
    CVY_CHECK(kernels.nlibrary > 0, CVY_E_CONFIG, "\"%s\" names no kernels, expected auto or another choice", whole);
    *out = kernels;
    return CVY_OK;
}

static const char *place_of(const cvy_library_def *library)
{
    return library->backend ? "a device of CUDA" : library->on_gpu ? "a GPU" : "the host";
}

cvy_status cvy_kernels_tie(cvy_kernels *kernels, const cvy_space *space)
{
    for (int i = 0; i < kernels->nlibrary; i++)
        CVY_CHECK(cvy_library_fits(kernels->library[i], space), CVY_E_CONFIG,
                  "the kernels of %s work on the memory of %s, and this run is on %s", kernels->library[i]->name,
                  place_of(kernels->library[i]), space ? space->backend->name : "host");
    kernels->space = space;
    return CVY_OK;
}

/* The place of a library in the order of asking; negative: its kernels are not asked. */
static int place_of_library(const cvy_kernels *kernels, const cvy_library_def *library)
{
    for (int i = 0; i < kernels->nlibrary; i++)
        if (kernels->library[i] == library)
            return i;
    return kernels->listed ? -1 : 0;
}

cvy_status cvy_kernels_tf32(const cvy_kernels *kernels)
{
    int count = 0;
    const cvy_library_def *const *table = cvy_library_table(&count);
    cvy_status status = cvy_error_set(CVY_NOT_APPLICABLE, "no library of kernels multiplies in TF32");
    for (int i = 0; i < count && status != CVY_OK; i++) {
        if (!table[i]->tf32)
            continue;
        if (!cvy_library_fits(table[i], kernels->space))
            status = cvy_error_set(CVY_NOT_APPLICABLE, "only %s multiplies in TF32, and it needs %s", table[i]->name,
                                   place_of(table[i]));
        else if (place_of_library(kernels, table[i]) < 0)
            status = cvy_error_set(CVY_NOT_APPLICABLE, "only %s multiplies in TF32, and plan.kernels leaves it out",
                                   table[i]->name);
        else
            status = table[i]->ready ? table[i]->ready(kernels->space) : CVY_OK;
    }
    return status;
}

int cvy_kernels_place(const cvy_kernels *kernels, const cvy_kernel_def *kernel)
{
    if (kernels->no_winograd && kernel->winograd)
        return -1;
    const cvy_library_def *library = cvy_kernel_library(kernel);
    if (library ? !cvy_library_fits(library, kernels->space) : kernels->space && kernels->space->backend->gpu)
        return -1;
    return place_of_library(kernels, library);
}

int cvy_kernels_fuse_updates(const cvy_kernels *kernels)
{
    int count = 0, found = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int i = 0; i < count && !found; i++) {
        const cvy_op_def *op = cvy_op_find(table[i]->op);
        found = op && op->factors && cvy_kernels_place(kernels, table[i]) >= 0;
    }
    return found;
}
