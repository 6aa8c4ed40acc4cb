#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lane: clock
# context.sh: the package convoy for Python, with the interpreter alone: contexts of one rank and of all ranks that
# mpiexec started, a broadcast, a fork, and the text of a fault; a fault on one rank ends all; a training is one of all ranks, and of
# one in an interactive shell below a launcher; the locale of the interpreter changes no file; a library of another version is named.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library is not part of the interpreter"; exit 77; }
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
export CONVOY_LIBRARY="$CONVOY_BUILD/libconvoy.so" PYTHONPATH="$CONVOY_SOURCE/python" PYTHONDONTWRITEBYTECODE=1
cat >ranks.py <<'EOF'
import ctypes, os, sys, convoy
alone, all = convoy.Context(threads=1), convoy.world()
assert (alone.rank, alone.nranks, alone.threads, alone.device) == (0, 1, 1, "host")
assert convoy.Context(device="auto").device in ("host", *convoy.devices())
for device, why in {"gpu": "there is no device", "host:1": "host has no number", "hots": 'did you mean "host"?'}.items():
    try:
        convoy.Context(device=device)
        raise SystemExit(f"device {device} was accepted")
    except convoy.Error as fault:
        assert fault.status == -3 and why in str(fault), str(fault)
assert convoy.world() is all and 0 <= all.rank < all.nranks
numbers = (ctypes.c_int * 3)(*[all.rank * 10 + k for k in range(3)])
all.broadcast(ctypes.addressof(numbers), ctypes.sizeof(numbers), root=all.nranks - 1)
child = os.fork()
if child == 0:  # it knows its rank, is refused, and ends like a program without touching its parent's MPI
    assert all.rank >= 0 and all.nranks > 0
    try:
        all.broadcast(ctypes.addressof(numbers), 4)
    except convoy.Error as fault:
        sys.exit(0 if f"forked from process {os.getppid()}" in str(fault) else str(fault))
    sys.exit("a fork takes part in a broadcast")
assert os.waitpid(child, 0)[1] == 0
assert list(numbers) == [(all.nranks - 1) * 10 + k for k in range(3)], list(numbers)
try:
    all.broadcast(ctypes.addressof(numbers), 4, root=99)
    raise SystemExit("root 99 was accepted")
except convoy.Error as fault:
    assert fault.status == -1 and "99" in str(fault), str(fault)
alone.close()
sys.stdout.write(f"rank {all.rank} of {all.nranks}\n")  # at once: the lines of ranks may mix
EOF
for n in 1 2 3; do
    $MPIEXEC_N $n python3 ranks.py >log 2>&1 || fail "$n ranks: $(tail -5 log)"
    [ "$(sort log | tail -1)" = "rank $((n - 1)) of $n" ] || fail "$n ranks: $(cat log)"
done
python3 ranks.py >log 2>&1 || fail "without mpiexec: $(tail -5 log)"

# What ends one rank ends the job; without that the others would wait for ever.
cat >fault.py <<'EOF'
import ctypes, sys, convoy
all, how = convoy.world(), sys.argv[1]
if all.rank == 1:
    if how == "caught":
        try:
            sys.exit(3)
        except SystemExit as fault:
            assert fault.code == 3
    elif how == "raise":
        raise ValueError("planned")
    else:
        sys.exit(int(how) if how.isdigit() else how)
number = ctypes.c_int(all.rank)
all.broadcast(ctypes.addressof(number), 4, root=1)
assert number.value == 1
EOF
for how in raise planned 3; do
    timeout 60 $MPIEXEC_N 2 python3 fault.py $how >log 2>&1
    code=$?
    [ $code != 0 ] && [ $code != 124 ] || fail "a rank that ends by $how: code $code, $(cat log)"
    [ $how = 3 ] || grep -q planned log || fail "a rank that ends by $how says nothing: $(cat log)"
done
cat >watchdog.py <<'EOF'
import ctypes, sys, time, convoy
all = convoy.world(threads=1, watchdog=0.3, watchdog_ends=True)
while all.rank == 1:  # it never comes
    time.sleep(1)
