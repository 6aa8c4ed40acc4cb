#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# level: 2
# seconds: 200
# rows: release
# planted_faults.sh: the tests on the emulated GPU find faults that are planted one by one: a barrier, a mark, a wait or a
# copy that is left out of a kernel or of the library. The changed file alone is compiled, and linked before the library
# of the build, whose own copy is then not used.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_WISDOM=off
[ -f "$CONVOY_BUILD/build.ninja" ] && command -v ninja >/dev/null || { echo "the build was not made by ninja"; exit 77; }
[ "$CONVOY_SANITIZE" != ON ] || { echo "with sanitizers the library is shared"; exit 77; }
planted=0 found=0

# change FILE N TEXT NEW: writes the file to "changed", with NEW in place of TEXT in the Nth line that has TEXT.
change() {
    awk -v n="$2" -v text="$3" -v new="$4" '{
        at = index($0, text)
        if (at && ++seen == n) { $0 = substr($0, 1, at - 1) new substr($0, at + length(text)); done = 1 }
        print
    } END { exit !done }' "$1" >changed
}

# compile SOURCE OBJECT FILE [FLAGS]: compiles FILE with the flags of SOURCE.
compile() {
    source=$1 object=$2 file=$3 flags=${4:-}
    command=$(cd "$CONVOY_BUILD" && ninja -t compdb | awk -v file="\"$source\"" '
        /"command":/ { command = $0 } /"file":/ && index($0, file) { sub(/^[^:]*: "/, "", command); sub(/",$/, "", command); print command; exit }')
    command=$(echo "$command" | sed -e 's/^[^ ]*ccache //' -e 's/\\"/"/g' -e 's/ -o .*//' -e 's/ -MD.*//')
    (cd "$CONVOY_BUILD" && eval "${command%% *} $flags ${command#* } -w -Wno-error -o '$object' -c '$file'") >log 2>&1 ||
        { fail "$planted: the changed $source does not compile:"; head -n 5 log; return 1; }
}

# run_with OBJECT FOLDER RANKS PROGRAM [ARGUMENT...]: links tests_FOLDER with the object, and runs one of its programs.
run_with() {
    object=$1 folder=$2 ranks=$3 program=$4
    shift 4
    link=$(cd "$CONVOY_BUILD" && ninja -t commands "tests/tests_$folder" | tail -n 1 | sed -e 's/^: && //' -e 's/ && .*//' -e "s# -o tests/tests_$folder# '$object' -o '$work/$program'#")
    (cd "$CONVOY_BUILD" && eval "$link") >log 2>&1 || { fail "$planted: it does not link:"; head -n 5 log; return; }
    launch=
    [ "$ranks" = 1 ] || launch="$MPIEXEC_N $ranks"
    if timeout 120 $launch "$work/$program" "$@" >log 2>&1; then
        fail "NOT FOUND: $planted: $what"
    else
        found=$((found + 1))
        echo "found: $planted: $what: $(grep -a -m 1 'FAILED\|emulated device:\|expected' log | cut -c 1-150)"
    fi
    rm -f "$work/$program"
}

# kernel FILE N TEXT OPERATOR...: a fault in src/kernel/gpu/FILE.c, which samples of the operators must show.
kernel() {
    path=src/kernel/gpu/$1.c name=${1##*/} n=$2 text=$3
    shift 3
    planted=$((planted + 1)) what="$name: no $text ($n)"
    change "$CONVOY_SOURCE/$path" "$n" "$text" "" || { fail "$planted: there is no $text ($n) in $path"; return; }
    mkdir -p sources && mv changed "sources/$name.c"
    plant_kernel "$name" "" "$@"
}
plant_kernel() {
    name=$1 flags=$2
    shift 2
    sh "$CONVOY_SOURCE/tools/make_kernels.sh" emulated "$work/modules.c" "$work/wrapped" "$work/sources/$name.c"
    compile "$CONVOY_BUILD/gen/emulated/${name}_f32.c" "$work/kernel.o" "$work/wrapped/${name}_f32.c" "$flags" || return
    run_with "$work/kernel.o" op 1 test_op_emulated "$@"
}

# language N FILE OPERATOR...: leaves out the Nth barrier within device.h's macros, for the kernels of one file.
language() {
    n=$1 path=src/kernel/gpu/$2.c name=${2##*/}
    shift 2
    planted=$((planted + 1)) what="device.h: no barrier ($n), for $name"
    change "$CONVOY_SOURCE/src/backend/gpu/device.h" "$n" "  BARRIER();  " "  (void)0;    " || { fail "$planted: device.h has no barrier $n"; return; }
    mkdir -p sources language/backend/gpu && mv changed language/backend/gpu/device.h
    cp "$CONVOY_SOURCE/$path" "sources/$name.c"
    plant_kernel "$name" "-I'$work/language'" "$@"
}

# library FILE N TEXT NEW RANKS PROGRAM [ARGUMENT...]: a fault in src/FILE.c, which a program of tests/backend must show.
library() {
    path=src/$1.c n=$2 text=$3 new=$4 ranks=$5 program=$6
    planted=$((planted + 1)) what="$1: no $text ($n)"
    change "$CONVOY_SOURCE/$path" "$n" "$text" "$new" || { fail "$planted: there is no $text ($n) in $path"; return; }
    mkdir -p sources && mv changed "sources/library.c"
    compile "$CONVOY_SOURCE/$path" "$work/library.o" "$work/sources/library.c" || return
    shift 6
    run_with "$work/library.o" backend "$ranks" "$program" "$@"
}

# Barriers of BLOCK_SUM, COLUMN_SUM, COLUMN_SUMS and BLOCK_MAX. The first one of the last three is for sums that follow each other in the
# same memory and are used by all threads, which no kernel has now.
for n in 1 2 3; do language $n norm/gpu_layer_norm layer_norm; done
for n in 5 6; do language $n norm/gpu_batch_norm batch_norm; done
for n in 8 9; do language $n norm/gpu_batch_norm batch_norm; done
for n in 11 12; do language $n loss/gpu_softmax softmax; done

for n in 1 2; do kernel conv/gpu_matmul $n "BARRIER();" matmul; done
for n in 1 2 3 4; do kernel conv/gpu_product $n "BARRIER();" fc; done
kernel norm/gpu_lrn 1 "BARRIER();" lrn lrn_within
for n in 1 2; do kernel pool/gpu_global_pool $n "BARRIER();" global_avg_pool global_max_pool; done
for n in 1 2 3; do kernel tensor/gpu_embedding $n "BARRIER();" embedding; done
for n in 1 2; do kernel tensor/gpu_sum $n "BARRIER();" affine; done

# Waits, marks and copies of the library.
library backend/gpu/gpu 1 "CVY_TRY(space->backend->mark(gpu, CVY_LANE_COMPUTE, gpu->before));" "" 1 test_backend_lanes
library backend/gpu/gpu 1 "return space->backend->await(gpu, CVY_LANE_COPY, gpu->before);" "return CVY_OK;" 1 test_backend_lanes
for n in 1 2; do
    library backend/gpu/gpu $n "CVY_TRY(space->backend->finish(gpu, CVY_LANE_COPY));" "" 1 test_backend_lanes
done
library plan/plan_run 1 "CVY_TRY(cvy_space_sync(s->space));" "" 1 test_backend_emulated
library plan/plan_run 1 "CVY_TRY(cvy_space_copy(s->space, CVY_LANE_COMPUTE, src_copy[i], src[i], span_bytes(&s->reference.src[i])));" "" 1 test_backend_emulated
library plan/plan_run 1 "CVY_TRY(cvy_space_copy(s->space, CVY_LANE_COMPUTE, dst[i], dst_copy[i], span_bytes(&s->reference.dst[i])));" ";" 1 test_backend_emulated
library plan/plan_run 1 "return cvy_space_zero(f->space, CVY_LANE_COMPUTE, dst[0], f->bytes);" "return CVY_OK;" 1 test_backend_emulated
library backend/gpu/gpu_finite 1 "return cvy_mark_put(&f->space, CVY_LANE_COMPUTE, f->copied);" "return CVY_OK;" 1 test_backend_finite
library backend/gpu/gpu_finite 1 "CVY_TRY(cvy_mark_reached(&f->space, f->copied, 1, &reached));" "" 1 test_backend_finite
library plan/plan_address 1 "CVY_TRY(cvy_mark_await(space, CVY_LANE_COMPUTE, feeds->sent));" "" 1 test_backend_hold
library plan/plan_address 1 "return cvy_mark_put(plan->opts.space, CVY_LANE_COPY, feeds->sent);" "return CVY_OK;" 1 test_backend_hold
library program/program_execute 1 "CVY_TRY(cvy_plan_await_feeds(plan));" "" 1 test_backend_hold
library program/program_guard 1 "CVY_TRY(cvy_gpu_finite_start(s->plan->finite));" "" 1 test_backend_hold
library backend/backend_stage 1 "return cvy_mark_put(stage->space, CVY_LANE_COMPUTE, stage->made);" "return CVY_OK;" 2 test_backend_ranks
library backend/backend_stage 1 "CVY_TRY(cvy_mark_await(stage->space, CVY_LANE_COMM, stage->made));" "" 2 test_backend_ranks

# Marks between the lanes COMPUTE and COMM, and the group of messages, on the fake libraries.
if [ -e "$CONVOY_BUILD/tests/fake_nccl/libnccl.so.2" ]; then
    export LD_LIBRARY_PATH="$CONVOY_BUILD/tests/fake_cuda:$CONVOY_BUILD/tests/fake_nccl:${LD_LIBRARY_PATH-}" CVY_EMULATED="seed=5 devices=2" TMPDIR="$work"
    exchange=comm/nccl/comm_nccl_exchange
    library $exchange 1 "CVY_TRY(cvy_mark_put(&n->space, CVY_LANE_COMPUTE, x->made));" "" 2 test_backend_nccl sums
    library $exchange 1 "CVY_TRY(cvy_mark_await(&n->space, CVY_LANE_COMM, x->made));" "" 2 test_backend_nccl sums
    library $exchange 1 "return cvy_mark_put(&n->space, CVY_LANE_COMM, x->there);" "return CVY_OK;" 2 test_backend_nccl sums
    library $exchange 1 "return cvy_mark_await(&x->nccl->space, CVY_LANE_COMPUTE, x->there);" "return CVY_OK;" 2 test_backend_nccl sums
    library $exchange 1 "CVY_NCCL(n, ncclGroupStart, );" "" 2 test_backend_nccl sums
    library $exchange 1 "CVY_TRY(copy(&x->to, s->from, x->narrow, s->count));" "" 2 test_backend_nccl sums
fi

echo "$found of $planted planted faults are found"
[ $planted -ge 30 ] || fail "only $planted faults were planted"
exit $failed
