#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# release.sh [--short] [KIND...]: makes the files of a release of what is committed, tries each in a bare Debian, and
# writes their checksums and the notes of the release beside them, in build/release-VERSION.
#
# KIND: source, tarball, wheel, deb, rpm; all of them without it. scripts/check_packages.sh makes and tries them: tarball
# and wheel on the last two releases of Debian, the others on this one. --short leaves out the examples. Nothing is
# published, and no tag is set: the last lines say what is left to do. A tree with changes that are not committed is
# refused, and so is a version that CHANGELOG.md has no section for.
#
# release.sh --notes [VERSION]: prints the notes alone.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
fail() { echo "release.sh: $*" >&2; exit 1; }
version=$(sed -n 's/^#define CVY_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' include/convoy/base.h | paste -sd.)

# notes VERSION: the section of the change log. Links into the tree, which lead nowhere outside it, become the file's name.
notes() {
    awk -v heading="## [$1]" '
        index($0, heading) == 1 { inside = 1; next }
        inside && /^(## |\[[^]]*\]: )/ { exit }
        inside' CHANGELOG.md |
        sed -E -e 's/\[([^]]*)\]\(([^):#]+)(#[^)]*)?\)/\1: `\2`/g' -e 's/\[([^]]*)\]\(#[^)]*\)/\1/g' | sed -e '/./,$!d' >"$work/section"
    [ -s "$work/section" ] || fail "CHANGELOG.md has no section [$1]: what was [Unreleased] becomes it"
    cat <<END
# convoy $1

| file | for |
|---|---|
| \`libconvoy-$1-py3-none-manylinux_2_28_x86_64.whl\` | \`pip install\` of the file: Python and the command, on any Linux with glibc 2.28, with and without MPI |
| \`convoy-$1-linux-x86_64.tar.xz\` | the same without Python, with headers, pages and modules; unpack it where you like |
| \`convoy_$1_amd64.deb\`, \`convoy-dev_$1_amd64.deb\` | Debian 12 |
| \`convoy-$1-1.x86_64.rpm\`, \`convoy-devel-$1-1.x86_64.rpm\` | Fedora, RHEL, SUSE; built and tried on Debian |
| \`convoy-$1.tar.xz\` | the sources |

\`sha256sum -c SHA256SUMS\` checks them.

END
    cat "$work/section"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/convoy-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ "${1-}" = --notes ]; then
    notes "${2-$version}"
    exit
fi
short=''
[ "${1-}" != --short ] || { short=--short; shift; }
[ $# -gt 0 ] || set -- source tarball wheel deb rpm
for kind in "$@"; do
    case $kind in source | tarball | wheel | deb | rpm) ;; *) fail "the kind '$kind' is not known; expected source, tarball, wheel, deb or rpm" ;; esac
done
changes=$(git status --porcelain --untracked-files=no)
[ -z "$changes" ] || fail "there are changes that are not committed: $(echo "$changes" | head -n 3 | tr '\n' ' ')"
notes "$version" >"$work/notes"

out=$top/build/release-$version
rm -rf "$out"
mkdir -p "$out"
commit=$(git rev-parse HEAD)
# shellcheck disable=SC2086
sh scripts/check_packages.sh $short --on "bookworm trixie" --keep "$out" "$@" || fail "not all kinds worked (above): nothing is released"
cp "$work/notes" "$out/NOTES.md"
(cd "$out" && ls | grep -v -x -e NOTES.md -e SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS && ls -l)
echo "the release is in $out. To publish it: git tag v$version $commit, the files with NOTES.md and SHA256SUMS, and the wheel by twine upload"
