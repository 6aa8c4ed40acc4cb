#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes outputs_golden.h of test_score_outputs.c with PyTorch, scikit-learn and SciPy, in double precision. The tests
need neither of them.

    python3 make_outputs.py    # writes outputs_golden.h into its folder

A network of one layer, fc, ends in six ways, and is scored with eight losses: four on labels of three classes, and four
on three numbers that are 0 or 1. Two more networks have one output for two classes. Inputs and weights are formulas
that the test has, too; labels and targets are written as digits.

The kind of an output, and whether a training is refused, are written down here from the guide, not taken from convoy.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from sklearn import metrics as sk

N, D, K = 48, 4, 3
CLASS = ("softmax_cross_entropy", "focal", "dice", "hinge")
NUMBER = ("bce", "mse", "mae", "huber")


def as_f32(a):
    return torch.tensor(np.asarray(a, dtype=np.float32).astype(np.float64))


def inputs():
    return as_f32([[np.sin(1.7 * i + 2.3 * j + 0.4) for j in range(D)] for i in range(N)])


def logits(x, member, k):
    weight = as_f32([[2 * np.cos(2.1 * c * j + 0.7 * c + 2.3 * j + 0.2 * member) for j in range(D)] for c in range(k)])
    bias = as_f32([0.3 * np.sin(c + member) for c in range(k)])
    return x @ weight.T + bias


# ---- the ends of the network: each gives the output, and what a loss that knows it reads ----

def softmax(z):
    return F.softmax(z, 1)


ENDINGS = {
    "nothing": (lambda z: z, None),
    "softmax": (softmax, "softmax"),
    "log_softmax": (lambda z: F.log_softmax(z, 1), "softmax"),
    "sigmoid": (torch.sigmoid, "sigmoid"),
    "moved": (softmax, "softmax"),  # softmax, then layers that only move its numbers
    "changed": (lambda z: 2 * softmax(z), None),
}
APPLIES = {"softmax_cross_entropy": "softmax", "focal": "softmax", "dice": "softmax", "bce": "sigmoid"}


def kind_of(ending, loss, on_labels, single=False):
    closed = ENDINGS[ending][1]
    of_classes = "log-probabilities of the classes" if ending == "log_softmax" else "probabilities of the classes"
    if loss == "bce":
        return "probabilities of yes" if closed == "sigmoid" else "logits of yes"
    if single and closed == "sigmoid":
        return "probabilities of yes"
    if not on_labels:
        return "values"
    if closed == "softmax":
        return of_classes
    return "values" if closed == "sigmoid" and loss == "hinge" else "logits of the classes"


def is_refused(ending, loss):
    closed = ENDINGS[ending][1]
    return bool(closed and loss in APPLIES and closed != APPLIES[loss])


def loss_of(loss, z, t):
    """z: what the loss reads."""
    if loss in ("softmax_cross_entropy", "focal"):
        log_p = F.log_softmax(z, 1)[torch.arange(N), t]
        return -log_p.mean() if loss != "focal" else (-(1 - log_p.exp()) ** 2 * log_p).mean()
    if loss == "dice":
        p, hot = softmax(z), F.one_hot(t, z.shape[1])
        return 1 - ((2 * p * hot + 1) / (p + hot + 1)).mean()
    if loss == "hinge":
        return F.relu(1 - (2 * F.one_hot(t, z.shape[1]) - 1) * z).sum(1).mean()
    return {"bce": F.binary_cross_entropy_with_logits, "mse": F.mse_loss, "mae": F.l1_loss,
            "huber": F.huber_loss}[loss](z, t)


# ---- scores ----

def ece(confidence, right):
    bins = np.clip(np.ceil(confidence * 15), 1, 15)
    return sum(abs(right[bins == b].sum() - confidence[bins == b].sum()) for b in range(1, 16)) / len(right)


def class_scores(p, t):
    """p: probabilities of the classes, [samples, classes]."""
    k, guess, hot = p.shape[1], p.argmax(1), np.eye(p.shape[1])[t]
    scores = [sk.accuracy_score(t, guess), sk.balanced_accuracy_score(t, guess), sk.log_loss(t, p, labels=range(k)),
              ((p - hot) ** 2).sum(1).mean(), ece(p.max(1), guess == t)]
    return scores + [sk.top_k_accuracy_score(t, p, k=2, labels=range(k)) if k > 2 else sk.roc_auc_score(t, p[:, 1])]


def value_scores(output, y):
    return [np.sqrt(((output - y) ** 2).mean()), np.abs(output - y).mean(), sk.r2_score(y, output)]


def two(p):
    return np.stack([1 - p, p], 1)


