/*
 * kit_seal.c: the seal of the predictions. It is a list of SHA-256 sums, as `sha256sum -c` reads it, of the platform,
 * the study files and the predictions, with a line on when and by which program it was made. The sum of the seal itself
 * stands in the journal of each job that measures, and on the page. So a prediction that is changed afterwards no
 * longer agrees with the seal, and a new seal no longer agrees with the journals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#include <sys/utsname.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "kit/kit_file.h"

/* The files that a seal covers: number 0, 1, ..; NULL: there are no more. Those that do not exist are left out. */
static cvy_status name_file(const cvy_kit *kit, int number, char **out)
{
    const int of_study = number - 2;
    *out = NULL;
    if (number == 0)
        return cvy_pool_strdup(kit->pool, "kit.yaml", out);
    if (number == 1)
        return cvy_pool_strdup(kit->pool, CVY_KIT_PLATFORM, out);
    if (of_study / 2 >= kit->nstudy)
        return CVY_OK;
    return cvy_pool_printf(kit->pool, out, of_study % 2 ? "results/%s/results-predictions.jsonl" : "studies/%s.yaml",
                           kit->study[of_study / 2]);
}

/* "": there is no such file. */
static cvy_status hash_file(const cvy_kit *kit, const char *name, char hash[CVY_KIT_HASH])
{
    char *path = NULL, *data = NULL;
    size_t bytes = 0;
    *hash = '\0';
    CVY_TRY(cvy_kit_path(kit, &path, "%s", name));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, (size_t)1 << 30, &data, &bytes));
    cvy_kit_sha256(data, bytes, hash);
    cvy_mem_free(&data);
    return CVY_OK;
}

cvy_status cvy_kit_make_seal(const cvy_kit *kit, const char *commit, const char *note)
{
    struct utsname system = {.nodename = ""};
    char time[32], hash[CVY_KIT_HASH], *path = NULL, *name = NULL;
    cvy_text text = {0};
    cvy_clock_text(time);
    uname(&system);
    cvy_text_add(&text, "# %s by convoy %s%s%s on %s: %s\n", time, cvy_version(), commit && *commit ? ", commit " : "",
                 commit ? commit : "", system.nodename, note);
    cvy_status status = cvy_kit_path(kit, &path, CVY_KIT_SEAL);
    for (int i = 0; status == CVY_OK; i++) {
        status = name_file(kit, i, &name);
        if (status != CVY_OK || !name)
            break;
        status = hash_file(kit, name, hash);
        if (*hash)
            cvy_text_add(&text, "%s  %s\n", hash, name);
    }
    status = status == CVY_OK ? text.status : status;
    if (status == CVY_OK)
        status = cvy_file_replace(path, text.data, text.bytes);
    cvy_text_free(&text);
    return status;
}

/* Compares a line "HASH  NAME" with the file. */
static cvy_status compare(const cvy_kit *kit, const char *line, size_t length, cvy_text *changed)
{
    enum { GAP = 2, HASH = CVY_KIT_HASH - 1 };
    char now[CVY_KIT_HASH], *name = NULL;
    if (length <= HASH + GAP)
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(kit->pool, &name, "%.*s", (int)(length - HASH - GAP), line + HASH + GAP));
    if (*name == '/' || strstr(name, ".."))
        return CVY_OK; /* no file of the kit */
    CVY_TRY(hash_file(kit, name, now));
    if (strncmp(now, line, HASH) != 0)
        cvy_text_add(changed, "%s%s%s", changed->bytes > 0 ? ", " : "", name, *now ? "" : " (missing)");
    return changed->status;
}

cvy_status cvy_kit_read_seal(const cvy_kit *kit, cvy_kit_seal *out)
{
    char *path = NULL, *made = NULL, *names = NULL;
    const char *text = NULL;
    cvy_text changed = {0};
    *out = (cvy_kit_seal){.made = NULL};
    CVY_TRY(cvy_kit_path(kit, &path, CVY_KIT_SEAL));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_kit_text(kit, path, &text));
    cvy_kit_sha256(text, strlen(text), out->hash);
    const char *first = text + strspn(text, "# ");
    CVY_TRY(cvy_pool_printf(kit->pool, &made, "%.*s", (int)strcspn(first, "\n"), first));
    cvy_status status = CVY_OK;
    for (const char *at = text; *at && status == CVY_OK;) {
        const size_t length = strcspn(at, "\n");
        if (*at != '#')
            status = compare(kit, at, length, &changed);
        at += length + (at[length] == '\n');
    }
    if (status == CVY_OK && changed.bytes > 0)
        status = cvy_pool_strdup(kit->pool, changed.data, &names);
    cvy_text_free(&changed);
    out->made = made;
    out->changed = names;
    return status;
}
