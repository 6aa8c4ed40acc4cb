#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# embed_platforms.sh OUT FILE...: writes OUT, a C source with the platforms that `convoy simulate` knows by name: the
# table cmd_platforms of the files' names without .yaml and their texts.
set -eu
out=$1
shift
{
    printf '/* the platforms of platforms/, as text */\n\n'
    printf 'typedef struct cmd_platform_text {\n    const char *name, *text;\n} cmd_platform_text;\n'
    printf 'extern const cmd_platform_text cmd_platforms[]; /* as in cmd_simulate.h */\n'
    printf 'const cmd_platform_text cmd_platforms[] = {\n'
    for file in "$@"; do
        printf '    {"%s",\n' "$(basename "$file" .yaml)"
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
        printf '     ""},\n'
    done
    printf '    {0},\n};\n'
} >"$out.new"
mv "$out.new" "$out"
