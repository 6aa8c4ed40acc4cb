# SPDX-License-Identifier: BSD-3-Clause
"""convoy: training of neural networks on the ranks of an MPI program.

    import convoy
    ranks = convoy.world()
    print(ranks.rank, ranks.nranks)

convoy.torch distributes a PyTorch program over the ranks.
"""
from ._context import Context, world
from ._library import Error, library as _library

__version__ = _library.cvy_version().decode()
__all__ = ["Context", "Error", "world", "__version__"]
