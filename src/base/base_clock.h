/*
 * base_clock.h: time: monotonic seconds for measuring, the wall clock, and the date for logs.
 */
#ifndef CVY_BASE_CLOCK_H
#define CVY_BASE_CLOCK_H

double cvy_clock_s(void);             /* monotonic seconds */
double cvy_clock_wall_s(void);        /* seconds since 1970 by the wall clock, which may be set */
void cvy_clock_sleep(double seconds); /* by cvy_clock_s; at least so long, mostly some 50 us longer */
void cvy_clock_text(char text[32]);   /* UTC, ISO 8601 */

#endif
