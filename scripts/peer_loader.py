# SPDX-License-Identifier: BSD-3-Clause
"""Times PyTorch's DataLoader on a folder of JPEGs, for scripts/compare_loader.sh.

It decodes, crops at random and resizes to 224, mirrors and normalises, as the recipes of torchvision for ImageNet do. It
needs PyTorch and torchvision in a separate environment; convoy itself uses neither.
usage: peer_loader.py FOLDER [--workers N] [--decoder pillow|torchvision] [--size 224] [--batch 32] [--seconds S]
Prints one JSON line: images/s over at least S seconds, after one round through the files.
"""
import argparse, json, pathlib, time
import torch
import torchvision
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def by_pillow(size):
    from PIL import Image
    steps = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
                        v2.Normalize(MEAN, STD)])

    def load(path):
        with open(path, "rb") as f:
            return steps(Image.open(f).convert("RGB"))
    return load


def by_torchvision(size):
    steps = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])

    def load(path):
        return steps(torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB))
    return load


class Files(torch.utils.data.Dataset):
    def __init__(self, folder, load):
        self.load = load
        self.paths = sorted(str(p) for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        names = sorted({pathlib.Path(p).parent.name for p in self.paths})
        self.labels = [names.index(pathlib.Path(p).parent.name) for p in self.paths]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.load(self.paths[i]), self.labels[i]


def one_thread(_):
    torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--decoder", choices=["pillow", "torchvision"], default="torchvision")
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--seconds", type=float, default=5)
    a = p.parse_args()
    torch.set_num_threads(1)
    data = Files(a.folder, by_pillow(a.size) if a.decoder == "pillow" else by_torchvision(a.size))
    loader = torch.utils.data.DataLoader(data, a.batch, shuffle=True, drop_last=True, num_workers=a.workers, persistent_workers=a.workers > 0,
                                         prefetch_factor=4 if a.workers else None, worker_init_fn=one_thread)
    images, start = 0, None
    while start is None or time.perf_counter() - start < a.seconds:
        for x, _ in loader:
            if start is not None:
                images += x.shape[0]
                if time.perf_counter() - start >= a.seconds:
                    break
        if start is None:
            start = time.perf_counter()
    took = time.perf_counter() - start
    print(json.dumps({"decoder": a.decoder, "workers": a.workers, "files": len(data), "seconds": took, "images": images, "images_per_s": images / took}))


if __name__ == "__main__":
    main()
