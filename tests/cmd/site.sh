#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# site.sh: the site file: where it is looked for, what it puts into a job script, that the user's file and the command
# line come before it, and that a mistake in it is named with its place. No value brings a command into the script.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
command -v bash >/dev/null || { echo "skipped: there is no bash, in which job scripts run"; exit 77; }
export HOME="$work/home"
unset XDG_CONFIG_HOME
jobscript() { "$CONVOY" jobscript job.yaml "$@"; }
has() { grep -qxF -- "$2" "$1" || fail "no line \"$2\" in $(cat "$1")"; }
# site TEXT: is printed by `convoy info`.
site() { "$CONVOY" info 2>/dev/null | grep -qx "site  *$1" || fail "convoy info does not say site $1: $("$CONVOY" info | tail -1)"; }

# ---- where it is ----
unset CONVOY_SITE
[ -e /etc/convoy/site.yaml ] || site none
mkdir -p prefix/bin prefix/etc/convoy home/.config/convoy xdg/convoy
echo 'queue: beside' >prefix/etc/convoy/site.yaml
echo 'queue: given' >given.yaml
export CONVOY_SITE=given.yaml
site given.yaml
echo 'account: mine' >home/.config/convoy/site.yaml
site "given.yaml and $work/home/.config/convoy/site.yaml"
echo 'account: other' >xdg/convoy/site.yaml
(export XDG_CONFIG_HOME="$work/xdg"; site "given.yaml and $work/xdg/convoy/site.yaml"; exit $failed) || failed=1
CONVOY_SITE=off "$CONVOY" info | grep -qx 'site  *none' || fail "CONVOY_SITE=off does not switch it off"
unset CONVOY_SITE
# A command that is installed in prefix/bin; the shared library is found where the build has it.
if cp "$CONVOY" prefix/bin/convoy 2>/dev/null && prefix/bin/convoy --version >/dev/null 2>&1; then
    prefix/bin/convoy info | grep -q "^site .*/prefix/bin/../etc/convoy/site.yaml and $work/home/.config/convoy/site.yaml" || fail "the file beside the command is not found: $(prefix/bin/convoy info | tail -1)"
else
    echo "the copied command does not find its library: the file beside the command was not tried"
fi

# ---- what it does ----
cat >site.yaml <<'END'
scheduler: pbs
account: abc.1
partition: gpu
modules: [openmpi/4.1, "a b;touch bad1"]
launcher: /opt/mpi/bin/mpiexec.hydra
launcher_options: [-genv, "X=$(touch bad2)"]
header: [-k oed, "#PBS -m n"]
environment: {CONVOY_WISDOM: "a'b`touch bad3`$(touch bad4)", EMPTY: ""}
defaults: {nodes: 2, ppn: 4, threads: 3, time: 90, signal: 60}
END
export CONVOY_SITE="$work/site.yaml"
jobscript >out || fail "no script from the site's values"
for line in '#PBS -A mine' '#PBS -q gpu' '#PBS -l select=2:ncpus=12:mpiprocs=4:ompthreads=3' '#PBS -l walltime=01:30:00' '#PBS -k oed' '#PBS -m n' \
    "module load openmpi/4.1 'a b;touch bad1'" "export EMPTY=''" '    set -- train "$job" --out "$out" --threads 3'; do
    has out "$line"
