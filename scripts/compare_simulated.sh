#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_simulated.sh: checks `convoy simulate` against ranks in network namespaces that are joined by real links.
#
#     sh scripts/compare_simulated.sh [--hosts '2 4 8'] [--rates '200mbit 1gbit'] [--steps 10] [--algorithm halving]
#                                     [--bucket 4MiB] [NETWORK:BATCH...]
#
# BATCH is that of each rank. On both sides kernels only wait for their measured times (`--kernels clock`), and the same
# code does the all-reduces. The simulated platform is a star, with the latency that `convoy doctor` measures between two
# of the namespaces and the rate of the links minus the headers of TCP. A row compares the exposed communication (median
# of --rounds runs of the real side): the simulation should be within 25 % of it, or within 1 % of the step. --mpiexec
# and --build as elsewhere. The script needs root (scripts/net_ranks.sh) and SimGrid. Run nothing else at the same time.
set -eu
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }

hosts='2 4 8' rates='200mbit 1gbit' steps=10 rounds=3 algorithm=halving bucket=4MiB build=build/release mpiexec=${MPIEXEC:-mpiexec}
while [ $# -gt 0 ]; do
    case $1 in
    --hosts | --rates | --steps | --rounds | --algorithm | --bucket | --build | --mpiexec)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- resnet-50:8 googlenet-bn:8 hep-cnn:8
scripts=$(cd "$(dirname "$0")" && pwd)
convoy=$(cd "$build" && pwd)/convoy
[ -x "$convoy-sim" ] || { echo "compare_simulated: there is no $convoy-sim; build convoy where SimGrid is installed" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 200mbit -> bytes/s, of which 1448 of 1514 are payload. A measurement with a short message gives more, because a token
# bucket lets its first bytes pass at once.
bytes_per_s() {
    echo "$1" | awk '{ unit = /gbit$/ ? 1e9 : /mbit$/ ? 1e6 : /kbit$/ ? 1e3 : 0; if (unit) printf "%.0f\n", ($1 + 0) * unit / 8 * 1448 / 1514 }'
}
value() { sed -n "s/.*\"$1\": \([-0-9.eE+]*\).*/\1/p" | tail -n 1; }
on_hosts() { sh "$scripts/net_ranks.sh" --hosts "$1" --rate "$rate" --mpiexec "$mpiexec" -- "$convoy" $2; }
median() { sort -g | awk '{ a[NR] = $1 } END { print NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2 }'; }

printf '| network, batch a rank | link | ranks | step ms, real | simulated | exposed ms, real | simulated | of the exposed | of the step |\n|---|---|---|---|---|---|---|---|---|\n'
for rate in $rates; do
    [ -n "$(bytes_per_s "$rate")" ] || { echo "compare_simulated: --rates are numbers of gbit, mbit or kbit, such as 200mbit; '$rate' is none" >&2; exit 2; }
    on_hosts 2 "doctor --max 1MiB --seconds 5 --json" >"$work/doctor"
    cat >"$work/platform.yaml" <<END
topology: star
nodes: 256
latency: $(value alpha_us <"$work/doctor" | awk '{ print $1 / 2e6 }')
bandwidth: $(bytes_per_s "$rate")
add: 5e9
gflop_per_s: 100
END
    sed "s/^/# $rate: /" "$work/platform.yaml" | grep -E 'latency|bandwidth' >&2
    for job in "$@"; do
        net=${job%:*} batch=${job#*:}
        settings="--set batch_norm.group=rank --set comm.algorithm=$algorithm --set comm.bucket=$bucket"
        images_per_s=$("$convoy" bench --model "$net" --batch "$batch" --threads 1 --planning measure --set batch_norm.group=rank --steps 1 --json |
            value predicted_ms | awk -v n="$batch" '{ print 1e3 * n / $1 }')
        for n in $hosts; do
            : >"$work/step" >"$work/exposed"
            round=1
            while [ "$round" -le "$rounds" ]; do
                on_hosts "$n" "bench --model $net --batch $((n * batch)) --threads 1 --kernels clock $settings --steps $steps --warmup 2 --json" >"$work/real"
                value ms_mean <"$work/real" >>"$work/step"
                value exposed_comm_ms <"$work/real" >>"$work/exposed"
                round=$((round + 1))
            done
            # shellcheck disable=SC2086
            "$convoy" simulate "$net" --platform "$work/platform.yaml" --batch "$batch" --ranks "$n" --rate "$images_per_s" $settings --steps 2 --json >"$work/simulated"
            echo "$(median <"$work/step") $(value step_ms <"$work/simulated") $(median <"$work/exposed") $(value exposed_comm_ms <"$work/simulated")" |
                awk -v net="$net, $batch" -v rate="$rate" -v n="$n" '{
                    d = $4 - $3
                    share = $3 > 0 ? sprintf("%+.0f %%", 100 * d / $3) : "-"
                    printf "| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %s | %+.1f %% |\n", net, rate, n, $1, $2, $3, $4, share, 100 * d / $1 }'
        done
    done
done
