"""`reprise dynamicity`: the sizes that arrive at a server, or stand in a file, and the advice about them."""

import csv
import io
import json
import re
import struct

import grpc
import numpy as np
import pytest
from onnx import TensorProto

from testing import models
from testing.daemon import BUILD, SOURCE, Daemon, reprise
from testing.inference import infer, text_inputs

NAMES = ["input_ids", "attention_mask"]
PADDED = 'parameters { key: "reprise.packing" value { string_value: "off" } }'
FIXED = 'parameters { key: "reprise.sequence_buckets" value { string_value: "16,64" } }'


def reshaped_by_value():
    """x [batch, 8] and the value of `sizes` [2] -> x in that shape."""
    g = models.Graph(13)
    g.rename(g.node("Reshape", "x", "sizes"), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 8]), ("sizes", TensorProto.INT64, [2])],
                   [("y", TensorProto.FLOAT, [None, None])])


def send(client, model, lengths, rng):
    for length in lengths:
        infer(client, model, text_inputs(NAMES, 1, int(length), rng, 200))


def offline(*arguments, check=True):
    return reprise("dynamicity", *arguments, check=check)


def test_each_model_is_judged_by_the_shapes_that_came(repository, rng):
    repository.add("steady", models.bert())
    repository.add("mixed", models.bert(seed=1), config=PADDED)
    repository.add("packed", models.bert(seed=4))
    repository.add("idle", models.bert(seed=2))
    repository.add("fixed", models.bert(seed=3), config=FIXED)
    with Daemon(repository) as daemon:
        client = daemon.client()
        send(client, "steady", [32] * 120, rng)
        send(client, "mixed", rng.integers(1, 200, 240), rng)
        send(client, "packed", rng.integers(1, 200, 120), rng)
        send(client, "fixed", [10] * 60 + [100] * 40, rng)

        assert "idle version 1: no requests yet" in daemon.reprise("dynamicity", "idle")
        steady = daemon.reprise("dynamicity", "steady")
        assert "steady version 1: little dynamicity" in steady
        assert "1x32" in steady
        mixed = daemon.reprise("dynamicity", "mixed")
        assert "mixed version 1: a lot of dynamicity" in mixed
        assert "cause     axis sequence" in mixed
        assert "the buckets follow the traffic" in mixed
        packed = daemon.reprise("dynamicity", "packed")
        assert "a lot of dynamicity" in packed and "requests lie end to end" in packed
        fixed = daemon.reprise("dynamicity", "fixed")
        assert "40.0% of the requests are longer than the largest bucket" in fixed
        assert "let reprise.sequence_buckets end with 100" in fixed
        everything = daemon.reprise("dynamicity")
        for name in ("steady", "mixed", "packed", "idle", "fixed"):
            assert f"{name} version 1: " in everything

        # Every request stands in the CSV, once, under its shape.
        rows = list(csv.DictReader(io.StringIO(daemon.reprise("dynamicity", "mixed", "--csv"))))
        assert sum(int(row["requests"]) for row in rows) == 240
        assert len(rows) == len({row["input_ids"] for row in rows}) > 100
        assert all(row["input_ids"] == row["attention_mask"] for row in rows)

        # Unloaded names are errors of one line.
        done = daemon.reprise("dynamicity", "nobody", check=False)
        assert done.returncode == 1 and "nobody" in done.stderr and "\n" not in done.stderr.strip()

        # The table that a server wrote can be judged without it.
        file = repository.root.parent / "shapes.csv"
        file.write_text(daemon.reprise("dynamicity", "mixed", "--csv"))
        text = offline("--file", file)
        assert "shapes.csv: a lot of dynamicity" in text
        assert "cause     axis input_ids[1], attention_mask[1]" in text


def test_shapes_outside_the_ready_recipes_are_counted(repository, rng):
    repository.add("bert", models.bert(), config=(
        PADDED + 'parameters { key: "reprise.frozen" value { string_value: "true" } }'
        'parameters { key: "reprise.warmup" value { string_value: "b1_s64" } }'))
    with Daemon(repository) as daemon:
        client = daemon.client()
        send(client, "bert", [60] * 20 + [10] * 10, rng)
        for _ in range(10):
            with pytest.raises(Exception, match="."):
                send(client, "bert", [200], rng)
        text = daemon.reprise("dynamicity", "bert")
        assert "25.0 % found no ready recipe that could serve them, 25.0 % ran on a larger" in text
        assert "some dynamicity" in text and "warm up the buckets" in text