done
contains out 'timeout --foreground --preserve-status -s USR1 $((CONVOY_JOB_END - 60 - $(date +%s))) /opt/mpi/bin/mpiexec.hydra -n 8 -genv '"'X=\$(touch bad2)' \"\$(command -v convoy)\"" || fail "not the launcher: $(grep timeout out)"
bash -n out || fail "the script is none"
# The part of the script before the run is run with `module` as a command: no name in it is a command.
(sed '/^\[ -n/,$d' out; echo 'echo "$CONVOY_WISDOM" >wisdom') >head
mkdir commands
printf '#!/bin/sh\nfor word; do echo "$word"; done >"%s/loaded"\n' "$work" >commands/module
chmod +x commands/module
PATH="$work/commands:$PATH" bash head || fail "the head of the script does not run"
[ "$(cat loaded)" = "load
openmpi/4.1
a b;touch bad1" ] || fail "the modules are not words: $(cat loaded)"
[ "$(cat wisdom)" = "a'b\`touch bad3\`\$(touch bad4)" ] || fail "the value of a variable is not kept: $(cat wisdom)"
ls | grep -q '^bad' && fail "a value was run as a command: $(ls)"
# Options come before the files, the user's file before the site's.
printf 'partition: own\nlauncher: mpiexec\ndefaults: {nodes: 3}\nenvironment: {EMPTY: full}\n' >home/.config/convoy/site.yaml
jobscript --scheduler slurm --account other --ppn 2 --threads 1 --time 5 --signal 30 >out || fail "no script with options"
for line in '#SBATCH --account=other' '#SBATCH --partition=own' '#SBATCH --nodes=3' '#SBATCH --ntasks-per-node=2' '#SBATCH --time=00:05:00' '#SBATCH --signal=USR1@30' 'export EMPTY=full'; do
    has out "$line"
done
contains out 'export CONVOY_WISDOM=' || fail "the user's environment replaces all of the site's: $(cat out)"
rm -r home/.config

# ---- mistakes ----
# wrong TEXT MESSAGE
wrong() {
    printf '%b' "$1" >site.yaml
    refused "$2" "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5
    grep -q '^#!' out && fail "a refused site has a script: $(cat out)"
}
wrong 'scheduler: pbs\n  acount: x\n' "site.yaml:2:"
wrong 'queue: a\nacount: x\n' 'site.yaml:2:1: site: unknown key "acount"; did you mean "account"?'
wrong 'defaults: {nodez: 2}\n' 'site.yaml:1:12: site defaults: '
wrong 'defaults: {nodes: 0}\n' 'site.yaml:1:19: site defaults: nodes'
wrong 'scheduler: slurmm\n' 'site.yaml:1:12: '
wrong 'account: "x y"\n' 'site.yaml:1:10: site: account is "x y", expected a word'
wrong 'account: "x;rm"\n' 'site.yaml:1:10: site: account'
wrong 'queue: "$(rm)"\n' 'site.yaml:1:8: site: queue'
wrong 'mpi: -x\n' 'site.yaml:1:6: site: mpi'
wrong 'launcher: "mpiexec; rm"\n' 'site.yaml:1:11: site: launcher'
wrong 'launcher: jsrun\n' 'jsrun'
wrong 'launcher: flux\n' 'under flux alone'
wrong 'account: "x\\n#SBATCH --x"\n' 'site: account has a line break'
wrong 'header: ["--a\\nrm -rf /"]\n' 'site.yaml:1:10: site: header'
wrong 'header: "rm -rf"\n' 'site: header'
wrong 'modules: ["a\\nb"]\n' 'site: modules'
wrong 'modules: {a: b}\n' 'site: modules'
wrong 'modules: [[a]]\n' 'expected text'
wrong 'launcher_options: ["a\\rb"]\n' 'site: launcher_options'
wrong 'environment: {A: "a\\nb"}\n' 'A has a line break'
wrong 'environment: {"A;rm": 1}\n' 'site: environment'
wrong 'environment: [a]\n' 'site: environment'
wrong 'queue: a\npartition: b\n' 'two names of one key'
wrong '[a]\n' 'expected keys and values'
wrong 'defaults: {time: "2:30"}\nqueue: \0001\n' 'site.yaml'
printf 'defaults: {time: "2:30", nodes: 1, ppn: 1}\n' >site.yaml
refused "time of the site file is '2:30'" "$CONVOY" jobscript job.yaml --slurm
CONVOY_SITE=nowhere.yaml refused 'nowhere.yaml' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5
printf 'a: [' >site.yaml
"$CONVOY" info >out 2>err || fail "convoy info fails with a damaged site file"
contains out 'with an error' && contains err 'site.yaml:' || fail "convoy info does not name the damaged file: $(cat out err)"
: >site.yaml
jobscript --slurm --nodes 1 --ppn 1 --time 5 >out || fail "an empty site file is refused"

# ---- blocks of the site, and of the user before those ----
mkdir -p jobscripts home/.config/convoy/jobscripts
jobscript --slurm --nodes 1 --ppn 1 --time 5 >before || fail "no script"
printf 'About this file.\n\n@block head\n#SBATCH -J @name@ -N @nodes@\n@# no line\n@if account !queue\n#SBATCH -p all\n@else\n#no\n@end\n@headers@\n\n@block head\n' >jobscripts/slurm.job
jobscript --slurm --nodes 1 --ppn 1 --time 5 >out || fail "no script with a block of the site"
[ "$(sed -n '3,5p' out)" = '#SBATCH -J job -N 1
#SBATCH -p all' ] || fail "not the head of the site: $(head -6 out)"
sed '1,/^#SBATCH/d; /^#/d' before >rest
sed '1,/^#SBATCH/d; /^#/d' out | diff rest - || fail "a block of the site changes others"
jobscript --pbs --nodes 1 --ppn 1 --time 5 >out && has out '#PBS -N job' || fail "a block for Slurm changes scripts of PBS"
: >home/.config/convoy/site.yaml
printf '@block head\n#mine\n' >home/.config/convoy/jobscripts/slurm.job
printf '@block outside\n:\n' >home/.config/convoy/jobscripts/common.job
jobscript --slurm --nodes 1 --ppn 1 --time 5 >out && has out '#mine' && has out ':' || fail "the blocks of the user are not used: $(cat out)"
rm -r home/.config
# broken TEXT MESSAGE: for a block of the site
broken() {
    printf "@block head\n$1" >jobscripts/slurm.job
    refused "$2" "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5
    [ ! -s out ] || fail "a damaged block gives a script: $(cat out)"
}
broken 'a\n#@nothing@\n' "$work/jobscripts/slurm.job: line 3: there is no value or block of the name nothing"
broken '@if nodes\na\n' '@if without @end'
broken '@end\n' 'line 2: @else or @end without @if'
broken '@head@\n' 'too many blocks inside each other: head'
broken '@if Nodes\n@end\n' 'line 2: @if needs names'
broken '@block X\n' 'line 2: @block has no name'
rm jobscripts/slurm.job
mkdir jobscripts/slurm.job
refused 'slurm.job cannot be opened' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5
rmdir jobscripts/slurm.job
: >jobscripts/slurm.job
refused 'slurm.job cannot be read, or is empty' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5
rm -r jobscripts

# ---- values of the command line ----
refused '--account is no word' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --account 'a b'
refused '--queue is no word' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --queue '$(rm)'
refused '--out has a line break' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --out 'a
#SBATCH --x'
refused '--set has a line break' "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --set 'train.seed=1
'
for seeds in 5 5-5 5-1 0-3 1-9999999 1- -3 1-3x a-b 1--3 99999999999999999999-3 ''; do
    refused "--seeds is '$seeds', expected FROM-TO" "$CONVOY" jobscript job.yaml --slurm --nodes 1 --ppn 1 --time 5 --seeds="$seeds"
done
refused '--scheduler is given more than once' "$CONVOY" jobscript job.yaml --slurm --scheduler slurm --nodes 1 --ppn 1 --time 5
refused '--threads is missing' "$CONVOY" jobscript job.yaml --sge --nodes 1 --ppn 1 --time 5 --pe mpi
refused '--pe is missing' "$CONVOY" jobscript job.yaml --sge --nodes 1 --ppn 1 --time 5 --threads 1
refused 'expected at least 120 s with the scheduler lsf' "$CONVOY" jobscript job.yaml --lsf --nodes 1 --ppn 1 --time 1
refused 'expected at most' "$CONVOY" jobscript job.yaml --slurm --nodes 2147483647 --ppn 2147483647 --time 5
exit $failed
