#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lane: clock
# signal_table.sh: each signal of signal(7) does to a training what the table of the reference says, which is that of the
# command; --on-signal takes each name that kill(1) takes, and says which signals have no action; the limits on CPU time
# and on the size of files, and a closed stdout, do not end a training by a signal.
. "$CONVOY_SOURCE/tests/shell.inc"
page=$CONVOY_SOURCE/docs/reference/command.md

cat >job.yaml <<END
model: {layers: [{fc: {channels: 4}}]}
data: {train: {format: synthetic, samples: 64, shape: [4], classes: 4}, threads: 1, cache: decoded}
train: {batch: 16, steps: 100000000, optimizer: {name: sgd, lr: 0.0001}}
checkpoint: {every: 1 h}
log: {every: 10}
END

# begin FOLDER [OPTION...]: starts a training. trains FOLDER: returns when it trains.
begin() {
    folder=$1
    shift
    ( [ -z "$cpu_s" ] || ulimit -t "$cpu_s"; exec "$CONVOY" train job.yaml --threads 1 --progress none --out "$folder" "$@" ) >"log-$folder" 2>&1 &
    pid=$!
    echo $pid >"pid-$folder"
}
trains() {
    pid=$(cat "pid-$1")
    until grep -q '"step"' "$1/metrics.jsonl" 2>/dev/null; do
        kill -0 $pid 2>/dev/null || { fail "the training $1 does not begin: $(cat "log-$1")"; return; }
        sleep 0.02
    done
}
nsaves() { grep -c '"kind": *"save"' "$1/metrics.jsonl"; }
# saves SIGNAL FOLDER: the signal makes the training save, and it goes on.
saves() {
    before=$(nsaves "$2")
    kill -"$1" $pid
    for _ in $(seq 200); do
        [ "$(nsaves "$2")" -gt "$before" ] && break
        sleep 0.02
    done
    [ "$(nsaves "$2")" -gt "$before" ] || fail "signal $1 has not saved"
}
# ends CODE FOLDER: the training has ended with this code.
ends() {
    wait "$(cat "pid-$2")"
    code=$?
    [ $code = "$1" ] || fail "$2: exit code $code, expected $1: $(tail -n 3 "log-$2")"
}

# ---- the limit of CPU time, with the hard limit at the same place; it ends while the rest of the test runs ----
cpu_s=3
begin cpu
cpu_s=

# ---- each row of the table is on the page ----
"$CONVOY" --print-tables | grep '^signal' >table
[ "$(wc -l <table)" -ge 29 ] || fail "the command's table of signals is short: $(cat table)"
tab=$(printf '\t')
while IFS=$tab read -r _ name action means; do
    [ "$action" = system ] || means="$action: $means"
    grep -qF "| $name | $means |" "$page" || fail "command.md does not say: | $name | $means |"
done <table
of() { awk -F'\t' -v action="$1" '$3 == action { print $2 }' table; }

# ---- stop and leave: saved, with code 75; others end the process at once ----
ending="$(of stop) $(of leave)"
fatal='16 27' # STKFLT, PROF
for name in $ending $fatal; do begin "end-$name"; done
for name in $ending $fatal; do
    trains "end-$name"
    kill -"$name" $pid
done
for name in $ending; do
    ends 75 "end-$name"
    grep -q '^stopped' "end-$name/STATUS" || fail "$name has not saved: $(cat "end-$name/STATUS")"
done
for number in $fatal; do
    ends $((128 + number)) "end-$number" 2>/dev/null
done

# ---- save: saved, and the training goes on; the others that do not end it ----
begin goes-on
trains goes-on
for name in $(of save); do saves "$name" goes-on; done
for name in $(of error) $(of ignore) CHLD CONT URG WINCH TSTP TTIN TTOU STOP; do
    kill -"$name" $pid
    kill -CONT $pid
    sleep 0.02
    kill -0 $pid || fail "$name has ended the training"
done
kill -USR1 $pid
ends 75 goes-on

# ---- --on-signal: names as kill(1) takes them ----
begin chosen --on-signal SIGXCPU=save,pwr=ignore,RTMIN+1=save,10=ignore
trains chosen
for number in 24 35; do saves $number chosen; done
kill -PWR $pid
kill -USR1 $pid
sleep 0.1
kill -0 $pid || fail "PWR or USR1 has ended the training although both are to be ignored"
kill -TERM $pid
ends 75 chosen
for name in KILL SIGSTOP 11 CHLD ALRM; do
    refused "--on-signal $name=stop: SIG" "$CONVOY" train job.yaml --out bad --on-signal $name=stop
done
refused 'it is an error of the call that writes' "$CONVOY" train job.yaml --out bad --on-signal XFSZ=stop
refused 'this system has no such signal' "$CONVOY" sweep job.yaml --out bad --on-signal 99=stop
refused 'the signal was given before' "$CONVOY" train job.yaml --out bad --on-signal USR1=stop,SIGUSR1=save
"$CONVOY" train job.yaml --threads 1 --out ignored --set train.steps=2 --on-signal XFSZ=ignore,PIPE=ignore >out 2>&1 || fail "what happens anyway is refused: $(cat out)"

# ---- what has started the process may have blocked a signal ----
if env --block-signal=USR1 true 2>/dev/null; then
    env --block-signal=USR1 "$CONVOY" train job.yaml --threads 1 --progress none --out blocked >log-blocked 2>&1 &
    echo $! >pid-blocked
    trains blocked
    kill -USR1 $pid
    ends 75 blocked
fi

# ---- a prediction that is ended leaves no part of its file ----
"$CONVOY" predict goes-on --data '{format: synthetic, samples: 100000000, shape: [4], classes: 4}' --out p.csv --threads 1 >log 2>&1 &
pid=$!
until [ -e p.csv.aside-$pid ]; do kill -0 $pid || break; sleep 0.02; done
kill -TERM $pid
wait $pid 2>/dev/null
code=$?
[ $code = 143 ] || fail "TERM to convoy predict: exit code $code, expected 143: $(cat log)"
[ -e p.csv.aside-$pid ] && fail "convoy predict has left a part of its file"

# ---- nohup: a signal that is ignored stays so, unless UCX takes it when it is loaded ----
export UCX_DEBUG_SIGNO=0
( trap '' HUP; begin nohup; trains nohup; kill -HUP $pid; sleep 0.1; [ "$(nsaves nohup)" = 0 ] || fail "HUP saves under nohup"; kill -TERM $pid; ends 75 nohup; exit $failed ) || failed=1

# ---- nobody reads stdout ----
"$CONVOY" train job.yaml --threads 1 --out pipe --set train.steps=300 2>err | head -n 1 >/dev/null
grep -q '^finished step 300' pipe/STATUS || fail "a closed stdout ended the training: $(cat pipe/STATUS err)"
for verb in keys "inspect pipe"; do
    # shellcheck disable=SC2086
    "$CONVOY" $verb 2>err | head -n 1 >/dev/null
    [ -s err ] && fail "convoy $verb | head -n 1 says: $(cat err)"
done

ends 75 cpu
grep -q '3 s of CPU time here (ulimit -t): the run saves and stops after 1 s' log-cpu || fail "the limit is not said: $(cat log-cpu)"
exit $failed
