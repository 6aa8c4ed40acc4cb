/*
 * replay.c: makes the states in which a loss of power can leave the disk, and checks the checkpoints in them.
 *
 * It reads the log that shim_io.c has written, stops at random points of one save, and takes back operations that no
 * fsync has made safe. In each folder made in this way, the newest sound checkpoint must be the one before the save or
 * the one that the save wrote.
 *
 *     replay whole LOG DIR OUT
 *         does all operations into the folder OUT; a comparison with DIR shows that the log is complete
 *     replay check LOG DIR OUT RUN OLD NEW COUNT SEED
 *         makes COUNT states of DIR and looks into OUT/RUN/checkpoints: step OLD or NEW must load
 *
 * The disk is assumed to do what POSIX promises and no more. A file's contents are safe after its fsync, and a folder's
 * entries after the fsync of the folder. Anything else may be lost, in any order and in part. Of two renames the later
 * may survive and the earlier may not. Of a write there may be all, nothing, its beginning, or zeros in its place. If a
 * write was lost, the file is as before it; if the entry of a file was lost, the file does not exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_set.h"

#define NAME_BYTES 128
#define SHOWN 3 /* number of wrong states that are described */

enum kind { ENTRY, MOVE, WRITE, TRUNCATE, SYNC, NOTHING };

struct op {
    enum kind kind;
    int folder, to_folder; /* ENTRY, MOVE: nodes whose entries change */
    char name[NAME_BYTES], to_name[NAME_BYTES];
    int node; /* ENTRY: what the name now is, -1: nothing; WRITE, TRUNCATE, SYNC: the file or folder; MOVE: what is
                 moved */
    long long offset, bytes, data_at;
    int safe_at; /* the operation after which it cannot be lost; INT_MAX: none */
    char *line;
};

struct entry {
    int folder, node;
    char name[NAME_BYTES];
}; /* an entry of a folder */
struct node {
    int is_folder;
    char *data;
    size_t bytes;
};

static struct op *ops;
static int nops;
static struct entry *entries;
static int nentries;
static struct node *nodes;
static int nnodes;
static char *data;
static size_t data_bytes;
static unsigned long long state; /* of the random numbers */

static void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("replay: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static void *grow(void *array, int count, size_t bytes)
{
    void *wider = count & (count - 1) ? array : realloc(array, bytes * (size_t)(count ? 2 * count : 1));
    if (!wider)
        die("no memory");
    return wider;
}

static unsigned below(unsigned limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % limit;
}

/* ---- names ---- */

static int new_node(int is_folder)
{
    nodes = grow(nodes, nnodes, sizeof *nodes);
    nodes[nnodes] = (struct node){.is_folder = is_folder};
    return nnodes++;
}

static int find_entry(int folder, const char *name)
{
    for (int i = 0; i < nentries; i++)
        if (entries[i].folder == folder && strcmp(entries[i].name, name) == 0)
            return i;
    return -1;
}

static void set_entry(int folder, const char *name, int node)
{
    int at = find_entry(folder, name);
    if (at < 0 && node < 0)
        return;
    if (node < 0) {
        entries[at] = entries[--nentries];
        return;
    }
    if (at < 0) {
        entries = grow(entries, nentries, sizeof *entries);
        at = nentries++;
        snprintf(entries[at].name, sizeof entries[at].name, "%s", name);
    }
    entries[at].folder = folder;
    entries[at].node = node;
}

/* Returns the folder that holds a path below dir, and copies the last part of the path to `name`. dir itself is node 0
 * and has no name. */
static int folder_of(const char *dir, const char *path, char name[NAME_BYTES])
{
    int folder = 0;
    const char *at = path + strlen(dir);
    name[0] = 0;
    if (strncmp(path, dir, strlen(dir)) != 0)
        die("%s does not lie below %s", path, dir);
    while (*at == '/') {
        const size_t n = strcspn(++at, "/");
        if (name[0]) {
            const int i = find_entry(folder, name);
            if (i < 0)
                die("%s: the log has not made the folder %s", path, name);
            folder = entries[i].node;
        }
        if (n == 0 || n >= NAME_BYTES)
            die("%s: a name of %zu characters", path, n);
        memcpy(name, at, n);
        name[n] = 0;
        at += n;
    }
    return folder;
}

static int node_of(const char *dir, const char *path)
{
    char name[NAME_BYTES];
    const int folder = folder_of(dir, path, name), at = name[0] ? find_entry(folder, name) : -1;
    return !name[0] ? folder : at < 0 ? -1 : entries[at].node;
}

/* ---- reading the log ---- */

static char *read_file(const char *path, size_t *bytes_out)
{
    struct stat stat;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &stat) != 0)
        die("%s: cannot open: %s", path, strerror(errno));
    char *text = malloc((size_t)stat.st_size + 1);
    if (!text || cvy_pread_all(fd, text, (size_t)stat.st_size, 0, path) != CVY_OK)
        die("%s: cannot read", path);
    close(fd);
    text[stat.st_size] = 0;
    *bytes_out = (size_t)stat.st_size;
    return text;
}

