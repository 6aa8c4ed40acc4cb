# SPDX-License-Identifier: BSD-3-Clause
"""Trains a network of torchvision in PyTorch on the ranks of mpiexec, and prints the speed of each of them.

    mpiexec -n 2 python frameworks/run_torch_ranks.py --way convoy|ddp|alone [--network resnet50] [--batch 4] [--steps 5]

--way: how gradients are averaged: convoy.torch, DistributedDataParallel on gloo, or not at all (each rank trains alone).
--wire bf16: convoy sends bf16 between nodes; --delayed: it applies gradients a step late. --batch is that of a rank. --rendezvous: a file by which the ranks of gloo find
each other, on a disk that all of them see. scripts/compare_plugin.sh runs it.
"""
import argparse
import os
import time

import torch
import torchvision


def read_arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--way", choices=("convoy", "ddp", "alone"), required=True)
    p.add_argument("--network", default="resnet50")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--wire", default="f32")
    p.add_argument("--delayed", action="store_true")
    p.add_argument("--rendezvous")
    a = p.parse_args()
    if a.way == "ddp" and not a.rendezvous:
        p.error("--way ddp needs --rendezvous: a file that does not exist yet, on a disk that all ranks see")
    return a


def main():
    a = read_arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    import convoy
    ranks = convoy.world(threads=1)
    model = getattr(torchvision.models, a.network)().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if a.way == "convoy":
        import convoy.torch
        optimizer = convoy.torch.DistributedOptimizer(optimizer, model, wire=a.wire, delayed=a.delayed)
    elif a.way == "ddp":
        torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath(a.rendezvous), rank=ranks.rank, world_size=ranks.nranks)
        # Like convoy.torch, it does not exchange the statistics of batch norm.
        model = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    x = torch.randn(a.batch, 3, a.size, a.size).to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (a.batch,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(a.warmup):
        step()
    began = time.perf_counter()
    for _ in range(a.steps):
        step()
    mine = a.batch * a.steps / (time.perf_counter() - began)
    print(f"images/s {mine:.4f}", flush=True)
    if a.way == "ddp":
        torch.distributed.destroy_process_group()


main()
