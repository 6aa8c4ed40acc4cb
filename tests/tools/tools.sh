#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: clang asan minimal
# tools.sh: check_layers and check_links find each kind of fault that they are for and accept valid sources;
# make_registry.sh writes tables that compile and are sorted, and refuses an id that is defined twice.
. "$CONVOY_SOURCE/tests/shell.inc"

# ---- check_layers ----
tree=$work/tree
mkdir -p "$tree/tools" "$tree/src/base" "$tree/src/graph" "$tree/src/op" "$tree/lab/report" "$tree/lab/measure" "$tree/lab/op" "$tree/cmd/convoy" "$tree/include/convoy"
cp "$CONVOY_SOURCE/tools/check_layers" "$tree/tools"
printf '#include <stddef.h>\n' >"$tree/include/convoy/good.h"
printf '/* never printf( or exit( in a comment: TO-DO */\n#include "base/a.h"\nconst char *text = "printf(x)";\n' >"$tree/src/op/op_good.c"

printf '#include "base/a.h"\n#include "graph/graph.h"\n' >"$tree/lab/report/report_good.c"
printf '#include "report/report.h"\n' >"$tree/cmd/convoy/good.c"
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
finds "an internal header of lab in the command" cmd/convoy/bad.c '#include "report/report_page.h"'
finds "a header of lab in src" src/op/op_bad.c '#include "report/report.h"'
finds "a header of src that lab may not see" lab/report/report_bad.c '#include "op/op_good.h"'
finds "an include of lab that goes up" lab/measure/measure_bad.c '#include "report/report.h"'
finds "a folder of src in lab" lab/op/op_bad.c 'int x;'
finds "oneDNN outside its folder" src/op/op_bad.c '#include <oneapi/dnnl/dnnl.h>'
finds "MPI outside its folder" src/graph/graph_bad.c '#include <mpi.h>'
finds "printing" src/op/op_bad.c 'void f(void)' '{' '    printf("x");' '}'
finds "ending the process" src/op/op_bad.c 'void f(void) { abort(); }'
finds "MPI_COMM_WORLD" src/op/op_bad.c 'void *f(void) { return MPI_COMM_WORLD; }'
finds "a file that is opened elsewhere" src/op/op_bad.c '    const int fd = open(path, O_RDONLY);'
finds "a stream that is opened elsewhere" cmd/convoy/bad.c '    FILE *file = fopen(path, "r");'
finds "printing without a look at the names" cmd/convoy/bad.c 'void f(const char *s) { printf("%s", s); }'
finds "a name that goes to stderr" cmd/convoy/bad.c '    fprintf(stderr, "%s: %d\n", path, n);'
finds "a format that is not on the line" cmd/convoy/bad.c '    vfprintf(stderr, fmt, args);'
finds "a name that goes to stdout" cmd/convoy/bad.c '    fputs(r->name, stdout);'
finds "the struct of a program in another folder" src/graph/graph_bad.c '#include "program/program_impl.h"'
finds "a struct with too many members" src/op/op_bad.h 'typedef struct cvy_many {' \
    "$(awk 'BEGIN { for (i = 0; i < 20; i++) print "    int m" i ", n" i ";" }')" '    struct { int a; int b; int c; int d; int e; } part;' '} cvy_many;'
finds "dead code" src/op/op_bad.c '#if 0' '#endif'
finds "a name that clang would define twice" src/op/op_bad.c 'CVY_SIMD static void f(int x)' '{' '}' 'CVY_SIMD static int f(void)' '{' '}'
finds "an update mode by its name" src/op/op_bad.c '    return mode == CVY_UPDATE_LOCAL;'
finds "a kind of call by its name" src/graph/graph_bad.c '    return call->kind == CVY_CALL_VIEW;'
finds "an operator by its name" src/graph/graph_bad.c '    return strcmp(node->op->name, "conv") == 0;'
finds "a public header that does not stand alone" include/convoy/bad.h 'size_t f(void);'

