#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# seconds: 90
# level: 2
# lane: clock
# kill_resume.sh: one of two ranks is killed (kill -9) at any step, or told to stop by a signal: the job ends, and after
# a resume it ends with the bits of the uninterrupted run; so does one of four ranks on a grid of tensor 2 and
# pipeline 2. On another number of ranks it continues with the same samples, and with the same losses but for rounding.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {p: 0.3}
    - fc: {channels: 4}
data:
  train: {format: synthetic, samples: 150, shape: [3, 16, 16], classes: 4}
  val: 10%
  augment: [mirror, {random_crop: {size: 16, pad: 1}}]
train: {batch: 32, epochs: 60, optimizer: {name: adam, lr: 1e-3}, schedule: cosine, clip_norm: 1}
checkpoint: {every: 7 steps, keep: 3}
log: {every: 1}
END
last=step-00000300

# What each rank starts: it notes its process number, then trains in the folder.
cat >rank.sh <<'END'
echo $$ >pid-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
exec "$CONVOY" train job.yaml --threads 1 --progress none --out "$@"
END

# train RANKS FOLDER [--resume]: returns mpiexec's exit code; a hang is cut off.
train() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    timeout 200 $MPIEXEC_N $ranks sh rank.sh "$@" >"log-$1" 2>&1
}

# at_step N SIGNAL RANK FOLDER: trains on two ranks, or on a grid of $of, and sends the signal to one of them when the
# step is done. Returns the exit code of the job, which ends soon after.
at_step() {
    rm -f pid-*
    # shellcheck disable=SC2086
    train ${of:-2} "$4" $grid &
    job=$!
    until grep -q "\"step\": *$1," "$4/metrics.jsonl" 2>/dev/null; do
        kill -0 $job 2>/dev/null || { fail "the run ended before step $1"; cat "log-$4"; return 0; }
        sleep 0.02
    done
    kill "-$2" "$(cat "pid-$3")"
    from=$(date +%s)
    wait $job
    code=$?
    [ $(($(date +%s) - from)) -le 60 ] || fail "the job outlives its rank $3 by more than a minute"
    return $code
}

of='' grid=''
same_end() {
    for file in weights.safetensors state.safetensors; do
        cmp -s "whole/checkpoints/$last/$file" "$1/checkpoints/$last/$file" || fail "$file of $1 is not that of the unbroken run"
    done
}

train 2 whole || { fail "the unbroken run fails"; cat log-whole; exit 1; }
step=$(awk -v seed=$$ 'BEGIN { srand(seed); print 20 + int(200 * rand()) }')

at_step "$step" KILL $((step % 2)) killed && fail "the job ends well although a rank was killed at step $step"
[ ! -e killed/checkpoints/$last ] || fail "the killed run came to its end: kill it earlier than step $step"
cp -r killed one
cp -r killed three
train 2 killed --resume || { fail "the run that was killed at step $step does not resume"; cat log-killed; }
same_end killed

for signal in USR1 TERM; do
    at_step "$step" $signal 1 told-$signal
    code=$?
    [ $code = 75 ] || { fail "exit code $code after SIG$signal at step $step, expected 75"; cat log-told-$signal; }
    grep -q '^stopped step' told-$signal/STATUS || fail "STATUS after SIG$signal: $(cat told-$signal/STATUS)"
    train 2 told-$signal --resume || { fail "the run that got SIG$signal at step $step does not resume"; cat log-told-$signal; }
    same_end told-$signal
done

# losses RUN: prints each step's loss, as "step loss".
losses() { sed -n 's/.*"kind": *"step".*"step": *\([0-9]*\),.*"loss": *\([-0-9.e]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }
losses whole >whole.losses
[ "$(wc -l <whole.losses)" = 300 ] || fail "the unbroken run has not 300 losses"
for folder in one three; do
    ranks=1
    [ $folder = one ] || ranks=3
    train $ranks $folder --resume || { fail "a run of two ranks does not resume on $ranks"; cat log-$folder; }
    losses $folder | paste -d ' ' whole.losses - |
        awk '{ d = $2 - $4; if ($1 != $3 || d > 1e-4 || d < -1e-4) { print "step " $1 ": loss " $2 " unbroken, " $4 " resumed as step " $3; exit 1 } }' ||
        fail "resumed on $ranks ranks after step $step, the losses differ"
done

# ---- a grid ----
of=4 grid='--set parallel.tensor=2 --set parallel.pipeline=2 --set train.accumulate=2 --set train.epochs=12'
# shellcheck disable=SC2086
train 4 grid $grid || { fail "the unbroken run on a grid fails"; cat log-grid; exit 1; }
step=$((10 + step % 40))
at_step $step KILL $((step % 4)) grid-killed && fail "the job ends well although a rank of a grid was killed at step $step"
# shellcheck disable=SC2086
train 4 grid-killed $grid --resume || { fail "the run on a grid that was killed at step $step does not resume"; cat log-grid-killed; }
set -- grid/checkpoints/step-00000060/*.safetensors
[ $# = 4 ] || fail "the set of two stages has $# files of tensors, expected weights and states of each"
for file; do
    cmp -s "$file" "grid-killed/${file#grid/}" || fail "${file#grid/} of the grid that was killed at step $step is not that of the unbroken run"
done
exit $failed
