#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_packages.sh [--into FOLDER] KIND...: makes each package of what is committed in a fresh clone, installs it in a
# bare Debian, and runs the self-test and all examples there (packaging/try_in_root.sh). KIND: deb, tarball, rpm, source,
# python, easybuild. It takes 7 to 25 minutes each, and needs root, debootstrap, git and a network for Debian's packages
# (python and easybuild: for PyPI too).
#
# Each kind ends with a line: made or not, size, time. If all of a kind worked, its row in the table of last runs in
# packaging/README.md gets the commit and the date. FOLDER keeps clones, roots and logs (build/packages).
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "check_packages.sh: $*" >&2; exit 1; }
out=$top/build/packages
if [ "${1-}" = --into ]; then
    mkdir -p "$2"
    out=$(cd "$2" && pwd)
    shift 2
fi
[ $# -gt 0 ] || { sed -n '3,10s/^# //p' "$0"; exit 2; }
for kind in "$@"; do
    case $kind in deb | tarball | rpm | source | python | easybuild) ;; *) fail "the kind '$kind' is not known; expected deb, tarball, rpm, source, python or easybuild" ;; esac
done
[ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || fail "it needs debootstrap, and root for chroot"
[ -z "$(git -C "$top" status --porcelain --untracked-files=no)" ] || echo "check_packages.sh: changes that are not committed are left out" >&2
commit=$(git -C "$top" rev-parse --short=8 HEAD)
mkdir -p "$out"

# The bare system, of the release and from the mirror of this one; each kind gets a copy.
base=$out/base
if [ ! -e "$base/complete" ]; then
    . /etc/os-release
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed -n 's/^\(URIs:\|deb\) *\(http[^ ]*\).*/\2/p' | head -n 1)
    rm -rf "$base"
    # shellcheck disable=SC2086
    debootstrap --variant=minbase "$VERSION_CODENAME" "$base" $mirror >"$out/base.log" 2>&1 || fail "debootstrap fails, see $out/base.log"
    touch "$base/complete"
fi

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
    clone=$out/$1/clone
    rm -rf "$clone"
    mkdir -p "$out/$1"
    git clone -q "$top" "$clone" && git -C "$clone" checkout -q "$commit" || return
    case $1 in
    deb | tarball | rpm) what=$1 ;;
    *) what=source ;;
    esac
    (cd "$clone" && sh scripts/package.sh $what) >"$out/$1/make.log" 2>&1 || return
    case $what in
    deb) ls "$clone/build/package/"*.deb | grep -v dbgsym ;;
    tarball) ls "$clone/build/package/"*-linux-*.tar.xz ;;
    rpm) ls "$clone/build/package/"*.rpm ;;
    source) ls "$clone/build/package/"*.tar.xz ;;
    esac
}

# note KIND SIZE: its row in packaging/README.md.
note() {
    readme=$top/packaging/README.md
    awk -v kind="$1" -v row="| \`$1\` | \`$commit\` | $(date +%Y-%m-%d) | $2 |" '
        index($0, "| `" kind "` | ") == 1 { print row; next }
        { print }' "$readme" >"$out/README.new" && cat "$out/README.new" >"$readme"
}

failed=0
for kind in "$@"; do
    begin=$(date +%s)
    echo "$kind: making it, log in $out/$kind/make.log"
    mkdir -p "$out/$kind"
    if ! files=$(make_package "$kind"); then
        tail -n 20 "$out/$kind/make.log"
        echo "$kind: FAILED, it is not made"
        failed=1
        continue
    fi
    made=$(($(date +%s) - begin))
    # shellcheck disable=SC2086
    size=$(du -cbL $files | tail -n 1 | awk '{ printf "%.1f MB", $1 / 1e6 }')
    root=$out/$kind/root
    remove_root "$root"
    cp -a "$base" "$root"
    echo "$kind: $size, made in $made s; trying it, log in $out/$kind/try.log"
    # shellcheck disable=SC2086
    if sh "$top/packaging/try_in_root.sh" "$root" "$kind" $files >"$out/$kind/try.log" 2>&1; then
        echo "$kind: all of it worked; $size, made in $made s, $(($(date +%s) - begin)) s in all"
        note "$kind" "$size, made in $made s, $(($(date +%s) - begin)) s in all"
    else
        grep -A 16 FAILED "$out/$kind/try.log" || tail -n 20 "$out/$kind/try.log"
        echo "$kind: FAILED, see $out/$kind/try.log"
        failed=1
    fi
    remove_root "$root"
done
exit $failed
