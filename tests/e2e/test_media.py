"""Pictures and recordings: the inputs of their models, and which of them share a replay."""

import re

import numpy as np
import pytest

from testing import media, models
from testing.daemon import Daemon, reprise
from testing.inference import assert_same_answer, infer, reference

MODELS = {"recording": media.recording, "one_side": media.picture_of_one_side,
          "compared": media.texts_and_pictures, "end": media.text_end,
          "masked": media.picture_with_mask, "points": media.points_in_parts,
          "strided": media.strided_recording, "image": models.masked_image,
          "listened": media.masked_recording,
          "listened_newer": lambda: media.masked_recording(newer=True)}


NAMED = """parameters { key: "reprise.buckets.sequence" value { string_value: "1024" } }
parameters { key: "reprise.buckets.batch" value { string_value: "4" } }"""


@pytest.fixture(scope="module")
def served(module_repository):
    paths = {name: module_repository.add(name, make()) for name, make in MODELS.items()}
    paths["named"] = module_repository.add("named", media.recording(), config=NAMED)
    with Daemon(module_repository) as daemon:
        yield daemon, paths


def ask(served, name, **inputs):
    daemon, paths = served
    answer = infer(daemon.client(), name, inputs)
    shapes = ", ".join(str(array.shape) for array in inputs.values())
    assert_same_answer(answer.outputs, reference(paths[name], inputs), f"{name}, {shapes}")
    return answer


LARGEST = 163_920  # samples: as many frames as a text has tokens in its largest bucket
FARTHEST = 1 << 20  # sizes for which a model is read


@pytest.mark.parametrize("length", [media.RECORDING_SMALLEST, 512, 777, 1001, 16001])
def test_recordings_are_padded_up_to_their_largest_bucket(served, rng, length):
    """Frames come in steps; samples after the end of a recording are in none that counts."""
    for batch in (1, 3, 4):
        samples = rng.standard_normal((batch, length), np.float32)
        bucket = ask(served, "recording", samples=samples).bucket
        assert length <= int(re.search(r"_s(\d+)$", bucket).group(1)) <= LARGEST


def test_recordings_beyond_the_largest_bucket_open_the_next_one(served, rng):
    samples = rng.standard_normal((1, LARGEST + 80), np.float32)
    bucket = ask(served, "recording", samples=samples).bucket
    assert LARGEST + 80 <= int(re.fullmatch(r"b1_s(\d+)", bucket).group(1)) <= LARGEST * 1.25
    samples = rng.standard_normal((1, FARTHEST + 1), np.float32)
    assert ask(served, "recording", samples=samples).bucket == "exact"


def test_recordings_of_many_lengths_open_few_buckets(served, rng):
    """Before anything is learnt: beyond 512 samples no bucket is listed."""
    recipes, sent, computed = set(), 0, 0
    for length in np.linspace(900, 16000, 40).astype(int):
        answer = ask(served, "strided", samples=rng.standard_normal((1, length), np.float32))
        size = int(re.fullmatch(r"b1_s(\d+)", answer.bucket).group(1))
        assert length <= size <= length * 1.25
        recipes.add(answer.recipe)
        sent, computed = sent + length, computed + size
    assert len(recipes) <= 14
    assert 1 - sent / computed <= 0.25
    # Rows share the opened sizes.
    rows = ask(served, "strided", samples=rng.standard_normal((3, 990), np.float32))
    assert rows.bucket == "b4_s992"
    text = served[0].reprise("explain", "strided")
    assert "longer than 512 opens buckets by itself: 640, 800, 992 and so on up to " in text


@pytest.mark.parametrize("model", ["listened", "listened_newer"])
def test_recordings_with_a_mask_open_as_few_buckets(served, rng, model):
    """Which frames the mask leaves is computed of its sum, as speech models do."""
    recipes = set()
    for length in np.linspace(900, 16000, 60).astype(int):
        mask = np.ones((1, length), np.int64)
        mask[0, rng.integers(500, length + 1):] = 0
        answer = ask(served, model, samples=rng.standard_normal((1, length), np.float32), mask=mask)
        assert length <= int(re.fullmatch(r"b1_s(\d+)", answer.bucket).group(1)) <= length * 1.25 + 5200
        recipes.add(answer.recipe)
    assert len(recipes) <= 14


