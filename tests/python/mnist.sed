# SPDX-License-Identifier: BSD-3-Clause
# The change of PyTorch's example of MNIST (pytorch/examples, mnist/main.py) that trains it on MPI ranks: five lines.
/^from torch.optim.lr_scheduler import StepLR/a import convoy.torch as cvy\
print = cvy.print
s/DataLoader(dataset1, *\*\*train_kwargs)/DataLoader(dataset1, sampler=cvy.sampler(dataset1), **train_kwargs)/
s/= \(optim\.Adadelta(model\.parameters(), lr=args\.lr)\)/= cvy.DistributedOptimizer(\1, model)/
s/^    if args\.save_model:/    if args.save_model and cvy.rank() == 0:/
