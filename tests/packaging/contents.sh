#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang
# contents.sh: each file that is installed is in one of the Debian packages and in one of the rpm packages, by the lists
# that these have; the tarball builds each library that CMake looks for.
. "$CONVOY_SOURCE/tests/shell.inc"
cd "$CONVOY_SOURCE/packaging" || exit 1
DESTDIR=$work/root "$CMAKE" --install "$CONVOY_BUILD" --prefix /usr >"$work/log" || { cat "$work/log"; exit 1; }

# The builds for MPI libraries are in folders of their own, and module files are left out.
(cd "$work/root" && find . -type f | sed -e 's,^\./,,' -e 's,^usr/lib\(64\)\?/\([^/]*-linux-gnu[^/]*/\)\?,usr/LIB/,' | grep -v '^usr/LIB/libconvoy\|^usr/share/modulefiles\|^usr/bin/convoy-sim') >"$work/files"
[ "$(wc -l <"$work/files")" -gt 300 ] || fail "only $(wc -l <"$work/files") files are installed"
# listed LIST: each file is below a pattern of the list.
listed() {
    sed -e 's,\.,\\.,g' -e 's,\*,[^/]*,g' -e 's,^/*,^,' -e 's,$,\\(/\\|$\\),' "$1" >"$work/patterns"
    grep -v -f "$work/patterns" "$work/files" >"$work/left" && fail "$2 lists no package for: $(head -5 "$work/left")"
}
sed 's,^usr/lib/\*/,usr/LIB/,' debian/*.install >"$work/list"
listed "$work/list" debian/*.install
sed -n '/^%files/,/^%changelog/p' rpm/convoy.spec | sed -n -e '/^%dir/d' -e 's/^%doc //' -e 's,%{_libdir},/usr/LIB,; s,%{_libexecdir},/usr/libexec,; s,%{_datadir},/usr/share,
    s,%{_mandir},/usr/share/man,; s,%{_docdir}/%{name},/usr/share/doc/convoy,; s,%{_includedir},/usr/include,; s,%{_bindir},/usr/bin,; /^\/usr/p' >"$work/list"
listed "$work/list" rpm/convoy.spec

for library in $(sed -n 's/^ *convoy_\(find\|optional\)(\([A-Z0-9_]*\) .*/\2/p' "$CONVOY_SOURCE/cmake/ConvoyDependencies.cmake" | grep -v SIMGRID | tr A-Z_ a-z-); do
    grep -q "^licence \(lib\)\?$library\(-turbo\)\? \|licences/$library.txt" tarball/make_libraries.sh || fail "tarball/make_libraries.sh does not build $library"
done
# debhelper would build the package for Python.
[ ! -e "$CONVOY_SOURCE/setup.py" ] || grep -q -- '--buildsystem=cmake' debian/rules || fail "debian/rules does not say which build system dh uses"

exit $failed
