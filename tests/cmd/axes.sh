#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# axes.sh: bench, time, the trace, metrics.jsonl and the report of a pipeline: the time waited on each axis of the process
# grid, the bubble, the stages of all ranks in one file. Figures are compared with each other, and not with a clock.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
value() { sed -n "s/.*\"$1\": \\([^,}]*\\).*/\\1/p" "$2" | head -n 1; }
true_of() { awk "BEGIN { exit !($1) }" || fail "not true: $1; $2"; }
set -- --set train.accumulate=4 --set parallel.pipeline=2

# ---- bench ----
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model lenet --batch 16 --steps 3 --threads 1 --json "$@" >two 2>err || fail "bench fails: $(cat err)"
# shellcheck disable=SC2086
$MPIEXEC_N 4 "$CONVOY" bench --model lenet --batch 16 --steps 3 --threads 1 --json "$@" >four 2>err || fail "bench on four ranks fails: $(cat err)"
for out in two four; do
    [ "$(value pipeline $out)" = 2 ] && [ "$(value micro_batches $out)" = 4 ] || fail "no pipeline: $(cat $out)"
    true_of "$(value bubble $out) > 0 && $(value bubble $out) < 1" "$(cat $out)"
    true_of "$(value bubble_predicted $out) > 0.199 && $(value bubble_predicted $out) < 1" "$(cat $out)" # 1 / (4 + 1), or more
    true_of "$(value exposed_pipeline_ms $out) > 0 && $(value exposed_pipeline_ms $out) <= 1.0001 * $(value exposed_comm_ms $out)" "$(cat $out)"
    true_of "$(value bytes_wire $out) > 10000" "the messages of the stages are not counted: $(cat $out)"
done
grep -q exposed_data_ms two && fail "stages of one rank have a data axis: $(cat two)"
true_of "$(value exposed_data_ms four) > 0" "$(cat four)"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model lenet --batch 16 --steps 3 --threads 1 "$@" >lines 2>err || fail "bench fails: $(cat err)"
grep -q '^bubble  *0\.[0-9]' lines && grep -q '^bubble_predicted  *0\.' lines && grep -q '^exposed_pipeline_ms  *[0-9]' lines || fail "no lines: $(cat lines)"
# shellcheck disable=SC2086
$MPIEXEC_N 2 "$CONVOY" bench --model lenet --batch 16 --steps 3 --threads 1 --json >flat 2>err || fail "bench without a pipeline fails: $(cat err)"
[ "$(value pipeline flat)" = 1 ] || fail "$(cat flat)"
grep -q 'bubble\|exposed_data_ms\|exposed_pipeline_ms' flat && fail "axes without a pipeline: $(cat flat)"
refused 'the number of ranks must be a multiple' $MPIEXEC_N 3 "$CONVOY" bench --model lenet --batch 16 --steps 1 "$@"
refused 'the number of ranks must be a multiple' "$CONVOY" time lenet --batch 16 --steps 1 "$@"

# ---- time ----
# shellcheck disable=SC2086
$MPIEXEC_N 4 "$CONVOY" time lenet --batch 16 --steps 2 --threads 1 "$@" >table 2>err || fail "time fails: $(cat err)"
grep -q '^stage 1 of 2 (rank 0), from layer conv1: ' table && grep -q '^stage 2 of 2 (rank 2), from layer ' table || fail "no stages: $(cat table)"
[ "$(grep -c '^messages of stages  *receive_wait ' table)" = 2 ] || fail "no messages: $(cat table)"
[ "$(grep -c '^conv1  *conv ' table)" = 1 ] || fail "conv1 is not on one stage: $(cat table)"
# shellcheck disable=SC2086
$MPIEXEC_N 4 "$CONVOY" time lenet --batch 16 --steps 2 --threads 1 --json "$@" >json 2>err || fail "time --json fails: $(cat err)"
[ "$(grep -o '"stage": [12], "rank": [02], "kernels_ms": [0-9]' json | wc -l)" = 2 ] || fail "no stages: $(cat json)"
[ "$(tr -d -c '{}' <json | sed -e ':a' -e 's/{}//' -e 'ta')" = "" ] || fail "braces do not match: $(cat json)"

