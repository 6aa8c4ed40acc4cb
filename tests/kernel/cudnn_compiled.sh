#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# seconds: 60
# cudnn_compiled.sh: the engines that cuDNN compiles for a problem are planned without a GPU, over a libcuda.so.1 that has
# no device: f32 gradients of weights in bf16, and convolutions and fully connected layers that are fused with their
# biases. The library is made of the names in the toolkit's own stub: functions of kernels, libraries and modules succeed,
# all others fail as in the stub.
. "$CONVOY_SOURCE/tests/shell.inc"
test=$CONVOY_BUILD/tests/test_kernel_cudnn_plans
stub=
for folder in $(printf '%s' "${LD_LIBRARY_PATH-}" | tr ':' ' ') /usr/local/cuda*/lib /usr/local/cuda*/lib64 /usr/local/cuda*/targets/x86_64-linux/lib; do
    [ -z "$stub" ] && [ -e "$folder/stubs/libcuda.so" ] && stub=$folder/stubs/libcuda.so
done
[ -n "$stub" ] || { echo "skipped: there is no stubs/libcuda.so of a CUDA toolkit"; exit 77; }
command -v cc >/dev/null && command -v nm >/dev/null || { echo "skipped: there is no cc or no nm"; exit 77; }
"$test" lenet >plain 2>&1
code=$?
[ $code -eq 77 ] && { cat plain; exit 77; }
[ $code -eq 0 ] || { fail "without a driver:"; cat plain; }

by_hand='cuDriverGetVersion|cuLibraryLoadData|cuLibraryGetKernel|cuKernelGetFunction|cuGetErrorString|cuGetErrorName|cuGetProcAddress(_v2)?'
{
    echo '#include <dlfcn.h>'
    nm -D --defined-only "$stub" | awk '$2 == "T" { print $3 }' | grep -vxE "$by_hand" |
        awk '{ print "int " $1 "(void) { return " ($1 ~ /^cu(Func|Kernel|Library|Module)/ ? 0 : 34) "; }" }'
    cat <<'C'
static int handle;
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuLibraryLoadData(void **out) { *out = &handle; return 0; }
int cuLibraryGetKernel(void **out) { *out = &handle; return 0; }
int cuKernelGetFunction(void **out) { *out = &handle; return 0; }
int cuGetErrorString(int e, const char **s) { (void)e; *s = "no device"; return 0; }
int cuGetErrorName(int e, const char **s) { (void)e; *s = "NO_DEVICE"; return 0; }
int cuGetProcAddress(const char *n, void **p, int v, unsigned long long f)
{
    (void)v, (void)f;
    *p = dlsym(RTLD_DEFAULT, n);
    return *p ? 0 : 500;
}
int cuGetProcAddress_v2(const char *n, void **p, int v, unsigned long long f, int *status)
{
    (void)status;
    return cuGetProcAddress(n, p, v, f);
}
C
} >driver.c
mkdir -p driver
cc -shared -fPIC -w -o driver/libcuda.so.1 driver.c -ldl || { fail "the library does not compile"; exit 1; }
LD_LIBRARY_PATH="$PWD/driver:${LD_LIBRARY_PATH-}" "$test" lenet >compiled 2>&1 || { fail "with compiled engines:"; cat compiled; }
contains compiled "compiled |" || { fail "no engine is compiled:"; cat compiled; }
# The gradient of the first layer, which has one channel, comes from a kernel of convoy's own.
grep refused compiled | grep -v "conv1.conv_grad_weight .*: cuDNN has no engine for this problem" && fail "cuDNN compiles no engine for these"
exit $failed
