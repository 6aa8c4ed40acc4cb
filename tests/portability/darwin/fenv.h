/* SPDX-License-Identifier: BSD-3-Clause */
/* fenv.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_FENV_H
#define DARWIN_FENV_H
typedef struct {
    unsigned long long opaque[2];
} fenv_t;
extern const fenv_t _FE_DFL_ENV;
#define FE_DFL_ENV (&_FE_DFL_ENV)
int fegetenv(fenv_t *);
int fesetenv(const fenv_t *);
#endif