all.broadcast(ctypes.addressof(ctypes.c_int()), 4, root=1)
EOF
timeout 60 $MPIEXEC_N 2 python3 watchdog.py >log 2>&1
code=$?
[ $code != 0 ] && [ $code != 124 ] || fail "a rank that does not come: code $code, $(cat log)"
grep -q "rank 0 on .* waits for .* s in a broadcast of cvy_context_broadcast().*: rank 1 on .* does not come" log || fail "no rank is named: $(cat log)"
timeout 60 $MPIEXEC_N 2 python3 fault.py caught >log 2>&1 || fail "sys.exit() that is caught ends the job: $(tail -5 log)"

# A training without a context is one of all ranks of the launcher.
cat >job.yaml <<'EOF'
model: {name: lenet}
data: {train: {format: synthetic, shape: [1, 28, 28], classes: 3, samples: 32}}
train: {batch: 16, epochs: 1}
plan: {wisdom: off}
EOF
cat >train.py <<'EOF'
import sys, convoy
run = convoy.train("job.yaml", out="run", progress=False)
assert run.steps == 2
data = {"format": "synthetic", "shape": [1, 28, 28], "classes": 3, "samples": 32}
sys.stdout.write(f"samples {run.test(data).get('samples')}\n")
EOF
$MPIEXEC_N 2 python3 train.py >log 2>&1 || fail "two ranks do not train: $(tail -5 log)"
[ "$(grep -c 'samples 32' log)" = 1 ] && [ "$(grep -c 'samples None' log)" = 1 ] || fail "two ranks have tested alone: $(cat log)"

# The variables of a launcher count only for its tasks; once MPI has started, its size counts.
unset OMPI_COMM_WORLD_SIZE PMI_SIZE
printf '#!/bin/sh\n"$@"\nexit $?\n' >mpiexec
chmod +x mpiexec
cat >launched.py <<'EOF'
import sys, convoy._launch
sys.stdout.write(f"{convoy._launch.is_launched()}\n")
EOF
cat >parent.py <<'EOF'
import subprocess, sys
if sys.argv[1] == "mpi":
    import convoy
subprocess.run([sys.executable, "launched.py"])
EOF
# launched True|False COMMAND...
launched() {
    expected=$1
    shift
    OMPI_COMM_WORLD_SIZE=4 SLURM_STEP_NUM_TASKS=4 "$@" >log 2>&1
    grep -qx "$expected" log || fail "expected $expected of $*: $(cat log)"
    [ $expected = True ] || grep -q 'OMPI_COMM_WORLD_SIZE=4 is in the environment, but .* has started this process: it works alone' log || fail "it is not said why $*: $(cat log)"
}
launched True ./mpiexec python3 launched.py # without /proc all variables count
[ ! -e /proc/self/stat ] || {
    launched True ./mpiexec sh -c 'timeout 60 python3 launched.py; exit $?'
    launched True ./mpiexec python3 parent.py none
    launched False ./mpiexec python3 parent.py mpi
    if command -v bash >/dev/null; then
        launched True ./mpiexec bash -c 'set -m; python3 launched.py; exit $?'
        printf 'set -m\npython3 launched.py\nexit $?\n' >typed
        launched False ./mpiexec bash --norc -o posix <typed
        printf '#!/bin/sh\npython3 launched.py\nexit $?\n' >slurm_script && chmod +x slurm_script
        launched False ./mpiexec ./slurm_script
        rm -rf run
        printf 'set -m\npython3 train.py\nexit $?\n' >typed
        # Open MPI would end a process that it takes for a task of srun.
        PMI_SIZE=4 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_JOBID=1 SLURM_NODELIST=x ./mpiexec bash <typed >log 2>&1 || fail "an interactive shell trains not: $(tail -5 log)"
        contains log 'samples 32' && contains log 'the interactive shell bash' || fail "an interactive shell: $(cat log)"
    fi
}
# So does world(), also in the shell of one task.
export SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOBID=1 SLURM_NODELIST=x
printf 'set -m\npython3 -c "import convoy; print(\\"ranks\\", convoy.world().nranks)"\nexit $?\n' >typed
for tasks in 1 4; do
    command -v bash >/dev/null || break
    SLURM_STEP_NUM_TASKS=$tasks ./mpiexec bash <typed >log 2>&1
    contains log 'ranks 1' || [ ! -e /proc/self/stat ] || fail "world() in a shell of $tasks tasks: $(tail -5 log)"
