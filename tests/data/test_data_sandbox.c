/*
 * test_data_sandbox.c: HDF5 files that are read by libhdf5 in a process of its own: samples are those of reading in
 * place; files that crash libhdf5 1.10.8, or keep it in an endless loop, end that process and are named; a process that
 * is killed is replaced; none is left; and what a process that is out of order sends does no harm.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* rows: clang asan mpich */
#include "test_data_hdf5.h"

#if CVY_HAVE_HDF5
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "data/hdf5/data_hdf5_remote.h"

static char reader[1024];

/* The messages of this version are known; others may refuse the files without a crash. */
static int is_known_version(void)
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    return major == 1 && minor == 10 && release == 8;
}

static const char *hostile(const char *name)
{
    static char path[1200];
    const char *source = getenv("CONVOY_SOURCE");
    TRUE_THAT(source); /* ctest sets it */
    snprintf(path, sizeof path, "%s/tests/data/files/hdf5-hostile/%s", source, name);
    return path;
}

static cvy_status open_path(const char *path, const char *options, cvy_dataset **out)
{
    char text[1600];
    snprintf(text, sizeof text, "{path: \"%s\", format: hdf5%s%s}", path, *options ? ", " : "", options);
    return open_text(text, NULL, 0, out);
}

/* ---- processes ---- */

/* The reader processes of this process; returns their number, and the first one. */
static int readers(pid_t *first_out)
{
    DIR *folder = opendir("/proc");
    int count = 0;
    *first_out = 0;
    for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
        char path[300], name[64] = "";
        int pid = 0, parent = 0;
        snprintf(path, sizeof path, "/proc/%.200s/stat", e->d_name);
        FILE *f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
        if (f && fscanf(f, "%d (%63[^)]) %*c %d", &pid, name, &parent) == 3 && parent == (int)getpid() &&
            strcmp(name, "convoy-hdf5") == 0 && count++ == 0)
            *first_out = (pid_t)pid;
        if (f)
            fclose(f);
    }
    if (folder)
        closedir(folder);
    return count;
}

/* ---- the same samples ---- */

static void compare(const char *name, const char *options)
{
    char here[256], there[256];
    cvy_dataset *a = NULL, *b = NULL;
    cvy_raw x = {0}, y = {0};
    snprintf(here, sizeof here, "%s%ssandbox: false", options, *options ? ", " : "");
    snprintf(there, sizeof there, "%s%ssandbox: true", options, *options ? ", " : "");
    OK(open_in(name, here, &a));
    OK(open_in(name, there, &b));
    TRUE_THAT(a && b && cvy_dataset_hash(a) == cvy_dataset_hash(b));
    for (int64_t i = 0; a && b && i < cvy_dataset_describe(a)->nsamples; i++) {
        OK(cvy_dataset_read_raw(a, i, &x));
        OK(cvy_dataset_read_raw(b, i, &y));
        TRUE_THAT(x.x.bytes == y.x.bytes && memcmp(x.x.data, y.x.data, x.x.bytes) == 0 && x.label == y.label &&
                  x.weight == y.weight && x.y.bytes == y.y.bytes &&
                  (x.y.bytes == 0 || memcmp(x.y.data, y.y.data, x.y.bytes) == 0));
    }
    cvy_raw_free(&x);
    cvy_raw_free(&y);
    cvy_dataset_destroy(&a);
    cvy_dataset_destroy(&b);
}

enum { ROWS = 200, WIDTH = 600 }; /* a block of nbit has fewer rows than the file */

