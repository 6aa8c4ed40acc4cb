#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: asan
# study_peers.sh: each framework of a study has an interpreter of its own; CONVOY_PYTHON is that of all others. A wrong
# path, a package that is missing, an interpreter that is killed, and a command that prints no result are each named.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
mkdir adapters
for name in one two; do # these stand for interpreters: the first word of the script is theirs
    printf '#!/bin/sh\n[ "$1" != -c ] || { echo "made by %s"; exit; }\necho "{\\"images_per_s\\": 7, \\"interpreter\\": \\"%s\\"}"\n' $name $name >python-$name
    chmod +x python-$name
    cat >adapters/$name.yaml <<Y
python: CONVOY_PYTHON_$(echo $name | tr onetw ONETW)
command: ["{python}", run]
version: ["{python}", -c, "print()"]
install: pip install $name
Y
done
sed 's/^python:.*//' adapters/one.yaml >adapters/three.yaml
# describe NAME SCRIPT: a framework whose command is a script of the shell
describe() {
    echo "$2" >$1.sh
    printf 'command: [sh, %s.sh]\nversion: [echo, 1]\n' $1 >adapters/$1.yaml
}
describe killed 'kill -9 $$'
describe text 'echo warm up; echo speed 7'
describe complains 'echo "it ran in dry mode" >&2'
describe broken 'echo "{\"images_per_s\": 7]}"'
describe empty "echo '{}'"
describe raises "echo 'RuntimeError: no network such' >&2; exit 1"
describe late 'sleep 60'
printf 'command: [true]\nversion: [sh, -c, "exit 4"]\n' >adapters/silent.yaml
printf 'command: [true]\npython: /usr/bin/python3\nversion: [true]\n' >adapters/path.yaml
cat >study.yaml <<'Y'
title: Peers
experiments:
  speed: {framework: [one, two, three, killed, text, complains, broken, empty, raises, silent], repeats: 1}
  long: {framework: late, repeats: 1, limit: 1}
Y
study() { timeout 60 "$CONVOY" study study.yaml --frameworks-folder adapters "$@" >log 2>err || fail "study $*: code $?: $(cat log err)"; }
says() { contains log "$1" || fail "$2: $(cat log)"; }

export CONVOY_PYTHON_ONE="$work/python-one" CONVOY_PYTHON="$work/python-two"
study --out all
says 'one: made by one' "the framework's own interpreter"
says 'two: made by two' 'the interpreter of all others'
says 'three: made by two' 'a description without python'
grep -q '"framework": "one".*"interpreter": "one"' all/results.jsonl || fail "measured with another interpreter: $(cat all/results.jsonl)"
grep -q '"framework": "two".*"interpreter": "two"' all/results.jsonl || fail "measured with another interpreter: $(cat all/results.jsonl)"
says 'framework=killed: failed: signal 9 (Killed' 'a command that is killed'
says 'framework=text: failed: it printed no JSON object' 'a command that prints no JSON object'
says 'framework=complains: failed: it printed no JSON object; it wrote to stderr: it ran in dry mode' 'what it wrote to stderr'
says 'framework=broken: failed: what it printed last is no JSON object: {"images_per_s": 7]}' 'a broken JSON object'
says 'framework=empty: its JSON object has no number images_per_s, so its cell stays empty' 'a result without images_per_s'
says 'framework=raises: failed: exit code 1: RuntimeError: no network such' 'an exception of Python'
says 'framework=late: failed: it was ended after 1 s, the limit of its experiment' 'a command that does not end'
says 'silent is left out, because it is not here: the command for its version ends with code 4 and prints nothing' 'a version that fails'

# Interpreters that are not there, or lack the package: the variable and the line that installs the framework are named.
CONVOY_PYTHON_ONE=$work/no-python
printf '#!/bin/sh\necho "Traceback" >&2\necho "ModuleNotFoundError: No module named two" >&2\nexit 1\n' >bare
chmod +x bare
CONVOY_PYTHON=$work/bare
study --out missing --only framework=one --only framework=two
says "one is left out, because it is not here: $work/no-python: No such file or directory (CONVOY_PYTHON_ONE names the interpreter $work/no-python); to install it: pip install one" 'a wrong path'
says "two is left out, because it is not here: ModuleNotFoundError: No module named two (CONVOY_PYTHON names the interpreter $work/bare); to install it: pip install two" 'a package that is missing'
says 'done: 2 measurements: 0 now, 0 before, 0 failed, 2 left out' 'the end'
printf 'title: T\nexperiments: {e: {framework: path}}\n' >path.yaml
"$CONVOY" study path.yaml --frameworks-folder adapters >log 2>&1 && fail 'a path is taken for the name of a variable'
says "python is '/usr/bin/python3', expected the name of a variable of the environment" 'a path'

# The descriptions of Python's frameworks name a variable each, and say how it is set.
for file in $(grep -l '{python}' "$CONVOY_SOURCE"/frameworks/*.yaml); do
    name=$(sed -n 's/^python: //p' "$file")
    [ "$name" != CONVOY_PYTHON ] || continue # needs nothing but Python itself
    [ -n "$name" ] && grep -q "^install: .*set $name=" "$file" || fail "$file: no python, or install does not set it"
    contains "$CONVOY_SOURCE/docs/reference/command.md" "\`$name\`" || fail "command.md lacks $name"
done
exit $failed
