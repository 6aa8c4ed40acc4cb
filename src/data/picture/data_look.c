/*
 * data_look.c: looks at some pictures of a set when it is opened, and says how all will be read: grey or in colour, and
 * what is lost: an alpha channel, a palette, an orientation that a camera has noted.
 *
 * It reads headers only: of PNG (W3C, "PNG specification", third edition), of JPEG (ITU T.81) and of Exif in it (CIPA
 * DC-008). Files may be damaged or hostile, so all lengths are checked; what cannot be read is for the loader to
 * report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "data/data_index.h"

enum { LOOKS = 32, WHERE_ROOM = 1024 };
enum { ALPHA, PALETTE, TURNED, INKS, DEEP, TRAITS };

static const char *const trait_text[TRAITS] = {
    [ALPHA] = "has an alpha channel, which is dropped",
    [PALETTE] = "has a palette, whose colours are read and not its indices",
    [TURNED] = "has an orientation in its EXIF data, which is not applied",
    [INKS] = "has four inks, which become RGB without a colour profile",
    [DEEP] = "has 16 bits, which are read as 0 to 255 in steps of 1/257",
};

struct kinds {
    int64_t seen, channels[4];            /* how many have 1, 3 */
    int64_t first[4];                     /* a sample of each kind */
    int64_t with[TRAITS], sample[TRAITS]; /* how many have a trait, and the first of them */
    int64_t bad, bad_sample;              /* how many cannot be read, the first of them, and why */
    char why[WHERE_ROOM];
};

/* ---- headers ---- */

static uint32_t big(const uint8_t *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static void look_at_png(const uint8_t *at, size_t n, int has[TRAITS])
{
    enum { SIGNATURE = 8, HEAD = 8, CRC = 4, DEPTH = 24, COLOUR_TYPE = 25 };
    if (n <= COLOUR_TYPE)
        return;
    has[ALPHA] = at[COLOUR_TYPE] == 4 || at[COLOUR_TYPE] == 6;
    has[PALETTE] = at[COLOUR_TYPE] == 3;
    has[DEEP] = at[DEPTH] == 16;
    for (size_t p = SIGNATURE; p + HEAD <= n && memcmp(at + p + 4, "IDAT", 4) != 0;) {
        has[ALPHA] |= memcmp(at + p + 4, "tRNS", 4) == 0;
        const size_t bytes = big(at + p, 4);
        if (bytes > n - p - HEAD)
            return;
        p += HEAD + bytes + CRC;
    }
}

/* A number of Exif data, in their byte order. */
static uint32_t exif_number(const uint8_t *at, int bytes, int is_little)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << 8 * (is_little ? i : bytes - 1 - i);
    return value;
}

/* Whether the Exif data, from their byte order on, say that the picture is to be turned. */
static int exif_turns(const uint8_t *at, size_t n)
{
    enum { ORIENTATION = 0x0112, ENTRY = 12 };
    if (n < 8 || (memcmp(at, "II", 2) != 0 && memcmp(at, "MM", 2) != 0))
        return 0;
    const int is_little = at[0] == 'I';
    const size_t list = exif_number(at + 4, 4, is_little);
    if (list > n - 2)
        return 0;
    const size_t count = exif_number(at + list, 2, is_little);
    for (size_t i = 0; i < count && list + 2 + (i + 1) * ENTRY <= n; i++) {
        const uint8_t *entry = at + list + 2 + i * ENTRY;
        if (exif_number(entry, 2, is_little) == ORIENTATION) {
            const uint32_t value = exif_number(entry + 8, 2, is_little);
            return value >= 2 && value <= 8;
        }
    }
    return 0;
}

static void look_at_jpeg(const uint8_t *at, size_t n, int has[TRAITS])
{
    enum { SCAN = 0xDA, APP1 = 0xE1, FRAME = 0xC0, EXIF_HEAD = 6, INKS_AT = 7 };
    for (size_t p = 2; p + 4 <= n && at[p] == 0xFF && at[p + 1] != SCAN;) {
        const uint8_t marker = at[p + 1], *body = at + p + 4;
        const size_t bytes = big(at + p + 2, 2);
        if (bytes < 2 || bytes > n - p - 2)
            return;
        if (marker == APP1 && bytes - 2 > EXIF_HEAD && memcmp(body, "Exif\0", EXIF_HEAD) == 0)
            has[TURNED] |= exif_turns(body + EXIF_HEAD, bytes - 2 - EXIF_HEAD);
        /* a frame: C0 .. CF but the tables C4, C8 and CC; precision, height, width, number of components */
        const int is_frame = (marker & 0xF0) == FRAME && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
        if (is_frame && bytes - 2 > 5)
            has[INKS] |= body[5] == 4;
        p += 2 + bytes;
    }
}

