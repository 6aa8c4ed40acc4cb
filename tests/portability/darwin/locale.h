/* SPDX-License-Identifier: BSD-3-Clause */
/* locale.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_LOCALE_H
#define DARWIN_LOCALE_H
typedef struct darwin_locale *locale_t;
struct lconv {
    char *decimal_point;
};
#define LC_ALL 0
#define LC_NUMERIC 4
#define LC_NUMERIC_MASK (1 << 4)
#define LC_ALL_MASK 0x3f
#define LC_GLOBAL_LOCALE ((locale_t)-1)
char *setlocale(int, const char *);
struct lconv *localeconv(void);
locale_t newlocale(int, const char *, locale_t);
void freelocale(locale_t);
locale_t uselocale(locale_t);
#endif
