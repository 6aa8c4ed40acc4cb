# SPDX-License-Identifier: BSD-3-Clause
# make_fortran.awk: prints the module convoy from fortran/convoy.f90.in, which is Fortran but for these lines:
#
#   @each KIND...   the lines up to @end once for each kind of numbers, in which @kind@ is its name (r32), @type@ its type
#                   (real(real32)), @other@ the other real type, and @dtype@ its name in C (CVY_DTYPE_F32)
#   @status         the declarations of stat and errmsg

BEGIN {
    split("r32 r64 i32 i64", kind, " ")
    split("real(real32) real(real64) integer(int32) integer(int64)", type_of, " ")
    split("CVY_DTYPE_F32 CVY_DTYPE_F64 CVY_DTYPE_I32 CVY_DTYPE_I64", dtype_of, " ")
    for (i in kind) {
        type[kind[i]] = type_of[i]
        dtype[kind[i]] = dtype_of[i]
    }
}

function put(line) {
    if (line ~ /^@status$/)
        print "    integer, intent(out), optional :: stat\n    character(len=*), intent(inout), optional :: errmsg"
    else
        print line
}

/^@each / { nkind = split(substr($0, 7), wanted, " "); n = 0; next }
/^@end$/ {
    for (k = 1; k <= nkind; k++) {
        if (k > 1)
            print ""
        for (i = 1; i <= n; i++) {
            line = block[i]
            gsub(/@kind@/, wanted[k], line)
            gsub(/@type@/, type[wanted[k]], line)
            gsub(/@other@/, wanted[k] == "r32" ? type["r64"] : type["r32"], line)
            gsub(/@dtype@/, dtype[wanted[k]], line)
            put(line)
        }
    }
    nkind = 0
    next
}
nkind { block[++n] = $0; next }
{ put($0) }