done
unset SLURM_PROCID SLURM_STEP_ID SLURM_JOBID SLURM_NODELIST
cat >initialized.py <<'EOF'
import sys, convoy
convoy.world(threads=1)
sys.stdout.write(f"of {convoy._context.of_job().nranks}\n")
EOF
$MPIEXEC_N 2 sh -c 'unset OMPI_COMM_WORLD_SIZE; python3 initialized.py' >log 2>&1
[ "$(grep -cx 'of 2' log)" = 2 ] || fail "MPI's size does not count: $(cat log)"
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then
    core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
    OMPI_COMM_WORLD_LOCAL_SIZE=1 OMPI_COMM_WORLD_RANK=0 taskset -c "$core" python3 -c 'import convoy._mpi; convoy._mpi.warn_of_few_cores()' >log 2>&1
    grep -q "binds this rank to 1 of the $(nproc) cores.*--bind-to none" log || fail "a rank on one core is not warned of: $(cat log)"
fi

# The locale of the interpreter changes no number that is read or written, and stays.
mkdir -p locale
localedef -i de_DE -f UTF-8 locale/de_DE.UTF-8 >/dev/null 2>&1
export LOCPATH="$PWD/locale"
cat >comma.py <<'EOF'
import locale, sys, convoy
out, name = sys.argv[1:]
try:
    locale.setlocale(locale.LC_ALL, name)
except locale.Error:
    sys.exit(77)
job = {"model": {"layers": [{"fc": {"channels": 8}}, {"leaky_relu": {"slope": 0.125}}, {"dropout": {"p": 0.25}}, {"fc": {"channels": 3}}]},
       "data": {"train": {"format": "synthetic", "shape": [4], "classes": 3, "samples": 32}, "val": "25.5%"},
       "train": {"batch": 4, "epochs": 2, "optimizer": {"name": "sgd", "lr": 0.125},
                 "schedule": {"name": "step", "every": "0.5 epochs", "factor": 0.5}}}
run = convoy.train(job, out=out, progress=False, context=convoy.Context(threads=1))
assert locale.localeconv()["decimal_point"] == ("." if name == "C" else ",")
EOF
python3 comma.py point C >log 2>&1 || fail "a training in C: $(tail -5 log)"
python3 comma.py comma de_DE.UTF-8 >log 2>&1
code=$?
if [ $code = 77 ]; then
    echo "there is no locale with a decimal comma"
elif [ $code != 0 ] || ! cmp point/job.resolved.yaml comma/job.resolved.yaml || ! cmp point/checkpoints/*12/weights.safetensors comma/checkpoints/*12/weights.safetensors; then
    fail "a decimal comma: code $code, $(tail -5 log)"
fi
unset LOCPATH

# numpy is not needed to import the package, and is named when it is; what is there can be listed.
mkdir -p without/numpy && echo 'raise ModuleNotFoundError("no numpy", name="numpy")' >without/numpy/__init__.py
PYTHONPATH="without:$PYTHONPATH" python3 -c 'import convoy; assert "Network" in dir(convoy); convoy.Network' >log 2>&1
grep -q "^ImportError: convoy.Network needs numpy" log || fail "without numpy: $(tail -1 log)"

# A library of another version, or without a function, is named.
cp -r "$CONVOY_SOURCE/python" other
awk -v to=python -v folder="$CONVOY_SOURCE/include" -f "$CONVOY_SOURCE/tools/make_bindings.awk" >bindings || fail "make_bindings.awk"
sed 's/^CVY_VERSION_MINOR = .*/CVY_VERSION_MINOR = 99/' bindings >other/convoy/_bindings.py
PYTHONPATH=other python3 -c 'import convoy' >log 2>&1 && fail "a library of another version was loaded"
grep -q "ImportError: this package is for libconvoy [0-9]*.99.[0-9]*, but $CONVOY_LIBRARY is [0-9.]*\. Install" log || fail "another version: $(tail -1 log)"
sed 's/^FUNCTIONS = {/&"cvy_nothing": (None, []),/' bindings >other/convoy/_bindings.py
PYTHONPATH=other python3 -c 'import convoy' >log 2>&1 && fail "a library without a function was loaded"
grep -q "ImportError: this package is for libconvoy.*and lacks cvy_nothing" log || fail "a function that is not there: $(tail -1 log)"
CONVOY_LIBRARY=/nothing/libconvoy.so python3 -c 'import convoy' >log 2>&1 && fail "a library that does not exist was loaded"
grep -q "libconvoy was not found: /nothing/libconvoy.so.*Set CONVOY_LIBRARY" log || fail "wrong text: $(tail -1 log)"
exit $failed
