# SPDX-License-Identifier: BSD-3-Clause
"""Times ONNX Runtime on the networks of run_pytorch.py, for `convoy study`.

It needs PyTorch, which exports the networks, and onnx; and onnxruntime for --mode forward, or onnxruntime-training for --mode train.
usage: run_onnxruntime.py --net NAME --batch N [--mode train|forward] [--threads T] [--seconds S]
Prints one JSON line. The optimiser is SGD without momentum: ONNX Runtime has no other SGD.
"""
import argparse, json, resource, tempfile, time, warnings
import numpy as np
import onnxruntime
import torch
import run_pytorch


def session_options(threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return options


def export(net, shape, path, training):
    warnings.filterwarnings("ignore")
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(net.train(training), (torch.zeros(2, *shape),), path, dynamo=False, training=mode, do_constant_folding=not training, opset_version=15,
                      export_params=True, keep_initializers_as_inputs=False, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})


def forward_step(net, shape, folder, threads, x):
    export(net, shape, folder + "/net.onnx", False)
    session = onnxruntime.InferenceSession(folder + "/net.onnx", session_options(threads), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x}) and None


def train_step(net, shape, folder, threads, x, y):
    import onnx
    from onnxruntime.training import api, artifacts
    weights = [name for name, _ in net.named_parameters()]
    export(net, shape, folder + "/net.onnx", True)
    artifacts.generate_artifacts(onnx.load(folder + "/net.onnx"), requires_grad=weights, loss=artifacts.LossType.CrossEntropyLoss,
                                 optimizer=artifacts.OptimType.SGD, artifact_directory=folder)
    state = api.CheckpointState.load_checkpoint(folder + "/checkpoint")
    module = api.Module(folder + "/training_model.onnx", state, device="cpu", session_options=session_options(threads))
    optimizer = api.Optimizer(folder + "/optimizer_model.onnx", module)
    optimizer.set_learning_rate(0.01)
    module.train()

    def step():
        loss = module(x, y)
        optimizer.step()
        module.lazy_reset_grad()
        return float(loss)

    return step


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--net", required=True)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--mode", choices=["train", "forward", "forward-backward"], default="train")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=6)
    a = p.parse_args()
    if a.mode == "forward-backward" or a.dtype != "f32":
        raise SystemExit(f"run_onnxruntime: mode {a.mode} in {a.dtype}: it is measured in f32, modes train and forward")
    net, shape, classes = run_pytorch.find_net(a.net)
    parameters, macs = sum(w.numel() for w in net.parameters()), run_pytorch.count_macs(net, shape)
    x, y = np.random.randn(a.batch, *shape).astype(np.float32), np.random.randint(0, classes, a.batch, dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:
        step = forward_step(net, shape, folder, a.threads, x) if a.mode == "forward" else train_step(net, shape, folder, a.threads, x, y)
        first = step()
        step()
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < a.seconds:
            t = time.perf_counter()
            step()
            times.append(time.perf_counter() - t)
    median = sorted(times)[len(times) // 2]
    print(json.dumps({"peer": "onnxruntime " + onnxruntime.__version__, **vars(a), "images_per_s": a.batch / median, "ms_median": 1e3 * median, "steps": len(times),
                      "images_per_s_mean": round(a.batch * len(times) / sum(times), 2), "images_per_s_best": round(a.batch / min(times), 2),
                      "peak_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
                      "parameters": parameters, "macs": macs, **({"loss_first": first} if first is not None else {})}))


main()
