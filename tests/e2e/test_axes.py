"""Buckets of axes that are no lengths of texts: heights and widths, frames; limits on their products."""

import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference
from testing.metrics import Scrape
from testing.patience import wait_until

# Of images, less a few pixels: (height, width).
KINDS = [(90, 400), (200, 120), (330, 210)]


def parameters(**values):
    return "".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
                   for key, value in values.items())


def image(rng, height, width, rows=1):
    return {"pixels": rng.standard_normal((rows, height, width), np.float32),
            "mask": np.ones((rows, height, width), np.float32)}


def audio(rng, frames, rows=1):
    return {"features": rng.standard_normal((rows, frames, 4), np.float32),
            "mask": np.ones((rows, frames), np.float32)}


def some_image(rng):
    height, width = KINDS[rng.integers(len(KINDS))]
    return image(rng, height - int(rng.integers(4)), width - int(rng.integers(4)))


def bucket_of(answer):
    sizes = re.fullmatch(r"b(\d+)_height_(\d+)_width_(\d+)", answer.bucket)
    return tuple(int(size) for size in sizes.groups())


def wait_for_a_change(daemon, send):
    """More of the same traffic until the buckets have changed."""
    wait_until(lambda: Scrape(daemon.metrics_url).total("reprise_bucket_changes_total",
                                                        model="image") >= 1,
               meanwhile=send, explain=daemon.log)


def test_heights_and_widths_follow_the_traffic_together(repository, rng):
    path = repository.add("image", models.masked_image())
    with Daemon(repository) as daemon:
        client = daemon.client()
        infer(client, "image", image(rng, 512, 512))
        wait_for_a_change(
            daemon, lambda: [infer(client, "image", some_image(rng)) for _ in range(32)])
        for height, width in KINDS:
            inputs = image(rng, height - 1, width - 2)
            answer = infer(client, "image", inputs)
            rows, high, wide = bucket_of(answer)
            # The buckets that it began with would be twice as large and more.
            assert height - 1 <= high <= height and width - 2 <= wide <= width, answer.bucket
            assert answer.capture == "replayed"
            assert_same_answer(answer.outputs, reference(path, inputs), answer.bucket)
        text = daemon.reprise("explain", "image")
        in_force = re.search(r"in force height ([\d,]+); width ([\d,]+)", text)
        for sizes in in_force.groups():
            boundaries = [int(size) for size in sizes.split(",")]
            assert len(boundaries) <= 8 and boundaries[-1] == 512
        # A size that was never sent before is served too.
        assert bucket_of(infer(client, "image", image(rng, 400, 30)))[1] == 512


def test_each_axis_has_its_rule_and_their_product_a_limit(repository, rng):
    rules = {"buckets.height": "linear:32,32,96", "buckets.width": "exponential:16,2,128",
             "batch_buckets": "1,2,4"}
    path = repository.add("image", models.masked_image(),
                          config=parameters(**rules, max_batch_tokens=16384))
    repository.add("strict", models.masked_image(), config=parameters(**rules, overflow="reject"))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for (height, width), bucket in {(1, 1): (32, 16), (32, 17): (32, 32), (33, 128): (64, 128),
                                        (96, 65): (96, 128)}.items():
            inputs = image(rng, height, width)
            answer = infer(client, "image", inputs)
            assert bucket_of(answer) == (1, *bucket)
            assert_same_answer(answer.outputs, reference(path, inputs), answer.bucket)
        # 4 rows of 64 x 128 are 32768, twice the limit: two replays.
        inputs = image(rng, 60, 100, rows=4)
        answer = infer(client, "image", inputs)
        assert len(answer.batches) == 2 and bucket_of(answer) == (2, 64, 128)
        assert_same_answer(answer.outputs, reference(path, inputs))
        # 4 of 32 x 64 are within it.
        assert bucket_of(infer(client, "image", image(rng, 20, 50, rows=4))) == (4, 32, 64)
        # Beyond the largest bucket the exact size runs, or is refused by name.
        inputs = image(rng, 97, 20)
        answer = infer(client, "image", inputs)
        assert answer.bucket == "exact"
        assert_same_answer(answer.outputs, reference(path, inputs))
        with pytest.raises(InferenceServerException) as error:
            infer(client, "strict", image(rng, 97, 20))
        assert "axis 'height' has size 97, the largest bucket is 96" in error.value.message()


