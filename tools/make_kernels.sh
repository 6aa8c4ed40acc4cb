#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_kernels.sh text OUT DEVICE_H FILE...: writes OUT, a C source with the device half of each FILE as text
# make_kernels.sh emulated OUT FOLDER FILE...: for each FILE and dtype of activations, writes FOLDER/<file>_<dtype>.c, which
#   compiles its device half as C11 and wraps its kernels, and OUT, the table of them (tests/backend/emulated/)
#
# A kernel file is a source with a line that begins with KERNEL( ; other FILEs are left out, or give empty files. What such
# a file is: src/backend/gpu/device.h. A kernel's parameters are separated by commas, and the last word of each is its name.
set -eu
export LC_ALL=C
way=$1 out=$2 at=$3
shift 3
kernels=$(grep -l '^KERNEL(' "$@" /dev/null || true)

# The lines of a kernel file that a device sees, with those of the headers that it includes besides device.h.
device_half() {
    awk -v src="${1%%/src/*}/src/" '
         /^#ifdef CVY_DEVICE$/ { half = 1; next }
         half && /^#else$/ { half = 2; next }
         half < 2 && /^#include "/ && !/device\.h"$/ {
             split($0, part, "\"")
             while ((getline line < (src part[2])) > 0)
                 if (line !~ /^#include/)
                     print line
             next
         }
         half && /^#endif$/ { exit }
         half < 2 && !/^#include/ { print }' "$1"
}

if [ "$way" = text ]; then
    listed=
    quote() { sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/'; }
    {
        printf '/* Written by tools/make_kernels.sh: the device halves of kernels, as text. */\n#include "backend/gpu/gpu.h"\n\n'
        printf '#define DEVICE_H \\\n'
        grep -v '^#include "' "$at" | awk '/^\/\*$/ { c = 1 } !c { print } /\*\/$/ { c = 0 }' | quote | sed 's/$/ \\/'
        printf '    ""\n'
        for file in $kernels; do
            name=$(basename "$file" .c)
            printf '\nextern const cvy_gpu_source cvy_gpu_source_%s;\nconst cvy_gpu_source cvy_gpu_source_%s = {\n    "%s",\n    "#define CVY_DEVICE 1\\n" DEVICE_H\n' "$name" "$name" "$name"
            device_half "$file" | quote
            printf '};\n'
            listed="$listed\n    &cvy_gpu_source_$name,"
        done
        printf '\nconst cvy_gpu_source *const cvy_gpu_sources[] = {%b\n    NULL,\n};\n' "$listed"
    } >"$out.new"
    mv "$out.new" "$out"
    exit 0
fi

mkdir -p "$at"
# Replaces a file only if it changes, so that it is not compiled again.
keep_same() { if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi; }
for file in "$@"; do
    case " $(echo $kernels) " in *" $file "*) continue ;; esac
    for dtype in f32 bf16; do
        printf '/* Written by tools/make_kernels.sh: no kernels. */\n' >"$at/$(basename "$file" .c)_$dtype.c.new"
        keep_same "$at/$(basename "$file" .c)_$dtype.c"
    done
done
table="" declared=""
for file in $kernels; do
    name=$(basename "$file" .c)
    for dtype in f32 bf16; do
        [ $dtype = bf16 ] && bf16=1 || bf16=0
        {
            printf '/* Written by tools/make_kernels.sh: %s for the emulated device. */\n' "$name"
            printf '#define CVY_DEVICE 1\n#define BF16 %s\n#define CVY_SHARED_SECTION "shared_%s_%s"\n' $bf16 "$name" $dtype
            printf '#include "backend/emulated/emulated_kernel.h"\n#include "%s"\n\n' "$file"
            device_half "$file" | awk -v file="$name" -v dtype=$dtype '
                # The parameters of a kernel, up to the brace of its body.
                /^KERNEL\(/ { head = ""; inside = 1 }
                inside { head = head " " $0 }
                inside && head ~ /\(.*\(.*\)[ \t]*$/ { inside = 0; add(head) }
                # A barrier in a function before the kernels may be in any of them.
                /BARRIER\(\)|BLOCK_SUM\(|COLUMN_SUMS?\(|BLOCK_MAX\(/ { waits[kernels + 0] = 1 }
                function add(text,    n, i, part, type, word, open) {
                    sub(/^[^(]*\(/, "", text)
                    open = index(text, ")")
                    kernel[++kernels] = substr(text, 1, open - 1)
                    text = substr(text, open + 1)
                    sub(/^[^(]*\(/, "", text)
                    sub(/\)[ \t]*$/, "", text)
                    n = split(text, part, ",")
                    nparams[kernels] = n
                    for (i = 1; i <= n; i++) {
                        gsub(/restrict/, "", part[i])
                        sub(/^[ \t]+/, "", part[i]); sub(/[ \t]+$/, "", part[i])
                        match(part[i], /[A-Za-z0-9_]+$/)
                        type = substr(part[i], 1, RSTART - 1)
                        gsub(/[ \t]+$/, "", type)
                        types[kernels, i] = type
                    }
                }
                END {
                    for (k = 1; k <= kernels; k++) {
                        name = kernel[k]
                        printf "static void call_%s(void *const *args)\n{\n    CVY_NAMED(%s)(", name, name
                        for (i = 1; i <= nparams[k]; i++)
                            printf "%s*(%s *)args[%d]", (i > 1 ? ", " : ""), types[k, i], i - 1
                        printf ");\n}\n"
                        printf "static const size_t bytes_%s[] = {", name
                        for (i = 1; i <= nparams[k]; i++)
                            printf "%s%s", (i > 1 ? ", " : ""), (types[k, i] ~ /\*$/ ? "0" : "sizeof(" types[k, i] ")")
                        printf "};\n"
                    }
                    printf "extern char __start_shared_%s_%s[] __attribute__((weak)), __stop_shared_%s_%s[] __attribute__((weak));\n", file, dtype, file, dtype
                    printf "static const struct cvy_emulated_kernel kernels[] = {\n"
                    for (k = 1; k <= kernels; k++)
                        printf "    {\"%s\", call_%s, bytes_%s, %d, %d},\n", kernel[k], kernel[k], kernel[k], nparams[k], (waits[k] || waits[0] ? 1 : 0)
                    printf "};\n"
                    printf "const struct cvy_emulated_module cvy_emulated_%s_%s = {\"%s\", CVY_DTYPE_%s, kernels, %d, __start_shared_%s_%s, __stop_shared_%s_%s};\n", \
                        file, dtype, file, toupper(dtype), kernels, file, dtype, file, dtype
                }'
        } >"$at/${name}_$dtype.c.new"
        keep_same "$at/${name}_$dtype.c"
        declared="$declared
extern const struct cvy_emulated_module cvy_emulated_${name}_$dtype;"
        table="$table
    &cvy_emulated_${name}_$dtype,"
    done
done
printf '/* Written by tools/make_kernels.sh: the kernels of the emulated device. */\n#include "backend/emulated/emulated_kernel.h"\n%s\nconst struct cvy_emulated_module *const cvy_emulated_modules[] = {%s\n    NULL,\n};\n' "$declared" "$table" >"$out.new"
mv "$out.new" "$out"
