#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# seconds: 20
# device_plans.sh: a GPU has kernels for all operators of every network that convoy knows by name, in f32 and bf16, and
# for the updates of every optimiser: no call is staged.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_WISDOM=off

# none_staged NAME [OPTION...]
none_staged() {
    planned=$1
    shift
    "$CONVOY_EMULATED" plan "$planned" --device emulated --set train.batch=2 "$@" >plan 2>&1 || { fail "$planned $* has no plan: $(tail -n 2 plan)"; return; }
    grep -q '^0 of [1-9][0-9]* calls of kernels are staged' plan || fail "$planned $*: $(grep staged plan)"
}

"$CONVOY_EMULATED" models | awk 'NF == 0 { exit } /^[a-z]/ { print $1 }' >models
count=0
while read -r name; do
    [ "$name" != resnet-N ] || name=resnet-20
    for dtype in f32 bf16; do
        none_staged "$name" --set train.dtype=$dtype
    done
    count=$((count + 1))
done <models
[ $count -ge 20 ] || fail "only $count networks were planned"

for name in sgd adam adamw rmsprop adagrad adadelta lars lamb; do
    for clip in 0 1; do
        none_staged lenet --set "train.optimizer={name: $name, lr: 0.01}" --set train.clip_norm=$clip
    done
done

exit $failed
