/*
 * base_clock.h: monotonic time for measuring, the time of the wall clock, and the date for logs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_CLOCK_H
#define CVY_BASE_CLOCK_H

double cvy_clock_s(void);             /* monotonic seconds */
double cvy_clock_wall_s(void);        /* seconds since 1970 by the wall clock, which someone may set */
void cvy_clock_sleep(double seconds); /* sleeps at least so long by cvy_clock_s, mostly about 50 us longer */
void cvy_clock_text(char text[32]);   /* writes the date and time in UTC, ISO 8601 */

#endif