/* x is read by position, wide by chunks that are unpacked here, nbit by the library. */
static void make_file(const char *name)
{
    double *v = values(ROWS * WIDTH);
    const hid_t file = new_file(name);
    add_set(file, "x", (struct layout){H5T_IEEE_F32LE, 2, {ROWS, 24}, {0}, 0, 0, 0}, v);
    add_set(file, "wide", (struct layout){H5T_STD_I16BE, 3, {ROWS, 4, 6}, {32, 2, 6}, 1, 4, 0}, v);
    const hid_t space = H5Screate_simple(2, (hsize_t[]){ROWS, WIDTH}, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, (hsize_t[]){2, WIDTH});
    H5Pset_nbit(list);
    const hid_t set = H5Dcreate2(file, "nbit", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    TRUE_THAT(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
    add_set(file, "label", (struct layout){H5T_STD_I32LE, 1, {ROWS}, {0}, 0, 0, 0}, v);
    add_set(file, "weight", (struct layout){H5T_IEEE_F32LE, 1, {ROWS}, {0}, 0, 0, 0}, v);
    H5Fclose(file);
    free(v);
}

static void test_same_samples(void)
{
    pid_t first = 0;
    make_file("same.h5");
    compare("same.h5", "");
    compare("same.h5", "x: wide, y: nbit");
    compare("same.h5", "x: [x, nbit], y: [wide, weight], where: 'weight > 20 and label < 90', label: none");
    compare("same.h5", "x: nbit, axes: FN, label: none, weight: none");
    compare("same.h5", "x: x, missing: 5, mask: weight");
    TRUE_THAT(readers(&first) == 0);
}

static void test_process_only_if_needed(void)
{
    cvy_dataset *d = NULL;
    pid_t first = 0;
    float x[24];
    OK(open_in("same.h5", "sandbox: true", &d)); /* everything is contiguous */
    TRUE_THAT(readers(&first) == 0);
    read_x(d, 7, x);
    cvy_dataset_destroy(&d);
    OK(open_in("same.h5", "sandbox: true, x: nbit", &d));
    TRUE_THAT(readers(&first) == 1);
    cvy_dataset_destroy(&d);
    TRUE_THAT(readers(&first) == 0);
}

/* Lists of bytes are followed here, too. */
static void test_lists(void)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    pid_t first = 0;
    const hid_t file = new_file("lists.h5");
    add_lists(file, (struct layout){0});
    H5Fclose(file);
    OK(open_in("lists.h5", "sandbox: true", &d));
    for (int i = 0; i < LISTS; i++)
        OK(cvy_dataset_read_raw(d, i, &raw));
    TRUE_THAT(readers(&first) == 0);
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
    compare("lists.h5", "");
}

static void *read_many(void *data)
{
    cvy_raw raw = {0};
    for (int64_t i = 0; i < 4 * ROWS; i++)
        OK(cvy_dataset_read_raw(data, i * 37 % ROWS, &raw));
    cvy_raw_free(&raw);
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[4];
    cvy_dataset *d = NULL;
    OK(open_in("same.h5", "sandbox: true, x: wide, y: nbit, cache_mb: 1", &d));
    for (int i = 0; i < 4; i++)
        TRUE_THAT(pthread_create(&thread[i], NULL, read_many, d) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    cvy_dataset_destroy(&d);
}

/* ---- files that crash the library ---- */

static void test_crash_at_open(void)
{
    cvy_dataset *d = NULL;
    pid_t first = 0;
    const cvy_status status = open_path(hostile("crash-at-open.h5"), "sandbox: true", &d);
    if (is_known_version())
        TRUE_THAT(status == CVY_E_FORMAT &&
                  strstr(cvy_error_text(), "crash-at-open.h5: libhdf5 1.10.8 crashed on it") &&
                  strstr(cvy_error_text(), "leave it out, or write it anew"));
    cvy_dataset_destroy(&d);
    TRUE_THAT(readers(&first) == 0);
}

static void test_endless_loop(void)
{
    cvy_dataset *d = NULL;
    pid_t first = 0;
    const cvy_status status = open_path(hostile("endless-at-open.h5"), "sandbox: true, sandbox_limit: 1", &d);
    if (is_known_version())
        TRUE_THAT(status == CVY_E_FORMAT &&
                  strstr(cvy_error_text(), "endless-at-open.h5: libhdf5 1.10.8 took more than 1 s of processor time"));
    cvy_dataset_destroy(&d);
    TRUE_THAT(readers(&first) == 0);
}

/* The first reads of the file end a process each, also the look at its pictures. Then it is not asked any more. */
static void test_crash_at_read(void)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    pid_t first = 0;
    OK(open_path(hostile("crash-at-read.h5"), "sandbox: true", &d));
    TRUE_THAT(!is_known_version() || strstr(cvy_dataset_describe(d)->note, "row 0 cannot be read, as 1 of 1: "));
    for (int i = 0; i < 2 && is_known_version(); i++) {
        TRUE_THAT(cvy_dataset_read_raw(d, 0, &raw) == CVY_E_FORMAT);
        TRUE_THAT(strstr(cvy_error_text(), "crash-at-read.h5, row 0: libhdf5 1.10.8 crashed on it"));
        TRUE_THAT(readers(&first) == 0);
    }
    if (is_known_version())
        FAILS(cvy_dataset_read_raw(d, 0, &raw), CVY_E_FORMAT, "several times");
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

/* ---- a process that is killed, stopped or cannot be started ---- */

/* Also where SIGCHLD is ignored, so that nobody learns how a process has ended. */
static void test_kill(void (*on_child)(int))
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    pid_t first = 0, second = 0;
    signal(SIGCHLD, on_child);
    OK(open_in("same.h5", "sandbox: true, x: nbit", &d));
    OK(cvy_dataset_read_raw(d, 0, &raw));
    TRUE_THAT(readers(&first) == 1 && kill(first, SIGKILL) == 0);
    OK(cvy_dataset_read_raw(d, ROWS - 1, &raw)); /* not in the cached block */
    TRUE_THAT(readers(&second) == 1 && second != first);
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
    signal(SIGCHLD, SIG_DFL);
    TRUE_THAT(readers(&first) == 0);
}

/* Signals of schedulers and terminals go to all processes of a job. */
static void test_other_signals(void)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    pid_t first = 0, second = 0;
    OK(open_in("same.h5", "sandbox: true, x: nbit", &d));
    TRUE_THAT(readers(&first) == 1);
    kill(first, SIGTERM);
    kill(first, SIGINT);
    kill(first, SIGUSR1);
    kill(first, SIGHUP);
    OK(cvy_dataset_read_raw(d, 0, &raw));
    TRUE_THAT(readers(&second) == 1 && second == first);
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

/* A child of fork() must not talk on the socket of its parent. */
static void test_fork(void)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    int how = 0;
    OK(open_in("same.h5", "sandbox: true, x: nbit", &d));
    const pid_t child = fork();
    if (child == 0) {
        const cvy_status status = cvy_dataset_read_raw(d, ROWS - 1, &raw);
        cvy_dataset_destroy(&d);
        _exit(status == CVY_OK ? 0 : 1);
    }
    TRUE_THAT(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0);
    OK(cvy_dataset_read_raw(d, 0, &raw));
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

/* The process ends with the one that started it, although that one says nothing. */
static void test_end_of_parent(void)
{
    int pipe_end[2], how = 0;
    pid_t process = 0;
    TRUE_THAT(pipe(pipe_end) == 0);
    const pid_t child = fork();
    if (child == 0) {
        cvy_dataset *d = NULL;
        const int good = open_in("same.h5", "sandbox: true, x: nbit", &d) == CVY_OK && readers(&process) == 1;
        const ssize_t n = write(pipe_end[1], &process, sizeof process);
        kill(getpid(), SIGKILL);
        _exit(good && n > 0);
    }
    TRUE_THAT(waitpid(child, &how, 0) == child);
    TRUE_THAT(read(pipe_end[0], &process, sizeof process) == sizeof process && process > 0);
    int ended = 0;
    for (int i = 0; i < 1000 && !ended; i++) { /* a zombie of the same number may stay until init takes it */
        char path[64], state = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
        FILE *f = fopen(path, "r");
        ended = !f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1 || state == 'Z';
        if (f)
            fclose(f);
        usleep(10000);
    }
    TRUE_THAT(ended);
    close(pipe_end[0]);
    close(pipe_end[1]);
}

static void with_reader(const char *program, const char *part)
{
    cvy_dataset *d = NULL;
    float x[24];
    setenv("CONVOY_HDF5_READER", program, 1);
    FAILS(open_in("same.h5", "sandbox: true", &d), CVY_E_IO, part);
    TRUE_THAT(strstr(cvy_error_text(), "`sandbox: false` reads without one"));
    OK(open_in("same.h5", "", &d)); /* auto */
    if (d)
        read_x(d, 3, x);
    cvy_dataset_destroy(&d);
    setenv("CONVOY_HDF5_READER", reader, 1);
}

static void test_cannot_start(void)
{
    char other[1100];
    with_reader("/nonexistent/convoy-hdf5", "/nonexistent/convoy-hdf5 cannot be started: No such file");
    with_reader("none", "CONVOY_HDF5_READER is none");
    with_reader("/dev/null", "cannot be started: Permission denied");
    with_reader("/bin/false", "/bin/false ended at its start, with exit code 1");
    snprintf(other, sizeof other, "%s", in_scratch("other"));
    put_file(other, "#!/bin/sh\nexit 3\n", 17);
    chmod(other, 0755);
    with_reader(other, "belongs to another build of convoy");
}

/* ---- shared memory ---- */

static void check_area(const char *folder)
{
    cvy_area a = {.fd = -1}, b = {.fd = -1};
    OK(cvy_area_create_in(folder, 65536, &a));
    OK(cvy_area_open(dup(a.fd), &b));
    TRUE_THAT(a.data && b.data && b.bytes == a.bytes);
    strcpy(b.data, "begin");
    OK(cvy_area_need(&b, 1 << 22));
    strcpy(b.data + (1 << 22) - 8, "end");
    OK(cvy_area_follow(&a));
    TRUE_THAT(strcmp(a.data, "begin") == 0 && strcmp(a.data + (1 << 22) - 8, "end") == 0);
    cvy_area_forget(&a, 65536);
    TRUE_THAT(strcmp(b.data, "begin") == 0);
    cvy_area_destroy(&a);
    cvy_area_destroy(&b);
}

static void test_area(void)
{
    cvy_area a = {.fd = -1};
    check_area(NULL);
    check_area(in_scratch("")); /* kernels without memfd_create() */
    FAILS(cvy_area_create_in("/nonexistent", 65536, &a), CVY_E_IO, "/nonexistent");
}

/* ---- a process that is out of order ---- */

/* Flips bytes of what a process sends; the result is refused, or can be read without harm. */
static void test_damaged_message(void)
{
    static const struct hdf5_opts options = {.sandbox = CVY_H5_SANDBOX_OFF};
    cvy_area area = {.fd = -1};
    cvy_pool *pool = NULL;
    int refused = 0;
    OK(cvy_pool_create(&pool));
    OK(cvy_area_create_in(NULL, 65536, &area));
    cvy_hdf5 from = {.pool = pool, .o = &options};
    cvy_reader_info info = {.pool = pool};
    pthread_mutex_init(&from.cache.lock, NULL);
    OK(cvy_h5_load(&from, in_scratch("same.h5"), &info));
    cvy_h5_wire out = cvy_h5_wire_write(&area);
    cvy_h5_wire_state(&out, &from);
    cvy_h5_wire_samples(&out, &from, &info);
    OK(out.status);
    const size_t bytes = out.at - CVY_H5_AT_WORK;
    uint32_t random = 1;
    for (int round = 0; round < 4000; round++) {
        cvy_pool *own = NULL;
        OK(cvy_pool_create(&own));
        cvy_hdf5 to = {.pool = own};
        cvy_reader_info got = {.pool = own};
        size_t at = 0, sent = bytes;
        char was = 0;
        random = random * 1664525u + 1013904223u;
        at = CVY_H5_AT_WORK + (random >> 8) % bytes;
        was = area.data[at];
        if (round > 0 && round % 8 == 0)
            sent = at - CVY_H5_AT_WORK;
        else if (round > 0)
            area.data[at] = (char)(round % 3 == 0 ? 0xff : round % 3 == 1 ? was ^ (1 << (random & 7)) : (char)random);
        cvy_h5_wire in = cvy_h5_wire_read(&area, sent, own);
        cvy_h5_wire_state(&in, &to);
        cvy_h5_wire_samples(&in, &to, &got);
        const int good = in.status == CVY_OK && cvy_h5_wire_check(&to, &got) == CVY_OK;
        TRUE_THAT(round > 0 || good);
        refused += !good;
        area.data[at] = was;
        cvy_mem_free(&to.selected);
        cvy_mem_free(&to.label);
        cvy_pool_destroy(&own);
    }
    TRUE_THAT(refused > 500);
    cvy_h5_close_files(&from);
    cvy_mem_free(&from.selected);
    cvy_mem_free(&from.label);
    pthread_mutex_destroy(&from.cache.lock);
    cvy_area_destroy(&area);
    cvy_pool_destroy(&pool);
}

int main(void)
{
    const char *given = getenv("CONVOY_HDF5_READER");
    if (!given || access(given, X_OK) != 0) {
        printf("skipped: CONVOY_HDF5_READER does not name the reader process\n");
        return 77;
    }
    snprintf(reader, sizeof reader, "%s", given);
    scratch_make();
    test_same_samples();
    test_process_only_if_needed();
    test_lists();
    test_threads();
    test_crash_at_open();
    test_endless_loop();
    test_crash_at_read();
    test_kill(SIG_DFL);
    test_kill(SIG_IGN);
    test_other_signals();
    test_fork();
    test_end_of_parent();
    test_cannot_start();
    test_area();
    test_damaged_message();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    printf("skipped: this build has no HDF5\n");
    return 77;
}

#endif
