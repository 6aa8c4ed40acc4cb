/*
 * caffe_text.c: reads protobuf's text format into the structs of protobuf-c, by the descriptors of their fields.
 *
 *     name: "LeNet"                       # a comment
 *     layer { type: 'Input' top: "data" input_param { shape: { dim: [64, 1, 28, 28] } } }
 *
 * The text may be malicious: sizes, the depth of messages and their number are limited.
 *
 * Source: the specification of the text format in the documentation of Protocol Buffers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "exchange/caffe/caffe_file.h"

enum { TEXT_BYTES_MAX = 16 << 20, DEPTH_MAX = 32, MESSAGES_MAX = 1 << 18, NUMBER_BYTES = 64, SHOWN_BYTES = 40 };

typedef enum kind { KIND_END, KIND_NAME, KIND_NUMBER, KIND_STRING, KIND_SYMBOL } kind;

typedef struct token {
    kind kind;
    const char *text; /* of a string: with its quotes */
    size_t bytes;
    int line, column;
} token;

typedef struct reader {
    const char *path, *at, *end, *line_begin;
    int line, depth, nmessage;
    token token; /* the next one */
    cvy_caffe_file *out;
} reader;

/* ---- tokens ---- */

#define FAIL_AT(r, fmt, ...)                                                                                           \
    CVY_FAIL(CVY_E_FORMAT, "%s:%d:%d: " fmt, (r)->path, (r)->token.line, (r)->token.column, __VA_ARGS__)
#define CHECK_AT(ok, r, fmt, ...)                                                                                      \
    do {                                                                                                               \
        if (!(ok))                                                                                                     \
            FAIL_AT(r, fmt, __VA_ARGS__);                                                                              \
    } while (0)

/* What the message of an error shows of the token. */
typedef struct shown {
    char text[SHOWN_BYTES + 8];
} shown;

static shown show(const token *t)
{
    shown s = {{0}};
    size_t n = 0;
    if (t->kind == KIND_END) {
        memcpy(s.text, "the end", 8);
        return s;
    }
    for (size_t i = 0; i < t->bytes && n < SHOWN_BYTES; i++)
        s.text[n++] = isprint((unsigned char)t->text[i]) ? t->text[i] : '?';
    if (n < t->bytes)
        memcpy(s.text + n, "...", 4);
    return s;
}

static void skip_space(reader *r)
{
    for (; r->at < r->end; r->at++) {
        if (*r->at == '\n') {
            r->line++;
            r->line_begin = r->at + 1;
        } else if (*r->at == '#') {
            while (r->at + 1 < r->end && r->at[1] != '\n')
                r->at++;
        } else if (!strchr(" \t\r\f\v", *r->at) || !*r->at) {
            return;
        }
    }
}

static cvy_status end_of_string(reader *r, const char **out)
{
    const char quote = *r->at, *at = r->at + 1;
    for (; at < r->end && *at != quote && *at != '\n'; at++)
        if (*at == '\\' && at + 1 < r->end && at[1] != '\n')
            at++;
    CHECK_AT(at < r->end && *at == quote, r, "%s", "a string has no closing quote on its line");
    *out = at + 1;
    return CVY_OK;
}

static int is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *end_of_number(const reader *r)
{
    const char *at = r->at;
    const int hex = r->end - at > 1 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    for (; at < r->end && (is_name(*at) || *at == '.' || *at == '+' || *at == '-'); at++)
        if ((*at == '+' || *at == '-') && (hex || (at[-1] != 'e' && at[-1] != 'E')))
            break;
    return at;
}

static cvy_status next(reader *r)
{
    skip_space(r);
    const char *to = r->at;
    token *t = &r->token;
    *t = (token){KIND_END, r->at, 0, r->line, (int)(r->at - r->line_begin) + 1};
    if (r->at == r->end)
        return CVY_OK;
    const char c = *r->at;
    if (isalpha((unsigned char)c) || c == '_') {
        t->kind = KIND_NAME;
        while (to < r->end && is_name(*to))
            to++;
    } else if (isdigit((unsigned char)c) || (c == '.' && r->end - r->at > 1 && isdigit((unsigned char)r->at[1]))) {
        t->kind = KIND_NUMBER;
        to = end_of_number(r);
    } else if (c == '"' || c == '\'') {
        t->kind = KIND_STRING;
        CVY_TRY(end_of_string(r, &to));
    } else {
        t->kind = KIND_SYMBOL;
        to = r->at + 1;
        t->bytes = 1;
        CHECK_AT(c && strchr("{}<>[]:,;-/.", c), r, "'%s' has no place here", show(t).text);
    }
    t->bytes = (size_t)(to - r->at);
    r->at = to;
    return CVY_OK;
}

