#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang mpich
# other_hdf5.sh: a program that is linked with another version of HDF5, or loads one, and libconvoy, which reads and
# writes HDF5 files, call their own libhdf5 each; a program may have a malloc() of its own; if libconvoy's libhdf5 is not
# there, the message names it. The other version is a stand-in.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "with the sanitizers libconvoy is linked with libhdf5"; exit 77; }
list=$CONVOY_BUILD/gen/data/hdf5/data_hdf5_symbols.h
[ -s "$list" ] || { echo "this libconvoy has no libhdf5 of its own"; exit 77; }
sky=$CONVOY_SOURCE/tests/data/files/netcdf/sky1.nc

{
    echo 'long other_calls; long H5get_libversion(void) { return 1999; } long H5open(void) { other_calls++; return -1; }'
    sed -n -e 's/CVY_H5_FUNCTION(H5get_libversion)//' -e 's/CVY_H5_FUNCTION(\(.*\))/long \1(void) { other_calls++; return -1; }/p' \
        -e 's/CVY_H5_NUMBER(\(.*\))/long \1 = -1;/p' "$list"
} >other.c
cat >host.c <<'END'
#include <convoy/convoy.h>
#include <dlfcn.h>
#include <stdio.h>

extern long other_calls;
extern long H5get_libversion(void);

int main(int argc, char **argv)
{
    cvy_context_opts options = {.size = sizeof options, .threads = 1};
    cvy_context *context = NULL;
    cvy_data *data = NULL;
    cvy_data_about about = {.size = sizeof about};
    if (argc != 2 || H5get_libversion() != 1999)
        return 2;
    if (cvy_context_create(&options, &context) != CVY_OK || cvy_data_open(argv[1], NULL, &data) != CVY_OK ||
        cvy_data_describe(data, &about) != CVY_OK)
        printf("%s\n", cvy_error_text());
    printf("%lld samples, other: %ld calls, H5Fopen is %s\n", (long long)about.samples, other_calls,
           dlsym(RTLD_DEFAULT, "H5Fopen") ? "global" : "private");
    cvy_data_destroy(&data);
    cvy_context_destroy(&context);
    return 0;
}
END
"$CC" -shared -fPIC -o libother.so other.c || fail "the stand-in does not compile"
link() { "$CC" -D_GNU_SOURCE -std=c11 -I"$CONVOY_SOURCE/include" "$@" -ldl >log 2>&1 || fail "$(cat log)"; }
link -o host host.c "$PWD/libother.so" "$CONVOY_BUILD/libconvoy.so"
source="{path: $sky, format: netcdf, x: [wind, pressure], y: rain, missing: mean, sandbox: false}"
export LD_LIBRARY_PATH="$CONVOY_BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
./host "$source" >log 2>&1 || fail "exit code $?: $(cat log)"
contains log '4 samples, other: 0 calls, H5Fopen is global' || fail "linked with both: $(cat log)"

# What libconvoy has loaded is not found by libraries that the program loads later.
echo 'long other_calls; long own_version(void) { return 1999; }' >own.c
link -DH5get_libversion=own_version -o alone host.c own.c "$CONVOY_BUILD/libconvoy.so"
./alone "$source" >log 2>&1 || fail "exit code $?: $(cat log)"
contains log '4 samples, other: 0 calls, H5Fopen is private' || fail "linked with libconvoy: $(cat log)"

# A program with a malloc() of its own, which knows nothing of libc's, and one with a sanitizer's.
cat >malloc.c <<'END'
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Alignas(64) char room[256 << 20];
static size_t used;

static void *take(size_t align, size_t bytes)
{
    align = align < 64 ? 64 : align;
    const size_t end = __atomic_add_fetch(&used, bytes + 2 * align, __ATOMIC_RELAXED);
    char *at = (char *)(((uintptr_t)(room + end) - bytes) & ~(uintptr_t)(align - 1));
    if (end > sizeof room)
        return NULL;
    memcpy(at - sizeof bytes, &bytes, sizeof bytes);
    return at;
}
void free(void *p)
{
    if (p && ((char *)p < room || (char *)p >= room + sizeof room)) {
        (void)!write(2, "free() of what another malloc() made\n", 36);
        abort();
    }
}
void *malloc(size_t bytes) { return take(64, bytes); }
void *calloc(size_t n, size_t bytes) { return take(64, n * bytes); } /* the room is zero and never used twice */
void *memalign(size_t align, size_t bytes) { return take(align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return take(align, bytes); }
int posix_memalign(void **out, size_t align, size_t bytes) { return (*out = take(align, bytes)) ? 0 : ENOMEM; }
size_t malloc_usable_size(void *p) { return p ? *((size_t *)p - 1) : 0; }
void *realloc(void *p, size_t bytes)
{
    void *to = take(64, bytes);
    if (p && to)
        memcpy(to, p, malloc_usable_size(p) < bytes ? malloc_usable_size(p) : bytes);
    free(p);
    return to;
}
END
"$CC" -D_GNU_SOURCE -std=c11 -O1 -fno-builtin -shared -fPIC -o libmalloc.so malloc.c >log 2>&1 || fail "$(cat log)"
LD_PRELOAD="$PWD/libmalloc.so" ./alone "$source" >log 2>&1
contains log '4 samples, other: 0 calls, H5Fopen is private' || fail "with its own malloc(): $(cat log)"
LD_PRELOAD="$PWD/libmalloc.so" ./host "$source" >log 2>&1
contains log 'another HDF5 and a malloc() of its own' || fail "with its own malloc() and another HDF5: $(cat log)"
if "$CC" -fsanitize=address -D_GNU_SOURCE -std=c11 -I"$CONVOY_SOURCE/include" -DH5get_libversion=own_version -o watched host.c own.c "$CONVOY_BUILD/libconvoy.so" -ldl >log 2>&1; then
    ASAN_OPTIONS=detect_leaks=0 ./watched "$source" >log 2>&1
    contains log '4 samples, other: 0 calls, H5Fopen is private' || fail "with AddressSanitizer: $(cat log)"
fi

# The writer too.
LD_PRELOAD="$PWD/libother.so" "$CONVOY" convert "$source" out.h5 >log 2>&1 || fail "convert: $(cat log)"
./alone "{path: out.h5, sandbox: false}" >log 2>&1
contains log '4 samples' || fail "what was converted: $(cat log)"

# A copy of the library that looks for another file.
mkdir -p lib
name=$(grep -ao 'libhdf5[a-z_]*\.so\.[0-9]*' "$CONVOY_BUILD/libconvoy.so.0" | head -1)
sed "s/$name/$(printf %s "$name" | sed s/hdf5/hdfX/)/" "$CONVOY_BUILD/libconvoy.so.0" >lib/libconvoy.so.0
LD_LIBRARY_PATH="$PWD/lib:$LD_LIBRARY_PATH" ./alone "$source" >log 2>&1
contains log "libhdfX" && contains log 'does not load' && contains log 'LD_LIBRARY_PATH' || fail "without libhdf5: $(cat log)"
exit $failed
