#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich asan
# study_kit.sh: `convoy study --kit` makes a folder for a cluster; its jobs, run with commands that replace those of the
# batch system, make the predictions and seal them, measure, go on after a stop, and come back in part or as a whole;
# the page and the archive; what has changed since the seal; mistakes.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
command -v bash >/dev/null || { echo "skipped: there is no bash, in which job scripts run"; exit 77; }

mkdir adapters bin
cat >adapters/peer.yaml <<'Y'
command: ["{launch}", sh, "{folder}/count.sh", "{ranks}", "{batch}"]
version: [echo, peer 1]
Y
cat >adapters/guess.yaml <<'Y'
command: [sh, "{folder}/guess.sh", "{nodes}", "{node_ranks}", "{batch}"]
version: [echo, guess 1]
predicted: true
exact: true
cores: false
Y
cat >count.sh <<'Y'
[ "$1" != "$(cat "$STOP_AT" 2>/dev/null)" ] || { kill -TERM "$PPID"; sleep 30; }
[ "$1" != 3 ] || { echo "convoy: error: three is too many" >&2; exit 1; }
echo "{\"images_per_s\": $(($1 * 10)), \"batch\": $2, \"per_node\": \"${CONVOY_RANKS_PER_NODE-}\"}"
Y
cat >guess.sh <<'Y'
echo "{\"images_per_s\": $(($1 * $2 * 11)), \"node_ranks\": $2}"
Y
cat >study.yaml <<'Y'
title: A kit
experiments:
  speed: {batch_per_rank: 4, ranks: [@full_ranks@, 3], framework: [peer, guess], repeats: 1, seconds: 1, oversubscribe: true}
  single: {batch: @batch@, ranks: [@ranks@], ranks_per_node: 1, framework: [peer, guess], repeats: 2, seconds: 1, oversubscribe: true}