/* Parses a line and replaces its paths by nodes. Names are followed as they change, as if nothing were ever lost. */
static struct op read_line(const char *dir, char *line)
{
    struct op op = {.kind = NOTHING, .node = -1, .safe_at = INT_MAX, .line = strdup(line)};
    char verb[16], path[PATH_MAX], to[PATH_MAX] = "";
    if (sscanf(line, "%*d %15s %4095s %4095s", verb, path, to) < 2)
        die("cannot read the line: %s", line);
    if (strcmp(verb, "create") == 0 || strcmp(verb, "mkdir") == 0 || strcmp(verb, "unlink") == 0 ||
        strcmp(verb, "rmdir") == 0) {
        op.kind = ENTRY;
        op.folder = folder_of(dir, path, op.name);
        op.node = verb[0] == 'c' || verb[0] == 'm' ? new_node(verb[0] == 'm') : -1;
        set_entry(op.folder, op.name, op.node);
    } else if (strcmp(verb, "rename") == 0) {
        op.kind = MOVE;
        op.folder = folder_of(dir, path, op.name);
        op.to_folder = folder_of(dir, to, op.to_name);
        op.node = node_of(dir, path);
        set_entry(op.folder, op.name, -1);
        set_entry(op.to_folder, op.to_name, op.node);
    } else if (strcmp(verb, "write") == 0) {
        op.kind = WRITE;
        op.node = node_of(dir, path);
        sscanf(line, "%*d %*s %*s %lld %lld %lld", &op.offset, &op.bytes, &op.data_at);
    } else if (strcmp(verb, "truncate") == 0 || strcmp(verb, "empty") == 0) {
        op.kind = TRUNCATE;
        op.node = node_of(dir, path);
        op.bytes = to[0] ? atoll(to) : 0;
    } else if (strcmp(verb, "fsync") == 0) {
        op.kind = SYNC;
        op.node = node_of(dir, path);
    }
    if ((op.kind == WRITE || op.kind == TRUNCATE || op.kind == SYNC || op.kind == MOVE) && op.node < 0)
        die("%s: is not there", path);
    return op;
}

static int sync_after(int at, int node)
{
    for (int i = at + 1; i < nops; i++)
        if (ops[i].kind == SYNC && ops[i].node == node)
            return i;
    return INT_MAX;
}

