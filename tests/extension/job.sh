#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# seconds: 30
# level: 2
# job.sh: a job with `libraries` trains, resumes, is tested, predicted, planned, timed and checked like any other, on one
# and two ranks and in a pipeline; libraries that cannot be loaded, that differ between ranks, or that come with weights,
# are refused.
[ "$CONVOY_SANITIZE" = OFF ] || { echo "libraries are not built with the sanitizers"; exit 77; }
. "$CONVOY_SOURCE/tests/cmd/job.inc"

# library FILE.so FLAGS...: builds twist.c.
library() {
    to=$1
    shift
    "$CC" -std=c11 -Wall -Wextra -Wno-unused -shared -fPIC -I "$CONVOY_SOURCE/include" "$@" "$CONVOY_SOURCE/tests/extension/twist.c" \
        -o "$to" || { echo "$to does not compile"; exit 1; }
}

# losses RUN: the losses of its steps, one a line
losses() { grep '"kind": "step"' "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'; }

# same RUN RUN N: the last N losses agree, up to rounding
same() {
    losses "$1" | tail -n "$3" >expected
    losses "$2" | tail -n "$3" | paste - expected | awk -v n="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > 1e-5 * $2) bad = 1 } END { exit bad || NR != n }' ||
        fail "$2: losses $(losses "$2" | tr '\n' ' '), expected those of $1: $(losses "$1" | tr '\n' ' ')"
}

mkdir jobs
library jobs/twist.so
sed 's/^    - relu/    - twist: {name: bend, gain: 2}\n    - relu/' job.yaml >jobs/job.yaml
printf 'libraries: [twist.so]\nlog: {every: 1}\n' >>jobs/job.yaml
data='{format: synthetic, samples: 8, shape: [3, 8, 8], classes: 4}'

# ---- training: the path is relative to the job file; ranks and stages compute what one rank computes ----
"$CONVOY" train jobs/job.yaml --out one --set train.accumulate=4 >log 2>&1 || fail "one rank: $(cat log)"
$MPIEXEC_N 2 "$CONVOY" train jobs/job.yaml --out two --set train.accumulate=4 >log 2>&1 || fail "two ranks: $(cat log)"
same one two 6
$MPIEXEC_N 2 "$CONVOY" train jobs/job.yaml --out pipe --set train.accumulate=4 --set parallel.pipeline=2 >log 2>&1 || fail "two stages: $(cat log)"
same one pipe 6
contains one/job.resolved.yaml "$work/jobs/twist.so" || fail "the resolved job has no absolute path: $(grep -A1 libraries one/job.resolved.yaml)"
"$CONVOY" inspect "$(ls -d one/checkpoints/step-* | tail -n 1)" >log 2>&1 && contains log bend.weight || fail "inspect: $(cat log)"

# gain 1 and a weight that starts at 1 change nothing in the first step
sed 's/gain: 2/gain: 1/' jobs/job.yaml >jobs/unit.yaml
"$CONVOY" train jobs/unit.yaml --out unit >log 2>&1 || fail "gain 1: $(cat log)"
"$CONVOY" train job.yaml --set log.every=1 --out without >log 2>&1 || fail "without: $(cat log)"
[ "$(losses unit | head -n 1)" = "$(losses without | head -n 1)" ] || fail "the first loss is $(losses unit | head -n 1), expected $(losses without | head -n 1)"
[ "$(losses unit | tail -n 1)" != "$(losses without | tail -n 1)" ] || fail "the weight of twist is not trained"

# ---- the layer is a loss by `mean`, beside the loss of the job ----
sed 's/^    - fc: .*/    - fc: {name: out, channels: 4}\n    - twist: {name: each, from: out}\n    - mean: {name: penalty, from: each, loss_weight: 0.1}\n  output: out/' \
    jobs/job.yaml >jobs/mean.yaml
for n in 1 2; do
    $MPIEXEC_N $n "$CONVOY" train jobs/mean.yaml --out mean$n >log 2>&1 || fail "mean on $n ranks: $(cat log)"
done
same mean1 mean2 6
sed '/mean:/d' jobs/mean.yaml >jobs/no_mean.yaml
"$CONVOY" train jobs/no_mean.yaml --out no_mean >log 2>&1 || fail "no mean: $(cat log)"
[ "$(losses mean1 | head -n 1)" != "$(losses no_mean | head -n 1)" ] || fail "the loss mean changes nothing"

# ---- resuming ----
rm -r "one/checkpoints/step-00000006"
echo step-00000004 >one/checkpoints/latest
cp -r one resumed
"$CONVOY" train jobs/job.yaml --out resumed --resume --set train.accumulate=4 >log 2>&1 || fail "resume: $(cat log)"
contains log 'resumed after step 4 of 6' || fail "resume: $(cat log)"
same two resumed 2

# ---- 49 samples in batches of 16: in the last step of an epoch one of two ranks has no sample ----
$MPIEXEC_N 2 "$CONVOY" train jobs/job.yaml --out tail --set data.train.samples=49 --set data.val= --set train.epochs=1 >log 2>&1 || fail "a rank without samples: $(cat log)"
contains log 'done after 4 steps' || fail "a rank without samples: $(cat log)"

# ---- other verbs ----
for verb in time bench; do
    "$CONVOY" $verb jobs/job.yaml --steps 2 >log 2>&1 || fail "$verb: $(cat log)"
done
"$CONVOY" bench jobs/job.yaml --check >log 2>&1 || fail "check: $(cat log)"
"$CONVOY" plan jobs/job.yaml >log 2>&1 && grep -q "^bend  *twist .* 16.4 k  reference" log || fail "plan does not show the operator: $(cat log)"
"$CONVOY" train jobs/job.yaml --out exact --set deterministic=true >log 2>&1 || fail "deterministic: $(cat log)"

# ---- weights do not load libraries; a job that is given does ----
hint="the job that came with the weights names $work/jobs/twist.so under \`libraries\`, and libraries are loaded only for a job that you give yourself"
"$CONVOY" export resumed whole.safetensors >log 2>&1 || fail "export: $(cat log)"
for target in resumed whole.safetensors; do
    refused "$hint" "$CONVOY" test $target --data "$data"
    refused "$hint" "$CONVOY" predict $target --data "$data" --out no.csv
    "$CONVOY" test $target --job jobs/job.yaml --data "$data" >log 2>&1 && contains log accuracy || fail "test $target: $(cat log)"
    "$CONVOY" predict $target --job jobs/job.yaml --data "$data" --out rows.csv --force >log 2>&1 && [ "$(wc -l <rows.csv)" = 8 ] || fail "predict $target: $(cat log)"
done
$MPIEXEC_N 2 "$CONVOY" predict resumed --job jobs/job.yaml --data "$data" --out two.csv >log 2>&1 || fail "predict on two ranks: $(cat log)"
cmp -s rows.csv two.csv || fail "two ranks predict something else"
"$CONVOY" ls . >log 2>&1 || fail "ls: $(cat log)"

# ---- bad input ----
refused "layer bend (twist): an operator of a library computes in f32 or f64, not in bf16: train in f32" "$CONVOY" train jobs/job.yaml --out bad --set train.dtype=bf16 --set plan.kernels=reference
refused 'library '"$work"'/jobs/nowhere.so: it cannot be opened' "$CONVOY" train jobs/job.yaml --out bad --set 'libraries=[jobs/nowhere.so]'
refused 'libraries: expected a list of at most 64 paths' "$CONVOY" train jobs/job.yaml --out bad --set 'libraries={a: b}'
refused 'libraries: expected the path of a shared library' "$CONVOY" train jobs/job.yaml --out bad --set 'libraries=[[a]]'
refused "there is no layer type 'twist'" "$CONVOY" train jobs/job.yaml --out bad --set 'libraries=[]'
sed 's/gain: 2/gain: -2/' jobs/job.yaml >jobs/bad.yaml
refused "gain" "$CONVOY" train jobs/bad.yaml --out bad
sed 's/gain: 2/gian: 2/' jobs/job.yaml >jobs/bad.yaml
refused "did you mean" "$CONVOY" train jobs/bad.yaml --out bad
sed 's/gain: 2/refuse: 1/' jobs/job.yaml >jobs/bad.yaml
refused "layer bend: it was asked to (the forward function of twist in" "$CONVOY" train jobs/bad.yaml --out refuses
library jobs/alone.so -DNO_SPLITS
printf 'libraries: [alone.so]\n' | cat jobs/job.yaml - | sed '/twist.so/d' >jobs/alone.yaml
"$CONVOY" train jobs/alone.yaml --out alone >log 2>&1 || fail "no split rule on one rank: $(cat log)"
refused 'a batch cannot be shared by 2 ranks, because twist in' $MPIEXEC_N 2 "$CONVOY" train jobs/alone.yaml --out bad
library jobs/one_way.so -DNO_BACKWARD
sed 's/twist.so/one_way.so/' jobs/job.yaml >jobs/one_way.yaml
refused "twist" "$CONVOY" train jobs/one_way.yaml --out bad

# ---- ranks with different files of one name ----
mkdir a b
cp jobs/twist.so a/mine.so
library b/mine.so -DWRONG_GRADIENT
cat >own.sh <<'END'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-0}}}
folder=a
[ "$rank" = 0 ] || folder=$1
exec "$CONVOY" train jobs/job.yaml --out "$2" --set "libraries=[$folder/mine.so]"
END
cp -r a c
$MPIEXEC_N 2 sh ./own.sh c copies >log 2>&1 || fail "two copies of one file: $(cat log)"
refused 'rank 1 has loaded other libraries than rank 0' $MPIEXEC_N 2 sh ./own.sh b bad
refused 'mine.so: it cannot be opened' $MPIEXEC_N 2 sh ./own.sh nowhere bad

# ---- one rank alone fails within a step: the others do not wait for it ----
cat >late.sh <<'END'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-0}}}
[ "$rank" = 0 ] || export TWIST_REFUSES=1
exec "$CONVOY" train jobs/job.yaml --out late
END
timeout 120 $MPIEXEC_N 2 sh ./late.sh >out 2>err
code=$?
[ $code != 0 ] && [ $code != 124 ] || fail "a rank that fails alone: exit code $code"
contains err "layer bend: it was asked to (the forward function of twist in" || { fail "no reason is given"; head -20 err; }
exit $failed