def test_values_that_decide_shapes_are_a_cause(repository):
    repository.add("reshaped", reshaped_by_value())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for rows in (2, 4, 8):
            infer(client, "reshaped", {"x": np.ones((4, 8), np.float32),
                                       "sizes": np.array([rows, 32 // rows], np.int64)})
        text = daemon.reprise("dynamicity", "reshaped")
        assert "cause     axis values of shape inputs" in text
        assert "send few different values" in text


def test_the_admin_call_says_the_same_to_other_programs(repository, rng):
    repository.add("bert", models.bert())
    with Daemon(repository) as daemon:
        send(daemon.client(), "bert", [48] + [16] * 60, rng)
        text = daemon.reprise("dynamicity", daemon.grpc_address)
        assert "bert version 1: little dynamicity" in text
        with grpc.insecure_channel(daemon.grpc_address) as channel:
            call = channel.unary_unary("/reprise.v1.Admin/GetDynamicity")
            answer = call(b"", timeout=10)
        assert b"bert" in answer and b"little" in answer and b"1x48" in answer


def test_files_of_shapes_are_judged_without_a_server(tmp_path, rng):
    file = tmp_path / "shapes.txt"
    file.write_text("1x64\n" * 300)
    assert "shapes.txt: little dynamicity" in offline(file)
    file.write_text("".join(f"1x{n}\n" for n in rng.integers(1, 9, 400)))
    assert "some dynamicity" in offline(file)
    file.write_text("".join(f"1x{n}\n" for n in rng.integers(1, 300, 600)))
    text = offline("--file", file)
    assert "a lot of dynamicity" in text and "cause     axis input 1[1]" in text
    assert "steady" in text and "padded to 8 buckets" in text
    # The second half is another traffic.
    file.write_text("".join(f"1x{n}\n" for n in [*rng.integers(1, 100, 300),
                                                 *rng.integers(200, 300, 300)]))
    assert "trend     moving" in offline(file)
    counted = tmp_path / "counted.csv"
    counted.write_text("batch,sequence,count\r\n1,32,900\r\n2,32,50\r\n4,64,50\r\n")
    text = offline(counted)
    assert "requests  1 000" in text and "little dynamicity" in text and "axis batch" in text
    for wrong, words in (("", "no shape"), ("1xa\n", "'1xa' is not a shape"),
                         ("1x-3\n", "'1x-3' is not a shape")):
        file.write_text(wrong)
        done = offline(file, check=False)
        assert done.returncode == 1 and words in done.stderr


def wav(samples):
    data = bytes(2 * samples)
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
            + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data"
            + struct.pack("<I", len(data)) + data)


def test_data_sets_are_judged_as_their_batches(tmp_path):
    lengths = np.random.default_rng(0).integers(4, 444, 2000)
    np.save(tmp_path / "lengths.npy", lengths)
    np.savez_compressed(tmp_path / "lengths.npz", ids=lengths)
    for name in ("lengths.npy", "lengths.npz"):
        text = reprise("dynamicity", tmp_path / name, "--batch", "7", "--pad", "longest")
        assert "a lot of dynamicity" in text and "286" in text  # batches
    report = json.loads(reprise("dynamicity", tmp_path / "lengths.npz", "--batch", "7",
                                "--pad", "buckets:5", "--json"))
    assert report["verdict"] in ("little", "some") and report["distinct"] <= 6
    sounds = tmp_path / "sounds"
    sounds.mkdir()
    for i in range(6):
        (sounds / f"{i}.wav").write_bytes(wav(100 * (1 + i // 3)))
    (sounds / "notes.txt").write_text("not a sound")
    text = reprise("dynamicity", sounds, "--batch", "3")
    assert "3x200" in text and re.search(r"shapes +2;", text)
    assert reprise("dynamicity", tmp_path / "nothing.npz", check=False).returncode == 1


def test_verdicts_of_known_cases(tmp_path):
    """MNIST at batch 7 varies little, 29 sizes in 146 batches of pictures a lot: a fifth of them is new."""
    file = tmp_path / "shapes.txt"
    file.write_text("7x28x28\n" * 8571 + "3x28x28\n")
    assert "little dynamicity" in reprise("dynamicity", file)
    rng = np.random.default_rng(0)
    pictures = [300 + 10 * i for i in range(29)] + list(300 + 10 * rng.integers(0, 4, 117))
    file.write_text("".join(f"1x3x{size}x500\n" for size in pictures))
    text = reprise("dynamicity", file)
    assert "a lot of dynamicity" in text and "19.9 % would find no ready recipe" in text
    assert "nothing:" not in text


def test_batches_of_any_iterable_are_judged_from_python(monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE / "examples/python"))
    from reprise_dynamicity import dynamicity
    batches = [{"x": np.zeros((4, n)), "y": np.zeros(4)} for n in (8, 8, 16, 8)]
    text = dynamicity(batches, reprise=str(BUILD / "reprise"))
    assert "4x16" in text and "requests  4" in text
