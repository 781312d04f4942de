"""Axes through convolutions and pools: audio, images, lines of text are padded to buckets."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from testing import windows
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference
from testing.metrics import Scrape

SIZES = 40

# Each model has a maker of the shape of one row, from the size along each axis that moves.
MODELS = {
    "wav2vec": (windows.wav2vec, lambda n, _: (n + 400,), "900,2000"),
    "wav2vec_large": (lambda: windows.wav2vec(large=True), lambda n, _: (n + 400,), "900,2000"),
    "wav2vec_whole": (lambda: windows.wav2vec(stack=windows.WHOLE_STACK, places=(128, 16)),
                      lambda n, _: (20 * n + 400,), "8000,16400"),
    "listener": (windows.listener, lambda n, _: (16, n), "256,1000"),
    "conformer": (windows.conformer, lambda n, _: (n + 7, 16), "256,1000"),
    "text_line": (windows.text_line, lambda n, _: (1, 16, n + 8), "256,1000"),
    "resnet": (windows.resnet, lambda n, m: (3, 32 + n % 96, 32 + m % 96), "64,128"),
    "inception": (windows.inception, lambda n, m: (3, 32 + n % 96, 32 + m % 96), "64,128"),
    "detector": (windows.detector, lambda n, m: (3, 32 + n % 96, 32 + m % 96), "64,128"),
    "neck": (lambda: windows.yolo(decodes=False),
             lambda n, m: (3, 32 + 32 * (n % 4), 32 + 32 * (m % 4)), "64,128"),
    "yolo": (windows.yolo,
             lambda n, m: (3, 32 + 32 * (n % 4), 32 + 32 * (m % 4)), "64,128"),
    "anchored": (windows.anchored,
                 lambda n, m: (3, 32 + 32 * (n % 4), 32 + 32 * (m % 4)), "64,128"),
}
IMAGES = ("resnet", "inception", "detector", "neck", "yolo", "anchored")


@pytest.mark.parametrize("name", MODELS)
def test_every_size_is_answered_from_few_captures(repository, rng, name):
    make, shape_of, buckets = MODELS[name]
    images = name in IMAGES
    keys = ("buckets.height", "buckets.width") if images else ("sequence_buckets",)
    config = "".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{buckets}" }} }}\n'
                     for key in keys)
    config += 'parameters { key: "reprise.max_batch_tokens" value { string_value: "131072" } }\n'
    path = repository.add(name, make(), config=config)
    shapes = [shape_of(*rng.integers(1, 800, 2)) for _ in range(SIZES)]
    requests = [{"x": rng.standard_normal((int(rng.integers(1, 3)), *shape), np.float32)}
                for shape in shapes]
    with Daemon(repository) as daemon:
        client = daemon.client()
        for inputs in requests:
            answer = infer(client, name, inputs)
            assert answer.bucket != "exact", inputs["x"].shape
            assert_same_answer(answer.outputs, reference(path, inputs),
                               f"{answer.bucket} of {inputs['x'].shape}")
        # The same in batches of mixed sizes.
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(lambda inputs: infer(daemon.client(), name, inputs), requests)
            for inputs, answer in zip(requests, answers):
                assert_same_answer(answer.outputs, reference(path, inputs), answer.bucket)
        scrape = Scrape(daemon.metrics_url)
        axes = 2 if images else 1
        rows = 6  # buckets of the batch, at most
        assert scrape.total("reprise_compiles_total", model=name) <= rows * 2**axes
        assert scrape.total("reprise_withheld_answers_total", model=name) == 0
        # The verdict on an axis is about the form that is served.
        assert "is never padded" not in daemon.log()


def test_a_neck_is_padded_to_multiples_of_its_stride_alone(repository, rng):
    """A map that is doubled and joined with an earlier one takes few sizes beside those."""
    path = repository.add("neck", windows.yolo(), config="".join(
        f'parameters {{ key: "reprise.buckets.{axis}" value {{ string_value: "50,100" }} }}\n'
        for axis in ("height", "width")))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for height, width, bucket in ((32, 64, True), (96, 128, True), (57, 64, False), (61, 122, False)):
            inputs = {"x": rng.standard_normal((3, 3, height, width), np.float32)}
            answer = infer(client, "neck", inputs)
            assert (answer.bucket != "exact") == bucket, answer.bucket
            assert_same_answer(answer.outputs, reference(path, inputs), f"{height} x {width}")
        with pytest.raises(Exception, match="inputs 0 and 1 differ in dim 2"):
            infer(client, "neck", {"x": rng.standard_normal((1, 3, 100, 64), np.float32)})
        text = daemon.reprise("explain", "neck")
        assert "buckets  64, 128" in text
        assert "sizes that are no multiples of 32 are not padded" in text


def test_recordings_are_padded_without_configuration(repository, rng):
    """Where hundreds of samples make one position, buckets are counted in positions."""
    path = repository.add("speech", windows.wav2vec(stack=windows.WHOLE_STACK, places=(128, 16)))
    with Daemon(repository) as daemon:
        client = daemon.client()
        for samples in (*rng.integers(400, 30000, 12), 16000, 160000):
            inputs = {"x": rng.standard_normal((1, int(samples)), np.float32)}
            answer = infer(client, "speech", inputs)
            assert answer.bucket != "exact", samples
            assert_same_answer(answer.outputs, reference(path, inputs), f"{samples} samples")
        # These sizes lie in seven buckets, each of which is captured once, some of them in the background.
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model="speech") <= 7
