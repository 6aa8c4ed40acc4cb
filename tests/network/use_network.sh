#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# use_network.sh: a program of some twenty lines gives the same bits as predict, from the run, and from the file of
# export in a folder without the run and the data; under valgrind, if it is installed, without a fault or a leak.
[ "${CONVOY_SANITIZE}" = OFF ] || { echo "outside programs are not built with the sanitizers"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"
export OMP_NUM_THREADS=1

"$CC" -std=c11 -Wall -Wextra -Werror -I"$CONVOY_SOURCE/include" "$CONVOY_SOURCE/tests/network/use_network.c" \
    -L"$CONVOY_BUILD" -lconvoy -Wl,-rpath,"$CONVOY_BUILD" -o use_network || exit 1

# npy DTYPE SHAPE: a .npy file of this shape, with a header of 128 bytes, and the bytes of stdin.
npy() {
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    cat
}
seq 1 9999 | head -c $((45 * 192)) | npy '|u1' '45, 3, 8, 8' >x.npy
awk 'BEGIN { for (i = 0; i < 45; i++) printf "%c", 1 + i % 3 }' | npy '|u1' '45,' >label.npy
cat >job.yaml <<END
model: {layers: [{conv: {channels: 4, kernel: 3}}, batch_norm, relu, {fc: {channels: 4}}]}
data: {train: {x: x.npy, label: label.npy, format: npy}, normalize: auto, augment: [mirror]}
train: {batch: 16, epochs: 1, optimizer: {name: sgd, lr: 0.05}}
END
"$CONVOY" train job.yaml --threads 1 --out run >log 2>&1 || fail "train fails: $(cat log)"
"$CONVOY" predict run --threads 1 --data x.npy --out p.npy >log 2>&1 || fail "predict fails: $(cat log)"
tail -c +129 p.npy >expected
[ "$(wc -c <expected)" = $((45 * 4 * 4)) ] || fail "p.npy has $(wc -c <expected) bytes of numbers"
./use_network run 45 <x.npy >got || fail "the program fails on a run"
cmp expected got || fail "other bits from the run"

"$CONVOY" export run model.safetensors >log 2>&1 || fail "export fails: $(cat log)"
mkdir elsewhere && mv model.safetensors x.npy elsewhere
rm -rf run label.npy
(cd elsewhere && ../use_network model.safetensors 45 <x.npy >../got) || fail "the program fails on an exported file"
cmp expected got || fail "other bits from the exported file"

# valgrind does not know AVX-512. Other instructions may give other last digits, so only its findings count.
command -v valgrind >/dev/null || exit $failed
ONEDNN_MAX_CPU_ISA=AVX2 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    --log-file=findings ./use_network elsewhere/model.safetensors 45 <elsewhere/x.npy >got || fail "valgrind: $(cat findings)"
[ "$(wc -c <got)" = "$(wc -c <expected)" ] || fail "no outputs under valgrind"
exit $failed
