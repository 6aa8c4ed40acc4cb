/*
 * kernel_library.c: the library's name as loaded, not as compiled against: it may be replaced beneath the program.
 */
#include "kernel/kernel_library.h"

#include <stdio.h>

#if CVY_HAVE_ONEDNN
#include "kernel/onednn/onednn_api.h"
#endif

void cvy_kernel_library(char *text, size_t room)
{
#if CVY_HAVE_ONEDNN
    cvy_onednn_library(text, room);
#else
    snprintf(text, room, "no oneDNN");
#endif
}
