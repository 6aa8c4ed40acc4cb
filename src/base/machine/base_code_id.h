/*
 * base_code_id.h: which build of a program or library runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_CODE_ID_H
#define CVY_BASE_CODE_ID_H

#include <stdint.h>

/* A hash of the linker's identifier (build-id) of the file that holds the code at an address; 0: the file has none, or
 * the system does not tell. */
uint64_t cvy_code_id(uintptr_t inside);

#endif
