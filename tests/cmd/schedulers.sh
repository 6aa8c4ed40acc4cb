#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# level: 2
# schedulers.sh: the scripts of `convoy jobscript` for LSF, PBS and Flux, on stand-ins for their commands (standin/): a run
# is told to stop before the limit, saves, goes on in the next job and comes to its end; so does each element of a job
# array, with its number as seed; a job that saves nothing new starts no other.
#
# The stand-ins show that a script does its part. Only the schedulers themselves could show that they do theirs.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
for command in bash setsid timeout; do
    command -v $command >/dev/null || { echo "skipped: there is no $command"; exit 77; }
done
. "$CONVOY_SOURCE/tests/cmd/standin/standin.inc"
. "$CONVOY_SOURCE/tests/cmd/long_run.inc"

# The scripts keep OpenCL out of mpiexec themselves: with PoCL on this machine it would lose USR1.
unset HWLOC_COMPONENTS

# A job that takes for ever; after its first stop some steps are left. It is smaller than that for real schedulers.
more=5
write_job() {
    sed -e "s/^  epochs: 2/  steps: $steps/" "$work/small.yaml" >job.new
    mv job.new job.yaml
}
{ echo 'name: two jobs'; sed '/^checkpoint/d; /^  schedule/d' job.yaml; echo 'log: {every: 1}'; } >small.yaml
endless() { rm -f ./*.was-stopped log; steps=100000000; write_job; }
# shellcheck disable=SC2086
after_job() { shorten_job $runs; }
# jobscript SCHEDULER OPTION...: writes ./script and checks it.
jobscript() {
    "$CONVOY" jobscript job.yaml --scheduler "$@" --nodes 1 --ppn 2 --threads 1 >script || fail "no script for $1"
    bash -n script || fail "the script for $1 is none"
    if command -v shellcheck >/dev/null; then shellcheck -S warning script || fail "shellcheck complains of the script for $1"; fi
}
# resumed RUN: it was stopped, resumed and finished.
resumed() {
    is_finished "$1" || fail "$1 is not finished: $(cat "$1/STATUS"; tail -40 log)"
    [ -e "$1.was-stopped" ] || fail "$1 was never stopped: $(tail -40 log)"
    once_each "$1"
}
# array RUN: the elements 1 and 2 have the right seeds, and no folder in common.
array() {
    for seed in 1 2; do
        resumed "$1-seed-$seed"
        grep -q "seed: $seed\$" "$1-seed-$seed/job.resolved.yaml" || fail "another seed than $seed: $(grep seed "$1-seed-$seed/job.resolved.yaml")"
    done
    [ ! -e "$1" ] || fail "an element of the array has used $1"
}

# ---- LSF: USR1 by the scheduler, requeue by the exit code ----
endless
runs=lsf
jobscript lsf --time 4 --signal 60 --out lsf
grep -qx '#BSUB -W 0:04' script && grep -qx '#BSUB -wa USR1 -wt 1' script && grep -qx '#BSUB -Q 75' script || fail "not the directives: $(head -20 script)"
bsub <script >/dev/null || fail "the stand-in of bsub refuses the script"
run_queue lsf
[ "$codes" = ' 75 0' ] || fail "exit codes $codes under LSF, expected 75 and 0: $(tail -40 log)"
resumed lsf
[ "$(grep -c 'resumed after step' two_jobs-1.out)" = 1 ] || fail "the output of both parts is not in two_jobs-1.out: $(ls)"

endless
runs='seeds-seed-1 seeds-seed-2'
jobscript lsf --time 4 --signal 60 --out seeds --seeds 1-2
bsub <script >/dev/null || fail "the stand-in of bsub refuses the array"
run_queue seeds
array seeds
[ "$(grep -c '^== lsf 2 ' log)" -ge 4 ] && [ -s two_jobs-2_1.out ] && [ -s two_jobs-2_2.out ] || fail "not each element was requeued: $(grep '^==' log; ls)"

# A run without a new step is not started again.
printf '#!/bin/sh\nexit 75\n' >"$STANDIN/lazy"
chmod +x "$STANDIN/lazy"
mv "$STANDIN/bin/mpiexec" "$STANDIN/mpiexec" && mv "$STANDIN/lazy" "$STANDIN/bin/mpiexec"
jobscript lsf --time 4 --out lsf
bsub <script >/dev/null
run_queue lsf
[ "$codes" = ' 1' ] || fail "exit codes $codes of a job that saves nothing, expected 1"
grep -q 'no new step was saved' two_jobs-3.out || fail "the log does not say that nothing was saved: $(cat two_jobs-3.out)"
mv "$STANDIN/mpiexec" "$STANDIN/bin/mpiexec"

# ---- PBS: an element of an array is submitted again as a job without an array ----
endless
runs='pbs-seed-1 pbs-seed-2'
jobscript pbs --time 1 --signal 50 --out pbs --seeds 1-2
qsub script >/dev/null || fail "the stand-in of qsub refuses the array"
run_queue pbs
array pbs
grep -q '^== pbs [0-9]* none' log || fail "no element was submitted again: $(grep '^==' log)"

# ---- Flux: the next job is submitted to the parent of the job's own instance ----
endless
runs=flux
jobscript flux --time 1 --signal 50 --out flux
grep -q '^    flux run --nodes=1 --ntasks=2 --cores-per-task=1 .* --signal=SIGUSR1@50s convoy ' script || fail "not the launcher: $(grep 'flux run' script)"
bash script >out 2>&1 && fail "the script runs without Flux"
flux batch script >/dev/null || fail "the stand-in of flux refuses the script"
run_queue flux
[ "$codes" = ' 75 0' ] || fail "exit codes $codes under Flux, expected 75 and 0: $(tail -40 log)"
resumed flux

endless
runs='many-seed-1 many-seed-2'
jobscript flux --time 1 --signal 50 --out many --seeds 1-2
[ "$(bash script | wc -l)" = 2 ] || fail "a script with two seeds does not submit two jobs"
run_queue many
array many

# Flux's own parser of directives, if it is there. Of flux-python (PyPI) only this file can be used without Flux.
python3 - script <<'PYTHON'
import importlib.util, os, sys
flux = importlib.util.find_spec("flux")
path = flux and os.path.join(os.path.dirname(flux.origin or ""), "job", "directives.py")
if not path or not os.path.exists(path):
    sys.exit(0)
spec = importlib.util.spec_from_file_location("directives", path)
directives = importlib.util.module_from_spec(spec)
spec.loader.exec_module(directives)
found = [d for d in directives.DirectiveParser(open(sys.argv[1])).directives if d.action == "SETARGS"]
print("Flux's own parser finds:", *(word for d in found for word in d.args))
sys.exit(0 if len(found) == 6 else 3)
PYTHON
code=$?
[ $code = 0 ] || [ $code = 127 ] || fail "Flux's parser refuses the directives: $(head -20 script)"
exit $failed
