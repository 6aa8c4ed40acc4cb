/*
 * data_fits_cards.c: looks through the headers of a FITS file before CFITSIO does.
 *
 * CFITSIO 4.2 divides by some numbers of the header of a compressed image as soon as it meets the header, so a damaged
 * file would end the run. A file with such a number is refused here. Everything else is left to CFITSIO. Sources: FITS
 * standard 4.0, sections 3.3, 4.1 and 10.1.
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
    int block_size; /* n of the card ZNAMEn with the size of the blocks of Rice's compression; 0: none yet */
};

static int is_named(const char *card, const char *name)
{
    return memcmp(card, name, strlen(name)) == 0;
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

/* Whether a card has a number below 1 by which CFITSIO divides. */
static int divides_by_zero(const char *card, struct unit *u)
{
    if (is_named(card, "ZNAME") && memcmp(card + NAME + 2, "'BLOCKSIZE", 10) == 0)
        u->block_size = atoi(card + 5);
    return (is_named(card, "ZTILE") || (is_named(card, "ZVAL") && atoi(card + 4) == u->block_size)) &&
           !(value_of(card) >= 1);
}

static cvy_status take_card(const char *card, struct unit *u)
{
    CVY_CHECK(!divides_by_zero(card, u), CVY_E_FORMAT, "the header of a compressed image has %.8s= %.20s: damaged",
              card, card + NAME + 2);
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
