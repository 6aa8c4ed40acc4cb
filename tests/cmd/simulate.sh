#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# simulate.sh: `convoy simulate`: a small network on simulated machines; the simulation is exact, so times are compared
# with exact values; wrong platforms and rank counts are refused.
[ -e "$CONVOY-sim" ] || { echo "skipped: built without SimGrid"; exit 77; }
command -v smpirun >/dev/null || { echo "skipped: no smpirun"; exit 77; }
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_WISDOM="$work/wisdom.json" TMPDIR="$work"

# 16000 weights in one layer: a bucket of 64 KB, in which the bias and the loss are too.
cat >job.yaml <<END
model: {layers: [{fc: {channels: 16, bias: false}}]}
data: {train: {format: synthetic, samples: 40, shape: [1000], classes: 16}}
train: {batch: 8, steps: 3, optimizer: {name: sgd, lr: 0.1}}
comm: {algorithm: halving, bucket: 1 MiB}
END
cat >slow.yaml <<END
topology: star
nodes: 16
bandwidth: 1e6
latency: 1e-3
add: 1e9
gflop_per_s: 100
rates: {network: 100}
END
simulate() { "$CONVOY" simulate job.yaml --json "$@"; }
value() { sed -n "s/.*\"$1\": \\([^,}]*\\).*/\\1/p" "$2"; }
# near FILE KEY WANTED SHARE
near() {
    awk -v x="$(value "$2" "$1")" -v want="$3" -v by="$4" 'BEGIN { d = x - want; exit !(d * d <= by * by * want * want) }' ||
        fail "$2 is $(value "$2" "$1"), expected $3 within $4: $(cat "$1")"
}

refused() { # MESSAGE ARGUMENTS
    message=$1; shift
    simulate "$@" >out 2>err && fail "accepted: $*"
    grep -q "$message" err || fail "$*: the message does not have '$message': $(cat err)"
}

simulate --platform slow.yaml --ranks 1 >out 2>err && fail "times from nowhere"
grep -q 'was never measured here' err || fail "the message does not say what is missing: $(cat err)"
contains err 'convoy simulate job.yaml --json --platform slow.yaml --ranks 1 --planning measure' || fail "no command that measures: $(cat err)"
simulate --platform slow.yaml --ranks 1 --planning measure >one 2>err || fail "one rank fails: $(cat err)"
near one step_ms 80 0.001       # 8 samples at 100 images/s
near one efficiency 100 0.001
CONVOY_WISDOM=off simulate --platform slow.yaml --ranks 1 --planning measure >unkept 2>err || fail "without a file of times: $(cat err)"
near unkept step_ms 80 0.001
ls -d "$work"/convoy-sim.* 2>/dev/null && fail "a folder is left behind"

# Halving on two ranks: two messages of half of the bytes in each direction, one after the other. A link has the latency
# twice, up and down. 64000 bytes of gradient take 2 x (2 ms + 32 ms), and the loss after it 2 x 2 ms.
simulate --platform slow.yaml --ranks 2 --blocking >two 2>err || fail "two ranks fail: $(cat err)"
near two exposed_comm_ms 72 0.04
simulate --platform slow.yaml --ranks 2 --blocking --bandwidth-factor 2 >fast 2>err || fail "a faster network fails: $(cat err)"
near fast exposed_comm_ms 40 0.06
parts_add_up one
parts_add_up two
near two communication_ms 72 0.04 # all of it, because the simulated ranks are equally fast
awk -v w="$(value imbalance_ms two)" 'BEGIN { exit !(w * w < 1e-12) }' || fail "equal ranks wait for each other: $(cat two)"

# A progress thread takes one core of 11 from the kernels.
sed 's/^nodes/cores: 11\nnodes/' slow.yaml >cores.yaml
simulate --platform cores.yaml --ranks 2 --set comm.progress=thread >thread 2>err || fail "a thread for the sums fails: $(cat err)"
near thread step_ms "$(awk -v x="$(value exposed_comm_ms thread)" 'BEGIN { print 88 + x }')" 0.002
# Turns: the time of a node is that of the kernels of all turns. A turn that is taken in every second step counts half.
cat >turns.yaml <<END
model:
  layers:
  - fc: {name: a, channels: 16, from: x}
  - fc: {name: b, channels: 16, from: x}
  - softmax_cross_entropy: {name: loss_a, from: [a, label]}
  - softmax_cross_entropy: {name: loss_b, from: [b, label]}
  output: a
