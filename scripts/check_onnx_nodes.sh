#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_onnx_nodes.sh [--write] [FOLDER]: runs ONNX's tests of single nodes with build/release, and prints which of them
# convoy computes wrongly; exit code 0: none. Without FOLDER it also runs the networks of the package onnx.
#
# FOLDER has the tests, as the package libonnx-testdata of Debian has them. Without it, the tests of the newest ONNX that
# Python has (CONVOY_PYTHON, default python3) are written to a temporary folder.
# With --write, docs/reference/onnx.md is written.
set -eu
cd "$(dirname "$0")/.."
write=
[ "${1-}" = --write ] && { write=--write; shift; }
if [ $# -gt 0 ]; then
    folder=$1
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "${CONVOY_PYTHON-python3}" - "$folder" <<'END'
import os
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node

warnings.filterwarnings("ignore")
for case in node.collect_testcases():
    folder = os.path.join(sys.argv[1], case.name)
    os.makedirs(os.path.join(folder, "test_data_set_0"))
    onnx.save(case.model, os.path.join(folder, "model.onnx"))
    for inputs, outputs in (case.data_sets or [])[:1]:
        graph = case.model.graph
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, value in enumerate(values):
                if isinstance(value, numpy.ndarray) or numpy.isscalar(value):
                    value = numpy_helper.from_array(numpy.asarray(value), infos[i].name)
                if isinstance(value, onnx.TensorProto):
                    with open(os.path.join(folder, "test_data_set_0", f"{kind}_{i}.pb"), "wb") as file:
                        file.write(value.SerializeToString())
print("ONNX", onnx.__version__)
END
    data=$("${CONVOY_PYTHON-python3}" -c 'import onnx, os; print(os.path.dirname(onnx.__file__) + "/backend/test/data")')
fi
CONVOY_SOURCE=. CONVOY_ONNX_NODES=$folder build/release/tests/test_onnx_nodes $write
[ -n "${data-}" ] || exit 0
CONVOY_ONNX_DATA=$data CONVOY_ONNX_LIGHT=$data/light build/release/tests/test_onnx_networks
