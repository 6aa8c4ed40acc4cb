/*
 * native_library.c: convoy's own kernels as a library of kernels.
 */
#include "kernel/kernel_library.h"

CVY_LIBRARY_DEFINE(native) = {
    .name = "native",
    .help = "convoy's own kernels",
};
