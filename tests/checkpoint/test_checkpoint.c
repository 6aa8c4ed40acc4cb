/* rows: clang asan soak */
/*
 * test_checkpoint.c: what is saved is read back bit by bit; whatever happens to a set's files or to a save, an older
 * sound set is found.
 *
 * System calls fail on demand: in this program the functions below replace those of the C library. CONVOY_TEST_LEVEL
 * and CONVOY_TEST_SEED (docs/internals/testing.md) choose how many bits are flipped, at how many lengths files are cut,
 * and which ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/tree_confusion.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_manifest.h"
#include "checkpoint/checkpoint_set.h"
#include "test_util.h"

/* ---- failing calls: the k-th from now fails with this error; writes can be short ---- */

static int calls, fail_at, fail_errno, kill_at, short_writes;

static int must_fail(void)
{
    calls++;
    if (calls == kill_at)
        kill(getpid(), SIGKILL);
    if (fail_at == 0 || calls != fail_at)
        return 0;
    errno = fail_errno;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t bytes)
{
    static int odd;
    if (short_writes && (odd ^= 1)) {
        errno = EINTR;
        return -1;
    }
    return must_fail() ? -1 : REAL(write)(fd, data, short_writes ? CVY_MIN(bytes, (size_t)7) : bytes);
}

int fsync(int fd)
{
    return must_fail() ? -1 : REAL(fsync)(fd);
}

int rename(const char *from, const char *to)
{
    return must_fail() ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    return must_fail() ? -1 : REAL(mkdir)(path, mode);
}

int unlinkat(int fd, const char *path, int flags)
{
    return must_fail() ? -1 : REAL(unlinkat)(fd, path, flags);
}

/* ---- a small training run ---- */

static char root[] = "/tmp/cvy-checkpoint-XXXXXX";
static char dir[256];

static const struct {
    const char *name;
    cvy_role role;
    cvy_dtype dtype;
    cvy_shape shape;
    const char *layout;
} rows[] = {
    {"conv1.weight", CVY_ROLE_WEIGHT, CVY_DTYPE_F32, {4, {5, 3, 3, 3}}, "ABcd8b8a"},
    {"conv1.bias", CVY_ROLE_WEIGHT, CVY_DTYPE_F32, {1, {5}}, ""},
    {"conv1.weight.momentum", CVY_ROLE_STATE, CVY_DTYPE_F32, {4, {5, 3, 3, 3}}, "ABcd8b8a"},
    {"bn1.mean", CVY_ROLE_STATISTIC, CVY_DTYPE_F64, {1, {5}}, ""},
};

/* Makes variables whose elements all depend on salt. `bias` is the first dimension of one of them. */
static cvy_vars *make_vars(int salt, int count, int64_t bias)
{
    cvy_vars *vars = NULL;
    EXPECT_OK(cvy_vars_create(&vars));
    for (int i = 0; i < count; i++) {
        cvy_variable *v = NULL;
        cvy_shape shape = rows[i].shape;
        cvy_blocking blocking;
        char plain[4096] = {0};
        if (i == 1)
            shape.dim[0] = bias;
        EXPECT_OK(cvy_vars_declare(vars, rows[i].name, rows[i].role, rows[i].dtype, &shape, NULL, &v));
        v->layout = cvy_layout_make(rows[i].layout);
        EXPECT_OK(cvy_blocking_make(&v->layout, &v->shape, &blocking));
        v->bytes = (size_t)blocking.elems * cvy_dtype_bytes(v->dtype);
        EXPECT_OK(cvy_mem_alloc_pages(v->bytes, &v->data));
        for (size_t k = 0; k < sizeof plain; k++)
            plain[k] = (char)(salt * 31 + i * 7 + (int)k * 13);
        EXPECT_OK(cvy_variable_write(v, plain));
    }
    return vars;
}

static void expect_same(const cvy_vars *a, const cvy_vars *b)
{
    for (int i = 0; i < a->count; i++)
        EXPECT(memcmp(a->at[i]->data, b->at[i]->data, a->at[i]->bytes) == 0);
}

