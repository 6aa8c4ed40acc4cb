#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# simulate_peer.sh PEER@PLATFORM CONVOY MODEL BATCH RANKS SECONDS [OPTION...]: predicts steps of PyTorch or TensorFlow on
# the nodes of a platform, and prints what `convoy simulate --json` prints.
#
# The peer and convoy are measured here, one after the other, with a small batch. The ratio of their speeds is taken for
# that on the platform, whose rate for convoy is multiplied by it. Both speeds are kept for a day, so that all numbers of
# nodes have the same. Sums begin while the backward pass computes, and a
# thread of their own makes progress: PyTorch's DistributedDataParallel has buckets of 25 MB, Horovod with TensorFlow
# fuses up to 64 MB. Both are their defaults. MPI's choice of an algorithm is taken to be as good as convoy's.
set -eu
peer=${1%@*} platform=${1#*@} program=$2 model=$3 batch=$4 ranks=$5 seconds=$6
shift 6
folder=$(dirname "$0")
fail() { echo "simulate_peer.sh: $*" >&2; exit 1; }
case $peer in
pytorch) bucket=25000000 python=${CONVOY_PYTHON_PYTORCH:-${CONVOY_PYTHON:-python3}} script=run_pytorch.py variant='--variant channels_last' ;;
tensorflow) bucket=64000000 python=${CONVOY_PYTHON_TENSORFLOW:-${CONVOY_PYTHON:-python3}} script=run_tensorflow.py variant= ;;
*) fail "the peer '$peer' is not known; expected pytorch or tensorflow, as in pytorch@stampede2-like" ;;
esac
# rate JSON: its images/s.
rate() { printf '%s\n' "$1" | tail -n 1 | sed -n 's/.*"images_per_s": *\([0-9.e+]*\).*/\1/p'; }
small=$((batch / ranks))
[ "$small" -le 16 ] || small=16
[ "$small" -ge 1 ] || small=1
threads=$(getconf _NPROCESSORS_ONLN)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/convoy
kept=$cache/peer-$(uname -n)-$peer-$model-$small-$threads
# shellcheck disable=SC2086
if [ -z "$(find "$kept" -mtime -1 2>/dev/null)" ]; then
    theirs=$(rate "$("$python" "$folder/$script" --net "$model" --batch $small --mode train --dtype f32 --threads "$threads" --seconds "$seconds" $variant)") ||
        fail "$peer does not run: see docs/guide/studies.md for its environment"
    ours=$(rate "$("$program" bench --model "$model" --batch $small --seconds "$seconds" --threads "$threads" --planning measure --json)")
    [ -n "$theirs" ] || fail "no speed of $peer"
    [ -n "$ours" ] || fail "no speed of convoy"
    mkdir -p "$cache" && echo "$theirs $ours" >"$kept.$$" && mv "$kept.$$" "$kept"
fi
read -r theirs ours <"$kept"
node=$("$program" simulate "$model" --batch $((batch / ranks)) --ranks 1 --platform "$platform" --planning measure --steps 1 --json | sed -n 's/.*"node_images_per_s": *\([0-9.e+]*\).*/\1/p' | tail -n 1)
[ -n "$node" ] || fail "no speed of a node of $platform"
scaled=$(awk -v a="$theirs" -v b="$ours" -v c="$node" 'BEGIN { printf "%.4g", c * a / b }')
exec "$program" simulate "$model" --global-batch "$batch" --ranks "$ranks" --platform "$platform" --rate "$scaled" --planning measure \
    --steps 1 --representatives 32 --set "comm.bucket=$bucket" --set comm.progress=thread --json "$@"