# ---- the trace of a training, its metrics and its report ----
sed 's|^checkpoint:.*||' job.yaml >pipe.yaml
echo 'log: {every: 1, trace: trace.json}' >>pipe.yaml
# shellcheck disable=SC2086
$MPIEXEC_N 4 "$CONVOY" train pipe.yaml --out run --threads 1 "$@" >log 2>&1 || fail "train fails: $(cat log)"
grep -q '^epoch 2: .*, [0-9]* % of the steps idle (bubble)' log || fail "no bubble in the log: $(cat log)"
for stage in 1 2; do
    for rank in $((2 * stage - 2)) $((2 * stage - 1)); do
        grep -q "\"pid\": $rank, \"args\": {\"name\": \"stage $stage, rank $rank\"}" trace.json || fail "rank $rank is not in stage $stage of the trace"
        grep -q "\"pid\": $rank, \"args\": {\"sort_index\": $rank}" trace.json || fail "no order of rank $rank"
        for micro in 0 1 2 3; do
            for pass in forward backward; do
                [ "$(grep -o "\"name\": \"$pass $micro\", \"cat\": \"$pass\", \"ph\": \"X\", \"ts\": [0-9.e+-]*, \"pid\": $rank, \"tid\": 2" trace.json | wc -l)" = 1 ] ||
                    fail "not one $pass $micro on rank $rank"
            done
        done
    done
done
grep -q '"name": "wait to receive from stage 1: [a-z0-9_.]*, micro-batch 3"' trace.json && grep -q '"name": "start to send to stage 1: ' trace.json || fail "messages are not named"
# Each arrow has a start and an end on another rank, and the end is not before the start.
grep -o '"name": "message", [^}]*}' trace.json | sed 's/.*"ph": "\([sf]\)", "ts": \([^,]*\), "pid": \([0-9]*\),.*"id": \([0-9]*\)}/\1 \2 \3 \4/' >arrows
awk '$1 == "s" { at[$4] = $2; pid[$4] = $3; s++ } $1 == "f" { end[$4] = $2; to[$4] = $3; f++ }
    END { for (i in at) bad += !(i in end) || end[i] < at[i] || pid[i] == to[i]; exit !(s >= 16 && s == f && !bad) }' arrows ||
    fail "arrows: $(cat arrows)"

for stage in 1 2; do
    [ "$(grep -c "\"kind\": \"stage\", .*\"stage\": $stage, \"ranks\": 2, .*\"seconds_exposed_pipeline\": [0-9.e-]*, \"seconds_bubble\": [0-9.e-]*, \"seconds_agreement\": " run/metrics.jsonl)" = 2 ] ||
        fail "not a line of stage $stage for each epoch: $(cat run/metrics.jsonl)"
done
# The axes of a step are parts of its exposed communication, and the bubble is a part of the pipeline's.
grep '"kind": "step"' run/metrics.jsonl | sed 's/.*"seconds_exposed_comm": \([^,]*\),.*"seconds_exposed_data": \([^,]*\), "seconds_exposed_pipeline": \([^,]*\), "seconds_bubble": \([^,]*\),.*/\1 \2 \3 \4/' >steps
awk 'NF != 4 || $2 + $3 > $1 * 1.0001 || $4 > $3 * 1.0001 || $4 <= 0 { bad = 1 } END { exit bad || NR != 6 }' steps || fail "steps: $(cat steps); $(cat run/metrics.jsonl)"
"$CONVOY" report run >log 2>&1 || fail "report fails: $(cat log)"
grep -q 'The stages of the pipeline in epoch 2, ms per step' run/report.html || fail "no table of the stages"
[ "$(sed -n '/<table class="stages">/,/<\/table>/p' run/report.html | grep -c '^<tr><th>[12]</th><td>2</td>')" = 2 ] || fail "not a row for each stage"
grep -q 'waiting for other stages [0-9.]* %' run/report.html || fail "the chart does not know the pipeline"
# Rank 0 decides whether there is a trace: its options of the log may differ from those of others.
timeout 100 $MPIEXEC_N 1 "$CONVOY" train job.yaml --out unequal --threads 1 --set "log.trace=$work/one.json" : -n 1 "$CONVOY" train job.yaml --out unequal --threads 1 >log 2>&1 ||
    fail "a trace that only rank 0 asks for: $(cat log)"
grep -q '"pid": 1' one.json || fail "the trace lacks rank 1"
exit $failed