static int is_symbol(const reader *r, char c)
{
    return r->token.kind == KIND_SYMBOL && *r->token.text == c;
}

/* Passes over a symbol that may be there. */
static cvy_status pass(reader *r, char c, int *found)
{
    *found = is_symbol(r, c);
    return *found ? next(r) : CVY_OK;
}

static int is_word(const token *t, const char *word)
{
    return t->kind == KIND_NAME && strlen(word) == t->bytes && memcmp(t->text, word, t->bytes) == 0;
}

/* ---- values ---- */

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Decodes what follows a backslash; returns where it ends. *out is -1 if it means nothing. */
static const char *read_escape(const char *at, const char *end, int *out)
{
    static const char letters[] = "abfnrtv\\'\"?", bytes[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *letter = *at ? strchr(letters, *at) : NULL;
    *out = -1;
    if (letter) {
        *out = bytes[letter - letters];
        return at + 1;
    }
    const int hex = *at == 'x' || *at == 'X', most = hex ? 2 : 3;
    int value = 0, n = 0;
    for (at += hex; at < end && n < most && (hex ? isxdigit((unsigned char)*at) : *at >= '0' && *at <= '7'); at++, n++)
        value = value * (hex ? 16 : 8) + (hex ? hex_digit(*at) : *at - '0');
    if (n > 0 && value < 256)
        *out = value;
    return at;
}

/* Adjacent strings are one. */
static cvy_status read_string(reader *r, char **out)
{
    cvy_text text = {0};
    cvy_status status = CVY_OK;
    if (r->token.kind != KIND_STRING)
        FAIL_AT(r, "expected a text in quotes, not '%s'", show(&r->token).text);
    for (; r->token.kind == KIND_STRING && status == CVY_OK; status = status == CVY_OK ? next(r) : status) {
        const char *at = r->token.text + 1, *end = r->token.text + r->token.bytes - 1;
        while (at < end && status == CVY_OK) {
            int c = (unsigned char)*at++;
            if (c == '\\')
                at = read_escape(at, end, &c);
            const char byte = (char)c;
            if (c <= 0)
                status = cvy_error_set(CVY_E_FORMAT, "%s:%d:%d: the text %s has an escape or a byte that is not known",
                                       r->path, r->token.line, r->token.column, show(&r->token).text);
            else
                cvy_text_add_bytes(&text, &byte, 1);
        }
    }
    if (status == CVY_OK)
        status = text.status;
    if (status == CVY_OK)
        status = cvy_caffe_strdup(text.data ? text.data : "", out);
    cvy_text_free(&text);
    return status;
}

/* The text of a number, with a 0 at its end. */
static cvy_status copy_number(const reader *r, const char *what, char text[NUMBER_BYTES])
{
    const token *t = &r->token;
    CHECK_AT(t->kind == KIND_NUMBER && t->bytes < NUMBER_BYTES, r, "expected %s, not '%s'", what, show(t).text);
    memcpy(text, t->text, t->bytes);
    text[t->bytes] = 0;
    return CVY_OK;
}

static cvy_status read_integer(reader *r, int64_t min, uint64_t max, uint64_t *out)
{
    static const char what[] = "an integer";
    char text[NUMBER_BYTES], *end = NULL;
    int negative = 0;
    CVY_TRY(pass(r, '-', &negative));
    CVY_TRY(copy_number(r, what, text));
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 0);
    CHECK_AT(!*end, r, "expected %s, not '%s'", what, text);
    const uint64_t most = negative ? (uint64_t)0 - (uint64_t)min : max;
    CHECK_AT(errno == 0 && value <= most, r, "%s%s is out of range: the field holds numbers from %lld to %llu",
             negative ? "-" : "", text, (long long)min, (unsigned long long)max);
    *out = negative ? (uint64_t)0 - value : value;
    return next(r);
}

