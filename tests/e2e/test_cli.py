"""The command line against the real daemon."""

import json
import re

import numpy as np
import pytest

from testing import models
from testing.daemon import SOURCE, Daemon, free_ports, reprise
from testing.inference import infer, text_inputs
from testing.repository import MINILM, PADDED

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


@pytest.fixture(scope="module")
def daemon(module_repository):
    module_repository.add("minilm", MINILM, config=PADDED)
    module_repository.add("elementwise", models.elementwise())
    with Daemon(module_repository) as daemon:
        yield daemon


def test_health_exits_0_when_ready_and_1_when_not(daemon):
    daemon.reprise("health")
    daemon.reprise("health", "minilm")
    assert daemon.reprise("health", "nonsense", check=False).returncode == 1
    assert json.loads(daemon.reprise("health", "--json")) == {"ready": True}
    refused = daemon.reprise("health", "nonsense", "--json", check=False)
    answer = json.loads(refused.stdout)
    assert refused.returncode == 1 and not answer["ready"] and answer["model"] == "nonsense" and answer["reason"]


def test_infer_shows_outputs_and_how_they_were_served(daemon):
    text = daemon.reprise("infer", "minilm", "--length", "40", "--batch", "2")
    assert "last_hidden_state" in text and "2x40x384" in text
    assert "b2_s64" in text and "captured" in text


def test_one_address_serves_every_command(daemon):
    """Over each port the server tells which the other one is."""
    for server in (daemon.grpc_address, f"grpc://{daemon.grpc_address}", daemon.http_url):
        assert "is ready" in reprise("health", "minilm", "--server", server)
        assert "minilm" in reprise("ps", "--server", server)
    for wrong in ("nonsense", "ftp://host:1"):
        done = reprise("ps", "--server", wrong, check=False)
        assert done.returncode == 1 and "must be HOST:PORT" in done.stderr


def test_models_are_listed_described_loaded_and_unloaded(daemon, module_repository):
    listed = json.loads(daemon.reprise("models", "--json"))["models"]
    assert {(one["name"], one["state"]) for one in listed} == {("minilm", "READY"), ("elementwise", "READY")}
    assert re.search(r"^minilm +1 +READY$", daemon.reprise("models"), re.M)
    assert re.search(r"^input +input_ids +INT64 +\?x\?$", daemon.reprise("metadata", "minilm"), re.M)
    metadata = json.loads(daemon.reprise("metadata", "minilm", "--json"))
    assert [one["name"] for one in metadata["inputs"]] == NAMES
    assert daemon.reprise("metadata").startswith("reprise ")
    assert 'name: "minilm"' in daemon.reprise("config", "minilm")
    assert json.loads(daemon.reprise("config", "minilm", "--json"))["name"] == "minilm"
    running = json.loads(daemon.reprise("ps", "--json"))
    assert {one["model"] for one in running["models"]} == {"minilm", "elementwise"}
    refused = daemon.reprise("unload", "minilm", check=False)
    assert refused.returncode == 1 and "--model-control-mode is none" in refused.stderr
    with Daemon(module_repository, "--model-control-mode", "explicit") as explicit:
        assert explicit.reprise("load", "elementwise") == "model 'elementwise' is loaded\n"
        assert explicit.reprise("unload", "elementwise") == "model 'elementwise' is unloaded\n"
        missing = explicit.reprise("load", "nonsense", check=False)
        assert missing.returncode == 1 and "NOT_FOUND" in missing.stderr


def test_infer_takes_inputs_from_the_command_line(daemon):
    assert "4 -3" in daemon.reprise("infer", "elementwise", "--inputs", '{"x": [[1.5, -2.0]]}')


def test_infer_takes_inputs_from_json(daemon, tmp_path):
    file = tmp_path / "inputs.json"
    file.write_text(json.dumps({"x": [[1.5, -2.0]]}))
    assert "4 -3" in daemon.reprise("infer", "elementwise", "--inputs", str(file))


def test_errors_are_one_line_and_exit_1(daemon):
    done = daemon.reprise("infer", "nonsense", check=False)
    assert done.returncode == 1
    assert "NOT_FOUND" in done.stderr and "nonsense" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_bench_measures_and_tells_buckets_apart(daemon):
    text = daemon.reprise("bench", "minilm", "--requests", "40", "--concurrency", "4",
                          "--lengths", "bimodal:10,100,0.5")
    assert "40 requests in" in text and "0 failed" in text
    assert "p99" in text and "_s16" in text and "_s128" in text


@pytest.mark.parametrize("bucket, at, kernel", [
    ("t64", "batch 1, sequence 64, packed", "segment_attention"),
    ("b2_s32", "batch 2, sequence 32,", "attention"),
    ("batch=1,sequence=50", "batch 1, sequence 50,", "attention"),
])
def test_a_profile_lists_the_launches_of_a_bucket(bucket, at, kernel):
    text = reprise("bench", "--profile", str(MINILM), "--bucket", bucket)
    assert at in text.splitlines()[0]
    assert kernel in text and "gemm" in text and "whole replay" in text


