/*
 * run_info.c: what this build has, a "key value" pair a line: for `convoy info`, bug reports and plan.json.
 */
#include <convoy/base.h>

#define WORD_0 "no"
#define WORD_1 "yes"
#define WORD_OF(x) WORD_##x
#define WORD(x) WORD_OF(x)

const char *cvy_build_info(void)
{
    return "version " CVY_VERSION "\n"
           "build " CVY_BUILD_TYPE "\n"
           "compiler " CVY_BUILD_COMPILER "\n"
           "mpi " WORD(CVY_HAVE_MPI) "\n"
           "onednn " WORD(CVY_HAVE_ONEDNN) "\n"
           "openmp " WORD(CVY_HAVE_OPENMP) "\n"
           "jpeg " WORD(CVY_HAVE_JPEG) "\n"
           "png " WORD(CVY_HAVE_SPNG) "\n"
           "lmdb " WORD(CVY_HAVE_LMDB) "\n"
           "hdf5 " WORD(CVY_HAVE_HDF5) "\n"
           "zlib " WORD(CVY_HAVE_ZLIB) "\n"
           "xxhash " WORD(CVY_HAVE_XXHASH) "\n"
           "hwloc " WORD(CVY_HAVE_HWLOC) "\n";
}
