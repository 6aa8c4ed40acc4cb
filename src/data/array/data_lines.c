/*
 * data_lines.c: see data_lines.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_lines.h"

#include <math.h>
#include <string.h>

#include "base/base_file.h"

/* ---- parts of a text ---- */

cvy_line_part cvy_line_part_trim(cvy_line_part s)
{
    while (s.bytes > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
        s = (cvy_line_part){s.at + 1, s.bytes - 1};
    while (s.bytes > 0 && (s.at[s.bytes - 1] == ' ' || s.at[s.bytes - 1] == '\t'))
        s.bytes--;
    return s;
}

int cvy_line_part_int(cvy_line_part s, int64_t *out)
{
    int64_t value = 0;
    const int sign = s.bytes > 0 && (s.at[0] == '-' || s.at[0] == '+');
    if (s.bytes == (size_t)sign || s.bytes > (size_t)sign + 18)
        return 0;
    for (size_t i = (size_t)sign; i < s.bytes; i++) {
        if (!cvy_is_digit(s.at[i]))
            return 0;
        value = 10 * value + (s.at[i] - '0');
    }
    *out = sign && s.at[0] == '-' ? -value : value;
    return 1;
}

/* Powers of ten up to 10^22 are exact in a double. So with up to 15 digits the result is the nearest double (Clinger
 * 1990). Otherwise it has one or two rounding errors of a double, far below the precision of f32. */
static double scale_by_ten(double x, int power)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (power >= 0 && power < CVY_COUNT(exact))
        return x * exact[power];
    if (power < 0 && -power < CVY_COUNT(exact))
        return x / exact[-power];
    return power < -300 ? x * pow(10, -300) * pow(10, power + 300) : x * pow(10, power);
}

int cvy_line_part_real(cvy_line_part s, double *out)
{
    const char *at = s.at, *end = s.at + s.bytes;
    uint64_t digits = 0;
    int count = 0, seen = 0, power = 0;
    const int negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    for (int after_point = 0; at < end && (cvy_is_digit(*at) || (*at == '.' && !after_point)); at++) {
        if (*at == '.') {
            after_point = 1;
            continue;
        }
        seen = 1;
        if (count < 19) {
            digits = 10 * digits + (uint64_t)(*at - '0');
            count += digits > 0;
            power -= after_point;
        } else if (!after_point) {
            power++;
        }
    }
    if (!seen)
        return 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        int64_t exponent = 0;
        if (!cvy_line_part_int((cvy_line_part){at + 1, (size_t)(end - at) - 1}, &exponent))
            return 0;
        power += (int)CVY_MIN(CVY_MAX(exponent, -100000), 100000);
        at = end;
    }
    const double value = digits == 0 ? 0 : scale_by_ten((double)digits, CVY_MIN(CVY_MAX(power, -600), 600));
    if (at != end || !isfinite(value))
        return 0;
    *out = negative ? -value : value;
    return 1;
}

/* ---- reading all lines in order ---- */

/* Fills the buffer from the start of the current line on, with room for more than that line. It reads these bytes from
 * the file again, so that nothing must be moved. */
static cvy_status refill(cvy_lines *l)
{
    enum { WINDOW = 1 << 20 };
    const size_t left = l->room.bytes - l->at;
    CVY_CHECK(left < CVY_LINE_MAX, CVY_E_FORMAT, "%s, line %lld: is longer than %d bytes: not such a text file",
              l->file->path, (long long)l->line + 1, CVY_LINE_MAX);
    l->from += (int64_t)l->at;
    l->at = 0;
    l->room.bytes = 0;
    const size_t ask = (size_t)CVY_MIN((int64_t)CVY_MAX((size_t)WINDOW, 2 * left), l->file->bytes - l->from);
    CVY_TRY(cvy_bytes_need(&l->room, ask));
    return cvy_pread_all(l->file->fd, l->room.data, ask, l->from, l->file->path);
}

/* Returns any line, without its line end. If a quote has no end, its line is that up to the first line end. */
static cvy_status next_line(cvy_lines *l, cvy_line_part *out, int64_t *offset_out)
{
    cvy_line_quotes searched = {0};
    size_t single = 0, seen = 0; /* bytes up to the first line end, and those after which the next one is sought */
    int64_t quoted = 0;
    l->line += l->quoted;
    for (;;) {
        const size_t left = l->room.bytes - l->at;
        const char *begin = left > 0 ? (const char *)l->room.data + l->at : "";
        if (!l->end && left > 0)
            l->end = !memchr(begin, '\n', left) && memchr(begin, '\r', left) ? '\r' : '\n';
        const char *end = left > seen ? memchr(begin + seen, l->end, left - seen) : NULL;
        const int whole = l->from + (int64_t)l->room.bytes >= l->file->bytes;
        const cvy_line_part text = {begin, end ? (size_t)(end - begin) : left};
        if (!end && whole && left == 0)
            return CVY_END;
        const int is_long = text.bytes >= CVY_LINE_QUOTED_MAX;
        const int is_open =
            l->is_open && (end || (quoted > 0 && (whole || is_long))) && l->is_open(l->user, text, &searched);
        const int has_no_end = is_open && (is_long || (!end && whole));
        if (is_open && end && !has_no_end) {
            single = quoted++ == 0 ? text.bytes : single;
            seen = text.bytes + 1;
            continue;
        }
        if (!end && !whole && !has_no_end) {
            CVY_TRY(refill(l));
            continue;
        }
        if (has_no_end)
            l->is_open = NULL;
        *out = (cvy_line_part){begin, has_no_end && quoted > 0 ? single : text.bytes};
        *offset_out = l->from + (int64_t)l->at;
        l->at += out->bytes + (end || has_no_end);
        l->line++;
        l->quoted = has_no_end ? 0 : quoted;
        return CVY_OK;
    }
}