/* ---- the pictures that are looked at ---- */

/* The loader will report such a picture, or skip it. */
static void note_bad(int64_t number, struct kinds *k)
{
    if (k->bad++ > 0)
        return;
    k->bad_sample = number;
    snprintf(k->why, sizeof k->why, "%s", cvy_error_text());
}

static void look_at(const cvy_raw *raw, int64_t number, struct kinds *k)
{
    int64_t C = 0, H = 0, W = 0;
    int has[TRAITS] = {0};
    if (cvy_picture_read_header(raw->coding, raw->x.data, raw->x.bytes, &C, &H, &W) != CVY_OK) {
        note_bad(number, k);
        return;
    }
    if (raw->coding == CVY_CODING_PNG)
        look_at_png(raw->x.data, raw->x.bytes, has);
    else
        look_at_jpeg(raw->x.data, raw->x.bytes, has);
    k->seen++;
    k->first[C] = k->channels[C]++ == 0 ? number : k->first[C];
    for (int i = 0; i < TRAITS; i++)
        if (has[i])
            k->sample[i] = k->with[i]++ == 0 ? number : k->sample[i];
}

/* Look i of LOOKS: evenly spread over the set, from its first sample to its last. */
static int64_t spread(int64_t count, int64_t i)
{
    return CVY_MIN(count, LOOKS) == count ? i
                                          : (count - 1) / (LOOKS - 1) * i + (count - 1) % (LOOKS - 1) * i / (LOOKS - 1);
}

static void say_channels(const struct kinds *k, const cvy_pictures *p, int64_t read_as, cvy_text *t)
{
    static const char *const kind[] = {"", "grey", "", "in colour"};
    const int64_t other = 4 - read_as;
    char text[2][WHERE_ROOM];
    p->where(p->state, k->first[read_as], text[0], sizeof text[0]);
    if (k->channels[other] == 0) {
        cvy_text_add(t, "%s is %s, and so are all of %lld pictures that were looked at: all are read %s%s", text[0],
                     kind[read_as], (long long)k->seen, read_as == 1 ? "as " : "", kind[read_as]);
        return;
    }
    p->where(p->state, k->first[other], text[1], sizeof text[1]);
    cvy_text_add(t,
                 "%s is %s, and the first picture of the set is %s (so are %lld of %lld that were looked at): all are "
                 "read %s%s, unless the training data are %s or the source says `channels: %s`",
                 text[1], kind[other], kind[read_as], (long long)k->channels[read_as], (long long)k->seen,
                 read_as == 1 ? "as " : "", kind[read_as], kind[other], other == 1 ? "grey" : "rgb");
}

cvy_status cvy_pictures_look(const cvy_pictures *p, int64_t read_as, int is_guess, cvy_reader_info *info)
{
    struct kinds k = {0};
    cvy_raw raw = {0};
    cvy_text t = {0};
    char text[WHERE_ROOM];
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < CVY_MIN(p->count, LOOKS) && status != CVY_E_MEMORY; i++) {
        const int64_t number = p->number_of ? p->number_of(p->state, i) : spread(p->count, i);
        status = p->read(p->state, number, &raw);
        if (status == CVY_OK && raw.coding != CVY_CODING_PLAIN)
            look_at(&raw, number, &k);
        else if (status != CVY_OK)
            note_bad(number, &k);
        if (status != CVY_OK && p->gives_up)
            break;
    }
    cvy_raw_free(&raw);
    if (is_guess && k.seen > 1 && k.channels[read_as] > 0)
        say_channels(&k, p, read_as, &t);
    for (int i = 0; i < TRAITS; i++) {
        if (k.with[i] == 0)
            continue;
        p->where(p->state, k.sample[i], text, sizeof text);
        cvy_text_add(&t, "%s%s %s (%lld of %lld)", t.bytes > 0 ? "; " : "", text, trait_text[i], (long long)k.with[i],
                     (long long)k.seen);
    }
    if (k.bad > 0) {
        p->where(p->state, k.bad_sample, text, sizeof text);
        cvy_text_add(&t, "%s%s cannot be read, as %lld of %lld: %s", t.bytes > 0 ? "; " : "", text, (long long)k.bad,
                     (long long)(k.bad + k.seen), k.why);
    }
    status = status == CVY_E_MEMORY ? status : t.status;
    if (status == CVY_OK && t.bytes > 0)
        status = cvy_reader_note(info, "%s", t.data);
    cvy_text_free(&t);
    return status;
}
