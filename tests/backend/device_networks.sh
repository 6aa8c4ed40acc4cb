#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# seconds: 60
# device_networks.sh: networks train 20 steps on the emulated GPU with the losses that they have on the host, and no
# operator is staged. Most are small copies of networks of the zoo with all kinds of their layers: a step of the
# emulation takes about ten times as long as one of the host.
. "$CONVOY_SOURCE/tests/shell.inc"
export CONVOY_WISDOM=off
export CVY_EMULATED="poison=1 seed=11" # nothing is read that was not written

# train NAME DEVICE: trains NAME.yaml in the folder NAME-DEVICE.
train() {
    "$CONVOY_EMULATED" train "$1.yaml" --device "$2" --threads 1 --progress none --out "$1-$2" --set log.every=1 \
        >"$1-$2.log" 2>&1 || { fail "$1 fails on $2:"; tail -n 5 "$1-$2.log"; return 1; }
    sed -n 's/.*"kind": "step".*"loss": \([^,]*\),.*/\1/p' "$1-$2/metrics.jsonl" >"$1-$2.losses"
}

# same_losses NAME TOLERANCE: 20 losses agree, relative to the loss; the tolerance doubles every 5 steps, because
# training amplifies rounding.
same_losses() {
    paste "$1-host.losses" "$1-emulated.losses" | awk -v name="$1" -v within="$2" '
        { off = $1 > $2 ? $1 - $2 : $2 - $1; size = $1 > 0.1 ? $1 : 0.1
          if (off > worst * size) worst = off / size
          if (!(off <= within * 2 ^ int(NR / 5) * size)) bad = bad " " NR ": " $1 " " $2 ";" }
        END { printf "%-14s %d losses, from %s to %s, differ by up to %.1e\n", name, NR, first, $1, worst
              if (NR != 20 || bad != "") { print "FAILED " name ":" bad; exit 1 } }
        NR == 1 { first = $1 }' || failed=1
}

# network NAME TOLERANCE: stdin is the job.
network() {
    cat >"$1.yaml"
    train "$1" host && train "$1" emulated || return
    same_losses "$1" "$2"
    "$CONVOY_EMULATED" plan "$1.yaml" --device emulated >"$1.plan" 2>&1 || fail "$1 has no plan"
    grep -q '^0 of [1-9][0-9]* calls of kernels are staged' "$1.plan" || { fail "$1:"; grep staged "$1.plan"; }
}

network lenet 1e-4 <<'END'
model: {name: lenet}
data: {train: {format: synthetic, samples: 400, noise: 1}}
train: {batch: 8, steps: 20, optimizer: {name: sgd, lr: 0.005}}
END

network cifar-convnet 1e-4 <<'END'
model: {name: cifar-convnet}
data: {train: {format: synthetic, samples: 400, noise: 1}}
train: {batch: 8, steps: 20, optimizer: {name: sgd, lr: 0.001}}
END

network resnet-20 2e-3 <<'END'
model: {name: resnet-20}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 16, 16]}}
train: {batch: 8, steps: 20, optimizer: {name: lars, lr: 0.005}}
END

network alexnet-v2 1e-4 <<'END'
model:
  layers:
    - conv: {channels: 16, kernel: 11, stride: 4, pad: 2}
    - relu
    - max_pool: {kernel: 3, stride: 2}
    - conv: {channels: 24, kernel: 5, pad: 2}
    - relu
    - max_pool: {kernel: 3, stride: 2}
    - conv: {channels: 32, kernel: 3, pad: 1}
    - relu
    - conv: {channels: 24, kernel: 3, pad: 1}
    - relu
    - max_pool: {kernel: 3, stride: 2}
    - fc: {channels: 64}
    - relu
    - dropout: {p: 0.5}
    - fc: {channels: 10}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 79, 79], classes: 10}}
train: {batch: 4, steps: 20, optimizer: {name: sgd, lr: 0.002}}
END

network vgg 1e-4 <<'END'
model:
  layers:
    - conv: {channels: 8, kernel: 3, pad: 1}
    - relu
    - max_pool: {kernel: 2, stride: 2}
    - conv: {channels: 16, kernel: 3, pad: 1}
    - relu
    - conv: {channels: 16, kernel: 3, pad: 1}
    - relu
    - max_pool: {kernel: 2, stride: 2}
    - conv: {channels: 32, kernel: 3, pad: 1}
    - relu
    - max_pool: {kernel: 2, stride: 2}
    - fc: {channels: 64}
    - relu
    - dropout: {p: 0.5}
    - fc: {channels: 10}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 32, 32], classes: 10}}
train: {batch: 4, steps: 20, optimizer: {name: adamw, lr: 0.0003}}
END

network googlenet 2e-4 <<'END'
model:
  layers:
    - conv: {channels: 16, kernel: 7, stride: 2, pad: 3}
    - relu
    - max_pool: {kernel: 3, stride: 2}
    - lrn: {name: stem, size: 5}
    - conv: {name: a1, from: stem, channels: 8, kernel: 1}
    - relu: {name: b1}
    - conv: {name: a3, from: stem, channels: 4, kernel: 1}
    - relu
    - conv: {channels: 12, kernel: 3, pad: 1}
    - relu: {name: b3}
    - conv: {name: a5, from: stem, channels: 2, kernel: 1}
    - relu
    - conv: {channels: 4, kernel: 5, pad: 2}
    - relu: {name: b5}
    - max_pool: {name: ap, from: stem, kernel: 3, stride: 1, pad: 1}
    - conv: {channels: 4, kernel: 1}
    - relu: {name: bp}
    - concat: {name: joined, from: [b1, b3, b5, bp]}
    - avg_pool: {kernel: 5, stride: 3}
    - dropout: {p: 0.4}
    - fc: {channels: 10}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 48, 48], classes: 10}}