figures:
- {title: Speed, of: speed, x: ranks, lines: framework}
Y
cat >bin/srun <<'Y'
#!/bin/sh
while [ "$1" != sh ]; do shift; done
exec "$@"
Y
# A job runs at once; its number is that of its line in the list of calls.
cat >bin/sbatch <<'Y'
#!/bin/sh
echo "sbatch $*" >>"$CALLS"
[ "$(cat "$CALLS" | wc -l)" != "$(cat "$REFUSE" 2>/dev/null)" ] || { echo "sbatch: error: no" >&2; exit 1; }
for script; do :; done
n=$(($(wc -l <"$CALLS")))
SLURM_JOB_ID=$n bash "$script" >"job-$n.out" 2>&1
echo "code $?" >>"job-$n.out"
echo "$n;cluster"
Y
cat >bin/sinfo <<'Y'
#!/bin/sh
echo 3
echo 1
Y
ln -s "$CONVOY" bin/convoy
chmod +x bin/*
export CALLS="$work/calls" STOP_AT="$work/stop_at" REFUSE="$work/refuse" PATH="$work/bin:$PATH"
unset CONVOY_MPIEXEC CONVOY_JOB_END SLURM_JOB_END_TIME
kit() { "$CONVOY" study --kit "$@" --frameworks-folder adapters >log 2>err; }
cp count.sh guess.sh adapters
dir='the kit/first'

# ---- mistakes ----
kit "$dir" study.yaml --scheduler cray --nodes 2 --ppn 2 --time 10 && fail "an unknown scheduler is taken"
contains err slurm || fail "the schedulers are not named: $(cat err)"
kit "$dir" study.yaml --slurm --nodes 5 --ppn 2 --time 10 && fail "5 nodes of 4 are taken"
contains err 'has 4 nodes' || fail "the nodes of the partition: $(cat err)"
kit "$dir" study.yaml --slurm --pbs --nodes 2 --ppn 2 --time 10 && fail "two schedulers are taken"
kit "$dir" study.yaml --slurm --nodes 2 --time 10 && fail "no --ppn is taken"
kit "$dir" nostudy --slurm --nodes 2 --ppn 2 --time 10 && fail "a study that nobody knows is taken"
kit "$dir" study.yaml --slurm --nodes 2 --ppn 2 --time 10 --platform nowhere-like && fail "a platform that nobody knows is taken"
sed 's/batch_per_rank/bath/' study.yaml >wrong.yaml
kit "$dir" wrong.yaml --slurm --nodes 2 --ppn 2 --time 10 && fail "a study with a mistake is taken"
[ ! -e "$dir" ] || fail "a kit that was refused is left: $(find "$dir")"
mkdir full && : >full/other
kit full study.yaml --slurm --nodes 2 --ppn 2 --time 10 && fail "a folder with other content is taken"
contains err 'other content, such as other' || fail "other content: $(cat err)"
refused 'is no kit' "$CONVOY" study --collect full
refused 'is no kit' "$CONVOY" study --measure full --nodes 1
refused 'needs --nodes' "$CONVOY" study --measure full

# ---- a kit, and all of its jobs ----
kit "$dir" study.yaml --slurm --nodes 3 --ppn 2 --time 10 --account physics --platform ethernet-1g || fail "no kit: $(cat err)"
kit "$dir" study.yaml --slurm --nodes 2 --ppn 2 --time 10 && fail "a kit is replaced"
contains err 'is a kit already' || fail "a kit that is there: $(cat err)"
grep -q 'ranks: \[1, 2, 4, 6, 3\]' "$dir/studies/study.yaml" && grep -q 'ranks: \[1, 2, 3, 4, 6\], ranks_per_node' "$dir/studies/study.yaml" && grep -q 'batch: 64,' "$dir/studies/study.yaml" || fail "numbers of the kit: $(cat "$dir/studies/study.yaml")"
[ "$(cd "$dir/jobs" && echo *)" = 'launch-1 launch-2 launch-3 nodes-1.sh nodes-2.sh nodes-3.sh predict.sh' ] || fail "jobs: $(ls "$dir/jobs")"
grep -qxF '#SBATCH --nodes=3' "$dir/jobs/nodes-3.sh" && grep -qxF '#SBATCH --account=physics' "$dir/jobs/nodes-3.sh" || fail "the head: $(cat "$dir/jobs/nodes-3.sh")"
grep -q 'jobs/nodes-2.sh` | 2 | up to 4 measurements, about 3 min' "$dir/README.md" || fail "times of the README: $(cat "$dir/README.md")"
[ "$(awk 'length > 120' "$dir/README.md" "$dir/submit.sh" "$dir"/jobs/*.sh)" = '' ] || fail "long lines: $(awk 'length > 120' "$dir/README.md" "$dir/submit.sh" "$dir"/jobs/*.sh)"
for scheduler in pbs lsf flux sge; do
    kit $scheduler study.yaml --$scheduler --nodes 3 --ppn 2 --time 30 --pe mpi --threads 4 || fail "$scheduler: $(cat err)"
    sh -n $scheduler/submit.sh && bash -n $scheduler/jobs/nodes-3.sh && sh -n $scheduler/jobs/launch-3 || fail "$scheduler: no scripts of the shell"
done
# How each scheduler says the number of a job, and is told to wait for one.
printf '#!/bin/sh\necho "qsub $*" >>"$CALLS"\necho "$(wc -l <"$CALLS").server"\n' >bin/qsub
printf '#!/bin/sh\necho "bsub $* <$(sed -n "s/^exec convoy.*--nodes //p")" >>"$CALLS"\necho "Job <$(wc -l <"$CALLS")> is submitted to queue <normal>."\n' >bin/bsub
printf '#!/bin/sh\necho "flux $*" >>"$CALLS"\necho "f$(wc -l <"$CALLS")"\n' >bin/flux
chmod +x bin/qsub bin/bsub bin/flux
# calls_of SCHEDULER: the first two, on one line.
calls_of() { : >calls && sh "$1/submit.sh" >log 2>&1 && sed -n '1,2p' calls | tr '\n' ';'; }
[ "$(calls_of pbs)" = 'qsub jobs/predict.sh;qsub -W depend=afterany:1.server jobs/nodes-1.sh;' ] || fail "PBS: $(cat calls log)"
[ "$(calls_of sge)" = 'qsub -terse jobs/predict.sh;qsub -terse -hold_jid 1.server jobs/nodes-1.sh;' ] || fail "SGE: $(cat calls log)"
[ "$(calls_of lsf)" = 'bsub  <2;bsub -w ended(1) <1;' ] || fail "LSF: $(cat calls log)"
[ "$(calls_of flux)" = 'flux batch jobs/predict.sh;flux batch --dependency=afterany:f1 jobs/nodes-1.sh;' ] || fail "Flux: $(cat calls log)"
rm calls
bash "$dir/jobs/nodes-1.sh" 2>err && fail "a job runs without a batch system"
refused 'has no job of 7 nodes: its jobs have [1, 2, 3]' "$CONVOY" study --measure "$dir" --nodes 7

echo 6 >stop_at          # 6 ranks, 3 nodes: the job is stopped
sh "$dir/submit.sh" >log 2>err || fail "submit: $(cat log err)"
[ "$(cat calls)" = 'sbatch --parsable jobs/predict.sh
sbatch --parsable --dependency=afterany:1 jobs/nodes-1.sh
sbatch --parsable --dependency=afterany:2 jobs/nodes-2.sh
sbatch --parsable --dependency=afterany:3 jobs/nodes-3.sh' ] || fail "calls: $(cat calls)"
tail -qn 1 "$dir"/job-*.out | tr '\n' ' ' | grep -q 'code 0 code 0 code 0 code 75' || fail "the jobs: $(cat "$dir"/job-*.out)"
[ -e "$dir/jobs/nodes-2.done" ] && [ ! -e "$dir/jobs/nodes-3.done" ] || fail "what is done: $(ls "$dir/jobs")"
grep -q 'the predictions\|seal: [0-9a-f]\{64\}$' "$dir/job-1.out" || fail "no seal is shown: $(cat "$dir/job-1.out")"
grep -q ': 10 predictions, 0 failed$' "$dir/predictions.sha256" || fail "the seal: $(cat "$dir/predictions.sha256")"
! command -v sha256sum >/dev/null || (cd "$dir" && sha256sum --quiet -c predictions.sha256) || fail "sha256sum does not accept the seal"
grep -q 'ranks=4 ranks_per_node=1 framework=guess.*"node_ranks": 1' "$dir/results/study/results-predictions.jsonl" || fail "predictions: $(cat "$dir/results/study/results-predictions.jsonl")"
grep -q 'ranks=2 ranks_per_node=1 framework=peer.*"per_node": "1"' "$dir/results/study/results-nodes-2.jsonl" || fail "ranks of a node: $(cat "$dir/results/study/results-nodes-2.jsonl")"
grep -h predicted "$dir"/results/study/results-nodes-*.jsonl | grep -q '"predicted": true' && fail "predictions among measurements"
cp -R "$dir" 'came back'
"$CONVOY" study --collect "$dir" >log 2>err || fail "collect: $(cat err)"
contains log 'study on 3 nodes: stopped in time, 0 results, 3 left' || fail "what is missing: $(cat log)"
contains "$dir/report.html" 'stopped in time, 3 left' && contains "$dir/report.html" 'submit.sh' || fail "the page does not say how to go on"

# ---- the next submission makes what is left ----
rm stop_at
sh "$dir/submit.sh" >log 2>err || fail "again: $(cat log err)"
[ "$(sed -n '5,$p' calls)" = 'sbatch --parsable jobs/nodes-3.sh' ] || fail "again: $(cat calls)"
[ "$(cat "$dir"/results/study/results-nodes-*.jsonl | sed 's/, "experiment".*//' | sort | uniq -d)" = '' ] || fail "measured twice"
sh "$dir/submit.sh" >log && contains log 'all jobs are complete' || fail "nothing is left, but: $(cat log)"
"$CONVOY" study --collect "$dir" >log 2>err || fail "collect: $(cat err)"
contains log '3 of 3 parts are complete, with 11 results' && contains log '6 predictions with a measurement: the median error is 10.0 %' || fail "all: $(cat log)"
contains log 'those that were sealed' && fail "the seal is doubted: $(cat log)"
for text in 'Predicted and measured' '+10.0 %' 'ranks=6' 'three is too many' '<svg' 'found this seal'; do
    contains "$dir/report.html" "$text" || fail "report.html lacks: $text"