static cvy_status save(int64_t step, int keep)
{
    char state[64];
    cvy_vars *vars = make_vars((int)step, CVY_COUNT(rows), 5);
    snprintf(state, sizeof state, "{\"step\": %lld, \"epoch\": 1}", (long long)step);
    const cvy_status status = cvy_checkpoint_save(&(cvy_save_opts){.dir = dir,
                                                                   .step = step,
                                                                   .vars = vars,
                                                                   .state_json = state,
                                                                   .plan_json = "{\"choices\": []}",
                                                                   .keep = keep,
                                                                   .nparts = 1});
    cvy_vars_destroy(&vars);
    return status;
}

/* Checks that the newest sound set is that of this step and holds its values. */
static void found(int64_t step, int nmessage)
{
    cvy_checkpoint c;
    cvy_vars *expected = make_vars((int)step, CVY_COUNT(rows), 5), *vars = make_vars(-1, CVY_COUNT(rows), 5);
    if (cvy_checkpoint_find(dir, NULL, &c) != CVY_OK)
        TEST_FAIL("%s", cvy_error_text());
    EXPECT_INT(c.step, step);
    EXPECT_INT(c.nmessage, nmessage);
    int64_t noted = 0;
    EXPECT_OK(cvy_tree_int(cvy_tree_get(c.state, "step"), &noted));
    EXPECT_INT(noted, step);
    EXPECT_OK(cvy_checkpoint_load(&c, NULL, vars, 1));
    expect_same(vars, expected);
    cvy_checkpoint_close(&c);
    cvy_vars_destroy(&vars);
    cvy_vars_destroy(&expected);
}

static int exists(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return cvy_file_exists(path);
}

static void nothing_aside(void)
{
    cvy_pool *pool = NULL;
    cvy_set *sets = NULL;
    int64_t count = 0;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_set_list(pool, dir, &sets, &count));
    for (int64_t i = 0; i < count; i++)
        EXPECT_INT(sets[i].kind, CVY_SET_WHOLE);
    cvy_pool_destroy(&pool);
}

static void begin(void)
{
    calls = fail_at = kill_at = short_writes = 0;
    strcpy(root + strlen(root) - 6, "XXXXXX");
    EXPECT(mkdtemp(root) != NULL);
    snprintf(dir, sizeof dir, "%s/run/checkpoints", root);
}

static void end(void)
{
    calls = fail_at = kill_at = short_writes = 0;
    EXPECT_OK(cvy_file_remove_tree(root));
}

/* ---- tests ---- */

static void save_and_load(void)
{
    cvy_checkpoint c;
    EXPECT_INT(cvy_checkpoint_find(dir, NULL, &c), CVY_END);
    cvy_checkpoint_close(&c);
    EXPECT_OK(save(10, 3));
    found(10, 0);
    EXPECT_OK(save(20, 3));
    found(20, 0);
    EXPECT_OK(cvy_checkpoint_find(dir, "step-10", &c));
    EXPECT_INT(c.step, 10);
    EXPECT_TEXT(c.plan_json, "{\"choices\": []}");
    cvy_checkpoint_close(&c);
    EXPECT_INT(cvy_checkpoint_find(dir, "step-11", &c), CVY_E_IO);
    cvy_checkpoint_close(&c);
    EXPECT_INT(cvy_checkpoint_find(dir, "last", &c), CVY_E_ARGUMENT);
    cvy_checkpoint_close(&c);
    short_writes = 1;
    EXPECT_OK(save(30, 3));
    found(30, 0);
}