data: {train: {format: synthetic, samples: 40, shape: [1000], classes: 16}}
train: {batch: 8, steps: 3, optimizer: {name: sgd, lr: 0.1}, turns: [{losses: loss_a, train: a}, {losses: loss_b, train: b, every: 2}]}
END
"$CONVOY" simulate turns.yaml --json --platform slow.yaml --ranks 1 --steps 2 --planning measure >turns 2>err || fail "turns fail: $(cat err)"
near turns efficiency 100 0.001

simulate --platform slow.yaml --ranks 8 >eight 2>err || fail "eight ranks fail: $(cat err)"
simulate --platform slow.yaml --ranks 8 >again 2>err
cmp -s eight again || fail "the same simulation differs: $(diff eight again)"
simulate --platform stampede2-like --ranks 2,8 --noise 1% >tree 2>err || fail "a fat tree fails: $(cat err)"
[ "$(grep -c '"ranks"' tree)" -eq 2 ] || fail "not two rows: $(cat tree)"
simulate --platform cori-like --ranks 8 >fly 2>err || fail "a dragonfly fails: $(cat err)"
for file in "$CONVOY_SOURCE"/platforms/*.yaml; do
    simulate --platform "$(basename "$file" .yaml)" --ranks 2 >known 2>err || fail "$file is not known: $(cat err)"
done

# A table of rates: with the 8 samples of one node it trains 100 images/s, and with the 2 of four nodes 40.
sed 's/^rates.*/rates: {network: {2: 40, 8: 100}}/; s/^bandwidth.*/bandwidth: 1e12/; s/^latency.*/latency: 1e-9/' slow.yaml >table.yaml
simulate --platform table.yaml --global-batch 8 --ranks 1,4 --planning measure >both 2>err || fail "a table of rates: $(cat err)"
head -1 both >one8 && tail -1 both >four2
near one8 step_ms 80 0.001
near four2 step_ms 50 0.01
near four2 efficiency 40 0.01
simulate --platform table.yaml --global-batch 8 --ranks 1,4 --rate 100 >both 2>err || fail "a table and --rate: $(cat err)"
head -1 both >one8 && tail -1 both >four2
near four2 clock_scale "$(value clock_scale one8)" 1e-6 # the same factor for any number of samples

# Spaces in values and in the job's name.
simulate --platform slow.yaml --ranks 2 --set 'update={mode: local, every: 2}' >local 2>err || fail "a value with blanks fails: $(cat err)"
mkdir 'a b' && cp job.yaml 'a b'
"$CONVOY" simulate 'a b/job.yaml' --json --platform slow.yaml --ranks 2 --blocking >blank 2>err || fail "a path with a blank fails: $(cat err)"
cmp -s two blank || fail "another result by another path: $(diff two blank)"

# A pipeline. On a fast network messages take nearly no time, so the bubble is about what is predicted from the
# kernel times, (P - 1) / (M + P - 1) or more; with more micro-batches it is smaller.
cat >pipe.yaml <<END
model: {layers: [{fc: {channels: 1000}}, relu, {fc: {channels: 1000}}, relu, {fc: {channels: 1000}}, relu, {fc: {channels: 1000}}]}
data: {train: {format: synthetic, samples: 400, shape: [1000], classes: 16}}
train: {batch: 16, steps: 3, optimizer: {name: sgd, lr: 0.1}}
END
sed 's/^bandwidth.*/bandwidth: 1e11/; s/^latency.*/latency: 1e-8/' slow.yaml >fast.yaml
pipe() { "$CONVOY" simulate pipe.yaml --json --planning measure "$@"; }
for micro in 2 8; do
    pipe --platform fast.yaml --ranks 2,4 --rate 2000 --set parallel.pipeline=2 --set train.accumulate=$micro >pipe$micro 2>err || fail "a pipeline fails: $(cat err)"
    [ "$(grep -c "\"pipeline\": 2, \"micro_batches\": $micro, " pipe$micro)" = 2 ] || fail "no pipeline: $(cat pipe$micro)"
    for ranks in 2 4; do
        grep "\"ranks\": $ranks," pipe$micro >row
        awk -v got="$(value bubble row)" -v want="$(value bubble_predicted row)" -v m=$micro \
            'BEGIN { exit !(want >= 1 / (m + 1) - 1e-6 && want < 0.7 && got > want - 0.1 && got < want + 0.1) }' ||
            fail "bubble with $micro micro-batches: $(cat row)"
    done