def test_ranges_refuse_sizes_by_name_and_their_usual_sizes_are_captured_first(repository, rng):
    ranges = {"range.height": "min 8, max 96, multiple 8, usual 40", "range.width": "max 64, usual 48"}
    path = repository.add("image", models.masked_image(), config=parameters(**ranges))
    repository.add("half", models.masked_image(), config=parameters(**{"range.height": "usual 40"}))
    repository.add("wrong", models.masked_image(), config=parameters(**{"range.depth": "max 8"}))
    with Daemon(repository) as daemon:
        client = daemon.client()
        inputs = image(rng, 40, 48)
        first = infer(client, "image", inputs)
        assert (first.capture, bucket_of(first)) == ("replayed", (1, 40, 48))
        assert_same_answer(first.outputs, reference(path, inputs), first.bucket)
        assert bucket_of(infer(client, "image", image(rng, 96, 64)))[1:] == (96, 64)
        for height, width, why in [(44, 48, "'height'.* is 44.*8 to 96 in multiples of 8"),
                                   (104, 48, "'height'.* is 104"), (40, 65, "'width'.* is 65.*at most 64")]:
            with pytest.raises(InferenceServerException, match=why) as error:
                infer(client, "image", image(rng, height, width))
            assert "INVALID_ARGUMENT" in error.value.status()
        refused = daemon.reprise("warmup", "image", "--sizes", "batch=1,height=44,width=8", check=False)
        assert refused.returncode == 1 and "8 to 96 in multiples of 8" in refused.stderr
        assert "sizes are 8 to 96 in multiples of 8" in daemon.reprise("explain", "image")
        reasons = {model["name"]: model.get("reason", "") for model in daemon.readiness()["models"]}
        assert "reprise.range.width has none" in reasons["half"]
        assert "'depth'" in reasons["wrong"] and "height, width" in reasons["wrong"]


def test_frames_of_audio_have_buckets_of_thousands(repository, rng):
    path = repository.add("audio", models.masked_audio(),
                          config=parameters(sequence_buckets="exponential:375,2,3000"))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for frames, bucket in {1: 375, 376: 750, 1499: 1500, 2999: 3000}.items():
            inputs = audio(rng, frames)
            answer = infer(client, "audio", inputs)
            assert answer.bucket == f"b1_s{bucket}"
            assert_same_answer(answer.outputs, reference(path, inputs), answer.bucket)


def test_larger_images_than_any_bucket_get_buckets_of_their_own(repository, rng):
    path = repository.add("image", models.masked_image())
    with Daemon(repository) as daemon:
        client = daemon.client()

        def send():
            inputs = image(rng, int(rng.integers(560, 620)), int(rng.integers(20, 40)))
            return inputs, infer(client, "image", inputs)

        assert bucket_of(send()[1])[1] == 640
        wait_for_a_change(daemon, send)
        for _ in range(20):
            inputs, answer = send()
            assert answer.capture in ("replayed", "larger")
            assert_same_answer(answer.outputs, reference(path, inputs), answer.bucket)
        # Taller than all of them.
        inputs = image(rng, 640, 30)
        answer = infer(client, "image", inputs)
        assert bucket_of(answer)[1] >= 640
        assert_same_answer(answer.outputs, reference(path, inputs), answer.bucket)


def windowed(rng, frames, rows=1):
    return {"features": rng.standard_normal((rows, 3, frames), np.float32),
            "score": rng.standard_normal((rows, frames), np.float32),
            "mask": np.ones((rows, frames), np.float32)}


@pytest.mark.parametrize("window, largest", [(10, 1), (3, 7)])
def test_smaller_requests_than_the_model_takes_are_refused_though_a_bucket_holds_them(
        repository, rng, window, largest):
    path = repository.add("audio", models.windowed_audio(window, largest))
    smallest = max(window, largest)
    with Daemon(repository) as daemon:
        client = daemon.client()
        for frames in (1, 4, smallest - 1):
            with pytest.raises(InferenceServerException, match="INVALID_ARGUMENT"):
                infer(client, "audio", windowed(rng, frames))
        for frames in (smallest, smallest + 1, 40):
            for rows in (1, 3):
                inputs = windowed(rng, frames, rows)
                answer = infer(client, "audio", inputs)
                assert_same_answer(answer.outputs, reference(path, inputs), f"{rows}x{frames}")


