/*
 * base_groups.c: see base_groups.h. Sources: cgroups(7), and the kernel's admin-guide/cgroup-v1 and cgroup-v2.
 *
 * systemd, and every container runtime after it, mounts version 2 at /sys/fs/cgroup. Where both versions are in use,
 * version 2 is at /sys/fs/cgroup/unified, and each hierarchy of version 1 at /sys/fs/cgroup/NAME, with the name of one
 * controller or of several ("cpu,cpuacct"). In a container the path of the group may be that of the host, and its own
 * group is at the mount point: the folders on the way that do not exist are of no harm.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_groups.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_BYTES = 4352, FOLDER_BYTES = 8192 };

static void visit_upwards(const char *root, const char *mount, const char *group, int is_v2, cvy_group_fn *visit,
                          void *user)
{
    char folder[FOLDER_BYTES];
    const int top = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s", root, mount);
    if (strncmp(group, "/..", 3) == 0) /* of another namespace, which does not show here */
        group = "";
    int n = snprintf(folder + top, sizeof folder - (size_t)top, "%s", group);
    for (n = n < (int)sizeof folder - top ? top + n : top; n >= top; folder[n] = '\0') {
        while (n > top && folder[n - 1] == '/')
            folder[--n] = '\0';
        visit(user, folder, is_v2);
        if (n == top)
            return;
        while (n > top && folder[n - 1] != '/')
            n--;
    }
}

/* Whether a list such as "cpu,cpuacct" has the word. */
static int has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : at)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return 1;
    return 0;
}

void cvy_groups_visit(const char *root, const char *controller, cvy_group_fn *visit, void *user)
{
    char line[LINE_BYTES], mount[256];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    while (file && fgets(line, sizeof line, file)) { /* "0::/group" (version 2), "4:cpu,cpuacct:/group" */
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        list++;
        if (*list == '\0') {
            visit_upwards(root, "", group, 1, visit, user);
            visit_upwards(root, "/unified", group, 1, visit, user);
        } else if (has_word(list, controller)) {
            snprintf(mount, sizeof mount, "/%.128s", list);
            visit_upwards(root, mount, group, 0, visit, user);
            snprintf(mount, sizeof mount, "/%s", controller);
            if (strcmp(list, controller) != 0)
                visit_upwards(root, mount, group, 0, visit, user);
        }
    }
    if (file)
        fclose(file);
}

uint64_t cvy_group_id(const char *folder)
{
    struct stat s;
    return stat(folder, &s) == 0 ? (uint64_t)s.st_dev << 40 ^ (uint64_t)s.st_ino : 0;
}

int64_t cvy_group_number(const char *folder, const char *file)
{
    char path[FOLDER_BYTES + 64];
    long long value = -1;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lld", &value) != 1)
        value = -1;
    if (f)
        fclose(f);
    return value;
}
