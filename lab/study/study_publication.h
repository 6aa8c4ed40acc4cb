/*
 * study_publication.h: a publication: what it shows, part by part, and which results of which studies stand beside it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STUDY_PUBLICATION_H
#define CVY_STUDY_PUBLICATION_H

#include "base/text/base_tree.h"

enum { CVY_PARTS_MAX = 64, CVY_PART_ITEMS_MAX = 16, CVY_PUBLICATION_STUDIES_MAX = 24 };

/* A figure or a table of a study. */
typedef struct cvy_part_item {
    const char *study;
    const char *figure;     /* the title of a figure, or NULL */
    const char *panel;      /* only the charts whose name has this text; NULL: all of them */
    const char *experiment; /* the experiment whose results make a table, or NULL */
    const char *only;       /* of a table: "axis=value", the cases that it has; NULL: all */
    int stands_in;          /* its predictions stand for the points of the part that need more cores than there are */
} cvy_part_item;

typedef struct cvy_part {
    const char *title, *shows; /* what the publication shows */
    const char *lacks;         /* what the counterpart has not; NULL: nothing */
    const char *needs;         /* what a counterpart would need; NULL: it is here */
    const char *text;          /* what there is to say of it */
    const char *metrics;       /* "a; b": metrics of published.csv that belong to it, or NULL */
    int plots;                 /* how many plots of the publication it stands for; 0: a table or a sentence */
    cvy_part_item item[CVY_PART_ITEMS_MAX];
    int nitem;
} cvy_part;

typedef struct cvy_publication {
    const char *file;                               /* for messages */
    const char *page;                               /* the name of the page, without .md */
    const char *title, *source, *summary;           /* of the page */
    const char *published;                          /* its name in published.csv, or NULL */
    const char *study[CVY_PUBLICATION_STUDIES_MAX]; /* that are named, each once */
    int nstudy;
    cvy_part *part;
    int npart;
} cvy_publication;

/* Reads a publication from text. All of it is in the pool. CVY_E_CONFIG with file, line and column. */
cvy_status cvy_publication_read(cvy_pool *pool, const char *file, const char *text, cvy_publication *out);

#endif
