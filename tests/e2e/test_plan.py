"""`reprise plan` on length files, and on the lengths that came to a server."""

import itertools
import json
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import infer, text_inputs
from testing.repository import PADDED


def plan(*arguments, check=True):
    return reprise("plan", *arguments, check=check)


def boundaries_of(text, k):
    """Returns the solver's and the percentiles' boundaries in the last table."""
    lines = re.split(r"solver's boundaries +percentiles", text)[1].splitlines()
    (cells,) = [line.split() for line in lines if line.split()[:1] == [str(k)]]
    return [[int(size) for size in cell.split(",")] for cell in cells[1:]]


def padded(lengths, boundaries):
    bucket = np.asarray(boundaries)[np.searchsorted(boundaries, lengths)]
    return int((bucket - lengths).sum())


def test_the_plan_is_the_optimum_of_exhaustive_search(tmp_path, rng):
    file = tmp_path / "lengths.txt"
    for _ in range(5):
        lengths = rng.choice(np.sort(rng.choice(np.arange(1, 200), 14, replace=False)), 300)
        file.write_text("\n".join(map(str, lengths)))
        text = plan(file)
        distinct = sorted(set(lengths))
        for k in (1, 2, 4):
            best = min(padded(lengths, sorted({*chosen, distinct[-1]}))
                       for chosen in itertools.combinations(distinct, k - 1))
            assert padded(lengths, boundaries_of(text, k)[0]) == best


def test_percentiles_are_numpys_and_the_solver_beats_them_on_batches(tmp_path, rng):
    file = tmp_path / "lengths.csv"
    lengths = np.clip(rng.lognormal(np.log(115), 0.4, 8765), 20, 867).astype(int)
    file.write_text("length\n" + "\n".join(map(str, lengths)))
    text = plan(file, "--batch", 7)
    longest = [lengths[i:i + 7].max() for i in range(0, len(lengths), 7)]
    assert f"{len(set(longest))} distinct shapes" in text
    for k in (3, 5, 8):
        solved, percentiles = boundaries_of(text, k)
        steps = np.linspace(0, 100, k + 1)[1:]
        assert percentiles == sorted(set(np.percentile(longest, steps, method="lower")))
        assert padded(longest, solved) < padded(longest, percentiles)


def test_a_config_is_judged_and_the_lines_to_paste_are_valid(tmp_path):
    file, config = tmp_path / "lengths.txt", tmp_path / "config.pbtxt"
    file.write_text("\n".join(["30"] * 50 + ["100"] * 50 + ["300"] * 5))
    config.write_text(
        'parameters { key: "reprise.sequence_buckets" value { string_value: "128,256" } }')
    text = plan(file, "--check", config, "-k", 3)
    assert "4.8 % of the rows are longer than 256" in text and "change them" in text
    lines = text.split("for config.pbtxt:\n")[1]
    assert 'key: "reprise.sequence_buckets" value { string_value: "30,100,300" }' in lines
    config.write_text(lines)
    assert "keep them" in plan(file, "--check", config)
    config.write_text(lines.replace("30,", "x,"))
    done = plan(file, "--check", config, check=False)
    assert done.returncode == 1 and "reprise.sequence_buckets" in done.stderr


def test_the_picture_is_well_formed(tmp_path):
    file, svg = tmp_path / "a & b <c>.txt", tmp_path / "plan.svg"
    file.write_text("\n".join(str(1 + i * i % 97) for i in range(200)))
    plan(file, "--svg", svg)
    root = xml.etree.ElementTree.parse(svg).getroot()
    text = " ".join(root.itertext())
    assert "a & b <c>.txt" in text and "percentile" in text and "number of buckets" in text
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 5


def test_one_length_is_a_plan_too(tmp_path):
    file, svg = tmp_path / "one.txt", tmp_path / "one.svg"
    file.write_text("7\n")
    text = plan(file, "--svg", svg)
    assert 'string_value: "7"' in text and "nan" not in text and "nan" not in svg.read_text()


