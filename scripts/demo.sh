#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh: from a fresh clone to a trained network. It installs what is missing, builds, trains on generated collider
# events with two ranks, tests the result on events that were not used in training, and writes a page about the run:
# runs/demo/report.html.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh
. scripts/mpi_env.sh

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
run=runs/demo
mkdir -p build runs
echo "demo: building the command, about a minute (output in build/demo-build.log)"
if ! { cmake --preset release && cmake --build --preset release -j "$jobs" --target convoy collider; } >build/demo-build.log 2>&1; then
    tail -n 30 build/demo-build.log >&2
    echo "demo: the build failed" >&2
    exit 1
fi

rm -rf "$run"
start=$(date +%s)
mpiexec -n 2 build/release/convoy train examples/collider.yaml --out "$run"
trained=$(date +%s)
mpiexec -n 2 build/release/convoy test "$run"
build/release/collider "$run"
build/release/convoy report "$run"

cat <<END

1. convoy was built into build/release; the command is build/release/convoy.
2. Two MPI ranks trained a convolutional network on generated collider events in $((trained - start)) s (the job: examples/collider.yaml).
3. It was tested on events that it had not seen; the results are above, next to those of the classic analysis.
4. Curves, tables and settings are on one page: $run/report.html.
5. Next: change a line of examples/collider.yaml and run again, or see what can be trained with build/release/convoy models.
END
