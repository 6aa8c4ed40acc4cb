/*
 * event.h: an event file that is being written.
 *
 * The file consists of TFRecords (data/tfrecord/data_tfrecord.h), each with an Event. Source: event.proto and
 * events_writer.cc of TensorFlow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EVENT_H
#define CVY_EVENT_H

#include "monitor/monitor_append.h"
#include "monitor/monitor_events.h"
#include "monitor/tensorboard/event.pb-c.h"

struct cvy_events {
    cvy_append file;
    int had_files;
};

/* Sets time and step of the event and appends it. */
cvy_status cvy_event_write(cvy_events *events, int64_t step, Cvy__Tb__Event *event);
/* The same for a summary. */
cvy_status cvy_event_write_summary(cvy_events *events, int64_t step, Cvy__Tb__SummaryValue **value, int count);

#endif