done
tar -tzf "$dir-results.tar.gz" >list || fail "no archive: $(ls 'the kit')"
for name in report.html predictions.sha256 results/study/results-nodes-3.jsonl results/study/results.csv job-2.out; do
    grep -qxF "first/$name" list || fail "the archive lacks $name: $(cat list)"
done

# What failed is made again by --retry alone, and only in the jobs that had failures.
[ "$(cat "$dir/jobs/nodes-1.done" "$dir/jobs/nodes-2.done")" = '0 failed
1 failed' ] || fail "failures: $(cat "$dir"/jobs/*.done)"
cp -R "$dir" again && sed 's/three is too many/still/' count.sh >again/frameworks/count.sh
sh again/submit.sh --retry >log || fail "--retry: $(cat log)"
grep -v nodes-[23] log | grep -q . && fail "--retry submits what had no failures: $(cat log)"
[ "$(grep -c still again/results/study/results-nodes-2.jsonl)" = 1 ] && [ "$(cat again/jobs/nodes-2.done)" = '1 failed' ] || fail "--retry: $(cat again/results/study/results-nodes-2.jsonl)"
[ "$(ls again/jobs/*.retry 2>/dev/null)" = '' ] || fail "--retry is left for the next job"

# ---- what has changed, is cut off, or comes from elsewhere ----
cd 'came back' || exit 1
sed 's/"images_per_s": 22,/"images_per_s": 20,/' results/study/results-predictions.jsonl >x && mv x results/study/results-predictions.jsonl
sed '$s/"convoy": "[^"]*"/"convoy": "0.0.1"/' results/study/results-nodes-1.jsonl >x && mv x results/study/results-nodes-1.jsonl
printf '{"key": "speed ra' >>results/study/results-nodes-1.jsonl
sed '$s/.....$//' results/study/results-nodes-2.jsonl >x && mv x results/study/results-nodes-2.jsonl
rm journal/nodes-3.jsonl
"$CONVOY" study --collect . --out ../part.tgz >../log 2>../err || fail "a part: $(cat ../err)"
contains ../log 'study on 2 nodes: came back in part, 3 results of 4' || fail "a part: $(cat ../log)"
contains ../log 'study on 3 nodes: not begun' || fail "a part: $(cat ../log)"
contains ../log 'those that were sealed' || fail "a prediction was changed, and nobody says so: $(cat ../log)"
contains report.html 'Changed since the seal was made: results/study/results-predictions.jsonl' || fail "the page does not name what has changed"
grep -q 'convoy 0.0.1.*, another version than that of the kit' report.html || fail "the page does not name the other version"
refused 'would lie in the folder' "$CONVOY" study --collect . --out ./inside.tgz
printf '#!/bin/sh\necho part >"$4"\necho "tar: $4: Wrote only 4096 of 10240 bytes: No space left on device" >&2\nexit 2\n' >../bin/tar
chmod +x ../bin/tar
refused 'No space left on device' "$CONVOY" study --collect . --out ../part.tgz
rm ../bin/tar
tar -tzf ../part.tgz >/dev/null || fail "the archive from before is gone"
ls .. | grep -q aside && fail "half an archive is left: $(ls ..)"
sed '1s/}$/} more}/' results/study/results-nodes-1.jsonl >x && mv x results/study/results-nodes-1.jsonl
"$CONVOY" study --collect . --out ../part.tgz >../log 2>../err || fail "a damaged line: $(cat ../err)"
grep -q 'study cannot be shown: .*results-nodes-1.jsonl, line 1:.*; remove this line' report.html || fail "the page does not name the damaged line"
mv report.html page && mkdir report.html
"$CONVOY" study --collect . --out ../part.tgz >../log 2>../err && fail "no page can be written, and nobody says so"
contains ../log 'there is no page: ' && tar -tzf ../part.tgz >/dev/null || fail "no archive without a page: $(cat ../log ../err)"
rmdir report.html
sed 's/^kit: 1/kit: 9/' kit.yaml >x && mv x kit.yaml
refused 'format 9' "$CONVOY" study --collect .
cd ..

# ---- measurements without predictions ----
kit bare study.yaml --slurm --nodes 1 --ppn 2 --time 10 || fail "bare: $(cat err)"
refused 'has no platform.yaml' "$CONVOY" study --predict bare
echo $(($(wc -l <calls) + 1)) >refuse
sh bare/submit.sh >log 2>err && fail "sbatch refuses a job, and nobody says so"
contains err 'does not take jobs/predict.sh' && contains log 'nodes-1: job ' || fail "the other job: $(cat log err)"
grep -q ': no predictions, because there is no platform$' bare/predictions.sha256 || fail "no predictions: $(cat bare/predictions.sha256)"
"$CONVOY" study --collect bare >log 2>err && contains bare/report.html 'No case has both' || fail "bare: $(cat log err)"
exit $failed
