#!/bin/sh
# rows: minimal
# spdx.sh: check_spdx names sources without a licence; --fix adds the line in the comment style of the file, below "#!",
# once, and changes nothing else. A shell test that cannot fail is named.
. "$CONVOY_SOURCE/tests/shell.inc"
tag='SPDX-License-Identifier: BSD-3-Clause'
mkdir -p tree/tools tree/src tree/build tree/tests
spdx() { sh "$CONVOY_SOURCE/tools/check_spdx" "$@" tree >log 2>&1; }
printf '/*\n * a.c: one.\n */\nint a;\n' >tree/src/a.c
printf '/* ranks: 1 2 */\n/* rows: asan */\n/*\n * b.c: two.\n */\nint b;\n' >tree/src/b.c
printf '/* c.h: one line. */\nint c;\n' >tree/src/c.h
printf 'int d; /* no comment\n * at the head */\n' >tree/src/d.c
{ echo '/*'; for i in $(seq 60); do echo " * line $i"; done; printf ' */\nint e;\n'; } >tree/src/e.c
printf '#!/bin/sh\n# f.sh: a script.\nexit 0\n' >tree/tools/f.sh
printf '#!/bin/sh\nexit 0\n' >tree/tools/check_g
chmod 755 tree/tools/f.sh tree/tools/check_g
printf '# about\nproject(x)\n' >tree/CMakeLists.txt
printf 'import os\n' >tree/h.py
printf '! k.f90: a module.\nmodule k\nend module k\n' >tree/src/k.f90
printf '/* l.hpp: one line. */\nint l;\n' >tree/src/l.hpp
printf 'int generated;\n' >tree/build/i.c
printf 'int template;\n' >tree/j.h.in
: >tree/empty.c
cp -r tree before
spdx && fail "sources without a licence are accepted"
for file in src/a.c src/b.c src/c.h src/d.c src/e.c tools/f.sh tools/check_g CMakeLists.txt h.py src/k.f90 src/l.hpp; do
    grep -q "^$file: " log || fail "check_spdx does not name $file"
done
grep -q 'build/\|j.h.in\|empty' log && fail "check_spdx names what is no source: $(cat log)"
spdx --fix || fail "check_spdx --fix fails: $(cat log)"
spdx || fail "after --fix sources lack a licence: $(cat log)"

[ "$(sed -n 4p tree/src/a.c)" = " * $tag" ] && [ "$(sed -n 5p tree/src/a.c)" = " */" ] || fail "the licence is not the last line of the comment: $(cat tree/src/a.c)"
[ "$(sed -n 6p tree/src/b.c)" = " * $tag" ] || fail "comments of one line are not passed over: $(cat tree/src/b.c)"
[ "$(sed -n 1p tree/src/c.h)" = "/* $tag */" ] || fail "a comment of one line gets no line before it: $(cat tree/src/c.h)"
[ "$(sed -n 1p tree/src/d.c)" = "/* $tag */" ] || fail "a file without a comment: $(cat tree/src/d.c)"
[ "$(sed -n 2p tree/tools/f.sh)" = "# $tag" ] && [ "$(sed -n 1p tree/tools/f.sh)" = '#!/bin/sh' ] || fail "the first line of a script has moved: $(cat tree/tools/f.sh)"
[ "$(sed -n 1p tree/src/k.f90)" = "! $tag" ] || fail "Fortran: $(cat tree/src/k.f90)"
[ -x tree/tools/f.sh ] || fail "a script has lost its mode"
[ "$(sed -n 1p tree/CMakeLists.txt)" = "# $tag" ] || fail "CMakeLists.txt: $(cat tree/CMakeLists.txt)"
for file in $(cd before && find . -type f); do # without the new lines everything is as before
    grep -vF "$tag" "tree/$file" >with
    cmp -s with "before/$file" || { sed -i '/^ \*$/d' with && cmp -s with "before/$file"; } || fail "--fix has changed more in $file"
done
for end in 'exit $failed' 'false || fail "no"'; do
    printf '#!/bin/sh\n# %s\n. "$CONVOY_SOURCE/tests/shell.inc"\ntrue || fail "no"\n%s\n' "$tag" "$end" >tree/tests/m.sh
    spdx
    case $?-$end in
    0-exit* | 1-false*) ;;
    *) fail "a test that ends with $end: $(cat log)" ;;
    esac
done
contains log 'tests/m.sh: the last line is not exit $failed' || fail "a test that cannot fail is not named: $(cat log)"
rm tree/tests/m.sh
cp -r tree once
spdx --fix
diff -r once tree >log || fail "--fix adds the line twice: $(cat log)"
exit $failed
