#!/bin/sh
# minimal
# tools.sh: check_layers finds each kind of fault that it is for and passes sound sources; make_registry.sh writes tables that compile,
# sorted, and refuses an id that is defined twice.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "$*"; failed=1; }

# ---- check_layers ----
tree=$work/tree
mkdir -p "$tree/tools" "$tree/src/base" "$tree/src/graph" "$tree/src/op" "$tree/cmd/convoy" "$tree/include/convoy"
cp "$CONVOY_SOURCE/tools/check_layers" "$tree/tools"
printf '#include <stddef.h>\n' >"$tree/include/convoy/good.h"
printf '/* never printf( or exit( in a comment: TO-DO */\n#include "base/a.h"\nconst char *text = "printf(x)";\n' >"$tree/src/op/op_good.c"

sh "$tree/tools/check_layers" >"$work/log" 2>&1 || { cat "$work/log"; fail "check_layers finds a fault in sound sources"; }

# finds WHAT FILE LINE...: with these lines in FILE, check_layers fails and names it.
finds() {
    what=$1 file=$2
    shift 2
    printf '%s\n' "$@" >"$tree/$file"
    sh "$tree/tools/check_layers" >"$work/log" 2>&1 && fail "check_layers does not find $what"
    grep -q "$file" "$work/log" || fail "check_layers does not name $file for $what"
    rm "$tree/$file"
}
finds "an include that goes up" src/base/base_bad.c '#include "op/op_good.h"'
finds "an unknown folder" src/base/base_bad.c '#include "other/thing.h"'
finds "an internal header in the command" cmd/convoy/bad.c '#include "graph/graph.h"'
finds "oneDNN outside its folder" src/op/op_bad.c '#include <oneapi/dnnl/dnnl.h>'
finds "MPI outside its folder" src/graph/graph_bad.c '#include <mpi.h>'
finds "printing" src/op/op_bad.c 'void f(void)' '{' '    printf("x");' '}'
finds "ending the process" src/op/op_bad.c 'void f(void) { abort(); }'
finds "MPI_COMM_WORLD" src/op/op_bad.c 'void *f(void) { return MPI_COMM_WORLD; }'
finds "dead code" src/op/op_bad.c '#if 0' '#endif'
finds "a public header that does not stand alone" include/convoy/bad.h 'size_t f(void);'

# ---- make_registry.sh ----
reg=$work/registry
mkdir -p "$reg/src/graph"
cat >"$reg/src/graph/graph_op.h" <<'END'
typedef struct cvy_op_def { const char *name; } cvy_op_def;
#define CVY_OP_DEFINE(op) const cvy_op_def cvy_op_##op##_def
const cvy_op_def *const *cvy_op_table(int *count_out);
const cvy_op_def *cvy_op_find(const char *name);
END
printf '#include "graph/graph_op.h"\nCVY_OP_DEFINE(second) = {"second"};\nCVY_OP_DEFINE(first) = {"first"};\n' >"$reg/src/graph/a.c"
cat >"$reg/main.c" <<'END'
#include <string.h>
#include "graph/graph_op.h"
int main(void)
{
    int n = 0;
    const cvy_op_def *const *table = cvy_op_table(&n);
    return !(n == 2 && !table[2] && !strcmp(table[0]->name, "first") && cvy_op_find("second") == table[1] && !cvy_op_find("third"));
}
END
sh "$CONVOY_SOURCE/tools/make_registry.sh" "$reg/src" "$reg/registry.c" "$reg/src/graph/a.c" || fail "make_registry.sh fails on sound sources"
"$CC" -Wall -Wextra -Werror -I"$reg/src" -o "$reg/main" "$reg/main.c" "$reg/registry.c" "$reg/src/graph/a.c" || fail "the registry does not compile"
"$reg/main" || fail "the registry's tables are wrong"
cp "$reg/src/graph/a.c" "$reg/src/graph/b.c"
sh "$CONVOY_SOURCE/tools/make_registry.sh" "$reg/src" "$reg/registry.c" "$reg/src/graph/a.c" "$reg/src/graph/b.c" 2>/dev/null &&
    fail "make_registry.sh accepts an id that is defined twice"

exit "$failed"