train: {batch: 4, steps: 20, optimizer: {name: sgd, lr: 0.002}}
END

network inception-v3 2e-3 <<'END'
model:
  layers:
    - conv: {channels: 8, kernel: 3, stride: 2, bias: false}
    - batch_norm
    - relu: {name: stem}
    - conv: {from: stem, channels: 8, kernel: 1, bias: false}
    - batch_norm
    - relu
    - conv: {channels: 8, kernel: [1, 7], pad: [0, 3], bias: false}
    - batch_norm
    - relu
    - conv: {channels: 12, kernel: [7, 1], pad: [3, 0], bias: false}
    - batch_norm
    - relu: {name: b7}
    - avg_pool: {from: stem, kernel: 3, stride: 1, pad: 1, count_include_pad: false}
    - conv: {channels: 8, kernel: 1, bias: false}
    - batch_norm
    - relu: {name: bp}
    - concat: {name: joined, from: [b7, bp]}
    - conv: {from: joined, channels: 16, kernel: 3, stride: 2, bias: false}
    - batch_norm
    - relu: {name: r3}
    - max_pool: {name: rp, from: joined, kernel: 3, stride: 2, ceil: false}
    - concat: {from: [r3, rp]}
    - global_avg_pool
    - fc: {channels: 10}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 31, 31], classes: 10}}
train: {batch: 4, steps: 20, optimizer: {name: rmsprop, lr: 0.0005}}
END

# Two plans, which have the same kernels, work on two sets of gradients.
network delayed 1e-4 <<'END'
model: {layers: [{fc: {channels: 16}}, relu, {fc: {channels: 10}}]}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 8, 8], classes: 10}}
train: {batch: 8, steps: 20, optimizer: {name: adam, lr: 0.002}}
update: delayed
END

network hep-cnn 1e-3 <<'END'
model: {name: hep-cnn, filters: 16, depth: 3}
data: {train: {format: synthetic, samples: 400, noise: 1, shape: [3, 32, 32], classes: 2}}
train: {batch: 4, steps: 20, optimizer: {name: adam, lr: 0.0005}}
END

network unet 1e-3 <<'END'
model: {name: unet, depth: 2, filters: 4}
data:
  train: {format: shapes, size: 32, samples: 64}
  roles: {y: {role: label_map, classes: 3}}
train: {batch: 2, steps: 20, optimizer: {name: lamb, lr: 0.002}, loss: [softmax_cross_entropy, {name: dice, weight: 0.5}]}
END

network cosmogan 1e-3 <<'END'
model:
  networks:
    generator:
      inputs: [n5, n12]
      layers:
      - conv: {from: n5, channels: 8, kernel: 3, pad: 1}
      - leaky_relu: {slope: 0.5}
      - deconv: {name: up, channels: 8, kernel: 4, stride: 2, pad: 0}
      - concat: {from: [up, n12]}
      - conv: {channels: 8, kernel: 5}
      - leaky_relu: {slope: 0.5}
      - deconv: {channels: 1, kernel: 4, stride: 2, pad: 1}
      - softplus
      - offset: {by: -2.7}
    discriminator:
      layers:
      - conv: {channels: 8, kernel: 4, stride: 2, pad: 1}
      - leaky_relu: {slope: 0.2}
      - conv: {channels: 16, kernel: 4, stride: 2, pad: 1}
      - leaky_relu: {slope: 0.2}
      - fc: {channels: 1}
  layers:
  - noise: {name: z5, shape: [4, 5, 5], from: x}
  - noise: {name: z12, shape: [2, 12, 12], from: x}
  - generator: {name: fake, from: [z5, z12]}
  - avg_pool: {name: smooth, from: x, kernel: 3, stride: 1, pad: 1, count_include_pad: false}
  - subtract: {name: detail, from: [x, smooth]}
  - avg_pool: {name: fake_smooth, from: fake, kernel: 3, stride: 1, pad: 1, count_include_pad: false}
  - subtract: {name: fake_detail, from: [fake, fake_smooth]}
  - concat: {name: xin, from: [x, detail]}
  - concat: {name: fin, from: [fake, fake_detail]}
  - discriminator: {name: real, from: xin}
  - discriminator: {name: judged, from: fin}
  - constant: {name: yes, value: 1, from: real}
  - constant: {name: no, value: 0, from: real}
  - bce: {name: loss_real, from: [real, yes]}
  - bce: {name: loss_fake, from: [judged, no]}
  - gradient_penalty: {name: penalty, from: [real, xin], target: 0, loss_weight: 0.1}
  - bce: {name: loss_generator, from: [judged, yes]}
  output: fake
data:
  train: {format: cosmology, size: 32, samples: 128, index: -2, sigma: 1, classes: 1}
  roles: {x: target}
  augment: [{random_crop: {size: 16}}, mirror, rotate90, {log: 0.05}, {mean: 2.7}]
train:
  batch: 4
  steps: 20
  optimizer: {name: adam, lr: 0.0004, beta1: 0, beta2: 0.999}
  turns:
  - {losses: [loss_real, loss_fake, penalty], train: discriminator}
  - {losses: loss_generator, train: generator, optimizer: {name: adam, lr: 0.0004, beta1: 0, beta2: 0.999, average: 0.9}}
END

exit $failed
