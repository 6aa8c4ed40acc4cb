# SPDX-License-Identifier: BSD-3-Clause
"""Makes flowers/imagelabels.mat and flowers/setid.mat with scipy, shaped as those of Oxford's 102 flowers
(make_mat.py FOLDER). The files are checked in, so the tests do not need scipy."""
import sys

import numpy as np
from scipy.io import savemat

to = sys.argv[1]
ids = {"trnid": [2, 5], "valid": [6, 1], "tstid": [3, 4, 7]}
savemat(f"{to}/imagelabels.mat", {"labels": np.array([[3, 1, 2, 2, 1, 3, 1]], dtype="u1")}, do_compression=True)
savemat(f"{to}/setid.mat", {k: np.array([v], dtype="u2") for k, v in ids.items()}, do_compression=True)
savemat(f"{to}/others.mat", {
    "text": "words", "cell": np.array([1, "a"], dtype=object), "struct": {"a": 1.0}, "complex": np.array([1j]),
    "half": np.array([[1.5, 2]]), "f4": np.arange(300, dtype="f4").reshape(3, 100), "i8": np.array([-3], dtype="i8"),
    "flag": np.array([[True, False]]), "none": np.zeros((0, 3))})
