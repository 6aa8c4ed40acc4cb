#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# level: 2
# full_disk.sh: if checkpoints cannot be written, the training goes on with a warning that names path and cause, older
# checkpoints stay sound, and the run ends with code 1. With free space it then resumes, and ends as a run that always
# had space. The test uses a limit on the size of files, which every user may set, and a small file system, which needs
# the right to mount one.
. "$CONVOY_SOURCE/tests/cmd/job.inc"

# ---- files of more than 16 MiB (MPI needs some itself) cannot be written: there is no checkpoint, but every step is
# done ----
(
    trap '' XFSZ
    ulimit -f 32768
    timeout 200 "$CONVOY" train job.yaml --out small --set 'model.layers=[{fc: {channels: 30000}}, {fc: {channels: 4}}]' >out 2>err
    echo $? >code
)
[ "$(cat code)" = 1 ] || fail "exit code $(cat code) where nothing could be saved, expected 1"
for step in 2 4; do
    contains err "checkpoint of step $step failed, training continues: checkpoint of step $step is not saved, earlier ones are untouched: small/checkpoints/step-0000000$step.aside/weights.safetensors: cannot write" ||
        fail "no warning about step $step: $(cat err)"
done
contains err 'File too large' || fail "the cause is not named: $(cat err)"
contains err 'convoy: error: checkpoint of step 6 is not saved' || fail "the last save is no error: $(cat err)"
contains small/STATUS 'failed step 6 of 6' || fail "STATUS: $(cat small/STATUS)"
grep -q '"kind": *"epoch".*"epoch": *2,' small/metrics.jsonl || fail "the training did not go on: $(cat small/metrics.jsonl)"

# ---- a file system that becomes full during the run ----
mkdir disk
mount -t tmpfs -o size=2m none disk 2>/dev/null || { echo "no right to mount a small file system: that part is left out"; exit $failed; }
trap 'umount -l "$work/disk"; rm -rf "$work"' EXIT
"$CONVOY" train job.yaml --out whole --threads 1 --set train.epochs=300 >log 2>&1 || { fail "the run with room fails"; cat log; }

# shellcheck disable=SC2086
timeout 200 $MPIEXEC_N 2 "$CONVOY" train job.yaml --out disk/run --threads 1 --set train.epochs=300 --progress none >out 2>err &
job=$!
until [ -e disk/run/checkpoints/latest ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
while kill -0 $job 2>/dev/null; do
    cat /dev/zero >>disk/filler 2>/dev/null        # again, because an older checkpoint may have been deleted meanwhile
    sleep 0.1
done
wait $job
code=$?
[ $code = 1 ] || fail "exit code $code of the run on the full disk, expected 1"
grep -q 'checkpoint of step .* failed, training continues: .*disk/run/checkpoints/step-.*No space left on device' err || fail "no warning with path and cause: $(head -5 err)"
grep -q 'convoy: error: checkpoint of step 900 is not saved.*No space left on device' err || fail "the last save is no error: $(cat err)"
"$CONVOY" inspect disk/run >log 2>&1
grep -q '^newest valid checkpoint' log || fail "no sound checkpoint is left: $(cat log)"
contains log damaged && fail "a half-written checkpoint is left: $(cat log)"

rm disk/filler
timeout 200 "$CONVOY" train job.yaml --out disk/run --threads 1 --resume --set train.epochs=300 >log 2>&1 || fail "with room again it does not resume: $(cat log)"
[ -e disk/run/checkpoints/step-00000900 ] || fail "the resumed run did not come to its end"
exit $failed