def temperature(score, t):
    """score: logits or log-probabilities."""
    def nll(log_t):
        return F.cross_entropy(score / np.exp(log_t), t).item()
    best = minimize_scalar(nll, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    return np.exp(best.x), best.fun


# ---- the table ----

def row(ending, loss, z, t):
    """z: logits of both members. Returns a row of the table."""
    on_labels = t.dtype == torch.int64
    single = z[0].shape[1] == 1
    end, closed = ENDINGS[ending]
    kind = kind_of(ending, loss, on_labels, single)
    outputs = [end(m) for m in z]
    looks_through = closed and closed == APPLIES.get(loss)
    read = z[0] if looks_through else outputs[0]
    target = t[:, None].double() if single and loss in NUMBER else t
    value = loss_of(loss, read, target)
    scored = z if "probabilities" in kind else outputs
    calibrated = (0, 0)
    if kind.endswith("classes"):
        members = [softmax(s).numpy() for s in scored]
        mean = sum(members) / 2
        scores, joint = class_scores(members[0], t.numpy()), class_scores(mean, t.numpy())
        calibrated = temperature(scored[0], t)
        shown = members[0]
    elif kind.endswith("yes"):
        members = [torch.sigmoid(s).numpy() for s in scored]
        mean = sum(members) / 2
        flat = t.numpy().astype(int).ravel()
        scores, joint = class_scores(two(members[0].ravel()), flat), class_scores(two(mean.ravel()), flat)
        if single:
            calibrated = temperature(torch.cat([torch.zeros_like(scored[0]), scored[0]], 1), t)
            shown = two(members[0][:, 0])
        else:
            shown = members[0]
            scores[5] = joint[5] = 0  # each of several yes or no has a curve of its own
    elif on_labels:
        scores, joint, shown = [], [], np.zeros((2, K))
    else:
        scores, joint = value_scores(outputs[0].numpy(), t.numpy()), value_scores((sum(outputs) / 2).numpy(), t.numpy())
        shown = np.zeros((2, K))
    classes = "".join(map(str, shown.argmax(1))) if kind.endswith("classes") or (single and kind.endswith("yes")) else ""
    return (f'    {{"{ending}", "{loss}", "{kind}", {int(is_refused(ending, loss))}, {value.item():.9g}, {{'
            + ", ".join(f"{s:.9g}" for s in scores or [0]) + "}, {" + ", ".join(f"{s:.9g}" for s in joint or [0]) + "}, {"
            + ", ".join(f"{p:.9g}" for p in shown[:2].ravel()) + f'}}, {calibrated[0]:.9g}, {calibrated[1]:.9g}, '
            + f'"{classes}"}},\n')


def main():
    x = inputs()
    i = np.arange(N)[:, None]
    z = [logits(x, m, K) for m in range(2)]
    label = torch.tensor((z[0].numpy() + 2.5 * np.sin(3.1 * i + 1.9 * np.arange(K))).argmax(1))
    y = torch.tensor((z[0].numpy() + 2.5 * np.cos(2.9 * i + 1.3 * np.arange(K)) > 0).astype(np.float64))
    single = [logits(x, m, 1) for m in range(2)]
    side = torch.tensor((single[0].numpy() + 3 * np.sin(3.1 * i) > 0).astype(int)[:, 0])
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "outputs_golden.h"), "w") as f:
        f.write("/* SPDX-License-Identifier: BSD-3-Clause */\n/* clang-format off */\n"
                "/* outputs_golden.h: made by make_outputs.py, which says what it is. */\n\n"
                f"enum {{ N = {N}, D = {D}, K = {K} }};\n\n"
                f'static const char labels[] = "{"".join(map(str, label.tolist()))}",\n'
                f'                  sides[] = "{"".join(map(str, side.tolist()))}",\n'
                f'                  targets[] = "{"".join(str(int(v)) for v in y.ravel())}";\n\n'
                "struct golden {\n    const char *ending, *loss, *kind;\n    int refused;\n    double value;\n"
                "    double score[6], joint[6]; /* of classes and yes: accuracy, balanced_accuracy, nll, brier, ece, and "
                "top_k (k: 2) or auc;\n                                  of values: rmse, mae, r2. joint: of the "
                "ensemble */\n    double probability[6];      /* of the first two samples */\n"
                "    double temperature, nll_calibrated;\n    const char *classes;\n};\n\n"
                "static const struct golden golden[] = {\n")
        for loss in CLASS + NUMBER:
            for ending in ENDINGS:
                f.write(row(ending, loss, z, label if loss in CLASS else y))
        f.write("};\n\n/* One output for two classes. */\nstatic const struct golden golden_single[] = {\n")
        for ending, loss in (("nothing", "bce"), ("sigmoid", "bce"), ("sigmoid", "mse")):
            f.write(row(ending, loss, single, side))
        f.write("};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
