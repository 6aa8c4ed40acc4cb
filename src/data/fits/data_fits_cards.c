/*
 * data_fits_cards.c: looks through the headers of a FITS file before CFITSIO does.
 *
 * CFITSIO 4.2 divides by some numbers of the header of a compressed image as soon as it meets the header, so a damaged
 * file would end the run: by the sizes of tiles, by those of the image if there are none, and by the size of the blocks
 * of Rice's compression. A file with such a number below 1 is refused here. Everything else is left to CFITSIO.
 * Sources: FITS standard 4.0, sections 3.3, 4.1 and 10.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/fits/data_fits.h"

#if CVY_HAVE_CFITSIO
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"

enum { CARD = 80, BLOCK = 2880, NAME = 8, UNITS_MAX = 10000 };

struct unit { /* what the cards say about the size of the data */
    double bits, axes, elems, extra, groups;
    /* Cards ZVALn, a bit for each n: whose number is below 1; which have the size of the blocks of Rice's compression.
     */
    unsigned low, blocks;
};

static int is_named(const char *card, const char *name)
{
    return memcmp(card, name, strlen(name)) == 0;
}

/* The number n in the name of a card, as in ZVALn; 0: it has none, or one above 9, which nobody writes. */
static int number_of(const char *card, size_t after)
{
    const char digit = card[after];
    return digit >= '1' && digit <= '9' && card[after + 1] == ' ' ? digit - '0' : 0;
}

/* The number of a card, which is behind "NAME    = "; NaN: there is none. */
static double value_of(const char *card)
{
    char text[CARD - NAME - 1], *end = NULL;
    memcpy(text, card + NAME + 2, sizeof text - 1);
    text[sizeof text - 1] = 0;
    const double value = strtod(text, &end);
    return end > text ? value : NAN;
}

static int has_text(const char *card, const char *text)
{
    return memcmp(card + NAME + 2, text, strlen(text)) == 0;
}

/* Whether the card is ZTILEn or ZNAXISn with a number below 1. */
static int is_empty_size(const char *card)
{
    const size_t letters = is_named(card, "ZTILE") ? 5 : is_named(card, "ZNAXIS") ? 6 : 0;
    return letters > 0 && card[letters] != ' ' && !(value_of(card) >= 1);
}

/* Notes what a card says about the blocks of Rice's compression. CFITSIO takes the first ZVALn, whatever its name is.
 */
static void take_block_size(const char *card, struct unit *u)
{
    if (is_named(card, "ZCMPTYPE") && has_text(card, "'RICE"))
        u->blocks |= 1u << 1;
    else if (is_named(card, "ZNAME") && has_text(card, "'BLOCKSIZE"))
        u->blocks |= 1u << number_of(card, 5);
    else if (is_named(card, "ZVAL") && !(value_of(card) >= 1))
        u->low |= 1u << number_of(card, 4);
}

static cvy_status take_card(const char *card, struct unit *u)
{
    CVY_CHECK(!is_empty_size(card), CVY_E_FORMAT,
              "the header of a compressed image has %.8s= %.20s, expected at least 1: damaged", card, card + NAME + 2);
    take_block_size(card, u);
    if (is_named(card, "BITPIX  "))
        u->bits = fabs(value_of(card));
    else if (is_named(card, "NAXIS   "))
        u->axes = value_of(card);
    else if (is_named(card, "NAXIS"))
        u->elems *= value_of(card);
    else if (is_named(card, "PCOUNT  "))
        u->extra = value_of(card);
    else if (is_named(card, "GCOUNT  "))
        u->groups = value_of(card);
    return CVY_OK;
}

/* Reads a header, and finds the place of the next one. CVY_END: there is none, or its place is not known. */
static cvy_status read_header(int fd, int64_t bytes, int64_t *at)
{
    char block[BLOCK];
    struct unit u = {.elems = 1, .groups = 1};
    int ends = 0;
    while (!ends && *at + BLOCK <= bytes) {
        CVY_TRY(cvy_pread_all(fd, block, BLOCK, *at, "the header"));
        for (const char *card = block; card < block + BLOCK && !ends; card += CARD) {
            ends = is_named(card, "END     ");
            CVY_TRY(take_card(card, &u));
        }
        *at += BLOCK;
    }
    CVY_CHECK(!(u.low & u.blocks & ~1u), CVY_E_FORMAT,
              "the header of a compressed image has blocks of less than one pixel (ZVALn): damaged");
    const double data = u.axes > 0 ? u.bits / 8 * u.groups * (u.extra + u.elems) : 0;
    if (!ends || !(data >= 0 && data < (double)(bytes - *at)))
        return CVY_END;
    *at += (int64_t)ceil(data / BLOCK) * BLOCK;
    return CVY_OK;
}

cvy_status cvy_fits_check_headers(const cvy_data_file *file)
{
    int64_t at = 0;
    cvy_status status = CVY_OK;
    for (int i = 0; i < UNITS_MAX && status == CVY_OK; i++)
        status = read_header(file->fd, file->bytes, &at);
    return status == CVY_END ? CVY_OK : status;
}

#endif