static void keeps_newest_best_and_protected(void)
{
    cvy_checkpoint c;
    EXPECT_INT(cvy_checkpoint_find(dir, "best", &c), CVY_END);
    cvy_checkpoint_close(&c);
    for (int step = 1; step <= 6; step++) {
        EXPECT_OK(save(step, 2));
        if (step == 2)
            EXPECT_OK(cvy_checkpoint_mark_best(dir, 2));
    }
    EXPECT(exists("step-00000002") && exists("step-00000005") && exists("step-00000006"));
    EXPECT(!(exists("step-00000001") || exists("step-00000003") || exists("step-00000004")));
    EXPECT_OK(cvy_checkpoint_find(dir, "best", &c));
    EXPECT_INT(c.step, 2);
    cvy_checkpoint_close(&c);
    EXPECT_INT(cvy_checkpoint_mark_best(dir, 3), CVY_E_ARGUMENT);
    EXPECT_OK(save(7, 1)); /* two sound sets always stay */
    EXPECT(exists("step-00000007") && exists("step-00000002"));
    EXPECT_OK(save(4, 1)); /* training continues from an older set: the one just written stays */
    EXPECT(exists("step-00000004"));
    nothing_aside();
}

static void two_verified_sets_stay(void)
{
    char path[512];
    for (int step = 1; step <= 3; step++)
        EXPECT_OK(save(step, 0));
    snprintf(path, sizeof path, "%s/step-00000003/weights.safetensors", dir);
    EXPECT_INT(truncate(path, 100), 0);
    EXPECT_OK(save(4, 2));
    EXPECT(exists("step-00000002")); /* 3 is damaged: 4 and 2 are the two sound ones */
    EXPECT(!(exists("step-00000001")));
}

static void same_step_again(void)
{
    char old[512], replaced[600];
    EXPECT_OK(save(10, 2));
    EXPECT_OK(save(10, 2));
    found(10, 0);
    nothing_aside();
    snprintf(old, sizeof old, "%s/step-00000010", dir);
    snprintf(replaced, sizeof replaced, "%s.replaced", old);
    EXPECT_INT(rename(old, replaced), 0); /* killed between the two renames */
    found(10, 0);
    EXPECT_OK(save(10, 2));
    found(10, 0);
    nothing_aside();
}

static int level(int few, int more, int all)
{
    const char *text = getenv("CONVOY_TEST_LEVEL");
    const int level = text ? atoi(text) : 1;
    return level <= 1 ? few : level == 2 ? more : all;
}

/* Saves as save() does, but with several writers: the tensors are in as many files. */
static void save_in_parts(int64_t step, int nparts)
{
    enum { PARTS = 4 };
    cvy_vars *vars = make_vars((int)step, CVY_COUNT(rows), 5);
    cvy_save *saves[PARTS] = {NULL};
    cvy_manifest_file all[PARTS * CVY_SAVE_FILES], file[CVY_SAVE_FILES];
    int count = 0;
    char state[64];
    snprintf(state, sizeof state, "{\"step\": %lld, \"epoch\": 1}", (long long)step);
    for (int part = 0; part < nparts; part++) {
        const cvy_save_opts opts = {.dir = dir,
                                    .step = step,
                                    .vars = vars,
                                    .state_json = state,
                                    .plan_json = "{\"choices\": []}",
                                    .part = part,
                                    .nparts = nparts};
        EXPECT_OK(cvy_save_create(&opts, &saves[part]));
        if (part == 0)
            EXPECT_OK(cvy_save_make_folder(saves[0]));
    }
    for (int part = 0; part < nparts; part++) {
        EXPECT_OK(cvy_save_write(saves[part]));
        const int n = cvy_save_files(saves[part], file);
        for (int i = 0; i < n; i++)
            all[count++] = file[i];
    }
    EXPECT_OK(cvy_save_commit(saves[0], all, count));
    for (int part = 0; part < nparts; part++)
        cvy_save_destroy(&saves[part]);
    cvy_vars_destroy(&vars);
}

