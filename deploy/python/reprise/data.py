"""Images as batches of one size, decoded and transformed in threads: `DataLoader`.

The work is done by the program `reprise feed`, which this module reads from. Images, transforms and their
bits are the same as in `reprise feed`; the arguments are torch.utils.data.DataLoader's.
"""

import json
import math
import subprocess

import numpy as np

from .programs import program


class Dataset:
    """The images of a set, by position: `len`, `paths` and the names of `classes`."""

    def __init__(self, paths, classes):
        self.paths, self.classes = paths, classes

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, position):
        return self.paths[position]


class Batch:
    """`images` [rows, 3, height, width] float32 (or channels last, uint8, without ToTensor); for each row its
    position in the set, its label (-1: none) and its boxes, [objects, 5] with label, left, top, right, bottom in
    pixels. With `default_boxes`: `target_boxes` [rows, boxes, 4], center and size in parts of the image, and
    `target_labels` [rows, boxes], 0 for the background."""

    def __init__(self, images, positions, labels, boxes, target_boxes=None, target_labels=None):
        self.images, self.positions, self.labels, self.boxes = images, positions, labels, boxes
        self.target_boxes, self.target_labels = target_boxes, target_labels

    def __len__(self):
        return len(self.images)

    def __iter__(self):
        """Yields pairs (images, labels); with default boxes (images, boxes, labels) that are to be found."""
        if self.target_boxes is None:
            return iter((self.images, self.labels))
        return iter((self.images, self.target_boxes, self.target_labels))


class DistributedSampler:
    """The part of process `rank` of `num_replicas`: as torch's, all parts have equally many images."""

    def __init__(self, dataset, num_replicas, rank, shuffle=True, seed=0, drop_last=False):
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank is {rank}, of {num_replicas}")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        each = len(self.dataset) / self.num_replicas
        return math.floor(each) if self.drop_last else math.ceil(each)

    def __iter__(self):
        count = len(self.dataset)
        # All processes draw the same order.
        order = np.random.default_rng([self.seed, self.epoch]).permutation(count) if self.shuffle else np.arange(count)
        order = np.resize(order, len(self) * self.num_replicas)
        return iter(order[self.rank::self.num_replicas].tolist())


class DataLoader:
    """Batches of the images at `path`: a folder (with one for each class), a list, or COCO's with `annotations`.

        loader = reprise.DataLoader("photos", batch_size=32, shuffle=True, num_workers=4,
                                    transforms="Resize(256), CenterCrop(224), ToTensor")
        for images, labels in loader:
            ...

    transforms     as `reprise feed --transforms`
    batch_size     rows of a batch; the last one has fewer, or is left out with `drop_last`
    shuffle        again in each epoch; `sampler` gives an order instead: anything that can be iterated over for
                   the positions of an epoch, torch's samplers among them
    num_workers    threads; 0: one for each CPU. Batches have the same bits for any number
    seed           of the order and of random transforms, which depend on it, the epoch and the position alone
    skip_damaged   leaves images out that cannot be decoded
    default_boxes  "ssd300": matches the objects of each image with these

    Iterating over it is an epoch, one at a time.
    """

    _process = None  # also where the arguments are refused

    def __init__(self, path, batch_size=1, shuffle=False, sampler=None, num_workers=0, drop_last=False, *,
                 transforms="ToTensor", annotations=None, seed=1, skip_damaged=False, default_boxes=None,
                 program_path=None):
        if shuffle and sampler is not None:
            raise ValueError("sampler decides the order: shuffle has to be False")
        if batch_size < 1 or num_workers < 0:
            raise ValueError(f"batch_size is {batch_size}, num_workers is {num_workers}")
        self.batch_size, self.shuffle, self.sampler, self.drop_last = batch_size, shuffle, sampler, drop_last
        self.seed, self._epoch, self._running = seed, 0, False
        self._command = [program_path or program("reprise"), "feed", "-", str(path), "--load-only", "--stream",
                         "--orders", "--batch", str(batch_size), "--threads", str(num_workers),
                         "--seed", str(seed), "--transforms", transforms,
                         "--last", "drop" if drop_last else "send"]
        if annotations is not None:
            self._command += ["--annotations", str(annotations)]
        if skip_damaged:
            self._command.append("--skip-damaged")
        if default_boxes is not None:
            self._command += ["--default-boxes", default_boxes]
        self._start()

    def _start(self):
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
        head = self._line()
        self.dataset = Dataset(head["paths"], head["classes"])

    def _line(self):
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        fault = self._process.stderr.read().decode(errors="replace").strip()
        self.close()
        raise RuntimeError(fault or "the loader has ended")

    def _array(self, dtype, shape):
        array = np.empty(shape, dtype)
        left = memoryview(array).cast("B") if array.size else b""
        while left:
            read = self._process.stdout.readinto(left)
            if not read:
                raise RuntimeError("the loader has ended")
            left = left[read:]
        return array

    def _order(self):
        if self.sampler is not None:
            return [int(position) for position in self.sampler]
        if self.shuffle:
            return np.random.default_rng([self.seed, self._epoch]).permutation(len(self.dataset)).tolist()
        return range(len(self.dataset))

    def __len__(self):
        """Returns how many batches an epoch has."""
        rows = len(self.dataset) if self.sampler is None else len(self.sampler)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    def __iter__(self):
        if self._process is None:
            self._start()
        while self._running:  # an epoch that was left early: random transforms count whole ones
            self._next()
        self._epoch += 1
        order = self._order()
        self._process.stdin.write((" ".join(map(str, order)) + "\n").encode())
        self._process.stdin.flush()
        self._running = True
        while (batch := self._next()) is not None:
            yield batch

    def _next(self):
        head = self._line()
        if "epoch" in head:
            self._running = False
            return None
        return self._batch(head)

    def _batch(self, head):
        images = self._array(head["dtype"], head["shape"])
        rows, boxes, labels = len(images), None, None
        if "targets" in head:
            boxes = self._array(np.float32, (rows, head["targets"], 4))
            labels = self._array(np.int64, (rows, head["targets"]))
        return Batch(images, head["index"],
                     np.array([-1 if label is None else label for label in head["label"]], np.int64),
                     [np.array(own, np.float64).reshape(-1, 5) for own in head["boxes"]], boxes, labels)

    def close(self):
        """Ends the program; the next epoch starts it again."""
        process, self._process, self._running = self._process, None, False
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in process.stdin, process.stdout, process.stderr:
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()
