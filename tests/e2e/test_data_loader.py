"""`reprise.DataLoader`: batches in Python by torch's arguments, as `reprise feed` makes them."""

import itertools
import json
import sys

import numpy as np
import pytest
from PIL import Image

from testing.daemon import BUILD, SOURCE, reprise

sys.path.insert(0, str(SOURCE / "deploy" / "python"))
from reprise import DataLoader, DistributedSampler  # noqa: E402  (the package is not installed)

SIZE = "Resize([24, 32]), ToTensor"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for i in range(11):
        path = root / ("ants", "bees", "cows")[i % 3] / f"{i:02}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 50, 3)).astype(np.uint8)).save(path)
    return root


def open_loader(path, *arguments, **named):
    return DataLoader(path, *arguments, program_path=str(BUILD / "reprise"), **{"transforms": SIZE, **named})


def saved(folder, tmp_path, *flags, transforms=SIZE):
    file = tmp_path / "saved.npy"
    done = reprise("feed", "-", folder, "--load-only", "--save", file, "--transforms", transforms, *flags,
                   check=False)
    assert done.returncode == 0, done.stderr
    return np.load(file)


def test_batches_are_those_of_feed(folder, tmp_path):
    whole = saved(folder, tmp_path)
    with open_loader(folder, batch_size=4, num_workers=2) as loader:
        assert len(loader) == 3 and len(loader.dataset) == 11 and loader.dataset.classes == ["ants", "bees", "cows"]
        for _ in range(2):
            batches = list(loader)
            assert [len(batch) for batch in batches] == [4, 4, 3]
            assert np.array_equal(np.concatenate([batch.images for batch in batches]), whole)
            assert sum((batch.positions for batch in batches), []) == list(range(11))
            assert np.concatenate([batch.labels for batch in batches]).tolist() == [0] * 4 + [1] * 4 + [2] * 3
    images, labels = batches[0]
    assert images.shape == (4, 3, 24, 32) and labels.shape == (4,)


def test_the_last_batch_is_dropped_and_an_epoch_may_be_left(folder):
    with open_loader(folder, 4, drop_last=True) as loader:
        assert len(loader) == 2 and [len(batch) for batch in loader] == [4, 4]
        assert next(iter(loader)).positions == [0, 1, 2, 3]
        assert [batch.positions[0] for batch in loader] == [0, 4]


def test_a_shuffled_epoch_has_each_image_once_and_the_next_another_order(folder):
    def orders(seed, workers):
        with open_loader(folder, 4, True, num_workers=workers, seed=seed) as loader:
            return [sum((batch.positions for batch in loader), []) for _ in range(2)]
    first = orders(1, 1)
    assert all(sorted(order) == list(range(11)) for order in first) and first[0] != first[1]
    assert orders(1, 3) == first and orders(2, 1) != first


def test_random_transforms_are_the_same_for_any_number_of_workers(folder):
    def images(workers):
        with open_loader(folder, 4, num_workers=workers, seed=5,
                         transforms="RandomResizedCrop(16), ColorJitter(0.4), ToTensor, RandomHorizontalFlip") as loader:
            return [np.concatenate([batch.images for batch in loader]) for _ in range(2)]
    first, second = images(1)
    assert not np.array_equal(first, second)
    assert np.array_equal(images(3), [first, second])


def test_a_sampler_decides_the_order(folder, tmp_path):
    whole = saved(folder, tmp_path)
    with open_loader(folder, 3, sampler=[7, 0, 7, 2]) as loader:
        assert len(loader) == 2
        first, second = loader
        assert np.array_equal(first.images, whole[[7, 0, 7]]) and second.positions == [2]
    with open_loader(folder, 3, sampler=[11]) as loader:
        with pytest.raises(RuntimeError, match="the sampler names image 11, the set has 11"):
            list(loader)
    with pytest.raises(ValueError, match="shuffle"):
        open_loader(folder, 3, True, sampler=[1])


@pytest.mark.parametrize("drop, each", [(False, 3), (True, 2)])
def test_parts_of_a_distributed_epoch(folder, drop, each):
    parts = []
    for rank in range(4):
        sampler = DistributedSampler(range(11), 4, rank, seed=3, drop_last=drop)
        sampler.set_epoch(2)
        with open_loader(folder, 2, sampler=sampler) as loader:
            parts.append(sum((batch.positions for batch in loader), []))
    assert [len(part) for part in parts] == [each] * 4
    seen = list(itertools.chain(*parts))
    assert len(set(seen)) == (8 if drop else 11)


@pytest.mark.parametrize("flags, each", [([], 3), (["--drop-uneven"], 2)])
def test_feed_loads_the_part_of_a_replica(folder, tmp_path, flags, each):
    whole = saved(folder, tmp_path)
    parts = [saved(folder, tmp_path, "--replica", f"{rank}/4", *flags) for rank in range(4)]
    for rank, part in enumerate(parts):
        order = [i * 4 + rank for i in range(each)]
        assert np.array_equal(part, whole[np.array(order) % 11])
    for wrong in "4/4", "1", "-1/4", "0/0":
        done = reprise("feed", "-", folder, "--load-only", "--replica", wrong, check=False)
        assert done.returncode != 0 and "replica" in done.stderr


