#!/bin/sh
# rows: asan minimal
# usage.sh: --help and --version need no MPI; the message for an unknown word names the nearest known one.
set -u
failed=0
fail() { echo "$*"; failed=1; }

# says CODE TEXT ARGUMENT...: convoy ends with this code and its output has this text.
says() {
    code=$1 text=$2
    shift 2
    out=$("$CONVOY" "$@" 2>&1)
    got=$?
    [ "$got" = "$code" ] || fail "convoy $*: exit code $got, expected $code: $out"
    printf '%s\n' "$out" | grep -q -e "$text" || fail "convoy $*: no '$text' in: $out"
}

# With this setting Open MPI cannot start; MPICH ignores it.
export OMPI_MCA_pml=none_of_this_name
says 0 '^convoy [0-9]' --version
says 0 'usage: convoy VERB' --help
printf '%s\n' "$out" | awk 'length($0) > 100 { print; wide = 1 } END { exit wide }' || fail "convoy --help: a line of more than 100 columns"
says 0 'trains what a job file describes' train --help
says 0 '\-\-batch N' bench --help
says 0 'usage: convoy plan' help plan
for verb in train test predict bench time plan convert pack inspect export report models keys info doctor simulate jobscript; do
    says 0 "usage: convoy $verb" "$verb" --help
    printf '%s\n' "$out" | awk 'length($0) > 100 { print; wide = 1 } END { exit wide }' || fail "convoy $verb --help: a line of more than 100 columns"
done
says 0 'hep-cnn' models
says 0 'softmax_cross_entropy' models --layers
says 0 'optimizer' keys
says 0 '^version' info
says 0 '^reads .* csv .* tfrecord' info
says 0 '^{"version": ".*"}$' info --json
unset OMPI_MCA_pml

says 2 "no verb 'trian', did you mean 'train'?" trian
says 2 "no verb 'xyzzyx';" xyzzyx
says 2 'no option --bacth, did you mean --batch?' bench --bacth 3
says 2 "one word too many" plan a.yaml b.yaml
says 2 "\-\-batch is 'many', expected a whole number" bench --batch many
says 2 "\-\-input is '3;4', expected a sample's shape" bench '--input=3;4'
says 2 "\-\-mode is 'both', expected train|forward" bench --mode both
says 2 "\-\-set is 'batch', expected KEY=VALUE" train --set batch
says 2 'needs a value' train --out
says 2 'resume needs --out' train --resume
says 2 'usage: convoy pack' pack
says 2 'SOURCE and --out' predict run
says 1 "no network 'lenett', did you mean 'lenet'?" bench --model lenett
says 1 'no_such_job.yaml' train no_such_job.yaml
says 1 'train.batsh' train --set train.batsh=3
says 1 'no_such_file' inspect no_such_file
exit $failed
