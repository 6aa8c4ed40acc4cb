/*
 * caffe_file.h: Caffe's files as messages. Networks and solvers are text, weights and states are binary; both give the
 * same structs, which protoc-c makes from caffe.proto.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_FILE_H
#define CVY_CAFFE_FILE_H

#include "base/base_mem.h"
#include "exchange/caffe/caffe.pb-c.h"

/* Where a field of a message is in the text. */
typedef struct cvy_caffe_place {
    const void *message;
    const char *field;
    int line; /* from 1 */
} cvy_caffe_place;

/* A file that was read. {0} is empty. */
typedef struct cvy_caffe_file {
    char *path;
    ProtobufCMessage *message; /* of the type that was asked for; all its memory comes from cvy_caffe_allocator() */
    cvy_caffe_place *place;    /* [nplace]: of all fields of a text, in their order; none of a binary file */
    int nplace, place_room;
} cvy_caffe_file;

/* Of all messages, so that protobuf-c frees what the text reader and the upgrade of old layers allocate. */
ProtobufCAllocator *cvy_caffe_allocator(void);

/**
 * cvy_caffe_text_parse - read protobuf's text format
 * @path: the name for messages
 * @text, @bytes: the text; it may hold anything
 * @type: of the message, &cvy__caffe__net_parameter__descriptor for one
 * @out: the caller frees it with cvy_caffe_file_free()
 *
 * Messages of the type LayerParameter and V1LayerParameter get the line on which they begin. What is inside a message
 * without fields, Opaque, is skipped. Errors: CVY_E_FORMAT with path, line and column; CVY_E_MEMORY. Then *out is
 * empty.
 */
cvy_status cvy_caffe_text_parse(const char *path, const char *text, size_t bytes,
                                const ProtobufCMessageDescriptor *type, cvy_caffe_file *out);
/* The same for a file. CVY_E_IO: it cannot be read. */
cvy_status cvy_caffe_text_read(const char *path, const ProtobufCMessageDescriptor *type, cvy_caffe_file *out);
/* Reads a binary file: weights, a solver's state, a mean. CVY_E_IO, CVY_E_FORMAT, CVY_E_MEMORY; then *out is empty. */
cvy_status cvy_caffe_binary_read(const char *path, const ProtobufCMessageDescriptor *type, cvy_caffe_file *out);
void cvy_caffe_file_free(cvy_caffe_file *file);

/* The line on which a field of a message is first given; 0: it is not given, or the file is binary. */
int cvy_caffe_line_of(const cvy_caffe_file *file, const void *message, const char *field);

/* ---- building messages ---- */
/* A new message with the defaults of its type. */
cvy_status cvy_caffe_new(const ProtobufCMessageDescriptor *type, void *out);
/* A copy of a text, for a field of a message. */
cvy_status cvy_caffe_strdup(const char *text, char **out);
/* Whether an optional field has a value. */
int cvy_caffe_is_given(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Makes room for one more element at the end of a repeated field, and counts it. array: the address of the pointer. */
cvy_status cvy_caffe_push(void *array, size_t *count, size_t elem_bytes);

#endif
