#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# dist.sh: the source tarball has the same bytes from another clone, with another umask and other settings of git; it
# holds all files of the commit, owned by user 0 with the time of the commit; what was unpacked configures without git.
. "$CONVOY_SOURCE/tests/shell.inc"
for program in git xz sha256sum; do
    command -v $program >/dev/null || { echo "no $program"; exit 77; }
done
# Git refuses a clone of another user, such as the tree that root has built and another user tests.
printf '[safe]\n\tdirectory = *\n' >gitconfig
export GIT_CONFIG_GLOBAL="$work/gitconfig"
[ "$(git -C "$CONVOY_SOURCE" rev-parse --is-inside-work-tree 2>/dev/null)" = true ] && [ -e "$CONVOY_SOURCE/.git" ] ||
    { echo "the sources are not a clone of git"; exit 77; }
dist() { sh "$CONVOY_SOURCE/tools/make_dist.sh" "$@"; }

dist "$CONVOY_SOURCE" "$work/a" >a.out 2>err || { cat err; fail "make_dist.sh fails"; exit 1; }
tarball=$(ls "$work"/a/convoy-*.tar.xz)
name=$(basename "$tarball" .tar.xz)
[ "convoy $(echo "$name" | sed 's/convoy-//')" = "$("$CONVOY" --version)" ] || fail "$name is not the version of $("$CONVOY" --version)"
(cd a && sha256sum -c --quiet "$name.tar.xz.sha256") || fail "the sum beside the tarball is wrong"

# ---- the same bytes from another clone ----
git clone -q "file://$(git -C "$CONVOY_SOURCE" rev-parse --path-format=absolute --git-common-dir)" clone 2>/dev/null ||
    git clone -q "$CONVOY_SOURCE" clone || fail "cannot clone"
git -C clone checkout -q "$(git -C "$CONVOY_SOURCE" rev-parse HEAD)" || fail "the clone lacks the commit"
git -C clone config core.autocrlf true
git -C clone config tar.umask 0077
printf 'a change\n' >>clone/README.md
rm -rf clone/docs
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 XZ_OPT=-9 dist "$work/clone" "$work/b" >/dev/null 2>err) || { cat err; fail "make_dist.sh fails in a clone"; }
cmp "$tarball" "b/$name.tar.xz" || fail "two clones give different tarballs"
grep -q 'left out' err || fail "make_dist.sh does not say that it leaves changes out"

# ---- what is in it ----
git -C "$CONVOY_SOURCE" ls-tree -r --name-only HEAD | sed "s|^|$name/|" | LC_ALL=C sort >wanted
xz -dc "$tarball" | tar -tf - | grep -v '/$' | LC_ALL=C sort >got
cmp wanted got || fail "the tarball has not the files of the commit: $(diff wanted got | head -5)"
for file in LICENSE README.md CHANGELOG.md CITATION.cff licenses/README.md CMakeLists.txt; do
    grep -qx "$name/$file" got || fail "the tarball lacks $file"
done
seconds=$(git -C "$CONVOY_SOURCE" show -s --format=%ct HEAD)
wanted=$(TZ=UTC0 date -d "@$seconds" '+%Y-%m-%d %H:%M:%S')
xz -dc "$tarball" | TZ=UTC0 tar --numeric-owner --full-time -tvf - >list 2>/dev/null || fail "tar cannot list it"
awk -v wanted="$wanted" '$2 != "0/0" || $4 " " $5 != wanted { print; exit 1 }' list || fail "an owner is not 0, or a time is not $wanted"

# ---- it configures and generates without git ----
mkdir unpacked && xz -dc "$tarball" | tar -xf - -C unpacked || fail "the tarball does not unpack"
mkdir bin
for program in git; do printf '#!/bin/sh\necho "git was called: $*" >>%s/git.log\nexit 1\n' "$work" >bin/$program; done
chmod +x bin/git
PATH=$work/bin:$PATH "$CMAKE" -S "unpacked/$name" -B built -DCONVOY_TESTS=OFF -DCMAKE_C_COMPILER="$CC" -DMPI_C_COMPILER="$MPICC" >log 2>&1 || { cat log; fail "the unpacked tarball does not configure"; }
[ ! -e git.log ] || fail "the build asks git: $(cat git.log)"
target=gen/registry.c
[ -e built/build.ninja ] || target=convoy_objects
if [ "${CONVOY_TEST_DIST-}" = build ]; then # takes minutes
    PATH=$work/bin:$PATH "$CMAKE" --build built --target convoy >log 2>&1 && built/convoy --version || { tail -20 log; fail "the unpacked tarball does not build"; }
elif [ $target = gen/registry.c ]; then
    "$CMAKE" --build built --target "$work/built/gen/registry.c" >log 2>&1 || "$CMAKE" --build built --target gen/registry.c >log 2>&1 || { tail log; fail "the unpacked tarball does not begin to build"; }
fi
"$CMAKE" --build built --target dist >log 2>&1 && fail "a tarball was made of what is no clone"
grep -q 'is not a clone of git' log || fail "the message does not say that there is no clone: $(tail -3 log)"
exit $failed
