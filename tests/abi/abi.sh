#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang minimal
# level: 2
# abi.sh: programs that were built with the released headers of this version still fit: functions, structures and
# constants are as described, the library exports them with the version of the ABI, and the loader refuses another one.
# Breaks that are made on purpose are found.
. "$CONVOY_SOURCE/tests/shell.inc"
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
command -v nm >/dev/null || { echo "there is no nm"; exit 77; }
library=$CONVOY_BUILD/libconvoy.so
[ -e "$library" ] || { echo "there is no libconvoy.so: symbols have no versions on this system"; exit 77; }
check() { python3 "$CONVOY_SOURCE/tools/check_abi.py" "$@"; }

# A release records what is new: if the changelog begins with this version, nothing may be new.
version=$("$CONVOY" --version | sed 's/^convoy //')
strict=
sed -n '/^## \[/{p;q}' "$CONVOY_SOURCE/CHANGELOG.md" | grep -qF "[$version]" && strict=--strict
check $strict "$library" >log 2>&1
code=$?
[ $code != 77 ] || { cat log; exit 77; }
tail -n 1 log
[ $code = 0 ] || fail "$(grep -v '^new' log)"

# ---- breaks ----
# broken FILE SED TEXT: after this change of a header a fault is found that has this text.
broken() {
    rm -rf include
    cp -r "$CONVOY_SOURCE/include" .
    sed -i "$2" include/convoy/"$1"
    cmp -s include/convoy/"$1" "$CONVOY_SOURCE/include/convoy/$1" && fail "the change of $1 does nothing: $2"
    check --include include --description described >log 2>&1 && fail "this change is not found: $2"
    grep -qF "fault: $3" log || fail "expected \"fault: $3\" after $2: $(grep -v '^new' log)"
}
# allowed FILE SED TEXT: this change is an addition.
allowed() {
    rm -rf include
    cp -r "$CONVOY_SOURCE/include" .
    sed -i "$2" include/convoy/"$1"
    check --include include --description described >log 2>&1 || fail "this addition is refused: $2: $(cat log)"
    grep -qF "new: $3" log || fail "expected \"new: $3\" after $2: $(cat log)"
    check --strict --include include --description described >log 2>&1 && fail "--strict takes an addition"
}
check --write --description described || fail "the description is not written"
check --strict --description described >log 2>&1 || fail "what was just described does not hold: $(cat log)"
broken base.h '/^ *int threads;/{h;d};/^ *cvy_log_level log_level;/G' 'field cvy_context_opts.threads is: int, 4 bytes at 12, was: int, 4 bytes at 8'
broken base.h '/cvy_version_number(void)/d' 'function cvy_version_number is gone, was: int (void)'
broken base.h 's/cvy_dtype_bytes(cvy_dtype dtype)/cvy_dtype_bytes(int64_t dtype)/' 'function cvy_dtype_bytes is: size_t (int64_t), was: size_t (cvy_dtype)'
broken base.h 's/CVY_E_SHAPE = -2/CVY_E_SHAPE = -12/' 'constant CVY_E_SHAPE is: -12, was: -2'
broken base.h 's/CVY_DTYPE_I32,/CVY_DTYPE_F16, CVY_DTYPE_I32,/' 'constant CVY_DTYPE_U8 is: 5, was: 4'
broken base.h 's/CVY_NDIM_MAX 6/CVY_NDIM_MAX 7/' 'struct cvy_shape is: 64 bytes, was: 56 bytes'
broken base.h 's/(\*cvy_log_fn)(void \*user,/(*cvy_log_fn)(/' 'callback cvy_log_fn is: void (*)(cvy_log_level, const char *), was: void (*)(void *'
broken score.h 's/^    int no_calibration;/&\n    int more;/' 'field cvy_predict_request.more is new, but lies within'
broken network.h 's/^} cvy_network_out;/    int more;\n&/' 'field cvy_network_out.more is new, but struct cvy_network_out has no size'
allowed base.h 's/^} cvy_context_opts;/    int64_t more;\n&/' 'field cvy_context_opts.more'
allowed base.h 's/^CVY_API int cvy_version_number/CVY_API int cvy_more(void);\n&/' 'function cvy_more: int (void)'
allowed base.h 's/^    CVY_DTYPE_COUNT/    CVY_DTYPE_F16,\n&/' 'constant CVY_DTYPE_F16: 6'
rm -rf include
cp -r "$CONVOY_SOURCE/include" .
sed -i 's/const char \*cvy_dtype_text/char *cvy_dtype_text/' include/convoy/base.h
check --strict --include include --description described >log 2>&1 || fail "const counts as a break: $(cat log)"

# ---- a library with another ABI ----
cat >other.c <<'C'
const char *cvy_version(void);
const char *cvy_version(void)
{
    return "0";
}
C
echo 'CONVOY_0.0 { global: cvy_*; local: *; };' >other.map
cat >program.c <<'C'
#include <convoy/base.h>
int main(void)
{
    return cvy_version()[0] == 0;
}
C
mkdir other
$CC -shared -fPIC other.c -Wl,-soname,libconvoy.so.0 -Wl,--version-script=other.map -o other/libconvoy.so.0 || fail "the other library is not built"
check other/libconvoy.so.0 >log 2>&1 && fail "a library without the functions is taken"
grep -qF 'fault: function cvy_error_text is not exported' log || fail "the function that is not exported is not named: $(head -3 log)"
grep -qF 'fault: function cvy_version has the version CONVOY_0.0' log || fail "the wrong version is not named: $(grep version log)"
$CC -I "$CONVOY_SOURCE/include" program.c -L"$CONVOY_BUILD" -lconvoy -Wl,-rpath-link,"$CONVOY_BUILD" -o program || fail "the program is not built"
LD_LIBRARY_PATH=$CONVOY_BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ./program || fail "the program does not run with the library"
if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    LD_LIBRARY_PATH=other ./program 2>err && fail "the loader takes a library with another ABI"
    grep -q 'CONVOY_' err || fail "the loader does not name the version: $(cat err)"
else
    echo "this C library's loader does not look at versions"
fi
exit $failed
