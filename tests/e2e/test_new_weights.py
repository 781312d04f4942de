"""New weights by request: recipes stay, and each answer is of the old or of the new ones as a whole."""

import json
import struct
import threading

import numpy as np
import onnx
import pytest
import requests
from onnx import TensorProto, numpy_helper

from testing import decoders, models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference
from testing.metrics import Scrape

FLOAT = TensorProto.FLOAT


def layers(seed, hidden=48, cut=False):
    """Makes two products; with `cut` a section follows whose size data decide."""
    g, rng = models.Graph(17), np.random.default_rng(seed)
    weights = [g.const(rng.normal(0, 1, shape), hint="weight") for shape in ((16, hidden), (hidden, 4))]
    made = g.node("Relu", g.node("MatMul", "x", weights[0]))
    if cut:
        kept = g.node("Greater", g.node("Gather", "x", g.scalar(0, np.int64), axis=1), g.scalar(0.0))
        made = g.node("Compress", made, kept, axis=0)
    g.rename(g.node("MatMul", made, weights[1]), "y")
    return g.model([("x", FLOAT, ["batch", 16])], [("y", FLOAT, ["rows", 4])])


def post(daemon, model, weights, version=None, **more):
    place = model if version is None else f"{model}/versions/{version}"
    return requests.post(f"{daemon.http_url}/v2/repository/models/{place}/weights", data=weights,
                         timeout=60, **more)


def safetensors(tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = value.astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def compiles(daemon, model):
    return Scrape(daemon.metrics_url).total("reprise_compiles_total", model=model)


@pytest.mark.parametrize("form", ["onnx", "safetensors"])
@pytest.mark.parametrize("cut", [False, True])
def test_recipes_stay_and_answers_are_of_the_new_weights(repository, tmp_path, rng, form, cut):
    old, new = layers(0, cut=cut), layers(1, cut=cut)
    path = repository.add("m", old)
    other = tmp_path / "new.onnx"
    onnx.save(new, other)
    x = {"x": rng.normal(0, 1, (6, 16)).astype(np.float32)}
    weights = new.SerializeToString() if form == "onnx" else safetensors(
        {one.name: numpy_helper.to_array(one) for one in new.graph.initializer
         if one.name.startswith("weight")})
    with Daemon(repository) as daemon:
        client = daemon.client()
        assert_same_answer(infer(client, "m", x).outputs, reference(path, x))
        before = compiles(daemon, "m")
        answer = post(daemon, "m", weights)
        assert answer.status_code == 200, answer.text
        again = infer(client, "m", x)
        assert_same_answer(again.outputs, reference(other, x))
        assert again.capture == "replayed" and compiles(daemon, "m") == before


def test_a_part_of_the_weights_leaves_the_others_as_they_are(repository, tmp_path, rng):
    old, new = layers(0), layers(1)
    first = [one.name for one in old.graph.initializer][0]
    mixed = onnx.ModelProto()
    mixed.CopyFrom(old)
    mixed.graph.initializer[0].CopyFrom(new.graph.initializer[0])
    onnx.save(mixed, tmp_path / "mixed.onnx")
    repository.add("m", old)
    x = {"x": rng.normal(0, 1, (6, 16)).astype(np.float32)}
    with Daemon(repository) as daemon:
        sent = safetensors({first: numpy_helper.to_array(new.graph.initializer[0])})
        assert post(daemon, "m", sent, version=1).status_code == 200
        assert_same_answer(infer(daemon.client(), "m", x).outputs,
                           reference(tmp_path / "mixed.onnx", x))


@pytest.mark.parametrize("weights, words", [
    (layers(1, hidden=40).SerializeToString(), "of another graph"),
    (b"nothing of the kind", ""),
    (safetensors({"bias": np.zeros(3)}), "'bias', which is no initialiser"),
    (safetensors({"weight_1": np.zeros((3, 4))}), "'weight_1' is float32[3, 4]")])
def test_other_weights_are_refused_and_the_old_ones_stay(repository, rng, weights, words):
    path = repository.add("m", layers(0))
    x = {"x": rng.normal(0, 1, (6, 16)).astype(np.float32)}
    with Daemon(repository) as daemon:
        answer = post(daemon, "m", weights)
        assert answer.status_code == 400 and words in answer.json()["error"], answer.text
        assert_same_answer(infer(daemon.client(), "m", x).outputs, reference(path, x))
        assert post(daemon, "n", weights).status_code == 404


def test_requests_meanwhile_are_of_old_or_new_weights_as_a_whole(repository, tmp_path, rng):
    """A model in two pieces, whose weights change while clients ask: no answer mixes them."""
    forms = [layers(seed, cut=True) for seed in (0, 1)]
    # One bucket for as many clients as share a replay.
    buckets = 'parameters { key: "reprise.batch_buckets" value { string_value: "32" } }'
    paths = [repository.add("m", forms[0], config=buckets), tmp_path / "new.onnx"]
    onnx.save(forms[1], paths[1])
    x = {"x": rng.normal(0, 1, (6, 16)).astype(np.float32)}
    whole = [reference(path, x)["y"] for path in paths]
    faults, stop = [], threading.Event()

    def ask(client):
        while not stop.is_set():
            got = infer(client, "m", x).outputs["y"]
            if not any(np.allclose(got, one, rtol=1e-4, atol=1e-4) for one in whole):
                faults.append(got)

    with Daemon(repository) as daemon:
        infer(daemon.client(), "m", x)
        before = compiles(daemon, "m")
        threads = [threading.Thread(target=ask, args=(daemon.client(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(6):
            answer = post(daemon, "m", forms[(i + 1) % 2].SerializeToString())
            assert answer.status_code == 200, answer.text
        stop.set()
        for thread in threads:
            thread.join()
        assert not faults and compiles(daemon, "m") == before


def test_new_weights_are_a_right_of_admin(repository, tmp_path):
    repository.add("m", layers(0))
    keys = tmp_path / "keys"
    keys.write_text(f"user {'u' * 20} infer,observe\nroot {'r' * 20} admin\n")
    with Daemon(repository, "--api-key-file", keys) as daemon:
        weights = layers(1).SerializeToString()
        status = [post(daemon, "m", weights, headers=headers).status_code
                  for headers in ({}, {"Authorization": "Bearer " + "u" * 20},
                                  {"Authorization": "Bearer " + "r" * 20})]
        assert status == [401, 403, 200]