@pytest.mark.parametrize("place, smallest", [(0, 1), (1, 2), (-1, 1), (6, 7), (-3, 3), (90, 91)])
def test_a_token_that_a_request_does_not_have_is_refused_though_its_bucket_has_it(
        repository, rng, place, smallest):
    path = repository.add("picked", models.token_at(place))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for tokens in {1, smallest // 2, smallest - 1} - {0, smallest}:
            with pytest.raises(InferenceServerException, match="INVALID_ARGUMENT"):
                infer(client, "picked", {"tokens": rng.standard_normal((2, tokens, 4), np.float32)})
        for tokens in (smallest, smallest + 1, smallest + 20):
            inputs = {"tokens": rng.standard_normal((2, tokens, 4), np.float32)}
            answer = infer(client, "picked", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{place} of {tokens}")


LISTS = 7


def lists(rng, lengths, rows=1):
    return {f"x{i}": rng.standard_normal((rows, length, 64), np.float32)
            for i, length in enumerate(lengths)}


def lists_model():
    """Makes a recommender's lists, each of a length of its own."""
    g = models.Graph(17)
    for i in range(LISTS):
        g.rename(g.node("Erf", g.node("Tanh", f"x{i}")), f"y{i}")
    shapes = [["batch", f"len_{i}", 64] for i in range(LISTS)]
    return g.model([(f"x{i}", models.TensorProto.FLOAT, s) for i, s in enumerate(shapes)],
                   [(f"y{i}", models.TensorProto.FLOAT, s) for i, s in enumerate(shapes)])


def test_a_miss_of_many_axes_makes_room_for_what_came(repository, rng):
    path = repository.add("lists", lists_model())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for _ in range(150):
            inputs = lists(rng, np.clip(rng.lognormal(3, 0.6, LISTS), 1, 100).astype(int))
            answer = infer(client, "lists", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs))
        # Nearly each of them has a bucket that none had before.
        captured = Scrape(daemon.metrics_url).total("reprise_compiles_total", model="lists")
        assert captured < 75, daemon.log()


def test_room_that_is_refused_leaves_requests_their_own_bucket(repository, rng):
    path = repository.add("lists", lists_model(), config=parameters(max_arena_mb="1"))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for i in range(LISTS):
            # Together they are too large.
            inputs = lists(rng, [500 if k == i else 10 for k in range(LISTS)])
            answer = infer(client, "lists", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs))
            assert answer.capture in ("captured", "larger")


def test_one_name_for_every_dim_joins_only_what_the_ops_join(repository, rng):
    path = repository.add("named", models.placeholder_names())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for rows, columns in [(2, 3), (1, 7), (4, 4)]:
            inputs = {"x": rng.standard_normal((rows, columns), np.float32),
                      "mask": np.ones((rows, columns), np.float32)}
            answer = infer(client, "named", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{rows} x {columns}")
        # One row, and one column, of a mask for all.
        for shape in [(1, 3), (2, 1), (1, 1)]:
            mask = rng.integers(0, 2, shape).astype(np.float32)
            inputs = {"x": rng.standard_normal((2, 3), np.float32), "mask": mask}
            answer = infer(client, "named", inputs)
            # The reference takes the file's word for it that both have one shape.
            whole = {**inputs, "mask": np.broadcast_to(mask, (2, 3)).copy()}
            assert_same_answer(answer.outputs, reference(path, whole), f"mask {shape}")
        inputs["mask"] = np.ones((2, 4), np.float32)
        with pytest.raises(InferenceServerException) as error:
            infer(client, "named", inputs)
        assert "is 4 here and 3 in input 'x'" in error.value.message()


@pytest.mark.parametrize("names", [["s", "s"], ["s", "t"], ["?", "?"], [None, None]])
@pytest.mark.parametrize("follows", ["twice", "one more", "three more"])
def test_a_length_that_follows_from_another_may_have_its_name(repository, rng, follows, names):
    pads = {"twice": 0, "one more": 1, "three more": 3}[follows]
    longer = (helper.make_node("Concat", ["x", "x"], ["long"], axis=1) if follows == "twice"
              else helper.make_node("Pad", ["x", "pads"], ["long"]))
    graph = helper.make_graph(
        [longer, helper.make_node("Add", ["long", "p"], ["y"])], "follows",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", length, 3])
         for name, length in zip(["x", "p"], names)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([0, pads, 0, 0, 0, 0]), "pads")])
    path = repository.add("follows", helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    with Daemon(repository) as daemon:
        for rows, length in [(2, 4), (1, 2), (3, 7), (1, 1)]:
            total = 2 * length if follows == "twice" else length + pads
            inputs = {"x": rng.standard_normal((rows, length, 3), np.float32),
                      "p": rng.standard_normal((rows, total, 3), np.float32)}
            answer = infer(daemon.client(), "follows", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{rows} x {length}")


def test_a_mask_may_have_one_head_and_one_query(repository, rng):
    path = repository.add("scores", models.masked_scores())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for mask in [(2, 1, 5, 5), (2, 1, 1, 5), (1, 1, 1, 5), (2, 3, 5, 5), (2, 3, 1, 5),
                     (1, 1, 5, 1)]:
            inputs = {"x": rng.standard_normal((2, 5, 4), np.float32),
                      "mask": rng.standard_normal(mask, np.float32)}
            answer = infer(client, "scores", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"mask {mask}")