static cvy_status read_real(reader *r, double *out)
{
    char text[NUMBER_BYTES], *end = NULL;
    int negative = 0;
    double value = 0;
    CVY_TRY(pass(r, '-', &negative));
    if (is_word(&r->token, "inf") || is_word(&r->token, "infinity")) {
        value = INFINITY;
    } else if (is_word(&r->token, "nan")) {
        value = NAN;
    } else {
        CVY_TRY(copy_number(r, "a number", text));
        value = strtod(text, &end);
        if (*end == 'f' || *end == 'F')
            end++;
        CHECK_AT(!*end, r, "expected a number, not '%s'", text);
    }
    *out = negative ? -value : value;
    return next(r);
}

static cvy_status read_bool(reader *r, int *out)
{
    static const char *const words[] = {"false", "true", "False", "True", "f", "t"};
    uint64_t number = 0;
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (is_word(&r->token, words[i])) {
            *out = i % 2;
            return next(r);
        }
    CHECK_AT(r->token.kind == KIND_NUMBER, r, "expected true or false, not '%s'", show(&r->token).text);
    CVY_TRY(read_integer(r, 0, 1, &number));
    *out = (int)number;
    return CVY_OK;
}

static cvy_status read_enum(reader *r, const ProtobufCEnumDescriptor *type, int *out)
{
    const ProtobufCEnumValue *value = NULL;
    uint64_t number = 0;
    for (unsigned i = 0; i < type->n_values; i++)
        if (is_word(&r->token, type->values[i].name))
            value = &type->values[i];
    if (!value && r->token.kind != KIND_NAME) {
        const reader here = *r;
        CVY_TRY(read_integer(r, INT32_MIN, INT32_MAX, &number));
        value = protobuf_c_enum_descriptor_get_value(type, (int)(int64_t)number);
        CHECK_AT(value, &here, "%lld is no value of %s", (long long)number, type->short_name);
        *out = value->value;
        return CVY_OK;
    }
    if (!value) {
        cvy_text names = {0};
        for (unsigned i = 0; i < type->n_values; i++)
            cvy_text_add(&names, "%s%s", i ? ", " : "", type->values[i].name);
        cvy_error_set(CVY_E_FORMAT, "%s:%d:%d: '%s' is no %s; there are %s", r->path, r->token.line, r->token.column,
                      show(&r->token).text, type->short_name, names.data ? names.data : "none");
        const cvy_status status = names.status == CVY_OK ? CVY_E_FORMAT : names.status;
        cvy_text_free(&names);
        return status;
    }
    *out = value->value;
    return next(r);
}

/* ---- fields ---- */

static size_t width_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    default: return 4;
    }
}

static cvy_status read_fields(reader *r, ProtobufCMessage *m, char closing);

/* The line of a layer. */
static void set_line(ProtobufCMessage *m, int line)
{
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, "convoy_line");
    const uint32_t number = (uint32_t)line;
    const protobuf_c_boolean has = 1;
    if (!f)
        return;
    memcpy((char *)m + f->offset, &number, sizeof number);
    memcpy((char *)m + f->quantifier_offset, &has, sizeof has);
}

/* What is in braces is skipped; the brackets must match. */
static cvy_status skip_message(reader *r, char closing)
{
    char stack[DEPTH_MAX] = {closing};
    int depth = 1;
    while (depth > 0) {
        CHECK_AT(r->token.kind != KIND_END, r, "expected '%c', the text ends here", stack[depth - 1]);
        const char c = r->token.kind == KIND_SYMBOL ? *r->token.text : 0;
        if (c == '{' || c == '<' || c == '[') {
            CHECK_AT(depth < DEPTH_MAX, r, "messages are more than %d deep", DEPTH_MAX);
            stack[depth++] = c == '{' ? '}' : c == '<' ? '>' : ']';
        } else if (c == '}' || c == '>' || c == ']') {
            CHECK_AT(c == stack[depth - 1], r, "expected '%c', not '%c'", stack[depth - 1], c);
            depth--;
        }
        CVY_TRY(next(r));
    }
    return CVY_OK;
}

