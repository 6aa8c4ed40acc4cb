#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: soak
# seconds: 80
# level: 2
# lane: clock
# random_stops.sh: at random times of a run of two ranks, from its first step on, a rank is killed, or one or all ranks
# get USR1 or TERM, once or twice in a row. After a signal the run ends with code 75, and the step at which it reports
# the stop is saved. In any case it resumes to the bits of the uninterrupted run. A few stops are on four ranks: spatial 2
# and data 2, with batch norm and Adam.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
. "$CONVOY_SOURCE/tests/robust/sweep.inc"
last=step-00000100
sed -i 's/samples: 64/samples: 40/;s/epochs: 2/epochs: 50/;s/every: 2 steps/every: 7 steps/' job.yaml         # two steps an epoch

# now: the time in milliseconds
now() {
    date +%s%3N
}

# until_begun JOB FOLDER: waits until the run is in its first step, or has ended.
until_begun() {
    until [ -s "$2/STATUS" ] || ! kill -0 "$1" 2>/dev/null; do sleep 0.01; done
}

# whole RANKS: the run without a signal.
whole() {
    ranks=$1
    rm -rf disk/whole
    train "$ranks" disk/whole &
    job=$!
    until_begun $job disk/whole
    began=$(now)
    wait $job || { fail "the run without a signal fails: $(cat log)"; exit 1; }
    lasts=$(($(now) - began))                           # this includes the end of MPI: some signals come too late
    [ -e disk/whole/checkpoints/$last ] || { fail "the run did not end with $last: $(ls disk/whole/checkpoints)"; exit 1; }
}
whole 2

# send SIGNAL HOW: sends it to rank 0, to rank 1 or to all, once or twice in a row.
send() {
    case $2 in
    *0) to=$(cat pid-0) ;;
    *1) to=$(cat pid-1) ;;
    *) to=$(cat pid-*) ;;
    esac
    # shellcheck disable=SC2086
    kill "-$1" $to 2>/dev/null
    case $2 in twice-*) sleep 0.0"$drawn"; kill "-$1" $to 2>/dev/null ;; esac
}

# stop_at SIGNAL HOW MILLISECONDS: returns 2 if the run had reached its end before.
stop_at() {
    rm -rf disk/run
    train "$ranks" disk/run &
    job=$!
    until_begun $job disk/run
    sleep "$(awk -v ms="$3" 'BEGIN { printf "%.3f", ms / 1000 }')"
    below 9
    send "$1" "$2"
    epochs=$(grep -c '"kind": *"epoch"' disk/run/metrics.jsonl 2>/dev/null)
    began=$(now)
    wait $job
    code=$?
    took=$(($(now) - began))
    [ $took -le 30000 ] || { fail "the job ends $took ms after the signal, expected at most 30000"; return 1; }
    if [ $code = 0 ]; then
        [ "${epochs:-0}" -gt 40 ] || { fail "the job ends with code 0 although the signal came in epoch $epochs of 50"; return 1; }
        same_weights disk/run disk/whole $last || return 1
        return 2
    fi
    if [ "$1" = KILL ]; then
        [ -e disk/run/checkpoints/latest ] || [ -n "$(find disk/run/checkpoints -name 'step-????????' 2>/dev/null)" ] || return 0       # nothing was saved yet
        sound disk/run || return 1
    else
        [ $code = 75 ] || { fail "the job ends with code $code, expected 75"; return 1; }
        stopped=$(sed -n 's/^stopped step \([0-9]*\) .*/\1/p' disk/run/STATUS)
        sound disk/run || return 1
        [ "$found" = "$stopped" ] || { fail "STATUS says $(cat disk/run/STATUS), the newest set is of step $found"; return 1; }
    fi
    train "$ranks" disk/run --resume || { fail "the run does not resume"; return 1; }
    same_weights disk/run disk/whole $last
}

# sweep WHAT COUNT: makes COUNT stops of a kind.
sweep() {
    good=0 late=0 tried=0
    while [ $tried -lt "$2" ]; do
        tried=$((tried + 1))
        below 4
        [ "$drawn" = 0 ] && ms=0 || { below "$lasts"; ms=$drawn; }
        if [ "$1" = kills ]; then
            below 2
            signal=KILL how=$drawn
        else
            below 2
            [ "$drawn" = 0 ] && signal=USR1 || signal=TERM
            below 6
            # shellcheck disable=SC2086
            how=$(set -- 0 1 all twice-0 twice-1 twice-all; shift $drawn; echo "$1")
        fi
        stop_at $signal "$how" "$ms"
        case $? in
        0) good=$((good + 1)) ;;
        2) good=$((good + 1)) late=$((late + 1)) ;;
        *) fail "the message above is for $signal to $how after $ms ms of $lasts, code $code: $(cat log)" ;;
        esac
    done
    echo "count: random_stops: on $ranks ranks, after $good of $tried $1 at random times the run resumes to the same bits ($late came when it was at its end)"
}

sample 2 5 200
sweep kills "$wanted"
sample 3 7 200
sweep signals "$wanted"

sed -i 's/- relu/- batch_norm\n    - relu/;s/optimizer: .*/optimizer: {name: adam, lr: 0.001}/' job.yaml
echo 'parallel: {spatial: [2]}' >>job.yaml
whole 4
sample 1 3 50
sweep kills "$wanted"
sample 1 3 50
sweep signals "$wanted"
exit $failed
