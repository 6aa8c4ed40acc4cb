/*
 * report_publication.h: what the page of a publication shows of a study.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_PUBLICATION_H
#define CVY_REPORT_PUBLICATION_H

#include "report/report_study.h"
#include "study/study_publication.h"

/* The figure with this title; NULL: the study has none. */
const cvy_figure *cvy_publication_find_figure(const cvy_study_page *p, const char *title);
/* Adds the charts of the item's figure, their points, and how fast convoy is beside other programs. */
cvy_status cvy_publication_figure(cvy_text *md, cvy_study_page *p, const cvy_part_item *item);

#endif
