/*
 * monitor_events.c: what takes the place of src/monitor/tensorboard in a build without protobuf-c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_events.h"

#if !CVY_HAVE_PROTOBUF_C
cvy_status cvy_events_open(const char *folder, int64_t resume_step, cvy_events **out)
{
    (void)resume_step;
    *out = NULL;
    return cvy_error_set(CVY_E_UNSUPPORTED,
                         "%s: this build of convoy cannot write event files: build it with protobuf-c", folder);
}

int cvy_events_had_files(const cvy_events *events)
{
    (void)events;
    return 0;
}

cvy_status cvy_events_add_line(cvy_events *events, const cvy_json *line)
{
    (void)events, (void)line;
    return CVY_OK;
}

cvy_status cvy_events_add_graph(cvy_events *events, const cvy_graph *graph)
{
    (void)events, (void)graph;
    return CVY_OK;
}

cvy_status cvy_events_add_histogram(cvy_events *events, int64_t step, const char *tag, const cvy_histogram *h)
{
    (void)events, (void)step, (void)tag, (void)h;
    return CVY_OK;
}

int cvy_events_close(cvy_events **events)
{
    (void)events;
    return 0;
}
#endif
