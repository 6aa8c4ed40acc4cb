/*
 * base_opts.h: the sized structs of the public API.
 *
 * Every public struct of options or results begins with `size_t size`. The caller sets it to the sizeof of the struct
 * with which it was compiled. The library reads and writes no byte beyond that size. So a caller that was built with an
 * older or a newer header is served correctly or refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_OPTS_H
#define CVY_BASE_OPTS_H

#include "base/base_status.h"

/*
 * Copies a caller's options into `own`, a struct of `own_size` bytes as this library knows it. Fields that the caller's
 * struct lacks become zero, which is their default; if `given` is NULL, all fields do. type: "cvy_program_opts", for
 * messages. CVY_E_ARGUMENT if the size is 0 or impossible; also if the struct is longer than the library's and the rest
 * is not all zero, because the caller then asks for something that this library does not know.
 */
cvy_status cvy_opts_read(const char *type, const void *given, void *own, size_t own_size);
#define CVY_OPTS_READ(type, given, own) cvy_opts_read(#type, (given), (own), sizeof(type))

/* Checks the size that a caller has set in a struct of results, before the work begins; given may be NULL. */
cvy_status cvy_result_check(const char *type, const void *given, size_t own_size);
#define CVY_RESULT_CHECK(type, given) cvy_result_check(#type, (given), sizeof(type))
/* Copies `own` into `given`, as far as it fits. The size in `given` stays; bytes that the library does not know become
 * zero. */
void cvy_result_write(void *given, const void *own, size_t own_size);

#endif