done
awk -v few="$(value bubble pipe2 | head -n 1)" -v many="$(value bubble pipe8 | head -n 1)" 'BEGIN { exit !(many < few) }' ||
    fail "more micro-batches have no smaller bubble: $(cat pipe2 pipe8)"
# A slow network: a message of 4 x 1000 floats takes 1.6 ms.
pipe --platform slow.yaml --bandwidth-factor 10 --latency-factor 0.1 --ranks 2,4 --rate 1e5 --set parallel.pipeline=2 --set train.accumulate=8 >wire 2>err || fail "a pipeline on a slow network fails: $(cat err)"
for ranks in 2 4; do
    grep "\"ranks\": $ranks," wire >row
    awk -v axis="$(value exposed_pipeline_ms row)" -v all="$(value exposed_comm_ms row)" 'BEGIN { exit !(axis > 5 && axis <= all * 1.0001) }' ||
        fail "waits of a pipeline on a slow network: $(cat row)"
done
awk -v axis="$(value exposed_data_ms row)" 'BEGIN { exit !(axis > 1) }' || fail "four ranks do not reduce: $(cat row)"
grep '"ranks": 2,' wire | grep -q '"exposed_data_ms": 0,' || fail "stages of one rank reduce: $(cat wire)"
"$CONVOY" simulate pipe.yaml --platform fast.yaml --rate 2000 --ranks 2 --set parallel.pipeline=2 --set train.accumulate=8 >table 2>err || fail "the table fails: $(cat err)"
grep -q 'grid  *data  *pipeline  *bubble %  *predicted$' table && grep -q ' p2 d1  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$' table || fail "no columns: $(cat table)"

# Layers and samples that ranks share, alone and in a pipeline with a data axis: each axis has exposed time of its own.
# On the slow network a halo of 16 rows of 8 channels and 32 columns takes 17 ms.
cat >grid.yaml <<END
model: {layers: [{conv: {channels: 8, kernel: 3, pad: 1}}, relu, {conv: {channels: 8, kernel: 3, pad: 1}}, relu, {fc: {channels: 16}}]}
data: {train: {format: synthetic, samples: 400, shape: [4, 32, 32], classes: 16}}
train: {batch: 8, steps: 3, optimizer: {name: sgd, lr: 0.1}}
END
grid() { "$CONVOY" simulate grid.yaml --json --planning measure --platform slow.yaml --rate 2000 "$@"; }
# waits FILE AXIS...: exactly these of the axes have exposed time. The agreement of all ranks before the update counts on
# the pipeline's axis, also without stages.
waits() {
    file=$1
    shift
    for axis in data pipeline tensor halo; do
        case " $* pipeline " in *" $axis "*) want=1 ;; *) want=0 ;; esac
        awk -v ms="$(value exposed_${axis}_ms "$file")" -v want=$want 'BEGIN { exit !((ms > 1) == want && ms != "") }' || fail "$file: exposed time of $axis: $(cat "$file")"
    done
}
grid --ranks 2 --set parallel.tensor=2 >tensor 2>err || fail "tensor 2: $(cat err)"
waits tensor tensor
grid --ranks 2 --set parallel.spatial=2 >halo 2>err || fail "spatial 2: $(cat err)"
awk -v ms="$(value exposed_halo_ms halo)" 'BEGIN { exit !(ms > 3 * 17) }' || fail "a halo for each of two convolutions and one back: $(cat halo)"
grid --ranks 8 --batch 4 --set 'parallel={pipeline: 2, spatial: [1, 2]}' --set train.accumulate=4 >hybrid 2>err || fail "a hybrid grid: $(cat err)"
waits hybrid data pipeline halo
grep -q '"pipeline": 2, "micro_batches": 4, "tensor": 1, "spatial": \[1, 2, 1\], .*"bubble": 0' hybrid || fail "a hybrid grid: $(cat hybrid)"
grid --ranks 8 --batch 4 --set 'parallel={pipeline: 2, spatial: [1, 2]}' --set train.accumulate=4 --representatives 8 >again 2>err
cmp -s hybrid again || fail "the same simulation of a grid differs: $(diff hybrid again)"

