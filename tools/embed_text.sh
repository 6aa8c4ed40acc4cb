#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# embed_text.sh FILE NAME OUT: writes OUT, a C source with the text of FILE as the string NAME.
set -eu
file=$1 name=$2 out=$3
{
    printf '/* %s, as text */\nextern const char %s[];\nconst char %s[] =\n' "$(basename "$file")" "$name" "$name"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$file"
    printf '    "";\n'
} >"$out.new"
mv "$out.new" "$out"
