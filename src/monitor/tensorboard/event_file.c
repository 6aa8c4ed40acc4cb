/*
 * event_file.c: the files of events: their names, what a resumed run cuts off, and records.
 *
 * TensorBoard reads the files of a folder in the order of their names, which begin with the time, and goes on to the
 * next one when a file ends. An event SessionLog START makes it forget what it has read of this step and later ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "data/tfrecord/data_tfrecord.h"
#include "format/format_protobuf.h"
#include "monitor/tensorboard/event.h"

static const char head[] = "events.out.tfevents.", tail[] = ".convoy";

enum {
    EVENT_BYTES_MAX = 1 << 30, /* larger lengths are damage */
    EVENT_STEP = 2,            /* the field's number */
    SESSION_START = 1
};

/* ---- writing ---- */

cvy_status cvy_event_write(cvy_events *e, int64_t step, Cvy__Tb__Event *event)
{
    event->wall_time = cvy_clock_wall_s();
    event->step = step;
    uint8_t *record = NULL;
    const size_t bytes = cvy__tb__event__get_packed_size(event);
    CVY_TRY(cvy_mem_alloc(CVY_TFRECORD_HEAD + bytes + CVY_TFRECORD_FOOT, &record));
    cvy_tfrecord_put(record, bytes, 8);
    cvy_tfrecord_put(record + 8, cvy_tfrecord_crc(record, 8), 4);
    cvy__tb__event__pack(event, record + CVY_TFRECORD_HEAD);
    cvy_tfrecord_put(record + CVY_TFRECORD_HEAD + bytes, cvy_tfrecord_crc(record + CVY_TFRECORD_HEAD, bytes), 4);
    const cvy_status status = cvy_append_add(&e->file, record, CVY_TFRECORD_HEAD + bytes + CVY_TFRECORD_FOOT);
    cvy_mem_free(&record);
    return status;
}

cvy_status cvy_event_write_summary(cvy_events *e, int64_t step, Cvy__Tb__SummaryValue **value, int count)
{
    Cvy__Tb__Event event = CVY__TB__EVENT__INIT;
    Cvy__Tb__Summary summary = CVY__TB__SUMMARY__INIT;
    summary.n_value = (size_t)count;
    summary.value = value;
    event.what_case = CVY__TB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return count ? cvy_event_write(e, step, &event) : CVY_OK;
}

/* The first events of a file. If they cannot be written, the first call that adds an event says so. */
static cvy_status write_head(cvy_events *e, int64_t first_step)
{
    Cvy__Tb__Event version = CVY__TB__EVENT__INIT, start = CVY__TB__EVENT__INIT;
    Cvy__Tb__SessionLog session = CVY__TB__SESSION_LOG__INIT;
    version.what_case = CVY__TB__EVENT__WHAT_FILE_VERSION;
    version.file_version = (char *)(uintptr_t) "brain.Event:2";
    session.status = SESSION_START;
    start.what_case = CVY__TB__EVENT__WHAT_SESSION_LOG;
    start.session_log = &session;
    cvy_status status = cvy_event_write(e, 0, &version);
    if (status == CVY_OK)
        status = cvy_event_write(e, first_step, &start);
    if (status != CVY_E_IO)
        return status;
    e->file.failing = 0;
    return CVY_OK;
}

/* ---- files of earlier processes ---- */

/* Reads the next whole and sound record into *data (room bytes, which may grow). Returns 0 if there is none. */
static int next_record(FILE *f, uint8_t **data, size_t *room, size_t *bytes_out)
{
    uint8_t begin[CVY_TFRECORD_HEAD];
    if (fread(begin, sizeof begin, 1, f) != 1 || cvy_wire_little(begin + 8, 4) != cvy_tfrecord_crc(begin, 8) ||
        cvy_wire_little(begin, 8) > EVENT_BYTES_MAX)
        return 0;
    const size_t bytes = (size_t)cvy_wire_little(begin, 8), whole = bytes + CVY_TFRECORD_FOOT;
    if (whole > *room) {
        if (cvy_mem_grow(data, *room, whole) != CVY_OK)
            return 0;
        *room = whole;
    }
    *bytes_out = bytes;
    return fread(*data, whole, 1, f) == 1 && cvy_wire_little(*data + bytes, 4) == cvy_tfrecord_crc(*data, bytes);
}

