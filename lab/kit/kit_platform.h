/*
 * kit_platform.h: the platform of a kit that was given none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_KIT_PLATFORM_H
#define CVY_KIT_PLATFORM_H

#include "kit/kit_file.h"

/* Measures the platform in a job of two nodes or more, and writes it. CVY_E_UNSUPPORTED: it cannot be measured, and the
 * message says why. */
cvy_status cvy_kit_measure_platform(const cvy_kit *kit, const cvy_kit_run *run, const char *path);

#endif