static void read_log(const char *log, const char *dir)
{
    char path[PATH_MAX];
    size_t bytes = 0;
    char *text = read_file(log, &bytes);
    snprintf(path, sizeof path, "%s.data", log);
    data = read_file(path, &data_bytes);
    new_node(1);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        ops = grow(ops, nops, sizeof *ops);
        ops[nops] = read_line(dir, line);
        nops++;
    }
    for (int i = 0; i < nops; i++)
        switch (ops[i].kind) {
        case ENTRY: ops[i].safe_at = sync_after(i, ops[i].folder); break;
        case MOVE: ops[i].safe_at = CVY_MAX(sync_after(i, ops[i].folder), sync_after(i, ops[i].to_folder)); break;
        case WRITE:
        case TRUNCATE: ops[i].safe_at = sync_after(i, ops[i].node); break;
        default: break;
        }
    free(text);
}

/* ---- a state of the disk ---- */

static void resize(struct node *n, size_t bytes)
{
    n->data = realloc(n->data, bytes + 1);
    if (!n->data)
        die("no memory");
    if (bytes > n->bytes)
        memset(n->data + n->bytes, 0, bytes - n->bytes);
    n->bytes = bytes;
}

static void apply_write(const struct op *op, size_t bytes, int zeros)
{
    struct node *n = &nodes[op->node];
    const size_t end = (size_t)op->offset + bytes;
    if (end > n->bytes)
        resize(n, end);
    if (!zeros)
        memcpy(n->data + op->offset, data + op->data_at, bytes);
}

static void apply(const struct op *op, int is_safe)
{
    switch (op->kind) {
    case ENTRY: set_entry(op->folder, op->name, op->node); break;
    case MOVE:
        set_entry(op->folder, op->name, -1);
        set_entry(op->to_folder, op->to_name, op->node);
        break;
    case TRUNCATE: resize(&nodes[op->node], (size_t)op->bytes); break;
    case WRITE: {
        const unsigned how = is_safe ? 0 : below(4);
        apply_write(op, how == 1 ? below((unsigned)op->bytes) : (size_t)op->bytes, how == 2);
        break;
    }
    default: break;
    }
}

static void forget(void)
{
    nentries = 0;
    for (int i = 0; i < nnodes; i++) {
        free(nodes[i].data);
        nodes[i].data = NULL;
        nodes[i].bytes = 0;
    }
}

static void put(int folder, const char *path)
{
    if (mkdir(path, 0777) != 0)
        die("%s: cannot make: %s", path, strerror(errno));
    for (int i = 0; i < nentries; i++) {
        char inner[PATH_MAX];
        const struct node *n = &nodes[entries[i].node];
        if (entries[i].folder != folder)
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entries[i].name) >= (int)sizeof inner)
            die("%s: too long", path);
        if (n->is_folder) {
            put(entries[i].node, inner);
            continue;
        }
        const int fd = open(inner, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (fd < 0 || cvy_write_all(fd, n->data ? n->data : "", n->bytes, inner) != CVY_OK)
            die("%s: cannot write", inner);
        close(fd);
    }
}

/* Makes what is left of the operations 0 to end - 1. Each of them that is not safe by then stays with a chance of
 * `chance` in 256. */
static void make_state(int end, unsigned chance, char *lost, const char *out)
{
    forget();
    for (int i = 0; i < end; i++) {
        const int is_safe = ops[i].safe_at < end;
        lost[i] = (char)(!is_safe && below(256) >= chance);
        if (!lost[i])
            apply(&ops[i], is_safe);
    }
    (void)!cvy_file_remove_tree(out);
    put(0, out);
}

/* ---- what must hold in a state ---- */

/* A folder with the name of a complete set must be a complete set, even if it is never loaded because there is a newer
 * one. */
static cvy_status check_all(const char *sets_folder)
{
    cvy_pool *pool = NULL;
    cvy_set *sets = NULL;
    int64_t count = 0;
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_set_list(pool, sets_folder, &sets, &count);
    for (int64_t i = 0; i < count && status == CVY_OK; i++)
        if (sets[i].kind != CVY_SET_PARTIAL)
            status = cvy_set_verify(&sets[i]);
    cvy_pool_destroy(&pool);
    return status;
}

