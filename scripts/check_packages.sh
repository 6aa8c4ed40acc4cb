#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_packages.sh [--into FOLDER] [--on "RELEASE..."] [--short] [--keep FOLDER] KIND...: makes packages of what is
# committed in a fresh clone, installs each in a bare Debian, and runs the self-test, trainings and all examples there
# (packaging/try_in_root.sh). KIND: deb, tarball, wheel, rpm, source, python, easybuild. It takes 7 to 25 minutes each, and
# needs root, debootstrap, git and a network for Debian's packages (wheel, python and easybuild: for PyPI too).
#
#   --into FOLDER     keeps clone, roots and logs there (build/packages)
#   --on "RELEASE..." tries tarball and wheel on these releases of Debian, as "bookworm trixie"; others, and all without
#                     it, on that of this machine, for which they are made
#   --short           does not run the examples
#   --keep FOLDER     gets the files of each kind that worked
#
# Each trial ends with a line: made or not, size, time. If all of a kind worked, its row in the table of last runs in
# packaging/README.md gets the commit and the date.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "check_packages.sh: $*" >&2; exit 1; }
folder() { mkdir -p "$1" && (cd "$1" && pwd); }
out=$top/build/packages on='' short='' keep=''
while :; do
    case ${1-} in
    --into) out=$(folder "$2") && shift 2 ;;
    --on) on=$2 && shift 2 ;;
    --short) short=--short && shift ;;
    --keep) keep=$(folder "$2") && shift 2 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || { sed -n '3,17s/^# \{0,1\}//p' "$0"; exit 2; }
for kind in "$@"; do
    case $kind in deb | tarball | wheel | rpm | source | python | easybuild) ;; *) fail "the kind '$kind' is not known; expected deb, tarball, wheel, rpm, source, python or easybuild" ;; esac
done
[ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || fail "it needs debootstrap, and root for chroot"
[ -z "$(git -C "$top" status --porcelain --untracked-files=no)" ] || echo "check_packages.sh: changes that are not committed are left out" >&2
commit=$(git -C "$top" rev-parse --short=8 HEAD)
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$out"
export CONVOY_SYSROOT="${CONVOY_SYSROOT:-$out/sysroot}" # of the tarball; it is made once

# make_base RELEASE: the bare system, from the mirror of this one; each trial gets a copy.
make_base() {
    base=$out/base-$1
    [ ! -e "$base/complete" ] || return 0
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed -n 's/^\(URIs:\|deb\) *\(http[^ ]*\).*/\2/p' | head -n 1)
    rm -rf "$base"
    # shellcheck disable=SC2086
    debootstrap --variant=minbase "$1" "$base" $mirror >"$base.log" 2>&1 || fail "debootstrap fails, see $base.log"
    touch "$base/complete"
}

# Takes away what try_in_root.sh has mounted, and then the root. Nothing is removed below a folder that is still mounted.
remove_root() {
    for folder in dev proc sys; do
        ! mountpoint -q "$1/$folder" || umount -R -l "$1/$folder"
    done
    ! grep -qF " $1/" /proc/mounts || fail "there are still folders mounted below $1"
    rm -rf "$1"
}

# make_package KIND: prints the files that are tried.
make_package() {
    case $1 in
    deb | tarball | wheel | rpm) what=$1 ;;
    *) what=source ;;
    esac
    (cd "$clone" && sh scripts/package.sh $what) >"$out/$1/make.log" 2>&1 || return
    case $what in
    deb) ls "$clone/build/package/"*.deb | grep -v dbgsym ;;
    tarball) ls "$clone/build/package/"*-linux-*.tar.xz ;;
    wheel) ls "$clone/build/package/"*.whl ;;
    rpm) ls "$clone/build/package/"*.rpm ;;
    source) ls "$clone/build/package/"*.tar.xz | grep -v -e -linux- ;;
    esac
}

# try_package KIND RELEASE TEXT FILE...: in a root of its own. TEXT: how it was made.
try_package() {
    kind=$1 release=$2 made=$3 root=$out/$1/root-$2 log=$out/$1/try-$2.log
    shift 3
    make_base "$release"
    remove_root "$root"
    cp -a "$base" "$root"
    echo "$kind: $made; trying it on $release, log in $log"
    # shellcheck disable=SC2086
    if sh "$top/packaging/try_in_root.sh" $short "$root" "$kind" "$@" >"$log" 2>&1; then
        echo "$kind: all of it worked on $release; $made, $(($(date +%s) - begin)) s in all"
    else
        grep -A 16 FAILED "$log" || tail -n 20 "$log"
        echo "$kind: FAILED on $release, see $log"
        failed=1
    fi
    remove_root "$root"
}

# note KIND TEXT: its row in packaging/README.md.
note() {
    readme=$top/packaging/README.md
    awk -v kind="$1" -v row="| \`$1\` | \`$commit\` | $(date +%Y-%m-%d) | $2 |" '
        index($0, "| `" kind "` | ") == 1 { print row; next }
        { print }' "$readme" >"$out/README.new" && cat "$out/README.new" >"$readme"
}

clone=$out/clone
rm -rf "$clone"
git clone -q "$top" "$clone" && git -C "$clone" -c advice.detachedHead=false checkout -q "$commit" || fail "the clone fails"
all_failed=0
for kind in "$@"; do
    begin=$(date +%s) failed=0
    mkdir -p "$out/$kind"
    echo "$kind: making it, log in $out/$kind/make.log"
    if ! files=$(make_package "$kind"); then
        tail -n 20 "$out/$kind/make.log"
        echo "$kind: FAILED, it is not made"
        all_failed=1
        continue
    fi
    # shellcheck disable=SC2086
    made="$(du -cbL $files | tail -n 1 | awk '{ printf "%.1f MB", $1 / 1e6 }'), made in $(($(date +%s) - begin)) s"
    case $kind in
    tarball | wheel) releases=${on:-$here} ;;
    *) releases=$here ;;
    esac
    for release in $releases; do
        # shellcheck disable=SC2086
        try_package "$kind" "$release" "$made" $files
    done
    if [ $failed -ne 0 ]; then
        all_failed=1
        continue
    fi
    [ "$short" ] || note "$kind" "$made, $(($(date +%s) - begin)) s in all"
    # shellcheck disable=SC2086
    [ -z "$keep" ] || cp $files "$keep"
done
exit $all_failed