/* The step of an event; 0 if it names none, as protocol buffers leave zeros out. */
static int64_t step_of(const uint8_t *event, size_t bytes)
{
    cvy_wire w = {event, event + bytes};
    cvy_wire_field field;
    while (cvy_wire_next(&w, &field) == 1)
        if (field.number == EVENT_STEP && field.kind == CVY_WIRE_VARINT)
            return (int64_t)field.value;
    return 0;
}

/* Cuts the file at its first event of a step after `step`, or at its first damaged one. */
static cvy_status cut(const char *path, int64_t step)
{
    uint8_t *data = NULL;
    size_t room = 0, bytes = 0;
    int64_t end = 0;
    const char *why = "";
    FILE *f = cvy_file_stream(path, &why);
    CVY_CHECK(f, CVY_E_IO, "%s: cannot open: %s", path, why);
    while (next_record(f, &data, &room, &bytes) && step_of(data, bytes) <= step)
        end += (int64_t)(CVY_TFRECORD_HEAD + bytes + CVY_TFRECORD_FOOT);
    const int failed = ferror(f), reason = errno;
    fclose(f);
    cvy_mem_free(&data);
    CVY_CHECK(!failed, CVY_E_IO, "%s: cannot read: %s", path, strerror(reason));
    const int fd = cvy_file_open(path, O_WRONLY, 0, &why);
    CVY_CHECK(fd >= 0, CVY_E_IO, "%s: cannot open: %s", path, why);
    const cvy_status status = cvy_file_cut(fd, end, path);
    close(fd);
    return status;
}

static int is_ours(const char *name)
{
    const size_t n = strlen(name);
    return n > sizeof head + sizeof tail && strncmp(name, head, sizeof head - 1) == 0 &&
           strcmp(name + n - (sizeof tail - 1), tail) == 0;
}

/* Looks at the files of convoy in the folder. *latest_out: the latest time in a name, or 0. */
static cvy_status look_back(cvy_events *e, cvy_pool *pool, const char *folder, int64_t resume_step, int64_t *latest_out)
{
    char **name = NULL, *path = NULL;
    int64_t count = 0;
    CVY_TRY(cvy_file_list(pool, folder, &name, &count));
    for (int64_t i = 0; i < count; i++) {
        if (!is_ours(name[i]))
            continue;
        e->had_files = 1;
        *latest_out = CVY_MAX(*latest_out, strtoll(name[i] + sizeof head - 1, NULL, 10));
        CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", folder, name[i]));
        if (resume_step >= 0)
            CVY_TRY(cut(path, resume_step));
    }
    return CVY_OK;
}

/* ---- opening and closing ---- */

static cvy_status open_in(cvy_events *e, cvy_pool *pool, const char *folder, int64_t resume_step)
{
    char host[128] = "", *path = NULL;
    int64_t latest = 0;
    CVY_TRY(cvy_file_make_folder(folder));
    CVY_TRY(look_back(e, pool, folder, resume_step, &latest));
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        snprintf(host, sizeof host, "host");
    const int64_t now = CVY_MAX((int64_t)cvy_clock_wall_s(), latest + 1); /* it sorts behind the earlier files */
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s%010lld.%s.%lld%s", folder, head, (long long)now, host,
                            (long long)getpid(), tail));
    CVY_TRY(cvy_append_open(&e->file, path, 0));
    return write_head(e, resume_step < 0 ? 0 : resume_step + 1);
}

cvy_status cvy_events_open(const char *folder, int64_t resume_step, cvy_events **out)
{
    cvy_status status = CVY_OK;
    cvy_events *e = NULL;
    cvy_pool *pool = NULL;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *e, &e));
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(open_in(e, pool, folder, resume_step));
    *out = e;
    e = NULL;
out:
    cvy_pool_destroy(&pool);
    cvy_events_close(&e);
    return status;
}

int cvy_events_had_files(const cvy_events *e)
{
    return e->had_files;
}

int cvy_events_close(cvy_events **e)
{
    if (!*e)
        return 0;
    const int reason = cvy_append_close(&(*e)->file);
    cvy_mem_free(e);
    return reason;
}
