#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_embedded.sh: how long a simulation waits for a network of two hidden layers of 64 units, in convoy (called from
# Fortran) and in LibTorch (called from C++), in turns.
#
#     sh scripts/compare_embedded.sh --pytorch PYTHON [--rounds 3] [--threads 1] [--build build/release]
#
# PYTHON has PyTorch, whose LibTorch is used, and onnx. A row has the medians of the rounds in microseconds for a call with
# so many samples, and their ratio. The last row is the peak memory of the process. Run nothing else at the same time.
set -eu
cd "$(dirname "$0")/.."
usage() { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
pytorch= rounds=3 threads=1 build=$PWD/build/release
while [ $# -gt 0 ]; do
    case $1 in
    --pytorch | --rounds | --threads | --build) [ $# -ge 2 ] || usage; eval "${1#--}=\$2"; shift 2 ;;
    *) usage ;;
    esac
done
[ -n "$pytorch" ] || usage
build=$(cd "$build" && pwd)
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$pytorch" - <<'END' >setup.log 2>&1 || { cat setup.log >&2; exit 1; }
import torch
units = [16, 64, 64, 4]
layers = [layer for a, b in zip(units, units[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())][:-1]
net = torch.nn.Sequential(*layers)
torch.jit.script(net).save("net.pt")
torch.onnx.export(net, torch.randn(1, 16), "net.onnx", input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, dynamo=False)
END
torch=$("$pytorch" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
c++ -O2 -std=c++20 -o embedded_torch "$source/frameworks/embedded_torch.cpp" -I"$torch/include" -I"$torch/include/torch/csrc/api/include" \
    -L"$torch/lib" -ltorch -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib" -Wl,--allow-shlib-undefined >build.log 2>&1 || { grep error build.log >&2; exit 1; }
gfortran -O2 -o embedded_convoy "$build/fortran/convoy_c.f90" "$build/fortran/convoy.f90" "$source/frameworks/embedded_convoy.f90" \
    -L"$build" -lconvoy -Wl,-rpath,"$build"

# peak COMMAND...: runs it, and appends a line "peak KILOBYTES" to its output.
peak() {
    "$pytorch" - "$@" <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
}
round=1
while [ "$round" -le "$rounds" ]; do
    peak ./embedded_convoy net.onnx "$threads" | sed 's/^/convoy /' >>rows
    peak ./embedded_torch net.pt "$threads" 16 4 | sed 's/^/libtorch /' >>rows
    round=$((round + 1))
done
sort -k1,2 -k3n rows | awk -v rounds="$rounds" -v threads="$threads" '
    { value[$1, $2, ++count[$1, $2]] = $3 }
    function median(who, what,   n) { n = count[who, what]; return n % 2 ? value[who, what, (n + 1) / 2] : (value[who, what, n / 2] + value[who, what, n / 2 + 1]) / 2 }
    function row(what, unit, scale,   a, b) {
        a = median("convoy", what) / scale; b = median("libtorch", what) / scale
        printf "| %s | %.2f | %.2f | %.2f |\n", what == "peak" ? "peak memory, MB" : what " samples, us", a, b, unit == "us" ? b / a : a / b
    }
    END {
        printf "%s thread(s), medians of %s rounds in turns\n\n| | convoy | LibTorch | ratio |\n|---|---|---|---|\n", threads, rounds
        row(1, "us", 1); row(64, "us", 1); row(4096, "us", 1); row("peak", "MB", 1000)
    }'