def test_a_bad_file_is_one_line_with_the_place(tmp_path):
    file = tmp_path / "lengths.txt"
    file.write_text("5\nfive\n")
    done = plan(file, check=False)
    assert done.returncode == 1
    assert "lengths.txt:2: 'five' is not a length" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_server_is_planned_for_by_the_lengths_and_times_that_it_saw(repository, tmp_path, rng):
    repository.add("bert", models.bert(), config=PADDED)
    repository.add("idle", models.bert(seed=1), config=PADDED)
    lengths = [int(length) for length in rng.choice([9, 30, 31, 100, 200], 150)]
    with Daemon(repository) as daemon:
        client = daemon.client()
        for length in lengths:
            infer(client, "bert", text_inputs(["input_ids", "attention_mask"], 1, length, rng, 200))
        text = plan("--from", daemon.grpc_address, "-k", 3)
        assert f"bert version 1 at {daemon.grpc_address}: 150 lengths" in text
        assert "5 distinct shapes, from 9 to 200" in text
        assert "time: measured replays, against replays at the exact length" in text
        # The cost of recipes there is known as well.
        assert "memory of the recipes\n" in text and "iB" in text.split("memory of the recipes")[1]
        assert " ms" in text.split("\ncaptures\n")[1]
        done = plan("--from", daemon.grpc_address, "--model", "idle", check=False)
        assert done.returncode == 1 and "no request came to model 'idle' yet" in done.stderr
        done = plan("--from", daemon.grpc_address, "--model", "nobody", check=False)
        assert done.returncode == 1 and "nobody" in done.stderr
        done = plan("--from", daemon.grpc_address, "--model", "bert", "--axis", "height", check=False)
        assert done.returncode == 1 and "no axis 'height'; it has: batch, sequence" in done.stderr
    # The lines to paste are such as a server takes.
    lines = text.split("for config.pbtxt:\n")[1]
    (repository.root / "bert" / "config.pbtxt").write_text(PADDED + lines)
    with Daemon(repository) as daemon:
        answer = infer(daemon.client(), "bert",
                       text_inputs(["input_ids", "attention_mask"], 1, 9, rng, 200))
        assert answer.bucket == f"b1_s{boundaries_of(text, 3)[0][0]}"
    done = plan("--from", "127.0.0.1:1", check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


def test_replicas_are_as_many_as_the_percentile_takes(tmp_path):
    file = tmp_path / "lengths.txt"
    file.write_text("8\n" * 50 + "128\n" * 50)
    ask = ("--replicas", "--rate", 400, "--times", "8:1,128:12", "--p99-ms", 40, "--streams", 2)
    found = json.loads(plan(file, *ask, "--memory-mb", 300, "--json"))
    # 2.6 streams of work, on servers with two each.
    assert found["mean_ms"] == pytest.approx(6.5)
    loads = {one["replicas"]: one for one in found["loads"]}
    assert min(loads) == 2 and loads[2]["utilization"] == pytest.approx(0.65)
    assert loads[found["replicas"]]["p99_ms"] <= 40
    assert found["cores"] == 2 * found["replicas"] and found["memory_mb"] == 300 * found["replicas"]
    assert f"{found['replicas']} servers keep 99 % within 40 ms: {found['cores']} cores" in plan(file, *ask)
    done = plan(file, "--replicas", "--rate", 400, "--times", "8:1,128:12", "--p99-ms", 10, check=False)
    assert done.returncode == 1 and "takes 12 ms by itself" in done.stderr
    done = plan(file, "--replicas", "--rate", 400, "--p99-ms", 10, check=False)
    assert done.returncode == 1 and "--times" in done.stderr
    done = plan(file, "--replicas", "--p99-ms", 10, check=False)
    assert done.returncode == 2 and "--rate" in done.stderr
    done = plan(file, "--replicas", "--rate", 400, "--times", "8:1,128:12", check=False)
    assert done.returncode == 2 and "--p99-ms or --servers" in done.stderr


def test_load_of_servers_that_share_cores_is_told(tmp_path):
    file = tmp_path / "lengths.txt"
    file.write_text("8\n" * 50 + "128\n" * 50)
    ask = ("--replicas", "--rate", 200, "--times", "8:1,128:12", "--servers", 4)
    own = json.loads(plan(file, *ask, "--json"))["loads"]
    shared = json.loads(plan(file, *ask, "--cores", 2, "--overhead-ms", 1, "--json"))
    assert [one["replicas"] for one in own] == [one["replicas"] for one in shared["loads"]] == [4]
    assert shared["cores"] == 2 and "p99_ms" not in shared
    assert shared["loads"][0]["utilization"] == pytest.approx(200 * 7.5 / 1000 / 2)
    assert shared["loads"][0]["p99_ms"] > own[0]["p99_ms"] + 1
    assert "all on 2 cores" in plan(file, *ask, "--cores", 2)