# A parameter server: W workers send 64 KB of gradients each, which enter the server one after the other, and get as many
# bytes of weights. So the exchange takes 2 W x 64 ms, and a server adds 64 KB for each worker but the first at 1 GB/s.
for workers in 1 4; do
    simulate --platform slow.yaml --ranks $((workers + 1)) --set update=parameter_server >server 2>err || fail "a server: $(cat err)"
    grep -q "\"ranks\": $((workers + 1)), \"node_ranks\": 1, \"batch\": $((8 * workers))," server || fail "the batch with a server: $(cat server)"
    near server exposed_comm_ms "$(awk -v w=$workers 'BEGIN { print 2 * w * 64 }')" 0.06
    parts_add_up server
done
near server forward_ms "$(value forward_ms two)" 0.01
simulate --platform slow.yaml --ranks 1 --set update=parameter_server >alone 2>err || fail "a node alone, no server: $(cat err)"
near alone step_ms 80 0.001
# Two servers have one bucket each, or all would wait for one.
sed 's/1 MiB/16 KiB/; s/bias: false}}/bias: false}}, relu, {fc: {channels: 1000, bias: false}}/' job.yaml >layers.yaml
"$CONVOY" simulate layers.yaml --json --platform slow.yaml --ranks 5 --planning measure --set update=parameter_server >single 2>err || fail "a server: $(cat err)"
"$CONVOY" simulate layers.yaml --json --platform slow.yaml --ranks 6 --planning measure --set 'update={mode: parameter_server, servers: 2}' >pair 2>err || fail "two servers: $(cat err)"
awk -v a="$(value step_ms single)" -v b="$(value step_ms pair)" 'BEGIN { exit !(b < 0.7 * a) }' || fail "a second server gains too little: $(cat single pair)"
# Delayed updates hide what does not take longer than a step.
simulate --platform slow.yaml --bandwidth-factor 10 --ranks 2 >sync 2>err && simulate --platform slow.yaml --bandwidth-factor 10 --ranks 2 --set update=delayed >delayed 2>err || fail "delayed: $(cat err)"
awk -v a="$(value step_ms sync)" -v b="$(value step_ms delayed)" 'BEGIN { exit !(a > 85 && b < 83) }' || fail "delayed updates hide nothing: $(cat sync delayed)"

# Two ranks a node share the batch: each computes half of it with half of the cores. They add 64000 bytes of gradients in
# the node's memory, which moves 3 GB/s here: twice read and once written.
"$CONVOY" simulate job.yaml --json --platform slow.yaml --ranks 1,2 --node-ranks 2 --blocking --planning measure >shared 2>err || fail "two ranks a node: $(cat err)"
head -1 shared >shared1 && tail -1 shared >shared2
grep -q '"ranks": 2, "node_ranks": 2, "batch": 16,' shared2 || fail "two ranks a node: $(cat shared)"
awk -v a="$(value step_ms shared1)" -v u="$(value exposed_comm_ms shared1)" 'BEGIN { exit !(a > 0 && u > 0.06 && u < 0.07) }' || fail "the sum of a node: $(cat shared1)"
near shared2 exposed_comm_ms 72 0.04
parts_add_up shared2

