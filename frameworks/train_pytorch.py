# SPDX-License-Identifier: BSD-3-Clause
"""Trains a job of convoy with PyTorch, for `convoy study`: the network, pictures, optimiser and schedule of a job file.

usage: train_pytorch.py JOB --program CONVOY [--set KEY=VALUE]... [--seed N] [--threads T] [--device host|cuda|cuda:I] [--rendezvous FILE]
Under mpiexec or srun the ranks share the batch, by DistributedDataParallel on gloo, or NCCL on GPUs. Rank 0 prints one JSON line: the scores after each
epoch (`curve`), and losses and times of steps (`step_curve`). Weights begin as in convoy: He's initialiser, Xavier's for the last layer.
"""
import json, os
import train_job


def last_linear(net):
    """The module that holds the last fully connected layer, and its name there."""
    import torch.nn as nn
    path = [name for name, m in net.named_modules() if isinstance(m, nn.Linear)][-1]
    parent, _, name = path.rpartition(".")
    return net.get_submodule(parent), name


def build(job, classes):
    import torch.nn as nn
    import run_pytorch
    net = run_pytorch.find_net(job.model)[0]
    parent, name = last_linear(net)
    old = getattr(parent, name)
    if old.out_features != classes:
        setattr(parent, name, nn.Linear(old.in_features, classes))
    for m in net.modules():
        if isinstance(m, nn.Dropout) and (job.model != "caffenet" or "dropout" in job.options):
            m.p = float(job.options.get("dropout", 0))
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
            if m.bias is not None:
                nn.init.zeros_(m.bias)
    if not job.model.startswith("resnet-") or job.model in ("resnet-18", "resnet-34", "resnet-50", "resnet-101", "resnet-152"):
        nn.init.xavier_uniform_(getattr(parent, name).weight)
    return net


def optimizer_of(job, net):
    """Weight decay is for weights, without biases and norms."""
    import torch
    o = job.optimizer
    weights = [w for w in net.parameters() if w.ndim > 1]
    others = [w for w in net.parameters() if w.ndim <= 1]
    groups = [{"params": weights, "weight_decay": o.get("weight_decay", 0)}, {"params": others, "weight_decay": 0}]
    name = train_job.check_optimizer(o, ("sgd", "adam", "adamw"))
    if name == "sgd":
        return torch.optim.SGD(groups, lr=o["lr"], momentum=o["momentum"], nesterov=o["nesterov"], foreach=True)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], foreach=True)


class System:
    def __init__(self, a, job, classes):
        import torch
        import run_pytorch
        self.torch, self.rank, self.ranks, self.name = torch, a.rank, a.ranks, "pytorch " + torch.__version__
        torch.manual_seed(job.seed)
        torch.set_num_threads(a.threads)
        a.launched, a.tf32 = True, False
        self.on = run_pytorch.open_device(a)
        net = build(job, classes).to(self.on, memory_format=torch.channels_last)
        self.parameters, self.opt, self.net = sum(w.numel() for w in net.parameters()), optimizer_of(job, net), net
        self.run = net
        if self.ranks > 1:
            backend = "gloo" if self.on.type == "cpu" else "nccl"
            torch.distributed.init_process_group(backend, init_method="file://" + os.path.abspath(a.rendezvous), rank=a.rank, world_size=a.ranks)
            self.run = torch.nn.parallel.DistributedDataParallel(net)  # rank 0's weights go to all

    def tensors(self, x, y):
        x = self.torch.from_numpy(x).permute(0, 3, 1, 2)  # [N, H, W, C] in memory is channels_last
        return x.to(self.on), self.torch.from_numpy(y).to(self.on)

    def step(self, x, y, weight, lr):
        x, y = self.tensors(x, y)
        self.run.train()
        for group in self.opt.param_groups:
            group["lr"] = lr
        self.opt.zero_grad(set_to_none=True)
        loss = self.torch.nn.functional.cross_entropy(self.run(x), y)
        (loss * weight).backward()  # the mean over ranks of different numbers of samples
        self.opt.step()
        return loss.item()

    def score(self, x, y):
        x, y = self.tensors(x, y)
        self.net.eval()
        with self.torch.no_grad():
            out = self.net(x)
            return float(self.torch.nn.functional.cross_entropy(out, y, reduction="sum")), int((out.argmax(1) == y).sum())

    def add(self, numbers):
        if self.ranks == 1:
            return numbers
        total = self.torch.tensor(numbers, dtype=self.torch.float64, device=self.on)
        self.torch.distributed.all_reduce(total)
        return total.cpu().numpy()


def from_launcher(names, default):
    """What the launcher says: Open MPI, MPICH and Intel MPI, Slurm."""
    return next((int(os.environ[name]) for name in names if name in os.environ), default)


def main():
    p = train_job.arguments("Trains a job of convoy with PyTorch.")
    p.add_argument("--rendezvous", help="path of a new file through which the ranks find each other")
    a = p.parse_args()
    a.rank = from_launcher(["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"], 0)
    a.ranks = from_launcher(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"], 1)
    if a.ranks > 1 and not a.rendezvous:
        p.error("several ranks need --rendezvous: a file that does not exist yet, on a disk that all ranks see")
    job = train_job.Job(a)
    loader = train_job.Loader(job, from_launcher(["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"], a.ranks), a.threads)
    system = System(a, job, len(loader.classes))
    done = train_job.train(system, job, loader)
    loader.close()
    if a.rank == 0:
        print(json.dumps(done))
    if a.ranks > 1:
        system.torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
