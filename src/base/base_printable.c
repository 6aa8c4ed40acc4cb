/*
 * base_printable.c: names may come from a damaged or hostile file, and a terminal would obey the control sequences in
 * them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_printable.h"

#include <stddef.h>

#include "base/base_status.h"

/* C0 but tab and line break, DEL, and C1 (U+0080 to U+009F), which some terminals take for control sequences. */
static int is_control(const unsigned char *s)
{
    return (*s < 32 && *s != '\n' && *s != '\t') || *s == 127 || (s[0] == 0xC2 && s[1] < 0xA0);
}

void cvy_make_printable(char *text)
{
    char *out = text;
    for (const char *in = text; *in;) {
        const unsigned char *s = (const unsigned char *)in;
        const int length = cvy_utf8_length(s), keep = length > 0 && !is_control(s);
        for (int i = 0; keep && i < length; i++)
            *out++ = in[i];
        if (!keep)
            *out++ = '?';
        in += length > 0 ? length : 1;
    }
    *out = 0;
}
