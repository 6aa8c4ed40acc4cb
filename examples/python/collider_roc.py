# SPDX-License-Identifier: BSD-3-Clause
"""Trains the network of examples/collider.yaml, scores it, and plots its ROC curve; docs/reference/collider.md tells the physics.

    python collider_roc.py                                          # 40,000 events, for four epochs
    python collider_roc.py data.train.events=4000 train.epochs=2    # keys of the job
"""
import pathlib
import sys

import convoy
import matplotlib.pyplot as plt

job = pathlib.Path(__file__).parent.parent / "collider.yaml"
run = convoy.train(job, sets=dict(word.split("=", 1) for word in sys.argv[1:]))
scores = run.test()
plt.plot(scores["roc"]["fpr"], scores["roc"]["tpr"], label=f"{run.out}: area {scores['metrics']['auc']:.3f}")
plt.plot([0, 1], [0, 1], "k:", label="no separation: area 0.5")
plt.xlabel("background accepted (false positive rate)")
plt.ylabel("signal accepted (true positive rate)")
plt.legend(loc="lower right")
plt.savefig("roc.png")