static cvy_status read_message(reader *r, ProtobufCMessage *m, int line)
{
    const char closing = is_symbol(r, '<') ? '>' : '}';
    CHECK_AT(is_symbol(r, '{') || is_symbol(r, '<'), r, "expected '{', the begin of %s, not '%s'",
             m->descriptor->short_name, show(&r->token).text);
    CHECK_AT(r->depth < DEPTH_MAX, r, "messages are more than %d deep", DEPTH_MAX);
    CHECK_AT(r->nmessage++ < MESSAGES_MAX, r, "the text has more than %d messages", MESSAGES_MAX);
    set_line(m, line);
    CVY_TRY(next(r));
    if (m->descriptor->n_fields == 0)
        return skip_message(r, closing);
    r->depth++;
    CVY_TRY(read_fields(r, m, closing));
    r->depth--;
    return next(r);
}

/* Reads one value to where the field has it. A message or text is linked to its owner first, so that it is freed. */
static cvy_status read_value(reader *r, const ProtobufCFieldDescriptor *f, char *at, int line)
{
    uint64_t number = 0;
    double real = 0;
    float single = 0;
    int word = 0;
    char *text = NULL;
    ProtobufCMessage *message = NULL;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
        CVY_TRY(f->type == PROTOBUF_C_TYPE_INT32 ? read_integer(r, INT32_MIN, INT32_MAX, &number)
                                                 : read_integer(r, 0, UINT32_MAX, &number));
        word = (int)(uint32_t)number;
        memcpy(at, &word, sizeof word);
        return CVY_OK;
    case PROTOBUF_C_TYPE_INT64:
        CVY_TRY(read_integer(r, INT64_MIN, INT64_MAX, &number));
        memcpy(at, &number, sizeof number);
        return CVY_OK;
    case PROTOBUF_C_TYPE_FLOAT:
        CVY_TRY(read_real(r, &real));
        single = real > FLT_MAX ? INFINITY : real < -FLT_MAX ? -INFINITY : (float)real;
        memcpy(at, &single, sizeof single);
        return CVY_OK;
    case PROTOBUF_C_TYPE_DOUBLE:
        CVY_TRY(read_real(r, &real));
        memcpy(at, &real, sizeof real);
        return CVY_OK;
    case PROTOBUF_C_TYPE_BOOL:
        CVY_TRY(read_bool(r, &word));
        memcpy(at, &word, sizeof word);
        return CVY_OK;
    case PROTOBUF_C_TYPE_ENUM:
        CVY_TRY(read_enum(r, f->descriptor, &word));
        memcpy(at, &word, sizeof word);
        return CVY_OK;
    case PROTOBUF_C_TYPE_STRING:
        CVY_TRY(read_string(r, &text));
        memcpy(at, &text, sizeof text);
        return CVY_OK;
    case PROTOBUF_C_TYPE_MESSAGE:
        CVY_TRY(cvy_caffe_new(f->descriptor, &message));
        memcpy(at, &message, sizeof message);
        return read_message(r, message, line);
    default: CVY_FAIL(CVY_E_INTERNAL, "the field %s has a type that the text reader does not know", f->name);
    }
}

static cvy_status read_element(reader *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, int line)
{
    const protobuf_c_boolean has = 1;
    char *at = (char *)m + f->offset;
    size_t *count = (size_t *)(void *)((char *)m + f->quantifier_offset);
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
        CHECK_AT(!cvy_caffe_is_given(m, f), r, "%s is given twice in one %s", f->name, m->descriptor->short_name);
        CVY_TRY(read_value(r, f, at, line));
        if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE)
            memcpy(count, &has, sizeof has);
        return CVY_OK;
    }
    CVY_TRY(cvy_caffe_push(at, count, width_of(f)));
    char *array = NULL;
    memcpy(&array, at, sizeof array);
    return read_value(r, f, array + (*count - 1) * width_of(f), line);
}

/* [a, b] or a single value. */
static cvy_status read_values(reader *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, int line)
{
    int more = f->label == PROTOBUF_C_LABEL_REPEATED && is_symbol(r, '['), closed = 0;
    if (!more)
        return read_element(r, m, f, line);
    CVY_TRY(next(r));
    CVY_TRY(pass(r, ']', &closed));
    while (!closed) {
        CVY_TRY(read_element(r, m, f, r->token.line));
        CVY_TRY(pass(r, ',', &more));
        if (!more) {
            CHECK_AT(is_symbol(r, ']'), r, "expected ',' or ']' in the list of %s, not '%s'", f->name,
                     show(&r->token).text);
            CVY_TRY(pass(r, ']', &closed));
        }
    }
    return CVY_OK;
}

