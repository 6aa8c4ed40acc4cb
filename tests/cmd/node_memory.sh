#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# node_memory.sh: ranks of a node that sum in shared memory and update the weights in parts train exactly as ranks that
# send messages. The same holds for simulated nodes, resumed runs, bf16, Adam, and a smaller last batch. If the update
# cannot be shared (clipping by the norm), it is not.
. "$CONVOY_SOURCE/tests/shell.inc"

cat >job.yaml <<'END'
model:
  layers:
    - conv: {channels: 12, kernel: 3, pad: 1}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - fc: {channels: 70}
    - relu
    - fc: {channels: 5}
data: {train: {format: synthetic, samples: 90, shape: [3, 8, 8], classes: 5}}
train: {batch: 16, epochs: 2, precise: true, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}}
comm: {bucket: 4096}
log: {every: 1}
END
# losses NAME RANKS OPTIONS...: prints the losses of all steps, to the last digit
losses() {
    name=$1 ranks=$2
    shift 2
    $MPIEXEC_N "$ranks" "$CONVOY" train job.yaml --threads 1 --out "$name" "$@" >"$name.log" 2>&1 || fail "$name fails: $(cat "$name.log")"
    grep '"kind": "step"' "$name/metrics.jsonl" | sed 's/.*"loss": \([0-9.e-]*\).*/\1/'
}
same() { # same NAME OPTIONS...: two ranks, by shared memory and by messages
    name=$1
    shift
    by_memory=$(losses "$name.memory" 2 "$@")
    by_message=$(losses "$name.message" 2 "$@" --set comm.node_memory=false --set comm.algorithm=doubling)
    [ -n "$by_memory" ] && [ "$by_memory" = "$by_message" ] || fail "$name: other losses by memory than by messages: $by_memory; $by_message"
    for file in weights.safetensors state.safetensors; do
        ours=$(find "$name.memory" -name "$file" | sort | tail -n 1)
        [ -z "$ours" ] || same_tensors "$ours" "$name.message/${ours#*/}" || fail "$name: another $file"
    done
}
same sgd
same adam --set 'train.optimizer={name: adam, lr: 0.01}'
same accumulated --set train.accumulate=2
same clipped --set train.clip_norm=0.5
same threaded --set comm.progress=thread
same bf16 --set train.dtype=bf16

# Three ranks, then nodes of two and one. The order of addition differs, so only the last digits differ.
for nodes in '' 1 2; do
    last=$(CONVOY_NODE_RANKS=$nodes losses "three.$nodes" 3 | tail -n 1)
    one=${one:-$last}
    [ -n "$last" ] && awk -v a="$last" -v b="$one" 'BEGIN { d = a - b; exit !(d < 1e-3 * b && -d < 1e-3 * b) }' || fail "nodes of ${nodes:-all} ranks: loss $last, expected $one"
done

# The run is interrupted and continued.
whole=$(losses whole 2)
losses cut 2 --set train.epochs=1 >/dev/null
rest=$(losses cut 2 --resume | tail -n 6)
[ "$(echo "$whole" | tail -n 6)" = "$rest" ] || fail "a resumed run: $rest; expected $(echo "$whole" | tail -n 6)"

# What was measured about reductions between nodes is kept, to the last digit, so that a resumed run sums in the same
# way. On other ranks it is measured again.
sums() { sed -n '/"sums"/,/}/p' tried/plan.json; }
CONVOY_NODE_RANKS=1 losses tried 3 --set comm.bucket=auto --set train.epochs=1 >/dev/null
kept=$(sums)
CONVOY_NODE_RANKS=1 losses tried 3 --set comm.bucket=auto --resume >/dev/null
[ -n "$kept" ] && [ "$kept" = "$(sums)" ] || fail "another way to sum after a resume: $(sums); expected $kept"
case $kept in *'"algorithms": "all 3: '*) ;; *) fail "no trials in the plan: $kept" ;; esac
# A plan file of an earlier version calls the algorithms `ways`. With other algorithms in it, these are used.
sed -e 's/"algorithms": "all 3: /"ways": "all 3: /' -e '/"ways": /s/doubling\|halving\|ring/library/g' tried/plan.json >earlier.json
CONVOY_NODE_RANKS=1 losses earlier 3 --set comm.bucket=auto --set train.epochs=1 --plan earlier.json >/dev/null
[ "$(grep '"ways"' earlier.json | sed 's/ways/algorithms/')" = "$(grep '"algorithms"' earlier/plan.json)" ] || fail "algorithms of an earlier plan: $(grep '"algorithms"' earlier/plan.json); expected $(grep '"ways"' earlier.json)"
CONVOY_NODE_RANKS=1 losses tried 2 --set comm.bucket=auto --set train.epochs=3 --resume >/dev/null
case $(sums) in *'"algorithms": "all 2: '*) ;; *) fail "trials of another number of ranks: $(sums)" ;; esac
# A kernel without memory files: the ranks send messages, train the same, and say so once.
if [ "$CONVOY_SANITIZE" = OFF ]; then
    echo '#include <errno.h>
int memfd_create(const char *name, unsigned flags) { return (void)name, (void)flags, errno = ENOSYS, -1; }' >old.c
    "$CC" -shared -fPIC -o old.so old.c || fail "the stand-in for an old kernel does not compile"
    old=$(LD_PRELOAD=$PWD/old.so losses old 2 --set comm.algorithm=doubling)
    message=$(losses message 2 --set comm.node_memory=false --set comm.algorithm=doubling)
    [ -n "$old" ] && [ "$old" = "$message" ] || fail "other losses without memory files: $old; expected $message"
    [ "$(grep -c 'warning: ranks of a node reduce by messages.*a memory file cannot be made.*3[.]17' old.log)" = 1 ] || fail "no single warning: $(cat old.log)"
    ! grep -q 'ranks of a node reduce by messages' message.log || fail "messages were asked for, and still a warning: $(cat message.log)"
fi
exit $failed
