"""Images per second, from files to normalised batches: `reprise feed --load-only` beside Pillow with NumPy in
worker processes, as torchvision's loader does, and torchvision's own DataLoader where it is installed.
Same files, same transforms, as many workers as threads; sides in turns, by medians.

The time of `reprise` is the one that it prints, without the start of its process; the others' begins when
their workers stand and have loaded a batch.
"""

import argparse
import concurrent.futures
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np
from PIL import Image

from testing.daemon import reprise

MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
STD = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
TRANSFORMS = ("Resize(256), CenterCrop(224), ToTensor, "
              "Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])")
SIZES = [(500, 375), (640, 480), (1024, 768)]  # ImageNet's usual one, COCO's, a larger one


def make_images(folder, count, kind, size):
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:size[1], :size[0]]
    base = np.stack([x * 255 / size[0], y * 255 / size[1], (x + y) % 256], -1)
    for i in range(count):
        noise = rng.normal(0, 14, base.shape)
        pixels = np.clip(np.roll(base, i * 17, 1) + noise, 0, 255).astype(np.uint8)
        image = Image.fromarray(pixels)
        image.save(folder / f"{i:05}.{kind}", **({"quality": 90} if kind == "jpg" else {}))


def load(path):
    """Applies torchvision's transforms to an image of Pillow's."""
    with Image.open(path) as image:
        image = image.convert("RGB")
    width, height = image.size
    if width <= height:
        image = image.resize((256, int(256 * height / width)), Image.BILINEAR)
    else:
        image = image.resize((int(256 * width / height), 256), Image.BILINEAR)
    left, top = round((image.width - 224) / 2), round((image.height - 224) / 2)
    image = image.crop((left, top, left + 224, top + 224))
    tensor = np.asarray(image, np.float32).transpose(2, 0, 1) / np.float32(255)
    return (tensor - MEAN) / STD


def load_batch(paths):
    return np.stack([load(path) for path in paths])


class Pillow:
    name = "Pillow, worker processes"

    def __init__(self, paths, batch, workers):
        self.batches = [paths[i:i + batch] for i in range(0, len(paths), batch)]
        self.pool = concurrent.futures.ProcessPoolExecutor(workers)
        list(self.pool.map(load_batch, self.batches[:workers]))

    def rate(self):
        start = time.perf_counter()
        images = sum(len(batch) for batch in self.pool.map(load_batch, self.batches))
        return images / (time.perf_counter() - start)


class Torchvision:
    name = "torchvision, DataLoader"

    def __init__(self, folder, batch, workers):
        import torch
        from torchvision import datasets, transforms
        torch.set_num_threads(1)
        data = datasets.ImageFolder(folder.parent, transforms.Compose([
            transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
            transforms.Normalize(MEAN.ravel().tolist(), STD.ravel().tolist())]))
        self.loader = torch.utils.data.DataLoader(data, batch, num_workers=workers,
                                                  persistent_workers=True)
        self.rate()

    def rate(self):
        start = time.perf_counter()
        images = sum(len(batch) for batch, _ in self.loader)
        return images / (time.perf_counter() - start)


class Reprise:
    name = "reprise feed"

    def __init__(self, folder, batch, workers, images):
        epochs = max(1, 400 // images)  # the printed time has three digits
        self.command = ["feed", "-", folder, "--load-only", "--batch", batch, "--threads", workers,
                        "--transforms", TRANSFORMS, "--epochs", epochs]

    def rate(self):
        done = reprise(*self.command, check=False)
        assert done.returncode == 0, done.stderr
        return float(re.search(r"([\d.]+) images/s", done.stderr)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    arguments = parser.parse_args()
    cpu = subprocess.run(["sed", "-n", "s/^model name.*: //p;T;q", "/proc/cpuinfo"],
                         capture_output=True, text=True).stdout.strip()
    print(f"{cpu}; {arguments.images} images, {arguments.rounds} rounds, images a second")
    print("| files | workers | reprise | Pillow | ratio | torchvision | ratio |\n|---|---|---|---|---|---|---|")
    for kind in ("jpg", "png"):
        for size in SIZES:
            with tempfile.TemporaryDirectory() as root:
                folder = pathlib.Path(root) / "class"
                folder.mkdir()
                make_images(folder, arguments.images, kind, size)
                paths = sorted(folder.iterdir())
                for workers in arguments.threads:
                    sides = [Reprise(folder, arguments.batch, workers, arguments.images),
                             Pillow(paths, arguments.batch, workers)]
                    try:
                        sides.append(Torchvision(folder, arguments.batch, workers))
                    except ImportError:
                        pass
                    rates = [[side.rate() for side in sides] for _ in range(arguments.rounds)]
                    columns = list(zip(*rates))
                    medians = [statistics.median(column) for column in columns]
                    ratios = [statistics.median(a / b for a, b in zip(columns[0], column))
                              for column in columns[1:]]
                    cells = [f"{medians[0]:.0f}"]
                    for median, ratio in zip(medians[1:], ratios):
                        cells += [f"{median:.0f}", f"{ratio:.2f}"]
                    cells += ["-"] * (5 - len(cells))
                    print(f"| {kind} {size[0]} x {size[1]} | {workers} | " + " | ".join(cells) + " |",
                          flush=True)


if __name__ == "__main__":
    main()
