#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# commit.sh SOURCE OUT: writes OUT, a C source with the commit of SOURCE as the string cmd_commit, if it has changed. An
# archive of git has it in tools/commit.txt, in full, because how far git shortens it depends on the clone. A clone is
# asked, and a + says that files have been changed. Without either the string is empty.
set -eu
source=$1 out=$2
commit=$(printf %.8s "$(cat "$source/tools/commit.txt" 2>/dev/null)")
case $commit in
*'$'*)
    commit=
    if [ -e "$source/.git" ] && commit=$(git -C "$source" rev-parse HEAD 2>/dev/null); then
        commit=$(printf %.8s "$commit")
        # without locks, so that a build does not get in the way of a git that runs at the same time
        [ -z "$(git --no-optional-locks -C "$source" status --porcelain --untracked-files=no 2>/dev/null)" ] || commit=$commit+
    fi
    ;;
esac
{
    echo '/* the commit that the program is built of */'
    echo 'extern const char cmd_commit[];'
    printf 'const char cmd_commit[] = "%s";\n' "$(printf %s "$commit" | tr -cd 0-9a-f+)"
} >"$out.new"
if cmp -s "$out.new" "$out"; then rm "$out.new"; else mv "$out.new" "$out"; fi
