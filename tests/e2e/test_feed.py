"""`reprise feed`: Pillow's pixels bit for bit, data sets, batches of one size, and a model that reads them."""

import io
import json
import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageEnhance, ImageOps

from testing.daemon import Daemon, reprise
from testing.inference import reference

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
NORMALIZE = f"Normalize({MEAN}, {STD})"


def picture(rng, width, height):
    """Smooth, with noise and an edge: nothing that a JPEG would be all noise of."""
    y, x = np.mgrid[:height, :width]
    base = np.stack([x * 255 / width, y * 255 / height, (x + y) % 256], -1)
    base[:, width // 3:width // 2] = rng.integers(0, 256, 3)
    return Image.fromarray(np.clip(base + rng.normal(0, 12, base.shape), 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of many kinds, in folders of classes."""
    rng = np.random.default_rng(3)
    root = tmp_path_factory.mktemp("images")
    for name in ("ants", "bees", "cows"):
        (root / name).mkdir()
    for i, (width, height) in enumerate([(320, 240), (239, 401), (64, 64), (500, 75)]):
        picture(rng, width, height).save(root / "ants" / f"{i}.jpg", quality=90)
        picture(rng, width, height).save(root / "bees" / f"{i}.png")
    image = picture(rng, 200, 150)
    image.convert("L").save(root / "cows" / "grey.jpg")
    image.save(root / "cows" / "progressive.JPEG", progressive=True, subsampling=0)
    image.convert("CMYK").save(root / "cows" / "cmyk.jpg")
    image.convert("P").save(root / "cows" / "palette.png")
    image.convert("1").save(root / "cows" / "bits.png")
    alpha = image.copy()
    alpha.putalpha(Image.fromarray(rng.integers(0, 256, (150, 200)).astype(np.uint8)))
    alpha.save(root / "cows" / "alpha.png")
    (root / "cows" / "notes.txt").write_text("no image")
    return root


def paths_of(folder):
    return [path for name in sorted(p.name for p in folder.iterdir())
            for path in sorted((folder / name).iterdir()) if path.suffix != ".txt"]


def load(images, transforms, tmp_path, *flags, check=True):
    """Returns the loader's batches of the images, and its stderr."""
    file = tmp_path / "loaded.npy"
    done = reprise("feed", "-", images, "--load-only", "--save", file, "--transforms", transforms,
                   *flags, check=False)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return np.load(file), done.stderr


def opened(path):
    with Image.open(path) as image:
        return image.convert("RGB")


def resized(image, size, how=Image.BILINEAR):
    width, height = image.size
    if width <= height:
        return image.resize((size, int(size * height / width)), how)
    return image.resize((int(size * width / height), size), how)


def center(image, size):
    width, height = image.size
    if width < size or height < size:
        left, top = max(0, size - width) // 2, max(0, size - height) // 2
        image = ImageOps.expand(image, (left, top, max(0, size - width) - left,
                                        max(0, size - height) - top))
        width, height = image.size
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.crop((left, top, left + size, top + size))


def tensor(image):
    return np.asarray(image, np.float32).transpose(2, 0, 1) / np.float32(255)


def normalized(image):
    shape = (3, 1, 1)
    return ((tensor(image) - np.array(MEAN, np.float32).reshape(shape))
            / np.array(STD, np.float32).reshape(shape))


CASES = {
    "Resize(96), CenterCrop(80), ToTensor, " + NORMALIZE:
        lambda image: normalized(center(resized(image, 96), 80)),
    "Resize([70, 90]), ToTensor": lambda image: tensor(image.resize((90, 70), Image.BILINEAR)),
    "Resize([300, 310])": lambda image: np.asarray(image.resize((310, 300), Image.BILINEAR)),
    "Resize([70, 90], interpolation=bicubic)":
        lambda image: np.asarray(image.resize((90, 70), Image.BICUBIC)),
    "Resize([70, 90], interpolation=nearest)":
        lambda image: np.asarray(image.resize((90, 70), Image.NEAREST)),
    "CenterCrop(150), ToTensor": lambda image: tensor(center(image, 150)),
    "Resize([40, 50]), RandomHorizontalFlip(1), ToTensor":
        lambda image: tensor(ImageOps.mirror(image.resize((50, 40), Image.BILINEAR))),
    "Resize([40, 50]), ColorJitter(brightness=[1.3, 1.3])":
        lambda image: np.asarray(ImageEnhance.Brightness(
            image.resize((50, 40), Image.BILINEAR)).enhance(1.3)),
    "Resize([40, 50]), ColorJitter(contrast=[0.4, 0.4])":
        lambda image: np.asarray(ImageEnhance.Contrast(
            image.resize((50, 40), Image.BILINEAR)).enhance(0.4)),
    "Resize([40, 50]), ColorJitter(saturation=[1.7, 1.7])":
        lambda image: np.asarray(ImageEnhance.Color(
            image.resize((50, 40), Image.BILINEAR)).enhance(1.7)),
}


@pytest.mark.parametrize("transforms", CASES)
def test_pixels_are_those_of_pillow(folder, tmp_path, transforms):
    ours, _ = load(folder, transforms, tmp_path, "--batch", 4)
    paths = paths_of(folder)
    assert len(ours) == len(paths)
    for path, element in zip(paths, ours):
        expected = CASES[transforms](opened(path))
        assert element.shape == expected.shape and element.dtype == expected.dtype
        np.testing.assert_array_equal(element, expected, err_msg=path.name)


def test_hues_are_those_of_pillow(folder, tmp_path):
    ours, _ = load(folder, "Resize([40, 50]), ColorJitter(hue=[0.2, 0.2])", tmp_path)
    for path, element in zip(paths_of(folder), ours):
        hsv = np.array(opened(path).resize((50, 40), Image.BILINEAR).convert("HSV"))
        hsv[..., 0] += np.uint8(0.2 * 255)
        expected = np.asarray(Image.frombytes("HSV", (50, 40), hsv.tobytes()).convert("RGB")).astype(int)
        assert np.abs(element.astype(int) - expected).max() <= 1, path.name


def test_random_transforms_hang_on_the_seed_and_on_no_thread(folder, tmp_path):
    transforms = "RandomResizedCrop(48), RandomHorizontalFlip, ColorJitter(0.4, 0.4, 0.4), ToTensor"
    one, _ = load(folder, transforms, tmp_path, "--threads", 1, "--batch", 3, "--epochs", 2)
    many, _ = load(folder, transforms, tmp_path, "--threads", 7, "--batch", 3, "--epochs", 2)
    other, _ = load(folder, transforms, tmp_path, "--seed", 2, "--batch", 3, "--epochs", 2)
    np.testing.assert_array_equal(one, many)
    assert not np.array_equal(one, other)
    half = len(one) // 2
    assert not np.array_equal(one[:half], one[half:]), "both epochs drew the same"


def test_a_shuffled_epoch_holds_each_image_once(folder, tmp_path):
    plain, _ = load(folder, "Resize([16, 16])", tmp_path)
    shuffled, _ = load(folder, "Resize([16, 16])", tmp_path, "--shuffle")
    assert not np.array_equal(plain, shuffled)
    assert sorted(row.tobytes() for row in plain) == sorted(row.tobytes() for row in shuffled)


@pytest.mark.parametrize("last, images", [("pad", 14), ("drop", 12)])
def test_the_last_batch_is_padded_or_dropped(folder, tmp_path, last, images):
    ours, text = load(folder, "Resize([16, 16])", tmp_path, "--batch", 4, "--last", last)
    assert len(ours) == images
    assert f"{images} images in" in text


@pytest.mark.parametrize("transforms, cause", [
    ("Resize([9, 9], interpolation=bicubic)",
     "14 of 14 images took the plain path: Resize([9, 9], interpolation=bicubic): interpolation"),
    ("RandomHorizontalFlip, Resize([9, 9])", "Resize([9, 9]) behind RandomHorizontalFlip"),
    ("CenterCrop(100)", "CenterCrop(100) of an image of 75 x 500: the fast path pads nothing"),
    ("Resize([9, 9])", "1 of 14 images took the plain path: a JPEG file in CMYK")])
def test_a_line_says_which_parameter_took_the_plain_path(folder, tmp_path, transforms, cause):
    _, text = load(folder, transforms, tmp_path)
    assert cause in text


def test_lists_have_classes_and_paths_of_their_own_folder(folder, tmp_path):
    paths = paths_of(folder)[:3]
    (folder / "list.txt").write_text(
        "".join(f"{path.relative_to(folder)}\t{i}\n" for i, path in enumerate(paths)) + "\n")
    try:
        ours, _ = load(folder / "list.txt", "Resize([16, 16])", tmp_path)
        (folder / "list.txt").write_text("ants/0.jpg\tseven\n")
        done = load(folder / "list.txt", "Resize([16, 16])", tmp_path, check=False)
    finally:
        (folder / "list.txt").unlink()
    assert len(ours) == 3
    assert done.returncode == 1 and "line 1" in done.stderr and "seven" in done.stderr


def test_coco_names_images_and_boxes(folder, tmp_path):
    annotations = {
        "images": [{"id": 7, "file_name": "bees/0.png"}, {"id": 3, "file_name": "ants/1.jpg"}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}],
        "annotations": [{"image_id": 7, "category_id": 18, "bbox": [10, 20, 100, 100]},
                        {"image_id": 3, "category_id": 1, "bbox": [0, 0, 50.5, 60]}]}
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(annotations))
    ours, _ = load(folder, "Resize([16, 16])", tmp_path, "--annotations", file)
    for element, name in zip(ours, ["ants/1.jpg", "bees/0.png"]):
        np.testing.assert_array_equal(
            element, np.asarray(opened(folder / name).resize((16, 16), Image.BILINEAR)))
    ours, text = load(folder, "RandomIoUCrop, Resize([30, 30]), ToTensor", tmp_path,
                      "--annotations", file, "--epochs", 5)
    assert len(ours) == 10 and "plain path" not in text
    for change, words in [
            (("annotations", 0, "bbox", [1, 2]), "annotations[0]: its \"bbox\""),
            (("annotations", 1, "image_id", 99), "annotations[1]: its image"),
            (("annotations", 1, "category_id", "dog"), "annotations[1]: its class"),
            (("images", 1, "file_name", None), "images[1]"),
            (("images", 1, "id", 7), "images[1]: its \"id\" is there twice")]:
        bad = json.loads(json.dumps(annotations))
        bad[change[0]][change[1]][change[2]] = change[3]
        file.write_text(json.dumps(bad))
        done = load(folder, "Resize([16, 16])", tmp_path, "--annotations", file, check=False)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    file.write_text("[1, 2")
    done = load(folder, "Resize([16, 16])", tmp_path, "--annotations", file, check=False)
    assert done.returncode == 1 and "not a JSON object" in done.stderr


def test_damaged_files_are_errors_with_their_path(tmp_path):
    rng, chance = np.random.default_rng(5), random.Random(5)
    image = picture(rng, 120, 90)
    for kind in ("jpeg", "png"):
        stream = io.BytesIO()
        image.save(stream, kind)
        whole = stream.getvalue()
        path = tmp_path / f"bad.{'jpg' if kind == 'jpeg' else 'png'}"
        refused = 0
        for trial in range(25):
            data = bytearray(whole)
            if trial % 2:
                del data[chance.randrange(len(data)):]
            for _ in range(chance.randrange(1, 30)):
                if data:
                    data[chance.randrange(len(data))] = chance.randrange(256)
            path.write_bytes(data)
            done = load(tmp_path, "Resize([16, 16])", tmp_path, check=False)
            assert done.returncode in (0, 1), (trial, done)
            if done.returncode:
                assert path.name in done.stderr
                refused += 1
        assert refused > 5, "damage is not seen"
        path.unlink()


def test_damaged_files_are_skipped_and_counted_where_that_is_asked_for(tmp_path):
    rng = np.random.default_rng(5)
    for i in range(5):
        picture(rng, 40 + i, 30).save(tmp_path / f"{i}.png")
    rows, _ = load(tmp_path, "Resize([16, 16])", tmp_path)
    (tmp_path / "2x.png").write_bytes(b"no picture")
    (tmp_path / "9.png").write_bytes((tmp_path / "3.png").read_bytes()[:40])
    done = load(tmp_path, "Resize([16, 16])", tmp_path, "--batch", "2", "--skip-damaged", check=False)
    assert done.returncode == 0, done
    assert "2 of 7 images were skipped" in done.stderr
    assert "2x.png: " in done.stderr and "9.png: " in done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "loaded.npy"), rows)
    for i in range(5):
        (tmp_path / f"{i}.png").unlink()
    none = load(tmp_path, "Resize([16, 16])", tmp_path, "--skip-damaged", check=False)
    assert none.returncode == 1 and "no image can be used" in none.stderr