# Threads that do not scale: a rank takes s + (1 - s) R / c of the time of one core. On 16 cores with s = 10 % four ranks
# a node take 2.0800 times as long as one for the same samples, and not four times as long.
share() { "$CONVOY" simulate job.yaml --json --platform fast.yaml --ranks 1 --planning measure "$@"; }
share --node-ranks 4 >plain 2>err && share --node-ranks 4 --serial 10% >threads 2>err || fail "--serial: $(cat err)"
near threads forward_ms "$(awk -v x="$(value forward_ms plain)" 'BEGIN { print x * (0.1 + 0.9 * 4 / 16) / (0.1 + 0.9 / 16) / 4 }')" 0.001
share --threads 4 --serial 10% >some 2>err || fail "--threads: $(cat err)"
share >plain 2>err && near some forward_ms "$(awk -v x="$(value forward_ms plain)" 'BEGIN { print x * (0.1 + 0.9 / 4) / (0.1 + 0.9 / 16) }')" 0.001
# A node has its rate with 64 samples, so with 4 it is slower, as one thread is here.
share --batch 4 --rate 1000 >plain 2>err && share --batch 4 --rate 1000 --rate-batch 64 >fewer 2>err || fail "--rate-batch: $(cat err)"
awk -v a="$(value images_per_s plain)" -v b="$(value images_per_s fewer)" 'BEGIN { exit !(a > 999 && a < 1001 && b < 0.98 * a && b > 0) }' || fail "--rate-batch: $(cat plain fewer)"
# Memory on one of two sockets: one rank has half of the bandwidth, two ranks have their own memory. So kernels that wait
# for memory half of the time take 1.5 times as long in one rank.
sed 's/^nodes/sockets: 2\nnodes/' fast.yaml >sockets.yaml
socket() { "$CONVOY" simulate job.yaml --json --platform sockets.yaml --ranks 1 --planning measure "$@"; }
socket --node-ranks 2 >plain 2>err && socket --node-ranks 2 --memory-bound 50% --pages one >own 2>err || fail "--pages one: $(cat err)"
near own forward_ms "$(awk -v x="$(value forward_ms plain)" 'BEGIN { print x / 1.5 }')" 0.001
socket --node-ranks 2 --memory-bound 50% >spread 2>err || fail "--memory-bound: $(cat err)"
near spread forward_ms "$(value forward_ms plain)" 0.001
if [ "$(env -u OMP_NUM_THREADS nproc)" -gt 1 ]; then
    socket --serial measured >measured 2>err || fail "--serial measured: $(cat err)"
else
    refused "one core may be used here" --platform fast.yaml --ranks 1 --serial measured
    echo '"serial": 0' >measured
fi
awk -v x="$(value serial measured)" 'BEGIN { exit !(x >= 0 && x <= 1) }' || fail "--serial measured: $(cat measured)"

# A few nodes stand for all: without shared links and noise, a step takes as long as that of all nodes. Only "doubling"
# is up to 2.4 % longer, which depends on the times of the kernels.
for algorithm in ring halving doubling; do
    simulate --platform slow.yaml --ranks 16 --set comm.algorithm=$algorithm >all 2>err || fail "16 nodes, $algorithm: $(cat err)"
    simulate --platform slow.yaml --ranks 16 --set comm.algorithm=$algorithm --representatives 4 >few 2>err || fail "4 of 16 nodes, $algorithm: $(cat err)"
    near few step_ms "$(value step_ms all)" 0.03
    grep -q '"ranks": 16, "node_ranks": 1, "batch": 128,' few || fail "4 of 16 nodes: $(cat few)"
