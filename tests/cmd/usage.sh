#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan minimal
# usage.sh: --help and --version need no MPI; the message for an unknown word names the nearest known one.
set -u
failed=0
fail() { echo "$*"; failed=1; }

# prints CODE TEXT ARGUMENT...: convoy ends with this code and its output has this text.
prints() {
    code=$1 text=$2
    shift 2
    out=$("$CONVOY" "$@" 2>&1)
    got=$?
    [ "$got" = "$code" ] || fail "convoy $*: exit code $got, expected $code: $out"
    printf '%s\n' "$out" | grep -q -e "$text" || fail "convoy $*: no '$text' in: $out"
}

# With this setting Open MPI cannot start; MPICH ignores it.
export OMPI_MCA_pml=none_of_this_name
prints 0 '^convoy [0-9]' --version
prints 0 'usage: convoy VERB' --help
printf '%s\n' "$out" | awk 'length($0) > 100 { print; wide = 1 } END { exit wide }' || fail "convoy --help: a line of more than 100 columns"
prints 0 'trains what a job file describes' train --help
prints 0 '\-\-batch N' bench --help
prints 0 'usage: convoy plan' help plan
for verb in train test predict bench time plan convert pack inspect export report models keys info doctor simulate study jobscript; do
    prints 0 "usage: convoy $verb" "$verb" --help
    printf '%s\n' "$out" | awk 'length($0) > 100 { print; wide = 1 } END { exit wide }' || fail "convoy $verb --help: a line of more than 100 columns"
done
prints 0 'hep-cnn' models
prints 0 'softmax_cross_entropy' models --layers
prints 0 'optimizer' keys
prints 0 '^version' info
prints 0 '^reads .* csv .* tfrecord' info
prints 0 '^{"version": ".*"}$' info --json
unset OMPI_MCA_pml

prints 2 "no verb 'trian', did you mean 'train'?" trian
prints 2 "no verb 'xyzzyx';" xyzzyx
prints 2 'no option --bacth, did you mean --batch?' bench --bacth 3
prints 2 "one word too many" plan a.yaml b.yaml
prints 2 "\-\-batch is 'many', expected a whole number" bench --batch many
prints 2 "\-\-input is '3;4', expected a sample's shape" bench '--input=3;4'
prints 2 "\-\-mode is 'both', expected train|forward" bench --mode both
prints 2 "\-\-set is 'batch', expected KEY=VALUE" train --set batch
prints 2 'needs a value' train --out
prints 2 'resume needs --out' train --resume
prints 2 'usage: convoy pack' pack
prints 2 'and --out FILE.csv' predict run
prints 1 "no network 'lenett', did you mean 'lenet'?" bench --model lenett
prints 1 'no_such_job.yaml' train no_such_job.yaml
prints 1 'train.batsh' train --set train.batsh=3
prints 1 'no_such_file' inspect no_such_file

# /dev/full refuses every byte, as a full disk does: a job or a script that is cut off is a fault.
if [ -w /dev/full ]; then
    for words in keys 'models --as-job lenet' --help '--version'; do
        # shellcheck disable=SC2086
        "$CONVOY" $words >/dev/full 2>err && fail "convoy $words: exit code 0 on a full disk"
        grep -q 'cannot be written in full' err || fail "convoy $words: $(cat err)"
    done
fi
"$CONVOY" keys >&- || fail "a closed output is a fault"
exit $failed
