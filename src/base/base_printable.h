/* SPDX-License-Identifier: BSD-3-Clause */
/* base_printable.h: texts for people that hold names from elsewhere: files, classes, layers. */
#ifndef CVY_BASE_PRINTABLE_H
#define CVY_BASE_PRINTABLE_H

/* Bytes that control a terminal, or that are not UTF-8, become '?'; tabs and line breaks stay. */
void cvy_make_printable(char *text);

#endif
