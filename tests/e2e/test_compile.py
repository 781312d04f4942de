"""`reprise compile` fills a recipe store without a server; a frozen daemon with it captures nothing."""

import json
import re

import pytest
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import infer, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in {"packing": "off", **parameters}.items())


def compiles_of(daemon):
    return Scrape(daemon.metrics_url).total("reprise_compiles_total")


def folder_of(repository, name, model, **parameters):
    return repository.add(name, model, config=config(**parameters)).parent.parent


def test_a_frozen_daemon_with_the_store_is_ready_and_captures_nothing(repository, rng, tmp_path):
    folder = folder_of(repository, "bert", models.bert())
    store = tmp_path / "store"
    told = reprise("compile", folder, "--buckets", "all", "--out", store)
    assert re.search(r"bert: 33 recipes in .*store, 33 of them compiled now", told)
    with Daemon(repository, "--frozen", "--recipe-cache", store) as daemon:
        assert daemon.readiness()["ready"]
        client = daemon.client()
        for rows, length, bucket in [(1, 3, "b1_s16"), (3, 60, "b4_s64"), (32, 128, "b32_s128"),
                                     (8, 512, "b8_s512")]:
            answer = infer(client, "bert", text_inputs(NAMES, rows, length, rng, 200))
            assert (answer.capture, answer.bucket) == ("replayed", bucket)
        assert compiles_of(daemon) == 0
    # A second time there is nothing to do.
    again = json.loads(reprise("compile", folder, "--buckets", "all", "--out", store, "--json"))
    assert (again["captured"], len(again["recipes"])) == (0, 33)


def test_named_buckets_alone_are_compiled_and_others_are_refused(repository, rng, tmp_path):
    folder = folder_of(repository, "bert", models.bert(), warmup="b1_s512")
    store = tmp_path / "store"
    told = json.loads(reprise("compile", folder, "--buckets", "b2_s32,b1_s16", "--out", store,
                              "--json"))
    assert {one["bucket"] for one in told["recipes"]} == {"b2_s32", "b1_s16"}
    (folder / "config.pbtxt").write_text(config())
    with Daemon(repository, "--frozen", "--recipe-cache", store) as daemon:
        assert infer(daemon.client(), "bert", text_inputs(NAMES, 2, 20, rng, 200)).bucket == "b2_s32"
        with pytest.raises(InferenceServerException, match="frozen"):
            infer(daemon.client(), "bert", text_inputs(NAMES, 1, 100, rng, 200))
        assert compiles_of(daemon) == 0
    wrong = reprise("compile", folder, "--buckets", "b3_s16", "--out", store, check=False)
    assert wrong.returncode == 1 and 'has no bucket "b3_s16"' in wrong.stderr


def test_recipes_are_compiled_for_the_features_of_another_machine(repository, rng, tmp_path):
    folder = folder_of(repository, "bert", models.bert())
    store = tmp_path / "store"
    told = reprise("compile", folder, "--buckets", "b1_s16", "--out", store, "--isa", "baseline",
                   "--gemm-provider", "own")
    assert ", baseline, " in told.splitlines()[-1]
    flags = ("--frozen", "--recipe-cache", store, "--max-isa", "baseline", "--gemm-provider", "own")
    with Daemon(repository, *flags) as daemon:
        answer = infer(daemon.client(), "bert", text_inputs(NAMES, 1, 9, rng, 200))
        assert (answer.capture, compiles_of(daemon)) == ("replayed", 0)
    # The features of this machine are other ones: it captures again, before it is ready, those that are meant
    # to be used.
    with Daemon(repository, "--frozen", "--recipe-cache", store, "--gemm-provider", "own") as daemon:
        assert re.search(r"could not find recipe \w+ \(b1_s16\): it was stored for another device", daemon.log())
        assert Scrape(daemon.metrics_url).by("reprise_compiles_total", "reason")["warmup"] == 1
        answer = infer(daemon.client(), "bert", text_inputs(NAMES, 1, 9, rng, 200))
        assert (answer.capture, compiles_of(daemon)) == ("replayed", 1)
        with pytest.raises(InferenceServerException, match="frozen"):
            infer(daemon.client(), "bert", text_inputs(NAMES, 1, 100, rng, 200))


def test_a_model_file_by_itself_and_what_cannot_be_compiled(repository, rng, tmp_path):
    path = repository.add("bert", models.bert(), config=config())
    # The config.pbtxt beside a file counts, not the repository's.
    for beside, binding in [(None, "segments=8,tokens=16"), (config(), "batch=1,sequence=16")]:
        if beside is not None:
            (path.parent / "config.pbtxt").write_text(beside)
        told = json.loads(reprise("compile", path, "--sizes", "batch=1,sequence=16", "--out",
                                  tmp_path / "store", "--json"))
        assert [one["binding"] for one in told["recipes"]] == [binding]
    missing = reprise("compile", tmp_path / "nowhere", "--out", tmp_path / "store", check=False)
    assert missing.returncode == 1 and "is neither a file nor a folder" in missing.stderr
    # A folder keeps all of its name.
    off = folder_of(repository, "off.v2", models.bert(), capture="off")
    refused = reprise("compile", off, "--out", tmp_path / "store", check=False)
    assert refused.returncode == 1
    assert "'off.v2' captures nothing: reprise.capture is off" in refused.stderr
