#!/bin/sh
# compare_sandbox.sh: compares reading HDF5 files by libhdf5 in a process of its own (sandbox: true) with reading in place, in turns.
#
#     sh scripts/compare_sandbox.sh [--rounds 7] [--seconds 4] [--threads 2] [--build build/release] [--folder TMPDIR]
#
# It makes four sets: plain (contiguous rows, which are read by position), gzip (compressed chunks, which libhdf5 only finds),
# checked (chunks with a checksum, which only libhdf5 reads) and pictures (JPEG, each of which libhdf5 reads). A row has the medians of the rounds in each mode: samples/s by the clock, and microseconds of processor time (user and system, of both processes)
# for each sample; then the ratio of the modes in each round: median, least and largest. Processor time counts if something else
# runs at the same time; then the clock tells little. Opening, which starts the process, is not in the samples/s, but in the
# processor time.
set -eu
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }

rounds=7 seconds=4 threads=2 build=build/release folder=${TMPDIR:-/tmp}
while [ $# -gt 0 ]; do
    case $1 in
    --rounds | --seconds | --threads | --build | --folder)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    *) usage ;;
    esac
done
convoy=$build/convoy
[ -x "$convoy" ] || { echo "compare_sandbox: there is no $convoy; build it, or name its folder with --build" >&2; exit 1; }
work=$(mktemp -d "$folder/compare-sandbox.XXXXXX")
trap 'rm -rf "$work"' EXIT

[ -x "$build/tests/bench_data_sandbox" ] || { echo "compare_sandbox: build the target bench_data_sandbox, too" >&2; exit 1; }
"$build/tests/bench_data_sandbox" "$work" 4096
"$convoy" convert '{format: pictures, size: 96, classes: 10, samples: 3000, encode: jpeg}' "$work/pictures.h5" --format hdf5 --parts 1 >/dev/null

# measure SET MODE: writes one row: set, mode, samples/s, microseconds of processor time for each sample.
measure() {
    json=$( (times >"$work/before"
        "$convoy" bench --data "{path: $work/$1.h5, sandbox: $2}" --shuffle window --threads "$threads" --batch 64 --seconds "$seconds" --json
        times >"$work/after"))
    speed=$(printf '%s\n' "$json" | sed -n 's/.*"images_per_s": *\([0-9.eE+-]*\).*/\1/p' | tail -n 1)
    took=$(printf '%s\n' "$json" | sed -n 's/.*"seconds": *\([0-9.eE+-]*\).*/\1/p' | tail -n 1)
    cpu=$(sed -n 2p "$work/after" | tr 'ms' '  ' | awk '{print 60 * $1 + $2 + 60 * $3 + $4}')
    echo "$1 $2 $speed $(awk -v cpu="$cpu" -v n="$speed" -v s="${took:-$seconds}" 'BEGIN {print 1e6 * cpu / (n * s)}')" >>"$work/rows"
}

sets='plain gzip checked pictures'
round=1
while [ "$round" -le "$rounds" ]; do
    for set in $sets; do
        if [ $((round % 2)) = 1 ]; then
            measure "$set" false
            measure "$set" true
        else
            measure "$set" true
            measure "$set" false
        fi
    done
    echo "round $round of $rounds, load $(cut -d' ' -f1 /proc/loadavg)" >&2
    round=$((round + 1))
done

echo '| set | in place | own process | ratio (range) | processor time in place | own process | ratio (range) |'
echo '|---|---|---|---|---|---|---|'
for set in $sets; do
    awk -v set="$set" '
        function median(list, n,    i, j, t) {
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        $1 == set && $2 == "false" { a[++n] = $3; c[n] = $4 }
        $1 == set && $2 == "true" { b[++m] = $3; d[m] = $4 }
        END {
            for (i = 1; i <= n; i++) { r[i] = b[i] / a[i]; q[i] = d[i] / c[i] }
            speed = median(r, n); work = median(q, n)
            printf "| %s | %.0f/s | %.0f/s | %.3f (%.3f to %.3f) | %.1f us | %.1f us | %.3f (%.3f to %.3f) |\n", set,
                median(a, n), median(b, m), speed, r[1], r[n], median(c, n), median(d, m), work, q[1], q[n]
        }' "$work/rows"
done
