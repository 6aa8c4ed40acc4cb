#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_registry.sh SRC OUT FILE...: writes OUT, the C source with the tables of everything that registers itself.
#
# A descriptor registers with a line that begins with CVY_<KIND>_DEFINE(id) in one of FILE, the sources that are
# compiled. The output for a kind is what its header under SRC declares: cvy_<kind>_table(), and cvy_<kind>_find() if
# that is declared. Tables are sorted by id, so that they do not depend on the order of the files.
set -eu
export LC_ALL=C
src=$1 out=$2
shift 2

# kind header; a kind whose header does not exist has no table
kinds='backend backend/backend.h
op graph/graph_op.h
kernel kernel/kernel.h
library kernel/kernel_library.h
model model/model.h
importer model/model_import.h
onnx exchange/onnx/onnx_def.h
onnxop exchange/onnx/onnx_def.h
caffe exchange/caffe/caffe_def.h
schedule optim/optim.h
strategy session/session_strategy.h
init optim/optim.h
metric metric/metric.h
allreduce comm/comm_allreduce.h
reader data/data_reader.h
augment data/augment/data_augment.h
writer data/data_writer.h
update program/program_update.h
pass pass/pass.h'

emit_kind() {
    kind=$1 ids=$2 header=$3
    printf '\n'
    for id in $ids; do
        printf 'extern const cvy_%s_def cvy_%s_%s_def;\n' "$kind" "$kind" "$id"
    done
    printf 'static const cvy_%s_def *const %s_table[] = {\n' "$kind" "$kind"
    for id in $ids; do
        printf '    &cvy_%s_%s_def,\n' "$kind" "$id"
    done
    printf '    NULL,\n};\n'
    if grep -q "cvy_${kind}_table(int \*count_out);" "$header"; then
        printf '\nconst cvy_%s_def *const *cvy_%s_table(int *count_out)\n{\n' "$kind" "$kind"
        printf '    *count_out = (int)(sizeof(%s_table) / sizeof(*%s_table)) - 1;\n    return %s_table;\n}\n' "$kind" "$kind" "$kind"
    fi
    if grep -q "cvy_${kind}_find(const char \*name);" "$header"; then
        printf '\nconst cvy_%s_def *cvy_%s_find(const char *name)\n{\n' "$kind" "$kind"
        printf '    for (const cvy_%s_def *const *def = %s_table; *def; def++)\n' "$kind" "$kind"
        printf '        if (!strcmp((*def)->name, name))\n            return *def;\n    return NULL;\n}\n'
    fi
}

mkdir -p "$(dirname "$out")"
found=$(awk 'match($0, /^CVY_[A-Z]+_DEFINE\([a-z0-9_]+\)/) {
                 split(substr($0, 5, RLENGTH - 5), part, /_DEFINE\(/)
                 print tolower(part[1]), part[2]
             }' "$@" /dev/null | sort)
twice=$(printf '%s\n' "$found" | uniq -d)
[ -z "$twice" ] || { echo "make_registry.sh: defined twice: $twice" >&2; exit 1; }

{
    printf '/* Written by tools/make_registry.sh from the CVY_*_DEFINE lines of the sources. */\n#include <string.h>\n\n'
    printf '%s\n' "$kinds" | while read -r kind header; do
        if [ -f "$src/$header" ]; then printf '#include "%s"\n' "$header"; fi
    done | sort -u
    printf '%s\n' "$kinds" | while read -r kind header; do
        if [ -f "$src/$header" ]; then
            emit_kind "$kind" "$(printf '%s\n' "$found" | awk -v kind="$kind" '$1 == kind {print $2}')" "$src/$header"
        fi
    done
} >"$out.new"
mv "$out.new" "$out"
