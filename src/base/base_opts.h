/*
 * base_opts.h: structs that cross the border of the library, by their size.
 *
 * Every public struct of options or results begins with `size_t size`, which the caller sets to the sizeof of the
 * struct that it was compiled with. The library reads and writes no byte beyond that size, so a caller that was built
 * against an older or a newer header is served correctly or refused.
 */
#ifndef CVY_BASE_OPTS_H
#define CVY_BASE_OPTS_H

#include "base/base_status.h"

/*
 * Copies a caller's options into `own`, a struct of `own_size` bytes as this library knows it. Fields that the caller's
 * struct lacks, and all of them if `given` is NULL, are zero, which is their default. type: "cvy_program_opts", for
 * messages. CVY_E_ARGUMENT if the size is 0 or cannot be one, or if the struct is longer than the library's and a byte
 * of the rest is not zero: then the caller asks for something that this library does not know.
 */
cvy_status cvy_opts_read(const char *type, const void *given, void *own, size_t own_size);
#define CVY_OPTS_READ(type, given, own) cvy_opts_read(#type, (given), (own), sizeof(type))

/* Checks the size that a caller has set in a struct of results, before the work begins; NULL is accepted. */
cvy_status cvy_result_check(const char *type, const void *given, size_t own_size);
#define CVY_RESULT_CHECK(type, given) cvy_result_check(#type, (given), sizeof(type))
/* Copies `own` into it, as much as it holds; its size stays, bytes that the library does not know become zero. */
void cvy_result_write(void *given, const void *own, size_t own_size);

#endif
