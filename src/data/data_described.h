/*
 * data_described.h: what files say of their variables beside the numbers (names and order of axes, coordinates, units,
 * calendars), and whether two variables say the same.
 *
 * Wherever data are joined, each variable is compared with the first: the files of a set, the variables of a list, and
 * further data with those of the training. What is certain is mended while the numbers are read, and said: axes of the
 * same names are brought into one order, an axis with the same coordinates in the opposite direction is turned round, a
 * circle of longitudes begins where the first one does, and units are converted if they measure the same. Anything else
 * that changes the meaning of numbers is a fault with both values; what may be meant, such as another region, is said.
 *
 * It runs when a source is opened. A format whose reader can mend (NetCDF and HDF5; FITS, which converts units) asks
 * cvy_described_match() and cvy_described_relate(). All others ask cvy_described_agree(), to which whatever would have
 * to be mended is a fault.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_DESCRIBED_H
#define CVY_DATA_DESCRIBED_H

#include "data/data_reader.h"

/* How the numbers of a variable are read so that they are like those of another one. */
typedef struct cvy_mend {
    int from[CVY_NDIM_MAX];     /* axis i is its own axis from[i]; -1: it does not have it, and it has one element */
    int turned[CVY_NDIM_MAX];   /* 1: axis i is read backwards */
    int64_t roll[CVY_NDIM_MAX]; /* element k of axis i is element (k + roll[i]) % n of it, after it is turned */
    double factor, offset;      /* number * factor + offset */
} cvy_mend;

/* Sentences about files, of which those that say the same of several files become one line. Start with a pool. */
typedef struct cvy_remarks {
    cvy_pool *pool;
    struct cvy_remark *first, *last;
    int64_t count;
} cvy_remarks;
/* kind: remarks of one kind are one line, with the text of the first; NULL: those of one text. */
cvy_status cvy_remark(cvy_remarks *r, const char *file, const char *kind, const char *fmt, ...) CVY_PRINTF(4, 5);
/* Adds them to the info's note: "b.nc and 11 more files: SENTENCE". */
cvy_status cvy_remarks_note(const cvy_remarks *r, cvy_reader_info *info);

/* Whether two axes are the same by their names, or else by what they measure (latitudes, longitudes, heights). */
int cvy_axes_are_same(const cvy_coordinates *a, const cvy_coordinates *b);
/* What an axis measures, by its name, its attributes or its units; HEIGHT: heights, depths or levels. */
typedef enum cvy_axis_kind {
    CVY_AXIS_KIND_UNKNOWN,
    CVY_AXIS_KIND_LATITUDE,
    CVY_AXIS_KIND_LONGITUDE,
    CVY_AXIS_KIND_X,
    CVY_AXIS_KIND_Y,
    CVY_AXIS_KIND_HEIGHT,
    CVY_AXIS_KIND_TIME,
    CVY_AXIS_KIND_SPECTRUM
} cvy_axis_kind;
cvy_axis_kind cvy_axis_kind_of(const cvy_coordinates *c);
/* Of latitudes, or positions called y: 1: they grow along the axis, so that it heads north; -1: they fall; 0: it is not
 * known. */
int cvy_axis_heads_north(const cvy_coordinates *c);
/* Finds the axes of `own`, which are in any order, that are those of `like`. The first axis of `like` may be missing,
 * or may be any other one if any_first is 1: it counts channels. Returns 0 if not all are known. */
int cvy_described_match(const cvy_described *like, const cvy_described *own, int any_first, int from[CVY_NDIM_MAX]);
/* Writes the names of the axes, such as "(lat, lon)". order: axis i is axis order[i]; NULL: as they are. */
enum { CVY_AXES_TEXT = 160 };
const char *cvy_described_axes_text(const cvy_described *d, const int *order, int ndim, char text[CVY_AXES_TEXT]);

enum {
    CVY_COMPARE_AXES = 1,    /* their order and coordinates */
    CVY_COMPARE_UNITS = 2,   /* units and calendars; without it, it is another variable of the same file */
    CVY_COMPARE_MENDS = 4,   /* the reader mends axes; without it, what would have to be mended is a fault */
    CVY_COMPARE_CONVERTS = 8 /* the same for units */
};
/* One that changes nothing. */
cvy_mend cvy_mend_nothing(void);
/* Compares two variables, and adds to `mend` how `own` is mended. mend->from is set already. where: what has `like`,
 * for messages: "in a.nc", "of t2m", "in the training data". how: CVY_COMPARE_*. differs: axis i has other coordinates,
 * which is said. CVY_E_CONFIG: they cannot be joined. */
cvy_status cvy_described_relate(const cvy_described *like, const char *where, const cvy_described *own, int how,
                                cvy_remarks *remarks, cvy_mend *mend, int differs[CVY_NDIM_MAX]);
/* Makes the description that of mended numbers. */
cvy_status cvy_described_mend(cvy_pool *pool, const cvy_described *like, const cvy_mend *mend, cvy_described *own);

/* Copies a description, with its strings and coordinates, into pool. */
cvy_status cvy_described_copy(cvy_pool *pool, const cvy_described *d, cvy_described *out);

/* Checks descriptions of sources that are read as they are. with_y 0: x alone. Axes of which the coordinates differ
 * lose theirs in own->described. */
cvy_status cvy_descriptions_agree(const cvy_descriptions *like, const char *where, int with_y, cvy_reader_info *own);

/* Sets differs of each axis of which another file does not have the coordinates of `whole`. */
cvy_status cvy_described_compare_axes(const cvy_described *whole, const cvy_described *other,
                                      int differs[CVY_NDIM_MAX]);
/* Drops the coordinates of these axes. */
void cvy_described_drop_axes(cvy_described *d, const int differs[CVY_NDIM_MAX]);
/* Drops the coordinates of `whole` which another source of the same data set does not have: they are not those of all
 * samples. The arrays of `whole` are copied into pool first. */
cvy_status cvy_descriptions_drop(cvy_pool *pool, cvy_descriptions *whole, const cvy_descriptions *other);
/* The description of an axis of x or y; out->name is NULL if it is not known, or not that of all joined variables. */
void cvy_descriptions_axis(const cvy_descriptions *d, cvy_along along, int axis, cvy_coordinates *out);

/* For files of runs and packs: of an axis with more coordinates, this many are kept, equally spread over it from the
 * first to the last. They tell a shifted, turned or other axis all the same. */
enum { CVY_COORDINATES_KEPT = 32 };
/* Copies a description into pool with at most so many coordinates of each axis. */
cvy_status cvy_described_keep(cvy_pool *pool, const cvy_described *d, cvy_described *out);
/* How many values there are: all, or those that are kept. */
static inline int64_t cvy_coordinates_count(const cvy_coordinates *c)
{
    return c->nkept > 0 ? c->nkept : c->n;
}
/* The coordinate k of those that are kept is that of this element. Of a turned axis the same elements are kept. */
static inline int64_t cvy_coordinates_kept_at(const cvy_coordinates *c, int64_t k)
{
    const int64_t from_end = c->nkept - 1 - k, near = CVY_MIN(k, from_end);
    const int64_t at = c->nkept > 1 ? near * (c->n - 1) / (c->nkept - 1) : k;
    return c->nkept > 1 && k > from_end ? c->n - 1 - at : at;
}

#endif
