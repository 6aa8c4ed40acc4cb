/*
 * base_signals.h: signals belong to the program that uses the library. The library sets no handler. Here is what keeps
 * a write of the library, and the library's threads, from ending that program or from running its handlers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_SIGNALS_H
#define CVY_BASE_SIGNALS_H

#include <sys/select.h> /* sigset_t, without all of signal.h */

/* Between these two calls SIGPIPE and SIGXFSZ of this thread are held back: a write to a closed pipe, or beyond the
 * limit on the size of files, is an error of its call (EPIPE, EFBIG) and nothing else. Pairs may be nested. errno
 * stays. */
void cvy_signals_hold(sigset_t *before_out);
void cvy_signals_release(const sigset_t *before);

#endif