static cvy_status check(const char *sets_folder, int64_t least, int64_t most, int64_t *step_out)
{
    cvy_checkpoint c;
    cvy_status status = cvy_checkpoint_find(sets_folder, NULL, &c);
    *step_out = c.step;
    if (status == CVY_OK && c.step != least && c.step != most)
        status = cvy_error_set(CVY_E_FORMAT, "step %lld is loaded, not %lld or %lld", (long long)c.step,
                               (long long)least, (long long)most);
    cvy_checkpoint_close(&c);
    return status == CVY_OK ? check_all(sets_folder) : status == CVY_END ? CVY_E_FORMAT : status;
}

static void describe(int end, const char *lost)
{
    printf("  power is lost before: %s\n", end < nops ? ops[end].line : "the end");
    for (int i = 0; i < end; i++)
        if (lost[i] && ops[i].kind != SYNC && ops[i].kind != NOTHING)
            printf("  lost: %s\n", ops[i].line);
}

static int first_with(const char *text, int from)
{
    for (int i = from; i < nops; i++)
        if (strstr(ops[i].line, text))
            return i;
    return nops;
}

/* Finds the operation that gives the set its name. */
static int find_commit(const char *name)
{
    for (int i = 0; i < nops; i++)
        if (ops[i].kind == MOVE && strcmp(ops[i].to_name, name) == 0)
            return i;
    die("the log has no save of %s", name);
}

static int check_states(const char *out, const char *run, int64_t old_step, int64_t new_step, int count)
{
    char set[NAME_BYTES], sets_folder[PATH_MAX];
    int ngood = 0, nold = 0;
    char *lost = calloc((size_t)nops + 1, 1);
    snprintf(set, sizeof set, "step-%08lld", (long long)new_step);
    snprintf(sets_folder, sizeof sets_folder, "%s/%s/checkpoints", out, run);
    const int begin = first_with(set, 0), commit = find_commit(set);
    int end = nops; /* where the next save begins */
    for (int i = commit + 1; i < nops && end == nops; i++)
        if (ops[i].kind == ENTRY && ops[i].node >= 0 && strncmp(ops[i].name, "step-", 5) == 0)
            end = i;
    for (int k = 0; k < count; k++) {
        const int at = begin + (int)below((unsigned)(end - begin + 1));
        int64_t step = -1;
        make_state(at, (unsigned[]){0, 64, 128, 192, 256}[below(5)], lost, out);
        const cvy_status status = check(sets_folder, at > ops[commit].safe_at ? new_step : old_step,
                                        at <= commit ? old_step : new_step, &step);
        ngood += status == CVY_OK;
        nold += status == CVY_OK && step == old_step;
        if (status == CVY_OK)
            continue;
        if (k - ngood < SHOWN) {
            printf("replay: state %d: %s\n", k + 1, cvy_error_text());
            describe(at, lost);
        }
    }
    printf("count: replay: %d of %d losses of power in the save of step %lld (%d operations) leave a sound set: that "
           "of step %lld %d times, the new one %d times\n",
           ngood, count, (long long)new_step, end - begin, (long long)old_step, nold, ngood - nold);
    free(lost);
    return ngood != count;
}

int main(int argc, char **argv)
{
    const int is_whole = argc == 5 && strcmp(argv[1], "whole") == 0;
    if (!is_whole && !(argc == 10 && strcmp(argv[1], "check") == 0))
        die("usage: replay whole LOG DIR OUT, or replay check LOG DIR OUT RUN OLD NEW COUNT SEED");
    read_log(argv[2], argv[3]);
    if (!is_whole) {
        state = strtoull(argv[9], NULL, 10) * 2654435761u + 1;
        return check_states(argv[4], argv[5], atoll(argv[6]), atoll(argv[7]), atoi(argv[8]));
    }
    char *lost = calloc((size_t)nops + 1, 1);
    for (int i = 0; i < nops; i++)
        ops[i].safe_at = -1;
    make_state(nops, 256, lost, argv[4]);
    free(lost);
    return 0;
}