@pytest.mark.parametrize("model", ["listened", "listened_newer"])
@pytest.mark.parametrize("ends", [(2400, 2400, 2400), (400, 2400, 1111), (0, 2400, 399), (2400, 0, 0), (0,)])
def test_rows_of_recordings_have_masks_of_their_own(served, rng, model, ends):
    """A mask without ones counts frames from the end, as the model does by itself."""
    mask = np.zeros((len(ends), 2400), np.int64)
    for row, end in enumerate(ends):
        mask[row, :end] = 1
    answer = ask(served, model, samples=rng.standard_normal((len(ends), 2400), np.float32), mask=mask)
    assert answer.bucket.endswith("_s5200")


@pytest.mark.parametrize("height,width,bucket", [(513, 40, "height_640_width_64"),
                                                 (600, 700, "height_640_width_800")])
def test_pictures_beyond_the_largest_bucket_open_the_next_one(served, rng, height, width, bucket):
    for rows in (1, 2):
        answer = ask(served, "image", pixels=rng.standard_normal((rows, height, width), np.float32),
                     mask=np.ones((rows, height, width), np.float32))
        assert answer.bucket == f"b1_{bucket}"


def test_recordings_of_several_lengths_share_a_bucket_that_is_named(served, rng):
    recipes = set()
    for batch, length in [(3, 777), (4, 1001), (3, 1024), (4, media.RECORDING_SMALLEST)]:
        answer = ask(served, "named", samples=rng.standard_normal((batch, length), np.float32))
        assert answer.bucket == "b4_s1024"
        recipes.add(answer.recipe)
    assert len(recipes) == 1


@pytest.mark.parametrize("side", [224, 240])
def test_pictures_of_the_only_side_share_a_batch(served, rng, side):
    recipes = {}
    for batch in (1, 5, 8):
        picture = rng.standard_normal((batch, 3, side, side), np.float32)
        answer = ask(served, "one_side", picture=picture)
        assert answer.bucket == "exact"
        recipes[batch] = answer.recipe
    assert recipes[1] != recipes[5] == recipes[8]


@pytest.mark.parametrize("texts,pictures", [(1, 1), (3, 1), (1, 3), (17, 5), (33, 2)])
def test_pictures_beside_texts_have_buckets_of_rows(served, rng, texts, pictures):
    ids = rng.integers(0, 100, (texts, 7))
    pixels = rng.standard_normal((pictures, 3, 32, 32), np.float32)
    bucket = ask(served, "compared", input_ids=ids, pixel_values=pixels).bucket
    rows = {1: 1, 2: 2, 3: 4, 5: 8, 17: 32, 33: 40}
    assert f"texts_{rows[texts]}" in bucket and f"pictures_{rows[pictures]}" in bucket


@pytest.mark.parametrize("length", [1, 5, 77])
def test_ends_of_texts_are_those_of_each_row(served, rng, length):
    for batch in (1, 3, 8):
        ids = rng.integers(0, 100, (batch, length))
        assert ask(served, "end", input_ids=ids).bucket.startswith("t")  # packed


@pytest.mark.parametrize("height,width", [(32, 32), (40, 24)])
def test_a_mask_that_the_model_makes_does_not_part_a_batch(served, rng, height, width):
    recipes = {}
    for batch in (1, 3, 4):
        picture = rng.standard_normal((batch, 3, height, width), np.float32)
        answer = ask(served, "masked", picture=picture)
        assert answer.bucket == "exact"
        recipes[batch] = answer.recipe
    assert recipes[1] != recipes[3] == recipes[4]


def test_assignments_to_parts_are_answered(served, rng):
    for batch in (1, 3, 16):
        ask(served, "points", points=rng.standard_normal((batch, 7, 2), np.float32))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_described_at_sizes_that_it_takes(served, name):
    done = reprise("check", served[1][name], check=False)
    assert done.returncode == 0, done.stderr
    assert "kernels at" in done.stdout