int cvy_line_is_comment(cvy_line_part line)
{
    const cvy_line_part text = cvy_line_part_trim(line);
    return text.bytes > 0 && text.at[0] == '#';
}

cvy_status cvy_lines_next(cvy_lines *l, cvy_line_part *out, int64_t *offset_out)
{
    for (;;) {
        CVY_TRY(next_line(l, out, offset_out));
        if (*offset_out == 0 && out->bytes >= 3 &&
            memcmp(out->at, "\xEF\xBB\xBF", 3) == 0) { /* byte order mark, which some editors write at the start of
                                                        * UTF-8 */
            *out = (cvy_line_part){out->at + 3, out->bytes - 3};
            *offset_out += 3;
            l->has_mark = 1;
        }
        if (out->bytes > 0 && out->at[out->bytes - 1] == '\r')
            out->bytes--;
        CVY_CHECK(out->bytes == 0 || !memchr(out->at, 0, out->bytes), CVY_E_FORMAT,
                  "%s, line %lld: holds a zero byte: not a text file", l->file->path, (long long)l->line);
        if (cvy_line_part_trim(*out).bytes > 0 && (l->keep_comments || !cvy_line_is_comment(*out)))
            return CVY_OK;
    }
}

void cvy_lines_end(cvy_lines *l)
{
    cvy_mem_free(&l->room.data);
    l->room = (cvy_bytes){0};
}

/* ---- lines of samples ---- */

cvy_status cvy_line_index_add(cvy_line_index *x, int64_t line, const cvy_entry *entry)
{
    const int64_t number = x->entries.count, shift = line - number;
    if (x->ngap == 0 || x->gap[x->ngap - 1].shift != shift) {
        CVY_TRY(cvy_mem_reserve(&x->gap, &x->room, x->ngap, sizeof *x->gap));
        x->gap[x->ngap++] = (struct cvy_line_gap){number, shift};
    }
    return cvy_entries_add(&x->entries, entry);
}

int64_t cvy_line_index_line(const cvy_line_index *x, int64_t number)
{
    int low = 0, high = x->ngap; /* gap[low].number <= number < gap[high].number */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        *(x->gap[middle].number <= number ? &low : &high) = middle;
    }
    return number + x->gap[low].shift;
}

cvy_status cvy_line_index_text(const cvy_line_index *x, int64_t number, char *to)
{
    const cvy_entry *e = cvy_entries_at(&x->entries, number);
    return cvy_pread_all(x->file.fd, to, e->bytes, (int64_t)e->offset, "the file");
}

void cvy_line_index_clear(cvy_line_index *x)
{
    cvy_entries_free(&x->entries);
    cvy_mem_free(&x->gap);
    x->ngap = x->room = 0;
}

void cvy_line_index_free(cvy_line_index *x)
{
    cvy_data_file_close(&x->file);
    cvy_line_index_clear(x);
}

/* ---- labels that are numbers, or names of classes ---- */

int cvy_label_kinds_add(cvy_label_kinds *k, cvy_label_kind kind)
{
    if (!k->is_guessed)
        k->names = k->asked == CVY_LABELS_AUTO ? kind == CVY_LABEL_WORD : k->asked == CVY_LABELS_NAMES;
    k->is_guessed = 1;
    if (!k->is_final && kind != CVY_LABEL_EITHER)
        k->count[kind]++;
    return k->names;
}

int cvy_label_kinds_changed(cvy_label_kinds *k)
{
    const int before = k->names;
    if (k->asked == CVY_LABELS_AUTO)
        k->names = k->count[CVY_LABEL_WORD] > 0 && k->count[CVY_LABEL_WORD] >= k->count[CVY_LABEL_NUMBER];
    k->is_final = 1;
    return k->names != before;
}

int cvy_label_kinds_mixed(const cvy_label_kinds *k)
{
    return k->asked == CVY_LABELS_AUTO && k->names && k->count[CVY_LABEL_NUMBER] > 0;
}