/* Returns whether set 2 is rejected, set 1 is used and the message names the set and the file. */
static int damage_found(const char *file)
{
    cvy_checkpoint c, named;
    const int passed_over = cvy_checkpoint_find(dir, NULL, &c) == CVY_OK && c.step == 1 && c.nmessage == 1 &&
                            strstr(c.message[0], "step-00000002") && strstr(c.message[0], file);
    if (!passed_over)
        printf("%s: step %lld is taken, message: %s\n", file, (long long)c.step, c.nmessage ? c.message[0] : "none");
    const int refused = cvy_checkpoint_find(dir, "step-2", &named) < 0;
    cvy_checkpoint_close(&c);
    cvy_checkpoint_close(&named);
    return passed_over && refused;
}

static void put(const char *path, const char *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    EXPECT(f != NULL);
    EXPECT_INT(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

struct damage {
    uint64_t random;
    int flips, flips_found, cuts, cuts_found;
};

static size_t random_below(struct damage *d, size_t limit)
{
    d->random = d->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(d->random >> 33) % limit;
}

/* Damages one file of set 2: flipped bits, other lengths, no file, and the file of set 1. */
static void damage_file(struct damage *d, const char *name, int flips, int cuts)
{
    char path[512], other[512], *data = NULL, *wrong = NULL;
    size_t bytes = 0, wrong_bytes = 0;
    snprintf(path, sizeof path, "%s/step-00000002/%s", dir, name);
    snprintf(other, sizeof other, "%s/step-00000001/%s", dir, name);
    EXPECT_OK(cvy_file_read(path, 1 << 20, &data, &bytes));
    for (int k = 0; k < flips; k++) {
        const size_t bit = random_below(d, 8 * bytes);
        data[bit / 8] ^= (char)(1 << bit % 8);
        put(path, data, bytes);
        data[bit / 8] ^= (char)(1 << bit % 8);
        d->flips++;
        d->flips_found += damage_found(name);
    }
    for (int k = 0; k < cuts; k++) {
        put(path, data, k == 0 ? 0 : random_below(d, bytes));
        d->cuts++;
        d->cuts_found += damage_found(name);
    }
    EXPECT_INT(unlink(path), 0);
    EXPECT(damage_found(name));
    EXPECT_OK(cvy_file_read(other, 1 << 20, &wrong, &wrong_bytes));
    if (wrong_bytes != bytes || memcmp(wrong, data, bytes) != 0) {
        put(path, wrong, wrong_bytes); /* a set mixed from two */
        EXPECT(damage_found(name));
    }
    put(path, data, bytes);
    found(2, 0);
    cvy_mem_free(&wrong);
    cvy_mem_free(&data);
}

/* Damages all files of a set written by nparts ranks. */
static void damage_set(int nparts)
{
    static unsigned times;
    const char *seed = getenv("CONVOY_TEST_SEED");
    struct damage d = {.random = (seed ? strtoull(seed, NULL, 10) : 1) + 1000u * ++times};
    char path[512], **names = NULL;
    int64_t count = 0;
    cvy_pool *pool = NULL;
    save_in_parts(1, nparts);
    save_in_parts(2, nparts);
    snprintf(path, sizeof path, "%s/step-00000002", dir);
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_file_list(pool, path, &names, &count));
    EXPECT_INT(count, 3 + 2 * nparts);
    for (int64_t i = 0; i < count; i++)
        damage_file(&d, names[i], level(60, 200, 1000), level(20, 60, 200));
    cvy_pool_destroy(&pool);
    printf("count: test_checkpoint: %d of %d flipped bits and %d of %d truncations of a set of %lld files "
           "found, file named, older set taken\n",
           d.flips_found, d.flips, d.cuts_found, d.cuts, (long long)count);
    EXPECT_INT(d.flips_found, d.flips);
    EXPECT_INT(d.cuts_found, d.cuts);
}

static void damage_is_found(void)
{
    damage_set(1);
}

static void damage_of_parts_is_found(void)
{
    damage_set(3);
}

static void no_sound_set(void)
{
    cvy_checkpoint c;
    char path[512];
    EXPECT_OK(save(1, 0));
    snprintf(path, sizeof path, "%s/step-00000001/manifest.json", dir);
    EXPECT_INT(unlink(path), 0);
    EXPECT(cvy_checkpoint_find(dir, NULL, &c) == CVY_E_FORMAT);
    EXPECT_INT(c.nmessage, 1);
    EXPECT(strstr(cvy_error_text(), "manifest.json") != NULL);
    cvy_checkpoint_close(&c);
}

/* With the hash of its own text as its end, as the manifest of a set has it. */
static cvy_status read_manifest(cvy_pool *pool, const char *text)
{
    const int n = (int)strlen(text), is_map = n > 2 && text[n - 1] == '}';
    char *signed_text = NULL, *path = NULL;
    CVY_TRY(cvy_pool_printf(pool, &signed_text, "%.*s,\n  \"manifest\": \"%016llx\"\n}\n", n - is_map, text,
                            (unsigned long long)cvy_hash(text, (size_t)(n - is_map))));
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/manifest.json", dir));
    confuse_file(path, signed_text);
    return cvy_manifest_verify(dir, 1, (const char *const[]){"a", NULL});
}

/* Each kind of value in place of each value of a manifest. */
static void kinds_of_a_manifest(void)
{
    char text[256], path[512];
    EXPECT_OK(cvy_file_make_folder(dir));
    snprintf(path, sizeof path, "%s/a", dir);
    put(path, "a", 1);
    snprintf(text, sizeof text, "{step: 1, hash: \"%s\", files: [{name: a, bytes: 1, hash: \"%016llx\"}]}",
             cvy_hash_name(), (unsigned long long)cvy_hash("a", 1));
    confuse(text, read_manifest);
}

/* Every call of a save fails once. The fault names path and cause, the older set stays, and the next save succeeds. */
static void every_call_fails_once(void)
{
    int k = 1, nfailed = 0;
    EXPECT_OK(save(1, 2));
    for (; k < 200; k++) {
        calls = 0;
        fail_errno = k % 2 ? ENOSPC : EIO;
        fail_at = k;
        const cvy_status status = save(2, 2);
        fail_at = 0;
        if (calls < k)
            break;
        if (status == CVY_OK)
            continue; /* the failure of this call does no harm */
        nfailed++;
        EXPECT_INT(status, CVY_E_IO);
        if (!strstr(cvy_error_text(), dir) || !strstr(cvy_error_text(), strerror(fail_errno)))
            TEST_FAIL("path or cause is missing in: %s", cvy_error_text());
        const int saved = strstr(cvy_error_text(), "is saved, but") != NULL || exists("step-00000002");
        found(saved ? 2 : 1, 0);
        EXPECT(exists("step-00000001"));
    }
    EXPECT(nfailed > 15 && k < 200);
    EXPECT_OK(save(2, 2));
    found(2, 0);
    nothing_aside();
}

/* Files cannot grow beyond a limit, as on a full disk or under a quota. The limit also applies to writes of stdio. */
static void full_disk(void)
{
    struct rlimit before, tight;
    EXPECT_OK(save(1, 2));
    EXPECT_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 600; limit += 50) {
        tight = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
        EXPECT_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
        const cvy_status status = save(2, 2);
        EXPECT_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
        EXPECT_INT(status, CVY_E_IO);
        EXPECT(strstr(cvy_error_text(), strerror(EFBIG)) != NULL);
        EXPECT(strstr(cvy_error_text(), dir) != NULL);
        found(1, 0);
        nothing_aside();
    }
    EXPECT_OK(save(2, 2));
    found(2, 0);
}