def test_a_giant_that_a_header_announces_costs_nothing(tmp_path):
    image = Image.new("L", (30, 30))
    stream = io.BytesIO()
    image.save(stream, "png")
    data = bytearray(stream.getvalue())
    data[16:24] = (60000).to_bytes(4, "big") * 2
    import zlib
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    (tmp_path / "giant.png").write_bytes(data)
    done = load(tmp_path, "Resize([16, 16])", tmp_path, check=False)
    assert done.returncode == 1
    assert "giant.png" in done.stderr and "60000 x 60000" in done.stderr


def classifier(size, classes, dtype=TensorProto.FLOAT):
    """Scores of flattened pixels."""
    weights = np.random.default_rng(2).normal(0, 0.02, (3 * size * size, classes)).astype(np.float32)
    channels_last = dtype == TensorProto.UINT8
    shape = ["n", size, size, 3] if channels_last else ["n", 3, size, size]
    nodes = [helper.make_node("Cast", ["image"], ["x"], to=TensorProto.FLOAT),
             helper.make_node("Flatten", ["x"], ["flat"]),
             helper.make_node("MatMul", ["flat", "w"], ["scores"])]
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("image", dtype, shape)],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", classes])],
        [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_model_answers_for_each_image(repository, folder, tmp_path):
    transforms = "Resize(40), CenterCrop(32), ToTensor, " + NORMALIZE
    # Two batches that wait together would be one of eight.
    path = repository.add("pixels", classifier(32, 5), config=(
        'parameters { key: "reprise.batch_buckets" value { string_value: "4" } }\n'))
    repository.add("bytes", classifier(32, 5, TensorProto.UINT8))
    expected = reference(path, {"image": np.stack(
        [normalized(center(resized(opened(p), 40), 32)) for p in paths_of(folder)])})["scores"]
    with Daemon(repository) as daemon:
        lines = daemon.reprise("feed", "pixels", folder, "--transforms", transforms, "--batch", 4,
                               "--top", 2).splitlines()
        assert [line.split("\t")[0] for line in lines] == [str(p) for p in paths_of(folder)]
        for line, scores in zip(lines, expected):
            best = [one.split(" ") for one in line.split("\t")[1:]]
            assert [int(place) for place, _ in best] == np.argsort(-scores)[:2].tolist()
            np.testing.assert_allclose([float(s) for _, s in best], np.sort(scores)[::-1][:2],
                                       atol=2e-4)
        *images, summary = map(json.loads, daemon.reprise(
            "feed", "pixels", folder, "--transforms", transforms, "--batch", 4, "--json").splitlines())
        assert [one["image"] for one in images] == [str(p) for p in paths_of(folder)]
        assert [one["classes"][0]["class"] for one in images] == expected.argmax(1).tolist()
        assert summary["images"] == len(images) and summary["images_per_second"] > 0
        recipes = daemon.reprise("recipes")
        assert recipes.count("pixels") == 1, "one size of batch is one recipe\n" + recipes
        bytes_lines = daemon.reprise("feed", "bytes", folder, "--transforms",
                                     "Resize(40), CenterCrop(32)", "--batch", 4).splitlines()
        assert len(bytes_lines) == len(lines)
        for model, text, words in [
                ("pixels", "Resize(40), CenterCrop(33), ToTensor", ["33", "32", "image"]),
                ("pixels", "Resize(40), CenterCrop(32)", ["UINT8", "FP32"]),
                ("bytes", "Resize(40), CenterCrop(32), ToTensor", ["UINT8", "FP32"])]:
            done = reprise("feed", model, folder, "--server", daemon.grpc_address, "--transforms",
                           text, check=False)
            assert done.returncode == 1
            for word in words:
                assert word in done.stderr
