#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# seconds: 80
# save_faults.sh: in a run of two ranks with four saves, one file operation fails (no space, quota, I/O error), writes
# less, or is interrupted. Short writes and interruptions do no harm. After a fault the training goes on to its end with
# a warning that names path and cause, and no earlier checkpoint is lost. If the last save failed, the run ends with
# code 1 and can be resumed. A fault before the first step ends the run there.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
last=step-00000008
sed -i 's/samples: 64/samples: 40/;s/epochs: 2/epochs: 4/' job.yaml                   # two steps an epoch: saves at 2, 4, 6 and 8

log_io=$work/ops.log
with_io "$disk/counted" 0 0 none 2 disk/counted || { fail "the run that is left alone fails: $(cat log)"; exit 1; }
log_io=
all=$(awk '{ n = $1 } END { print n }' ops.log)
[ "$all" -gt 300 ] || fail "only $all operations in four saves: $(cat ops.log)"

# hit: reads from the log what the shim did. Returns 1 if it did nothing, because this fault cannot happen to that
# operation.
hit() {
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^shim_io: operation //p' log)
    [ $# -gt 2 ] || return 1
    op=$2 path=${3#"$work/"}
    path=${path%.aside-[0-9]*}
}

# complains WORD CAUSE: a line of the log has the word, the path or its folder, and the cause.
complains() {
    grep -F "$1" log | grep -F "$2" | grep -qF -e "$path" -e "${path%/*}"
}

sets() {
    find "$1/checkpoints" -maxdepth 1 -name 'step-????????' 2>/dev/null | wc -l
}

# ended: whether the run has come to its end. If only a line of the metrics was lost, that has a warning of its own.
ended() {
    grep -q '"kind": *"epoch".*"epoch": *4' disk/run/metrics.jsonl || case $path in */metrics.jsonl) complains warning "$cause" ;; *) false ;; esac
}

# A fault of these operations does no harm and is not reported: the lock on the run's folder, the removal of old files,
# a folder that was only read.
harmless() {
    case $op-$path in
    opendir-disk/run | unlink-* | close-disk/run/lock | close-disk | close-disk/run | close-*/checkpoints | close-*.aside) true ;;
    *) false ;;
    esac
}

# after CODE FAULT: what must hold of disk/run.
after() {
    case $2 in
    ENOSPC) cause='No space left on device' ;;
    EDQUOT) cause='Disk quota exceeded' ;;
    EIO) cause='Input/output error' ;;
    *) cause= ;;
    esac
    if [ -z "$cause" ]; then
        [ "$1" = 0 ] || { fail "it ends with code $1"; return 1; }
        contains log warning && { fail "it warns"; return 1; }
        sound disk/run && same_weights disk/run disk/counted $last
        return
    fi
    if [ "$1" = 0 ]; then
        complains warning "$cause" || harmless || { fail "no warning names $path and \"$cause\""; return 1; }
        ended || { fail "the training does not go on"; return 1; }
        [ "$(sets disk/run)" -ge 2 ] || { fail "an earlier checkpoint is lost: $(ls disk/run/checkpoints)"; return 1; }
        sound disk/run && same_weights disk/run disk/counted $last
        return
    fi
    [ "$1" = 1 ] || { fail "it ends with code $1"; return 1; }
    complains error "$cause" || { fail "no error names $path and \"$cause\""; return 1; }
    [ -e disk/run/checkpoints ] || { ! grep -q '"kind"' disk/run/metrics.jsonl 2>/dev/null; return; }      # nothing was begun
    ended || { fail "the training does not go on"; return 1; }
    [ "$(sets disk/run)" -ge 2 ] || { fail "an earlier checkpoint is lost: $(ls disk/run/checkpoints)"; return 1; }
    sound disk/run || return 1
    [ "$found" = 6 ] || [ "$found" = 8 ] || { fail "the newest set is of step $found"; return 1; }
    train 2 disk/run --resume || { fail "with room again it does not resume"; return 1; }
    same_weights disk/run disk/counted $last
}

sample 10 30 $((5 * all))
good=0 tried=0
for number in $(choose "$wanted" $((5 * all))); do
    at=$(((number - 1) / 5 + 1))
    case $((number % 5)) in 0) fault=ENOSPC ;; 1) fault=EDQUOT ;; 2) fault=EIO ;; 3) fault=EINTR ;; *) fault=short ;; esac
    rm -rf disk/run
    with_io "$disk/run" 0 $at $fault 2 disk/run
    code=$?
    hit || continue
    tried=$((tried + 1))
    if after $code $fault; then
        good=$((good + 1))
    else
        fail "^ $fault at operation $at: $op $path, code $code: $(cat log)"
    fi
done
echo "count: save_faults: $good of $tried faults in the $all file operations of a run lose no checkpoint ($wanted tried, the others cannot happen there)"
[ $tried -gt 0 ] || fail "no fault happened"
exit $failed