/* A save is killed at each of its calls. Either the old set or the new one is found. */
static void killed_anywhere(void)
{
    int k = 1, survived = 0;
    EXPECT_OK(save(1, 2));
    EXPECT_OK(save(2, 2));
    for (; k < 200 && !survived; k++) {
        cvy_checkpoint c;
        int how = 0;
        const pid_t pid = fork();
        if (pid == 0) {
            calls = 0;
            kill_at = k;
            _exit(save(3 + k, 2) != CVY_OK);
        }
        EXPECT_INT(waitpid(pid, &how, 0), pid);
        survived = WIFEXITED(how);
        EXPECT_OK(cvy_checkpoint_find(dir, NULL, &c));
        EXPECT_INT(c.nmessage, 0);
        const int64_t step = c.step;
        cvy_checkpoint_close(&c);
        found(step, 0);
        EXPECT(step == 3 + k || !survived);
    }
    EXPECT(k > 15 && survived);
    nothing_aside();
}

static void another_network(void)
{
    cvy_checkpoint c;
    EXPECT_OK(save(1, 2));
    EXPECT_OK(cvy_checkpoint_find(dir, NULL, &c));
    cvy_vars *wide = make_vars(-1, 4, 6), *few = make_vars(-1, 2, 5), *before = make_vars(-1, 4, 6);
    EXPECT_INT(cvy_checkpoint_load(&c, NULL, wide, 1), CVY_E_SHAPE);
    EXPECT(strstr(cvy_error_text(), "conv1.bias") != NULL);
    expect_same(wide, before);
    EXPECT_INT(cvy_checkpoint_load(&c, NULL, few, 1), CVY_E_FORMAT);
    EXPECT(strstr(cvy_error_text(), "bn1.mean") != NULL);
    EXPECT_OK(cvy_checkpoint_load(&c, NULL, few, 0));

    EXPECT_INT(cvy_weights_load(c.weights_path[0], wide), CVY_E_SHAPE);
    EXPECT(strstr(cvy_error_text(), "conv1.bias") != NULL);
    expect_same(wide, before);
    EXPECT_OK(cvy_weights_load(c.weights_path[0], few));
    cvy_checkpoint_close(&c);
    cvy_vars_destroy(&wide);
    cvy_vars_destroy(&few);
    cvy_vars_destroy(&before);
}

