#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_dist.sh SOURCE OUT: writes OUT/convoy-VERSION.tar.xz, the sources of the last commit of SOURCE, and its SHA-256 in
# OUT/convoy-VERSION.tar.xz.sha256. `cmake --build build/release --target dist` calls it.
#
# The archive depends on the commit alone: `git archive` sorts the files and gives all of them the time of the commit and
# user 0; settings of the user, the umask and the clone do not matter. xz works in one thread, because the number of
# threads changes its output. Another version of git or xz may still give other bytes for the same files.
set -eu
source=$1 out=$2
fail() { echo "make_dist.sh: $1" >&2; exit 1; }
command -v git >/dev/null || fail "git is not installed; a source tarball is made from a clone"
command -v xz >/dev/null || fail "xz is not installed (Debian: xz-utils)"
# Settings that would change the archive are set here, for whatever the user and the clone have.
run_git() {
    git -C "$source" -c core.autocrlf=false -c core.eol=lf -c core.attributesFile=/dev/null -c tar.umask=0022 "$@"
}
top=$(run_git rev-parse --show-toplevel 2>/dev/null) || fail "$source is not a clone of git: it is such a tarball already, or git refuses it (git status says why)"
[ "$(cd "$top" && pwd -P)" = "$(cd "$source" && pwd -P)" ] || fail "$source is not the top of its clone, $top"
commit=$(run_git rev-parse --verify 'HEAD^{commit}')
version=$(run_git show "$commit:include/convoy/base.h" |
    sed -n 's/^#define CVY_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' | paste -s -d .)
case $version in
*.*.*) ;;
*) fail "include/convoy/base.h of the commit has no version" ;;
esac
[ -z "$(run_git status --porcelain --untracked-files=no)" ] || echo "make_dist.sh: changes that are not committed are left out" >&2

name=convoy-$version
mkdir -p "$out"
tar=$out/$name.tar.new.$$
trap 'rm -f "$tar" "$tar.xz"' EXIT
run_git archive --format=tar --prefix="$name/" "$commit" >"$tar"
XZ_OPT='' XZ_DEFAULTS='' xz -6 -T1 --check=crc64 "$tar"
mv "$tar.xz" "$out/$name.tar.xz"
(cd "$out" && sha256sum "$name.tar.xz" >"$name.tar.xz.sha256" && cat "$name.tar.xz.sha256")
