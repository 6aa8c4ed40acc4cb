# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 40
# gpu_clang.sh: clang compiles all kernels for GPUs as OpenCL C: to machine code of AMD's GPUs, and to SPIR.
#
# ctest compiles them for gfx90a in bf16 and for SPIR in f32; CONVOY_TEST_LEVEL=2 both in both, and for gfx942, gfx1030 and
# gfx1100 if this clang knows them. CLANG names another clang.
. "$CONVOY_SOURCE/tests/shell.inc"
texts="$CONVOY_BUILD/tests/test_kernel_gpu_nvrtc --texts"

clang=${CLANG:-$(command -v clang-19 || command -v clang-17 || command -v clang-15 || command -v clang)} || clang=
[ -n "$clang" ] || { echo "skipped: there is no clang"; exit 77; }

# compile TARGET DTYPE FILE: compiles one text; its errors are in `err`.
compile() {
    case $1 in
    spir64) flags="-target spir64 -emit-llvm" ;;
    *) flags="-target amdgcn-amd-amdhsa -mcpu=$1 -nogpulib" ;;
    esac
    [ "$2" = bf16 ] && bf16=1 || bf16=0
    # shellcheck disable=SC2086
    "$clang" -x cl -cl-std=CL1.2 $flags -Xclang -finclude-default-header -DBF16=$bf16 -O2 -c -o out.o "$3" 2>err
}

echo '__kernel void one(__global int *x) { x[0] = 1; }' >one.cl
compile gfx90a f32 one.cl || { echo "skipped: $clang cannot compile for AMD's GPUs: $(head -n 1 err)"; exit 77; }
mkdir texts && $texts texts >/dev/null || fail "the texts of the kernels cannot be written"
cases='gfx90a:bf16 spir64:f32'
[ "${CONVOY_TEST_LEVEL:-1}" -lt 2 ] || cases='gfx90a:f32 gfx90a:bf16 spir64:f32 spir64:bf16 gfx942:bf16 gfx1030:bf16 gfx1100:bf16'
compiled=0
for case in $cases; do
    target=${case%:*} dtype=${case#*:}
    compile "$target" f32 one.cl || { echo "$clang does not know $target"; continue; }
    for file in texts/*.cl; do
        if compile "$target" "$dtype" "$file"; then
            compiled=$((compiled + 1))
        else
            fail "$file does not compile for $target in $dtype:"
            grep -A 3 'error' err | head -n 20
        fi
    done
done
echo "$("$clang" --version | head -n 1): $compiled texts compiled"
[ $compiled -gt 0 ] || fail "nothing was compiled"
exit $failed