def test_a_graph_is_shown_behind_the_passes_that_were_asked_for():
    symbolic = reprise("graph", str(MINILM))
    assert "f32[batch, sequence" not in symbolic  # only inputs know their shapes
    assert "input %input_ids: i64[batch, sequence]" in symbolic and "Softmax(" in symbolic
    packed = reprise("graph", str(MINILM), "--bucket", "t64")
    assert "reprise.SegmentAttention(" in packed and "Softmax(" not in packed
    padded = reprise("graph", str(MINILM), "--sizes", "batch=2,sequence=32",
                     "--without", "fuse_attention")
    assert "Softmax(" in padded and "reprise.Attention(" not in padded
    each = reprise("graph", str(MINILM), "--bucket", "b2_s32", "--each")
    assert re.search(r"^// \d+ nodes after fuse_attention, which took", each, re.M)
    assert re.search(r"^// fuse_conv changes nothing$", each, re.M)
    wrong = reprise("graph", str(MINILM), "--after", "fuse_atention", check=False)
    assert wrong.returncode == 2 and "fuse_attention" in wrong.stderr


def test_a_launch_of_a_model_and_of_its_stored_recipe_runs_by_itself(module_repository, tmp_path):
    listed = reprise("replay", str(MINILM), "--bucket", "t64")
    (number,) = re.findall(r"^ *(\d+) segment_attention\S* .*$", listed, re.M)[:1]
    text = reprise("replay", str(MINILM), "--bucket", "t64", "--launch", number, "--repeats", "3",
                   "--values")
    assert f"launch {number} of " in text and "segment_attention" in text
    assert "us in the median of 3 runs" in text and "output 0:" in text and "nan" not in text
    store = tmp_path / "store"
    with Daemon(module_repository, "--recipe-cache", str(store)) as daemon:
        daemon.reprise("infer", "minilm", "--length", "40")
    recipe = max(store.glob("recipe-*.rps"), key=lambda path: path.stat().st_size)
    stored = reprise("replay", str(recipe), "--launch", "0", "--weights", str(MINILM))
    assert "stored recipe of minilm version 1, b1_s64" in stored and "launch 0 of " in stored
    wrong = reprise("replay", str(recipe), "--launch", "0", "--bucket", "t64", check=False)
    assert wrong.returncode == 2 and "has its bucket already" in wrong.stderr


def test_recipes_dump_and_stats_agree_with_the_answer(daemon, rng):
    answer = infer(daemon.client(), "minilm", text_inputs(NAMES, 1, 200, rng))
    listed = daemon.reprise("recipes", "minilm")
    (line,) = [row for row in listed.splitlines() if answer.recipe in row]
    assert "b1_s256" in line
    dump = daemon.reprise("dump", "--recipe", answer.recipe)
    shouted = daemon.reprise("dump", "--recipe", answer.recipe.upper())
    assert shouted.splitlines()[0] == dump.splitlines()[0] == f"recipe {answer.recipe}"
    assert "input_ids" in dump and "gemm" in dump
    # Places with offset and bytes, none of them empty: the operands of launches.
    places = re.findall(r"(?:arena|input|output)\[(\d+)\+(\d+)\]", dump)
    assert len(places) > 50 and all(int(bytes_) > 0 for _, bytes_ in places)
    parameters = re.findall(r"param\[(\d+),(\d+)\]", dump)
    assert len(parameters) > 20 and all(int(bytes_) > 0 for _, bytes_ in parameters)
    stats = daemon.reprise("stats")
    assert "b1_s256" in stats and "new_shape" in stats


def test_dump_of_a_wrong_key_says_so(daemon):
    assert daemon.reprise("dump", "--recipe", "0000000000000000", check=False).returncode == 1
    assert "xyz" in daemon.reprise("dump", "--recipe", "xyz", check=False).stderr


def test_demo_replays_all_sentences_and_pairs_are_alike(daemon):
    sentences = SOURCE / "deploy/demo_sentences.json"
    text = daemon.reprise("demo", "--sentences", str(sentences), "--metrics",
                          f"127.0.0.1:{daemon.metrics_port}")
    labels = [s["label"] for s in json.loads(sentences.read_text())["sentences"]]
    second = text.split("Second pass")[1].split("Cosine")[0]
    # A larger recipe may be ready on a daemon that others have used: a replay as well.
    assert second.count("replayed") + second.count("larger") == len(labels) >= 12
    matrix = text.split("embeddings:")[1].split("From http")[0].strip().splitlines()[2:]
    values = np.array([[float(v) for v in line[len(label):].split()]
                       for label, line in zip(labels, matrix)])
    assert values.shape == (len(labels), len(labels))
    np.fill_diagonal(values, -1)
    for i in range(len(labels)):  # labels come in pairs: "cat 1", "cat 2"
        assert values[i].argmax() == (i ^ 1), labels[i]
    assert "reprise_compiles_total{" in text and "reprise_replays_total{" in text


def test_unreachable_server_is_one_clear_line():
    (port,) = free_ports(1)
    done = reprise("stats", "--server", f"127.0.0.1:{port}", check=False)
    assert done.returncode == 1
    assert f"no server answers at 127.0.0.1:{port}" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