/* "base_" of the schema is "base" in texts (caffe.proto). */
static int names_field(const token *t, const char *field)
{
    const size_t n = strlen(field);
    return t->kind == KIND_NAME && t->bytes == n - (n > 1 && field[n - 1] == '_') &&
           memcmp(t->text, field, t->bytes) == 0;
}

static cvy_status find_field(const reader *r, const ProtobufCMessageDescriptor *type,
                             const ProtobufCFieldDescriptor **out)
{
    enum { NAMES = 128 };
    const char *names[NAMES];
    int n = 0;
    for (unsigned i = 0; i < type->n_fields && n < NAMES; i++) {
        if (names_field(&r->token, type->fields[i].name) && !is_word(&r->token, "convoy_line")) {
            *out = &type->fields[i];
            return CVY_OK;
        }
        names[n++] = type->fields[i].name;
    }
    const shown word = show(&r->token);
    const char *near = cvy_text_nearest(word.text, names, n);
    FAIL_AT(r, "%s has no field '%s'%s%s%s", type->short_name, word.text, near ? ", did you mean '" : "",
            near ? near : "", near ? "'?" : "");
}

static cvy_status note_place(reader *r, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, int line)
{
    cvy_caffe_file *out = r->out;
    CVY_TRY(cvy_mem_reserve(&out->place, &out->place_room, out->nplace, sizeof *out->place));
    out->place[out->nplace++] = (cvy_caffe_place){m, f->name, line};
    return CVY_OK;
}

/* The fields of a message, up to its closing brace, or to the end if closing is 0. */
static cvy_status read_fields(reader *r, ProtobufCMessage *m, char closing)
{
    while (!(closing ? is_symbol(r, closing) : r->token.kind == KIND_END)) {
        const ProtobufCFieldDescriptor *f = NULL;
        const int line = r->token.line;
        int found = 0;
        CHECK_AT(r->token.kind == KIND_NAME, r, "expected the name of a field of %s%s, not '%s'",
                 m->descriptor->short_name, closing ? ", or its end" : "", show(&r->token).text);
        CVY_TRY(find_field(r, m->descriptor, &f));
        CVY_TRY(note_place(r, m, f, line));
        CVY_TRY(next(r));
        CVY_TRY(pass(r, ':', &found));
        CHECK_AT(found || f->type == PROTOBUF_C_TYPE_MESSAGE, r, "expected ':' and the value of %s, not '%s'", f->name,
                 show(&r->token).text);
        CVY_TRY(read_values(r, m, f, line));
        CVY_TRY(pass(r, ',', &found));
        if (!found)
            CVY_TRY(pass(r, ';', &found));
    }
    return CVY_OK;
}

cvy_status cvy_caffe_text_parse(const char *path, const char *text, size_t bytes,
                                const ProtobufCMessageDescriptor *type, cvy_caffe_file *out)
{
    reader r = {.path = path, .at = text, .end = text + bytes, .line_begin = text, .line = 1, .out = out};
    cvy_status status = CVY_OK;
    *out = (cvy_caffe_file){0};
    CVY_TRY_OUT(cvy_mem_strdup(path, &out->path));
    CVY_TRY_OUT(cvy_caffe_new(type, &out->message));
    CVY_TRY_OUT(next(&r));
    CVY_TRY_OUT(read_fields(&r, out->message, 0));
out:
    if (status != CVY_OK)
        cvy_caffe_file_free(out);
    return status;
}

cvy_status cvy_caffe_text_read(const char *path, const ProtobufCMessageDescriptor *type, cvy_caffe_file *out)
{
    char *text = NULL;
    size_t bytes = 0;
    *out = (cvy_caffe_file){0};
    CVY_TRY(cvy_file_read(path, TEXT_BYTES_MAX, &text, &bytes));
    const cvy_status status = cvy_caffe_text_parse(path, text, bytes, type, out);
    cvy_mem_free(&text);
    return status;
}
