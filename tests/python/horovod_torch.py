# SPDX-License-Identifier: BSD-3-Clause
"""horovod_torch.py: a program as Horovod's users write it. horovod_scripts.sh changes it, and trains it on convoy."""
import argparse

import torch
import torch.nn.functional as F
import horovod.torch as hvd
from torch.utils.data.distributed import DistributedSampler

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=8)
p.add_argument("--lr", type=float, default=0.05)
p.add_argument("--out", required=True)
a = p.parse_args()

hvd.init()
torch.set_default_dtype(torch.float64)
torch.manual_seed(hvd.rank())  # another one on each rank: rank 0's weights count
x = torch.randn(48, 6, generator=torch.Generator().manual_seed(7))
data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank(), seed=3)
loader = torch.utils.data.DataLoader(data, batch_size=a.batch_size, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=a.lr * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(3):
    sampler.set_epoch(epoch)
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
    loss = hvd.allreduce(loss, name="loss")
    if hvd.rank() == 0:
        print(f"epoch {epoch + 1}: loss {float(loss):.9f}")
torch.save(model.state_dict(), f"{a.out}-{hvd.rank()}.pt")
