#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# seconds: 80
# save_kill.sh: a run is killed before, during and after the file operations of one save, which also deletes an older
# set: each time the newest set is sound, it is that of this save or the one before, and the run resumes to the bits of
# the uninterrupted run. Then the same is done with losses of power, which may keep any part of what was not synced
# (tests/shim/replay.c).
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
last=step-00000008
sed -i 's/samples: 64/samples: 40/;s/epochs: 2/epochs: 4/' job.yaml                   # two steps an epoch: saves at 2, 4, 6 and 8

# ---- a loss of power ----
from=step-00000006 log_io=$work/power.log
with_io "$disk" 0 0 none 1 disk/whole1 || { fail "the run that is left alone fails: $(cat log)"; exit 1; }
[ -e disk/whole1/checkpoints/$last ] || { fail "the run has another end than $last: $(ls disk/whole1/checkpoints)"; exit 1; }
"$shims/replay" whole power.log "$disk" replayed && diff -r disk replayed || fail "the log lacks what the disk has"
sample 500 500 5000
"$shims/replay" check power.log "$disk" replayed whole1 4 6 "$wanted" "$seed" || fail "a loss of power leaves a checkpoint that is not sound"

# What is left is also resumed.
sample 2 4 40
want=$wanted done=0
while [ $done -lt "$want" ]; do
    below 100000
    "$shims/replay" check power.log "$disk" replayed whole1 4 6 1 "$drawn" >out || { fail "$(cat out)"; break; }
    mv replayed "disk/lost-$done"
    train 1 "disk/lost-$done/whole1" --resume || { fail "seed $drawn: after a loss of power it does not resume: $(cat log)"; break; }
    same_weights "disk/lost-$done/whole1" disk/whole1 $last || break
    rm -rf "disk/lost-$done"
    done=$((done + 1))
done
echo "count: save_kill: $done of $want states after a loss of power resume to the same bits"

# ---- a kill ----
log_io=$work/save.log
with_io "$disk/counted/checkpoints" 0 0 none 1 disk/counted || fail "the run that is counted fails: $(cat log)"
log_io=
all=$(awk '/step-00000008/ { print $1 - 1; exit }' save.log)
writes=$(awk -v all="$all" '$1 > 0 && $1 <= all && $2 == "write" { print $1 }' save.log)
faults=$((2 * all + $(echo "$writes" | wc -l)))
[ "$all" -gt 40 ] || fail "only $all operations in a save: $(cat save.log)"

# kill_at FAULT RANKS: the number of the fault tells where and how: before each operation, after each, in the middle of
# each write.
kill_at() {
    if [ "$1" -le "$all" ]; then
        at=$1 how=kill-before
    elif [ "$1" -le $((2 * all)) ]; then
        at=$(($1 - all)) how=kill-after
    else
        at=$(echo "$writes" | sed -n "$(($1 - 2 * all))p") how=kill-amid
    fi
    killed 0 "$at" $how "$2" "disk/whole$2"
}

# killed RANK AT HOW RANKS WHOLE: kills a run there. What it leaves must be sound, and a resumed run must end as WHOLE
# did.
killed() {
    rm -rf disk/killed
    with_io "$disk/killed/checkpoints" "$1" "$2" "$3" "$4" disk/killed && { fail "$3 $2, rank $1 of $4: the job ends well: $(cat log)"; return 1; }
    contains log "shim_io: operation $2 " || { fail "$3 $2, rank $1 of $4: it was not killed there: $(cat log)"; return 1; }
    sound disk/killed || { fail "$3 $2, rank $1 of $4"; return 1; }
    [ "$found" = 4 ] || [ "$found" = 6 ] || { fail "$3 $2, rank $1 of $4: the newest set is of step $found"; return 1; }
    train "$4" disk/killed --resume || { fail "$3 $2, rank $1 of $4: it does not resume: $(cat log)"; return 1; }
    same_weights disk/killed "$5" $last || { fail "$3 $2, rank $1 of $4"; return 1; }
}

train 2 disk/whole2 || fail "the run of two ranks that is left alone fails: $(cat log)"
for ranks in 1 2; do
    if [ $ranks = 1 ]; then sample 5 20 $faults; else sample 2 6 $faults; fi
    want=$wanted good=0
    for fault in $(choose "$want" $faults); do
        kill_at "$fault" $ranks && good=$((good + 1))
    done
    echo "count: save_kill: $good of $want kills in a save of $all operations leave a sound set and resume to the same bits on $ranks ranks"
done

# ---- a kill while two ranks write, each of which is a node ----
sample 0 0 40
[ "$wanted" -gt 0 ] || exit $failed
export CONVOY_NODE_RANKS=1
sed -i 's/- fc: {channels: 4}/- fc: {channels: 260000}\n    - fc: {channels: 4}/' job.yaml                # a set of 144 MB
rm -rf disk/killed disk/counted
train 2 disk/parts || fail "the run with two writers fails: $(cat log)"
[ -e disk/parts/checkpoints/$last/weights-00002-of-00002.safetensors ] || fail "the set has not two parts: $(ls disk/parts/checkpoints/$last)"
set_files='weights-00001-of-00002.safetensors weights-00002-of-00002.safetensors state-00001-of-00002.safetensors state-00002-of-00002.safetensors'
good=0 tried=0
for rank in 0 1; do
    log_io=$work/part.log
    with_io "$disk/counted/checkpoints" $rank 0 none 2 disk/counted || fail "the run that is counted fails: $(cat log)"
    log_io=
    rm -rf disk/counted
    operations=$(awk '/step-00000008/ { print $1 - 1; exit }' part.log)
    for at in $(choose $((wanted / 2)) "$operations"); do
        tried=$((tried + 1))
        killed $rank "$at" kill-before 2 disk/parts && good=$((good + 1))
    done
done
echo "count: save_kill: $good of $tried kills of one of two writers leave a sound set and resume to the same bits"
exit $failed
