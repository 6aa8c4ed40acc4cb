#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 30
# level: 2
# tune.sh: `convoy tune`: the search over splits and batches of a described machine, whose speeds are known; that it goes
# on after an interruption and measures nothing twice; the profile, and a training with it; mistakes.
. "$CONVOY_SOURCE/tests/cmd/job.inc"

# A description that stands for `convoy bench`: two ranks are 1.3 times as fast, batches up to 64 gain, and waiting for
# the other rank takes a tenth of the step, of which comm.overlap: forward saves the half.
mkdir adapters
cat >bench.sh <<'Y'
[ ! -e slow ] || sleep 60
echo "$*" >>calls
awk -v ranks=$1 -v threads=$2 -v batch=$3 -v overlap=$4 -v progress=$5 -v bucket="$6" 'BEGIN {
    rate = 100 * (threads * ranks > 1 ? 1.6 : 1) * (ranks > 1 ? 1.3 : 1) * (batch < 64 ? batch / 64 : 1)
    ms = 1000 * batch / rate * (ranks > 1 && overlap == "forward" ? 0.95 : 1) * (ranks > 1 && progress == "thread" ? 1.1 : 1)
    printf "{\"batch\": %d, \"ms_median\": %.6f, \"images_per_s\": %.6f, \"exposed_comm_ms\": %.6f}\n", batch, ms, 1000 * batch / ms, (ranks > 1 ? ms / 10 : 0)
}'
Y
cat >adapters/convoy.yaml <<'Y'
command: [sh, bench.sh, "{ranks}", "{threads}", "{batch}"]
set: ["{value}"]
ignores: [model]
version: [echo, 1]
Y
# The values of keys arrive in the order of the axes: progress, overlap, bucket.
sed -i 's/-v overlap=$4 -v progress=$5/-v progress=$4 -v overlap=$5/' bench.sh
tune() { timeout 100 "$CONVOY" tune cifar-convnet --batch 16,32,64,128 --out out --frameworks-folder adapters --seconds 1 "$@" >log 2>err; }

# nproc counts the threads that OMP_NUM_THREADS asks for, and not the cores.
if [ "$(env -u OMP_NUM_THREADS nproc)" -ge 2 ]; then
    tune || fail "code $?: $(cat log err)"
    grep -q 'batch 64, comm.progress poll, comm.overlap forward, comm.bucket auto$' log || fail "not the fastest: $(cat log)"
    grep -q '^ranks: [2-9]' out/profile.yaml && grep -q '^  train.batch: 64$' out/profile.yaml && grep -q '^  comm.overlap: forward$' out/profile.yaml ||
        fail "the profile: $(cat out/profile.yaml)"
    [ -s out/report.html ] || fail "no page"
    before=$(wc -l <calls)
    tune --json && [ "$(wc -l <calls)" = "$before" ] || fail "measured again: $(cat log err)"
    grep -q '^{"ranks": [2-9].*"batch": 64, .*"overlap": "forward"' log || fail "--json: $(cat log)"

    # Stopped in a measurement, and continued.
    rm -rf out calls
    tune --batch 16 || fail "one batch: $(cat log err)"
    rm -rf out calls
    touch slow
    tune &
    pid=$!
    sleep 1
    kill -TERM "$(pgrep -P $pid | head -n 1)" 2>/dev/null || kill -TERM $pid
    wait $pid
    code=$?
    rm slow
    [ $code = 75 ] || fail "a stopped search ends with code $code: $(cat log err)"
    tune && grep -q 'batch 64, ' log || fail "it does not go on: $(cat log err)"
fi

# A training takes the profile, and the command line counts more.
cat >profile.yaml <<'Y'
ranks: 2
threads: 1
set:
  train.batch: 12
  comm.overlap: forward
Y
"$CONVOY" train job.yaml --out run --profile profile.yaml >log 2>&1 || fail "train --profile: $(cat log)"
grep -q 'profile.yaml is for 2 ranks on each node, and this training has 1: start it with mpiexec -n 2' log || fail "no warning: $(cat log)"
grep -q 'batch: 12' run/job.resolved.yaml && grep -q 'overlap: forward' run/job.resolved.yaml || fail "the profile has no effect: $(cat run/job.resolved.yaml)"
"$CONVOY" train job.yaml --out run2 --profile profile.yaml --set train.batch=4 >log 2>&1 && grep -q 'batch: 4' run2/job.resolved.yaml || fail "--set counts less: $(cat log)"

expects() { text=$1; shift; "$CONVOY" "$@" >log 2>&1 && fail "$* ends well"; grep -q "$text" log || fail "$*: $(cat log)"; }
expects "batches are '32,x', expected up to 16 numbers above 0" tune cifar-convnet --batch 32,x --out o --frameworks-folder adapters
sed 's/batch: .*/batch_per_rank: 4/' job.yaml >each.yaml
expects "each.yaml: train.batch_per_rank is given" tune each.yaml --out o --frameworks-folder adapters
expects "job.yaml is not a profile of convoy tune" train job.yaml --profile job.yaml
expects "no-file.yaml" train job.yaml --profile no-file.yaml
exit $failed
