/*
 * shim_hdf5.c: makes the HDF5 library crash, hang or exit in the reader process (LD_PRELOAD), whatever its version.
 *
 * The fault happens when the library is asked where a chunk is stored, which is while samples are read. Other processes
 * into which the shim is loaded are left alone.
 *
 * Environment:
 *   SHIM_HDF5_FILE   only files whose path contains this text; all if not set
 *   SHIM_HDF5_AT     the number of the question in a process that is affected, from 1
 *   SHIM_HDF5_FAULT  SIGSEGV, SIGABRT, SIGKILL: the process gets this signal
 *                    hang: it computes forever
 *                    exit: it ends with exit code 7
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_affected(hid_t set)
{
    const char *part = getenv("SHIM_HDF5_FILE");
    char path[4096] = "";
    if (strcmp(program_invocation_short_name, "convoy-hdf5") != 0 || !getenv("SHIM_HDF5_FAULT"))
        return 0;
    const hid_t file = H5Iget_file_id(set);
    const ssize_t n = file < 0 ? -1 : H5Fget_name(file, path, sizeof path);
    if (file >= 0)
        H5Fclose(file);
    return n > 0 && (!part || strstr(path, part));
}

static void do_fault(const char *fault)
{
    static volatile unsigned count;
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"SIGSEGV", SIGSEGV}, {"SIGABRT", SIGABRT}, {"SIGKILL", SIGKILL}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(fault, signals[i].name) == 0)
            raise(signals[i].number);
    while (strcmp(fault, "hang") == 0)
        count++;
    _exit(7);
}

herr_t H5Dget_chunk_info_by_coord(hid_t set, const hsize_t *offset, unsigned *filter_mask, haddr_t *addr, hsize_t *size)
{
    static int count;
    const char *at = getenv("SHIM_HDF5_AT");
    herr_t (*real)(hid_t, const hsize_t *, unsigned *, haddr_t *, hsize_t *) =
        (__typeof__(real))dlsym(RTLD_NEXT, "H5Dget_chunk_info_by_coord");
    if (is_affected(set) && ++count == (at ? atoi(at) : 1))
        do_fault(getenv("SHIM_HDF5_FAULT"));
    return real(set, offset, filter_mask, addr, size);
}
