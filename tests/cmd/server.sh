#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# lane: clock
# server.sh: parameter servers from the job file give the losses of synchronous training for any number of workers and
# servers; a run in which a server or a worker is killed or stopped ends, and continues with the same bits; what does
# not fit is refused.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
cat >job.yaml <<'Y'
model:
  layers:
    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {p: 0.3}
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 150, shape: [3, 12, 12], classes: 4, noise: 0.5}
  val: 10%
  augment: [mirror, {random_crop: {size: 12, pad: 1}}]
train: {batch: 32, epochs: 12, optimizer: {name: sgd, lr: 0.01, momentum: 0.8}, schedule: cosine}
checkpoint: {every: 7 steps, keep: 3}
comm: {bucket: 1 KiB}
log: {every: 1}
Y
last=step-00000060
extra=
served='update={mode: parameter_server, servers: 1}'

# What each rank starts: it notes its process number, then trains in the folder.
cat >rank.sh <<'Y'
echo $$ >pid-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
exec "$CONVOY" train job.yaml --threads 1 --progress none --out "$@"
Y

# train RANKS FOLDER [options]: returns mpiexec's exit code; a hang is cut off.
train() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    timeout 100 $MPIEXEC_N $ranks sh rank.sh "$@" >"log-$1" 2>&1
}

losses() {
    sed -n 's/.*"kind": *"step".*"loss": *\([^,]*\),.*/\1/p' "$1/metrics.jsonl" | head -n 20
}

# same_losses: the first 20 losses differ by rounding only, and so do the scores of validation.
same_losses() {
    losses "$1" >a
    losses "$2" >b
    [ "$(wc -l <a)" -eq 20 ] || fail "$1 has fewer than 20 losses"
    paste a b | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) bad = 1 } END { exit bad }' || { fail "the losses of $1 and $2 differ"; paste a b; }
}

train 2 sync || fail "sync: $(tail -n 3 log-sync)"
train 3 whole --set "$served" || fail "server: $(tail -n 3 log-whole)"
train 4 two --set 'update={mode: parameter_server, servers: 2}' || fail "two servers: $(tail -n 3 log-two)"
same_losses sync whole
same_losses sync two
grep -q 'update <b>parameter_server</b>' whole/report.html || fail "the report does not say how weights were updated"

same_end() {
    for file in weights.safetensors state.safetensors; do
        cmp -s "whole/checkpoints/$last/$file" "$1/checkpoints/$last/$file" || fail "$file of $1 is not that of the run without interruption"
    done
}

# at_step N SIGNAL RANK FOLDER: sends the signal to one of three ranks when the step is done. Returns the exit code of
# the job, which ends soon after.
at_step() {
    rm -f pid-*
    # shellcheck disable=SC2086
    train 3 "$4" --set "$served" $extra &
    job=$!
    until grep -q "\"step\": *$1," "$4/metrics.jsonl" 2>/dev/null; do
        kill -0 $job 2>/dev/null || { fail "the run ended before step $1"; cat "log-$4"; return 0; }
        sleep 0.02
    done
    kill "-$2" "$(cat "pid-$3")"
    wait $job
}

at_step 15 KILL 2 broken && fail 'the server is killed, but the job does not fail'
train 3 broken --set "$served" --resume || fail "resumed: $(tail -n 3 log-broken)"
same_end broken
at_step 25 TERM 1 stopped
[ $? -eq 75 ] || fail "stopped by a signal to a worker: $(tail -n 3 log-stopped)"
train 3 stopped --set "$served" --resume || fail "resumed: $(tail -n 3 log-stopped)"
same_end stopped

# Workers that do not wait for each other: they learn, no worker is further ahead than the bound, and the run can be
# stopped and continued, and ends if one worker's loss is not finite.
free() { echo "update={mode: parameter_server, servers: $1, staleness: $2}"; }
train 4 bound --set "$(free 2 1)" --set batch_norm.group=rank || fail "bound: $(tail -n 3 log-bound)"
most=$(sed -n 's/.*"staleness_max": *\([0-9]*\).*/\1/p' bound/metrics.jsonl | sort -n | tail -n 1)
[ "${most:-2}" -le 1 ] || fail "a worker was ${most:-?} steps ahead of the slowest, with a bound of 1"
losses bound | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.5 * first) }' || fail "workers that do not wait do not reduce the loss: $(losses bound)"
served=$(free 1 none)
extra="--set batch_norm.group=rank"
at_step 12 TERM 1 free
[ $? -eq 75 ] || fail "stopped by a signal to a free worker: $(tail -n 3 log-free)"
train 3 free --set "$served" $extra --resume || fail "resumed: $(tail -n 3 log-free)"
[ -d "free/checkpoints/$last" ] || fail "the resumed run did not reach its end"

# A worker that does not move on is named by the server that waits for it, or the server by a worker that waits for its
# answer.
hold() {
    rm -rf pid-* held
    # shellcheck disable=SC2086
    train 3 held --set "$(free 1 2)" $extra --set 'watchdog.timeout=2 s' --set data.train.samples=1000000 --set 'checkpoint.every=1000000 steps' &
    job=$!
    until [ -s held/metrics.jsonl ]; do
        kill -0 $job 2>/dev/null || return 1
        sleep 0.02
    done
    kill -STOP "$(cat pid-1)"
    wait $job && fail 'a worker is stopped, but the job does not fail'
    kill -KILL "$(cat pid-1)" 2>/dev/null
    grep -Eq 'rank [02]: made no progress for .* waiting for the (gradients of bucket [0-9]* from rank 1|weights of bucket [0-9]* from rank 2)' log-held
}
# This is tried twice, because mpiexec may end the job before it has passed on its last lines.
hold || hold || { fail 'the log does not name the rank that is waited for:'; cat log-held; }

train 3 lost --set "$served" $extra --set train.optimizer.lr=1e30 && fail "the run does not fail although the loss is not finite"
grep -q 'expected a finite number' log-lost || fail "the log does not report the loss that is not finite: $(tail -n 3 log-lost)"
rm -rf lost
# The same after a checkpoint.
train 3 lost --set "$served" $extra --set 'checkpoint.every=2 steps' --set 'train.schedule={name: multi_step, at: 4 steps, factor: 1e30}' && fail "the run does not fail although the loss is not finite after a checkpoint"
grep -q 'expected a finite number.*the checkpoint of step [0-9]* holds finite weights' log-lost || fail "the log does not report the loss that is not finite after a checkpoint: $(tail -n 3 log-lost)"
served='update={mode: parameter_server, servers: 1}'

# refuse RANKS WORDS options
refuse() {
    ranks=$1 words=$2
    shift 2
    # shellcheck disable=SC2086
    refused "$words" $MPIEXEC_N $ranks "$CONVOY" train job.yaml --threads 1 --out bad "$@"
}
refuse 1 'there is one rank: start 2 or more' --set "$served"
refuse 2 'servers is 2, but at least one of 2 ranks must train' --set 'update={mode: parameter_server, servers: 2}'
refuse 2 'expected 1..' --set 'update={mode: parameter_server, servers: 0}'
refuse 2 'leave comm.wire out' --set "$served" --set comm.wire=bf16
refuse 2 'take clip_value' --set "$served" --set train.clip_norm=1
exit $failed
