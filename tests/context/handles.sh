#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# handles.sh: test_context_handles.c calls every public function with a wrong object in the place of each of its own.
. "$CONVOY_SOURCE/tests/shell.inc"
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CONVOY_SOURCE/tools python3 - "$CONVOY_SOURCE" <<'END' || failed=1
import pathlib
import re
import sys

import c_headers

source = pathlib.Path(sys.argv[1])
api = c_headers.parse_all(source / "include")
text = (source / "tests/context/test_context_handles.c").read_text()
calls = re.findall(r"(FAULT|VALUE|QUIET|NOTHING)\((\w+), ([^;]*)\);", text)
missing = []
for name, _, parameters in api.functions:
    for p in parameters:
        is_destroyed = name == p.base + "_destroy"
        if p.base not in api.opaque or (p.stars > 1 and not is_destroyed):
            continue
        kind = p.base[len("cvy_"):].upper()
        if not any(called == kind and re.search(rf"\b{name}\b", rest) and (how == "NOTHING") == is_destroyed
                   for how, called, rest in calls):
            missing.append(f"{name}() with a wrong {p.name}")
for struct, members in api.structs.items():
    if struct not in text and any(m.base in api.opaque for m in members):
        missing.append(struct)
for m in missing:
    print(f"test_context_handles.c has no {m}")
assert len(calls) > 100
sys.exit(bool(missing))
END
exit $failed
