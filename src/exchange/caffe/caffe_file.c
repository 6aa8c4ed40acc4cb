/*
 * caffe_file.c: the memory and the fields of messages, and binary files; see caffe_file.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/caffe/caffe_file.h"

#include <string.h>

#include "base/base_file.h"

#define BINARY_BYTES_MAX ((size_t)2 << 30) /* the limit of protocol buffers */

/* failed: where to note that there is no memory, or NULL. protobuf-c itself does not say why it decodes nothing. */
static void *allocate(void *failed, size_t bytes)
{
    void *block = NULL;
    if (cvy_mem_alloc(bytes, &block) == CVY_OK)
        return block;
    if (failed)
        *(int *)failed = 1;
    return NULL;
}

static void release(void *data, void *block)
{
    (void)data;
    cvy_mem_free(&block);
}

ProtobufCAllocator *cvy_caffe_allocator(void)
{
    static const ProtobufCAllocator allocator = {.alloc = allocate, .free = release};
    return (ProtobufCAllocator *)(uintptr_t)&allocator;
}

cvy_status cvy_caffe_new(const ProtobufCMessageDescriptor *type, void *out)
{
    ProtobufCMessage *message = NULL;
    CVY_TRY(cvy_mem_alloc(type->sizeof_message, &message));
    protobuf_c_message_init(type, message);
    memcpy(out, &message, sizeof message);
    return CVY_OK;
}

cvy_status cvy_caffe_strdup(const char *text, char **out)
{
    return cvy_mem_strdup(text, out);
}

/* The room is the next power of two, so that it needs no place in the message. */
cvy_status cvy_caffe_push(void *array, size_t *count, size_t elem_bytes)
{
    enum { FIRST = 4 };
    void *block = NULL;
    memcpy(&block, array, sizeof block);
    if (*count == 0)
        CVY_TRY(cvy_mem_alloc(FIRST * elem_bytes, &block));
    else if (*count >= FIRST && (*count & (*count - 1)) == 0)
        CVY_TRY(cvy_mem_grow(&block, *count * elem_bytes, 2 * *count * elem_bytes));
    memcpy(array, &block, sizeof block);
    ++*count;
    return CVY_OK;
}

/* ---- fields ---- */

int cvy_caffe_is_given(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const char *at = (const char *)m + f->offset;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *value = NULL;
        memcpy(&value, at, sizeof value);
        return value && value != f->default_value;
    }
    protobuf_c_boolean has = 0;
    memcpy(&has, (const char *)m + f->quantifier_offset, sizeof has);
    return has;
}

static cvy_status open_file(const char *path, cvy_caffe_file *out, char **data, size_t *bytes)
{
    *out = (cvy_caffe_file){0};
    CVY_TRY(cvy_file_read(path, BINARY_BYTES_MAX, data, bytes));
    return cvy_mem_strdup(path, &out->path);
}

cvy_status cvy_caffe_binary_read(const char *path, const ProtobufCMessageDescriptor *type, cvy_caffe_file *out)
{
    char *data = NULL;
    size_t bytes = 0;
    int lacks_memory = 0;
    ProtobufCAllocator allocator = {.alloc = allocate, .free = release, .allocator_data = &lacks_memory};
    cvy_status status = open_file(path, out, &data, &bytes);
    if (status == CVY_OK)
        out->message = protobuf_c_message_unpack(type, &allocator, bytes, (const uint8_t *)data);
    cvy_mem_free(&data);
    if (lacks_memory)
        status = cvy_error_set(CVY_E_MEMORY, "%s: there is not enough memory to decode it", path);
    else if (status == CVY_OK && (!out->message || bytes == 0))
        status = cvy_error_set(CVY_E_FORMAT, "%s is no binary %s of Caffe, or it is truncated: it cannot be decoded",
                               path, type->short_name);
    if (status != CVY_OK)
        cvy_caffe_file_free(out);
    return status;
}

void cvy_caffe_file_free(cvy_caffe_file *file)
{
    if (file->message)
        protobuf_c_message_free_unpacked(file->message, cvy_caffe_allocator());
    cvy_mem_free(&file->place);
    cvy_mem_free(&file->path);
    *file = (cvy_caffe_file){0};
}

int cvy_caffe_line_of(const cvy_caffe_file *file, const void *message, const char *field)
{
    for (int i = 0; i < file->nplace; i++)
        if (file->place[i].message == message && strcmp(file->place[i].field, field) == 0)
            return file->place[i].line;
    return 0;
}
