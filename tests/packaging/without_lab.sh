#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# level: 2
# without_lab.sh: a command that was configured with CONVOY_WITH_LAB=OFF: it trains, tests and predicts, each verb of the
# laboratory says that it is not in this build, and names the option.
. "$CONVOY_SOURCE/tests/shell.inc"
library=$CONVOY_BUILD/libconvoy.so
[ -e "$library" ] || { echo "there is no libconvoy.so"; exit 77; }
[ "${CONVOY_SANITIZE:-OFF}" = OFF ] || { echo "the library of a build with sanitizers needs their options"; exit 77; }

# The objects of the command alone are compiled: the library is that of the build, which has more than they need.
"$CMAKE" -S "$CONVOY_SOURCE" -B build -DCMAKE_C_COMPILER="$CC" -DMPI_C_COMPILER="$MPICC" -DCONVOY_WITH_LAB=OFF \
    -DCMAKE_BUILD_TYPE=Debug >log 2>&1 || fail "CMake fails: $(tail -n 20 log)"
"$CMAKE" --build build --target convoy_cmd >log 2>&1 || fail "the command is not compiled: $(tail -n 20 log)"
# shellcheck disable=SC2046
$MPICC -o convoy $(find build -path '*convoy_cmd.dir*' -name '*.o') "$library" -lm -Wl,-rpath,"$CONVOY_BUILD" >log 2>&1 ||
    fail "the command needs the laboratory: $(tail -n 20 log)"

"$CONVOY" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' >verbs
./convoy --help >help || fail "no help"
[ "$(wc -l <verbs)" -gt 20 ] || fail "the verbs are not found: $(cat verbs)"
while read -r verb; do
    grep -q "^  $verb " help || fail "the help lacks $verb"
    case $verb in
    train | test | predict | check-op | info) ./convoy "$verb" --help >log 2>&1 || fail "no help of $verb: $(cat log)" ;;
    *)
        ./convoy "$verb" x --some-option >log 2>&1
        [ $? = 1 ] || fail "$verb does not end with 1"
        grep -qF "\`convoy $verb\` is not in this build: it was configured with CONVOY_WITH_LAB=OFF" log || fail "$verb says: $(cat log)"
        ;;
    esac
done <verbs

cat >job.yaml <<'END'
model: {layers: [{fc: {channels: 3}}]}
data:
  train: {format: synthetic, shape: [5], classes: 3, samples: 24}
  test: {format: synthetic, shape: [5], classes: 3, samples: 24, seed: 5}
train: {batch: 8, epochs: 1, optimizer: {name: sgd, lr: 0.1}}
END
./convoy train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"
grep -q 'the run is in run: `convoy test run` scores it' log || fail "the end of the training: $(cat log)"
[ ! -e run/report.html ] || fail "there is a page"
./convoy test run --threads 1 >log 2>&1 || fail "test fails: $(cat log)"
./convoy predict run --data '{format: synthetic, shape: [5], samples: 4}' --out p.csv --threads 1 >log 2>&1 || fail "predict fails: $(cat log)"
for words in "test run run" "train job.yaml --out other --profile p.yaml"; do
    # shellcheck disable=SC2086
    ./convoy $words >log 2>&1 && fail "convoy $words is not refused"
    grep -q 'CONVOY_WITH_LAB=OFF' log || fail "convoy $words says: $(cat log)"
done
# What the build makes besides: manual pages of the verbs that it has, and no completions, which need `convoy keys`.
sh "$CONVOY_SOURCE/tools/make_man.sh" ./convoy "$CONVOY_SOURCE" man >log 2>&1 || fail "no manual pages: $(cat log)"
[ -e man/man1/convoy-train.1 ] && [ ! -e man/man1/convoy-bench.1 ] || fail "manual pages: $(ls man/man1)"
grep -rq make_man.sh build/CMakeFiles build/build.ninja 2>/dev/null || fail "the command for manual pages is not found"
grep -rq make_completion.sh build/CMakeFiles build/build.ninja 2>/dev/null && fail "the build makes completions without their words"
./convoy info | grep -q '^laboratory  *none: built with CONVOY_WITH_LAB=OFF' || fail "info does not say it"
exit $failed
