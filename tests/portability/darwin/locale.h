/* SPDX-License-Identifier: BSD-3-Clause */
/* locale.h: macOS has the locale of a thread in xlocale.h (../macos.sh). */
#ifndef DARWIN_LOCALE_H
#define DARWIN_LOCALE_H
#endif
