#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# terminal.sh: no verb sends control characters of foreign names to the terminal: of classes, columns, folders, layers, jobs,
# studies and metrics, from C0, DEL, C1 and bytes that are not UTF-8. Words of a shell keep them in a form that bash reads.
# Other characters of UTF-8 stay as they are, also in job scripts and JSON.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_SITE=off CONVOY_WISDOM=off
esc=$(printf '\033') evil=$(printf 'x\033]0;owned\007\302\233[31m\177\200')

# clean COMMAND...: what it prints has no control character but tabs and line breaks, and is UTF-8.
clean() {
    "$CONVOY" "$@" >out 2>err
    code=$?
    for stream in out err; do
        LC_ALL=C tr -d '\11\12\40-\176\200-\377' <"$stream" >bad
        [ ! -s bad ] || fail "control characters in $stream of: $*"
        grep -aq "$(printf '\302\233')" "$stream" && fail "U+009B in $stream of: $*"
        iconv -f utf-8 -t utf-8 "$stream" >bad 2>&1 || fail "$stream is not UTF-8: $*"
    done
}

# shows TEXT COMMAND...: it is clean and has the text.
shows() {
    text=$1
    shift
    clean "$@"
    grep -aqF -- "$text" out err || { fail "no \"$text\" in: $*"; head -5 out err; }
}

printf 'a,"b%s",label\n1,1,"%s"\n2,3,b\n3,4,b\n4,1,b\n' "$esc[2J" "$evil" >t.csv
shows 'x?]0;owned' inspect t.csv
clean inspect --stats t.csv
printf 'name: "job\\e[2J"\nmodel: {layers: [{fc: {channels: 2, name: "l\\e[1m"}}, {fc: {channels: 2}}]}\ndata: {train: t.csv}\ntrain: {batch: 2, epochs: 1, metrics: [accuracy]}\n' >job.yaml
clean plan job.yaml
clean time job.yaml --steps 1
sed -i 's/, name: "[^"]*"//; s/^name:.*//' job.yaml
folder="runs/r$evil"
clean train job.yaml --threads 1 --out "$folder"
[ -e "$folder/STATUS" ] || { cat err; fail "the run fails"; }
shows 'runs/rx?]0;owned' ls runs
shows 'x?]0;owned' test "$folder" --data t.csv
clean predict "$folder" --data t.csv --out p.csv
clean inspect "$folder"
clean inspect "$folder" --verify
clean report "$folder"
clean report "nowhere$evil"
clean new t.csv
clean convert t.csv "out$evil.npy"
clean "verb$evil"
clean train "none$evil.yaml"
printf 'title: "T\\e[2J"\nexperiments: {"e\\e]0;x": {model: [lenet], batch: [8], framework: [none]}}\n' >s.yaml
clean study s.yaml --out s
cp job.yaml "jürgen's.yaml"
"$CONVOY" jobscript "jürgen's.yaml" --scheduler slurm --nodes 1 --ppn 1 --time 60 >script 2>err
grep -aqF "job='jürgen'\\''s.yaml'" script || { fail "the job script has another name: $(grep -a job= script)"; head -3 err; }
echo 'scheduler: slurm' >städte.yaml
CONVOY_SITE=städte.yaml "$CONVOY" info --json >out
grep -aqF '"site": "städte.yaml"' out || fail "info --json has another site: $(cat out)"
command -v bash >/dev/null && {
    cp job.yaml "job$esc.yaml"
    "$CONVOY" jobscript "job$esc.yaml" --scheduler slurm --nodes 1 --ppn 1 --time 60 >script 2>err
    grep -qF "job'\$'\\033''.yaml" script || { fail "the job script has no word for the control character"; grep job script | head -3; head -3 err; }
}
exit $failed