# Symbols: one that a lower header declares and an upper folder defines, and one that a lower folder calls without any
# header.
printf 'int cvy_up(int x)\n{\n    return x;\n}\nconst int cvy_numbers[] = {1};\n' >"$tree/src/op/op_up.c"
finds "a function that is defined above its header" src/base/base_bad.h 'int cvy_up(int x);'
finds "a table that is defined above its header" src/base/base_bad.h 'extern const int cvy_numbers[];'
finds "a call of a function that lies above" src/graph/graph_bad.c 'int f(void)' '{' '    return cvy_up(1);' '}'
printf '#include "op/op_good.h"\nint cvy_down(int x);\n/* cvy_up */\n' >"$tree/src/op/op_down.h"
sh "$tree/tools/check_layers" >"$work/log" 2>&1 || { cat "$work/log"; fail "check_layers finds a fault in symbols that go down"; }

# Cycles: folders within one folder can form one without breaking the order of the upper folders. The folder around them
# is not part of a cycle.
mkdir -p "$tree/src/op/one" "$tree/src/op/two"
printf '#include "op/two/op_two.h"\n#include "op/op_down.h"\n' >"$tree/src/op/one/op_one.h"
printf '#include "op/one/op_one.h"\n' >"$tree/src/op/op_all.c"
sh "$tree/tools/check_layers" >"$work/log" 2>&1 || { cat "$work/log"; fail "check_layers takes a folder and those within it for a cycle"; }
finds "a cycle of nested folders" src/op/two/op_two.h '#include "op/one/op_one.h"'
sh "$tree/tools/check_layers" --table >"$work/log" || fail "check_layers --table fails"
grep -q '^src/op/one  *1  *2  *op/two 1, op 1$' "$work/log" || { cat "$work/log"; fail "the table lacks the row of a folder"; }
grep -q '^3 folders, 6 files, .* 6 arrows$' "$work/log" || { cat "$work/log"; fail "the table lacks its sum"; }

# The map in ARCHITECTURE.md has the folders in the order of check_layers.
sed -n "s/^layers='\(.*\)'/\1/p; s/^labs='\(.*\)'/\1/p" "$CONVOY_SOURCE/tools/check_layers" | tr ' ' '\n' >"$work/order"
sed -n '/^## The map/,/^## The life/s/^| \(`\(src\|lab\)\/[a-z`/, ]*\) |.*/\1/p' "$CONVOY_SOURCE/ARCHITECTURE.md" | tr -d '` ' | tr ',' '\n' |
    sed -n 's|^[a-z]*/\([a-z]*\)/$|\1|p' >"$work/map"
[ "$(wc -l <"$work/order")" -gt 20 ] && cmp "$work/order" "$work/map" || fail "ARCHITECTURE.md has another order of folders: $(diff "$work/order" "$work/map")"

# ---- check_links ----
pages=$work/pages
mkdir -p "$pages/docs/guide" "$pages/src"
printf '# One\n\n## Two words, `c`\n`a.c`, `src/a.c`, `b*.c`: [a](docs/guide/a.md#part-b) [b](#two-words-c) [c](https://other.example/)\n' >"$pages/README.md"
printf '# A\n\n    [not](a-link.md)\n\n## Part B\n[up](../../README.md#one)\n' >"$pages/docs/guide/a.md"
printf '/* docs/guide/a.md */\n' >"$pages/src/a.c"
links() { sh "$CONVOY_SOURCE/tools/check_links" "$pages" >"$work/log" 2>&1; }
links || { cat "$work/log"; fail "check_links finds a fault in valid pages"; }

# no_link WHAT LINE: with this line in a page, check_links fails and names the page's line.
no_link() {
    printf '%s\n' "$2" >"$pages/bad.md"
    links && fail "check_links does not find $1"
    grep -q '^bad.md:1: ' "$work/log" || fail "check_links does not name the line of $1"
    rm "$pages/bad.md"
}
no_link "a link to a page that does not exist" 'see [a](docs/guide/b.md)'
no_link "the second link of a line" '[a](README.md) and [b](docs/b.md)'
no_link "a link to a heading that does not exist" '[a](docs/guide/a.md#part-c)'
no_link "a link to a heading of its own page" '[a](#nothing)'
no_link "a source that does not exist" 'in `a.c` and `b.c`'
no_link "a path that does not exist" 'in `src/b.c`'
printf '/* docs/guide/b.md */\n' >"$pages/src/a.c"
links && fail "check_links does not find a page that a source names"

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