done
simulate --platform slow.yaml --ranks 12 --set comm.algorithm=ring >all 2>err && simulate --platform slow.yaml --ranks 12 --set comm.algorithm=ring --representatives 4 >few 2>err || fail "4 of 12 nodes in a ring: $(cat err)"
near few step_ms "$(value step_ms all)" 0.03
parts="--ranks 16 --batch 4 --set parallel.pipeline=2 --set parallel.spatial=[1,2] --set train.accumulate=4"
grid $parts >all 2>err || fail "a grid of 16 nodes: $(cat err)"
grid $parts --representatives 8 >few 2>err || fail "8 of 16 nodes in a grid: $(cat err)"
near few step_ms "$(value step_ms all)" 0.02
waits few data pipeline halo
"$CONVOY" simulate grid.yaml --planning measure --platform slow.yaml --rate 2000 $parts --representatives 8 | grep -q ' p2 s1x2 d4 ' || fail "the table has another grid"
simulate --platform slow.yaml --ranks 16 --noise 5% >all 2>err
simulate --platform slow.yaml --ranks 16 --noise 5% --representatives 4 >few 2>err || fail "noise: $(cat err)"
near few step_ms "$(value step_ms all)" 0.05

refused "there is no platform 'stampede'" --platform stampede
refused "expected at most 8, so that a rank has two" --platform slow.yaml --ranks 2 --node-ranks 16
refused "8 samples on 3 ranks of a node, expected a multiple" --platform slow.yaml --ranks 2 --node-ranks 3
refused "2 pipeline, tensor and spatial parts: expected at least 4" --platform slow.yaml --ranks 4 --representatives 2 --set parallel.pipeline=2
refused "zero1 cannot be simulated with nodes that stand for others" --platform slow.yaml --ranks 8 --representatives 4 --set update=zero1
refused "have to be powers of two" --platform slow.yaml --ranks 2,12 --representatives 4
refused "have to be powers of two" --platform slow.yaml --ranks 16 --representatives 6
refused "may be any multiples" --platform slow.yaml --ranks 14 --representatives 4 --set comm.algorithm=ring
refused "with a grid of pipeline" --platform slow.yaml --ranks 2 --node-ranks 2 --set parallel.pipeline=2
refused "\-\-ranks is '0'" --ranks 0
refused "\-\-ranks is '4..2'" --ranks 4..2
refused "the platform has 16 nodes" --platform slow.yaml --ranks 32
refused "some would have no sample" --platform slow.yaml --ranks 16 --global-batch 8
refused "none.yaml" --platform none.yaml
refused "must be a multiple of their product, 2" --platform slow.yaml --ranks 2,3 --set parallel.pipeline=2
refused "\-\-noise is '100%'" --noise 100%
refused "\-\-serial is '120%'" --serial 120%
refused "has 16 cores: expected at most 8 threads" --platform fast.yaml --ranks 1 --node-ranks 2 --threads 9
refused "\-\-memory-bound is 'x'" --memory-bound x
refused 'with staleness 2 cannot be simulated\|set update.staleness to 0' --platform slow.yaml --ranks 2 --set 'update={mode: parameter_server, staleness: 2}'
refused 'expected more ranks than servers' --platform slow.yaml --ranks 2 --set 'update={mode: parameter_server, servers: 2}'
refused 'expected more ranks than servers' --platform slow.yaml --ranks 3 --set 'update={mode: parameter_server, servers: 3}'
refused "server's work grows with the workers" --platform slow.yaml --ranks 8 --representatives 4 --set update=parameter_server
refused "server's work grows with the workers" --platform slow.yaml --ranks 2 --node-ranks 2 --set update=parameter_server
: >bad.yaml
refused 'bad.yaml: an empty platform' --platform bad.yaml
sed 's/bandwidth/bandwith/' slow.yaml >bad.yaml
refused 'bad.yaml:3:1:.*bandwith' --platform bad.yaml
sed 's/star/fat_tree/' slow.yaml >bad.yaml
refused 'nodes is of a dragonfly' --platform bad.yaml
sed '/nodes/d' bad.yaml >worse.yaml
refused 'a fat_tree has lists down, up and parallel' --platform worse.yaml
echo 'down: 4' >>slow.yaml
refused 'down, up and parallel belong to a fat_tree, but topology is star' --platform slow.yaml
sed -i '$d' slow.yaml
sed 's/1e6/-1/' slow.yaml >bad.yaml
refused 'bad.yaml:3:.*bandwidth' --platform bad.yaml
ls "$work" | grep -q '^convoy-sim\.' && fail "a folder is left behind: $(ls "$work")"
exit $failed
