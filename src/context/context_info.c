/*
 * context_info.c: what this build contains, one line with a key and a value for each item: for `convoy info`, bug
 * reports and plan.json.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/base.h>

/* An item of the list below: its name, and yes or no as a string. */
#define WORD_0 "no"
#define WORD_1 "yes"
#define WORD_OF(x) WORD_##x
#define HAS(name, have) name " " WORD_OF(have) "\n"

/* clang-format off */
static const char info[] =
    "version " CVY_VERSION "\n"
    "build " CVY_BUILD_TYPE "\n"
    "compiler " CVY_BUILD_COMPILER "\n"
    HAS("mpi", CVY_HAVE_MPI)
    HAS("onednn", CVY_HAVE_ONEDNN)
    HAS("openmp", CVY_HAVE_OPENMP)
    HAS("jpeg", CVY_HAVE_JPEG)
    HAS("png", CVY_HAVE_SPNG)
    HAS("lmdb", CVY_HAVE_LMDB)
    HAS("hdf5", CVY_HAVE_HDF5)
    HAS("cfitsio", CVY_HAVE_CFITSIO)
    HAS("libdeflate", CVY_HAVE_LIBDEFLATE)
    HAS("protobuf-c", CVY_HAVE_PROTOBUF_C)
    HAS("xxhash", CVY_HAVE_XXHASH)
    HAS("avx512-bf16", CVY_HAVE_AVX512_BF16)
    HAS("amx-bf16", CVY_HAVE_AMX_BF16);
/* clang-format on */

const char *cvy_build_info(void)
{
    return info;
}