static void out_of_memory(void)
{
    cvy_checkpoint c;
    cvy_vars *vars = make_vars(9, 4, 5);
    int k = 1;
    EXPECT_OK(save(1, 2));
    for (cvy_status status = CVY_E_MEMORY; status != CVY_OK && k < 500; k++) {
        cvy_mem_fail_at(k, 0);
        status = cvy_checkpoint_save(
            &(cvy_save_opts){.dir = dir, .step = 2, .vars = vars, .state_json = "{}", .keep = 2, .nparts = 1});
        cvy_mem_fail_at(0, 0);
        EXPECT(status == CVY_OK || status == CVY_E_MEMORY);
    }
    EXPECT(k > 10 && k < 500);
    k = 1;
    for (cvy_status status = CVY_E_MEMORY; status != CVY_OK && k < 500; k++) {
        cvy_mem_fail_at(k, 0);
        status = cvy_checkpoint_find(dir, NULL, &c);
        if (status == CVY_OK)
            status = cvy_checkpoint_load(&c, NULL, vars, 1);
        cvy_mem_fail_at(0, 0);
        cvy_checkpoint_close(&c);
        EXPECT(status == CVY_OK || status == CVY_E_MEMORY);
    }
    EXPECT(k > 10 && k < 500);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    TEST_WITH(begin, save_and_load, end);
    TEST_WITH(begin, keeps_newest_best_and_protected, end);
    TEST_WITH(begin, two_verified_sets_stay, end);
    TEST_WITH(begin, same_step_again, end);
    TEST_WITH(begin, damage_is_found, end);
    TEST_WITH(begin, damage_of_parts_is_found, end);
    TEST_WITH(begin, no_sound_set, end);
    TEST_WITH(begin, kinds_of_a_manifest, end);
    TEST_WITH(begin, every_call_fails_once, end);
    TEST_WITH(begin, full_disk, end);
    TEST_WITH(begin, killed_anywhere, end);
    TEST_WITH(begin, another_network, end);
    TEST_WITH(begin, out_of_memory, end);
    return test_end();
}
