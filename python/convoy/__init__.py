# SPDX-License-Identifier: BSD-3-Clause
"""convoy: training of neural networks on the ranks of an MPI program.

    import convoy
    ranks = convoy.world()
    print(ranks.rank, ranks.nranks)

convoy.torch distributes a PyTorch program over the ranks.
"""
from . import _library
from ._context import Context, world
from ._library import Error

__version__ = _library.library.cvy_version().decode()
__all__ = ["Context", "Error", "world", "__version__"]
