/* SPDX-License-Identifier: BSD-3-Clause */
/* xlocale.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_XLOCALE_H
#define DARWIN_XLOCALE_H
typedef struct darwin_locale *locale_t;
#define LC_ALL_MASK 0x3f
locale_t newlocale(int, const char *, locale_t);
int freelocale(locale_t);
locale_t uselocale(locale_t);
#endif