def test_a_damaged_image_ends_the_epoch_or_is_left_out(folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for i, path in enumerate(sorted(folder.rglob("*.png"))):
        (copy / f"{i}.png").write_bytes(path.read_bytes() if i != 5 else b"no image")
    with open_loader(copy, 4) as loader:
        with pytest.raises(RuntimeError, match="png"):
            list(loader)
    with open_loader(copy, 4, skip_damaged=True) as loader:
        assert sum(len(batch) for batch in loader) == 10
    with pytest.raises(RuntimeError, match="nowhere"):
        open_loader(tmp_path / "nowhere")


def flip(folder, tmp_path, transforms):
    return saved(folder, tmp_path, "--seed", "3", transforms=transforms)


def test_a_flip_after_to_tensor_has_the_same_bits(folder, tmp_path):
    norm = "Normalize(0.4, 0.2)"
    usual = flip(folder, tmp_path, f"Resize([24, 32]), RandomHorizontalFlip, ToTensor, {norm}")
    assert not np.array_equal(usual, flip(folder, tmp_path, f"{SIZE}, {norm}"))
    for after in (f"{SIZE}, RandomHorizontalFlip, {norm}", f"{SIZE}, {norm}, RandomHorizontalFlip"):
        assert np.array_equal(flip(folder, tmp_path, after), usual)


def ssd300():
    """Default boxes by the formulas of the paper: centers and sizes, [8732, 4]."""
    boxes = []
    for side, step, size, following, ratios in (
            (38, 8, 21, 45, [2]), (19, 16, 45, 99, [2, 3]), (10, 32, 99, 153, [2, 3]),
            (5, 64, 153, 207, [2, 3]), (3, 100, 207, 261, [2]), (1, 300, 261, 315, [2])):
        s, mean = size / 300, np.sqrt(size * following) / 300
        shapes = [(s, s), (mean, mean)]
        for ratio in ratios:
            shapes += [(s * np.sqrt(ratio), s / np.sqrt(ratio)), (s / np.sqrt(ratio), s * np.sqrt(ratio))]
        for w, h in shapes:
            for i, j in itertools.product(range(side), repeat=2):
                boxes.append([(j + 0.5) * step / 300, (i + 0.5) * step / 300, w, h])
    return np.clip(np.array(boxes), 0, 1)


def corners(boxes):
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)


def matched(objects, labels):
    """Encodes boxes as the reference implementation of SSD does: [8732, 4] and [8732]."""
    defaults = ssd300()
    a, b = objects[:, None], corners(defaults)[None]
    sides = np.clip(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0, None)
    both = sides.prod(-1)
    overlaps = both / ((a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - both)
    best, of = overlaps.max(0), overlaps.argmax(0)
    nearest = overlaps.argmax(1)
    best[nearest] = 2
    for number, box in enumerate(nearest):
        of[box] = number
    boxes, classes = defaults.copy(), np.zeros(len(defaults), np.int64)
    mask = best > 0.5
    chosen = objects[of[mask]]
    boxes[mask] = np.concatenate([(chosen[:, :2] + chosen[:, 2:]) / 2, chosen[:, 2:] - chosen[:, :2]], axis=1)
    classes[mask] = labels[of[mask]]
    return boxes, classes


def test_objects_are_matched_with_default_boxes(tmp_path):
    rng = np.random.default_rng(1)
    images, annotations = [], []
    for i in range(3):
        Image.fromarray(rng.integers(0, 256, (200, 300, 3)).astype(np.uint8)).save(tmp_path / f"{i}.jpg")
        images.append({"id": i, "file_name": f"{i}.jpg", "width": 300, "height": 200})
        for _ in range(2 * i):
            x, y = rng.uniform(0, 150), rng.uniform(0, 100)
            annotations.append({"id": len(annotations), "image_id": i, "category_id": int(rng.integers(1, 4)) * 7,
                                "bbox": [x, y, rng.uniform(20, 150), rng.uniform(20, 100)]})
    file = tmp_path / "instances.json"
    file.write_text(json.dumps({"images": images, "annotations": annotations,
                                "categories": [{"id": 7 * n, "name": f"kind{n}"} for n in (1, 2, 3)]}))
    with open_loader(tmp_path, 3, annotations=file, default_boxes="ssd300",
                     transforms="Resize([300, 300]), ToTensor, RandomHorizontalFlip") as loader:
        batch, = loader
        pictures, boxes, labels = batch
    assert pictures.shape == (3, 3, 300, 300) and boxes.shape == (3, 8732, 4) and labels.shape == (3, 8732)
    assert [len(own) for own in batch.boxes] == [0, 2, 4]
    assert not labels[0].any() and np.allclose(boxes[0], ssd300(), atol=1e-6)
    for row in 1, 2:
        own = batch.boxes[row]
        wanted, classes = matched(own[:, 1:] / 300, own[:, 0].astype(np.int64) + 1)
        assert np.array_equal(labels[row], classes) and classes.any()
        assert np.allclose(boxes[row], wanted, atol=1e-5)
    with pytest.raises(RuntimeError, match="known are: ssd300"):
        open_loader(tmp_path, 3, annotations=file, default_boxes="ssd512", transforms=SIZE)
