"""The recipe stores of replicas become one, with the use counts of each."""

import json
import re

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import infer, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]
INLINE = """parameters { key: "reprise.packing" value { string_value: "off" } }
parameters { key: "reprise.capture" value { string_value: "inline" } }
"""


def compiles_of(daemon):
    return Scrape(daemon.metrics_url).total("reprise_compiles_total")


def use(repository, store, rng, *lengths):
    """Serves requests of these lengths, so that the store knows them; returns their compiles."""
    with Daemon(repository, "--recipe-cache", store) as daemon:
        for length in lengths:
            infer(daemon.client(), "bert", text_inputs(NAMES, 1, length, rng, 200))
        return compiles_of(daemon)


def uses_of(store):
    files = json.loads(reprise("store", "list", store, "--json"))["files"]
    return {row["bucket"]: row["uses"] for row in files if row["kind"] == "recipe" and "uses" in row}


def test_stores_of_replicas_are_merged_with_what_each_has_used(repository, rng, tmp_path):
    repository.add("bert", models.bert(), config=INLINE)
    one, two, pooled = (tmp_path / name for name in ("one", "two", "pooled"))
    assert use(repository, one, rng, 9, 9, 9, 100, 100) == 2
    assert use(repository, two, rng, 9, 9, 300, 300) == 2
    told = reprise("store", "merge", one, two, "--out", pooled)
    assert re.search(r"\d+ records in .*pooled; 1 hold what several servers have learnt", told)
    before = [uses_of(store) for store in (one, two)]
    assert uses_of(pooled) == {bucket: sum(uses.get(bucket, 0) for uses in before)
                               for bucket in ("b1_s16", "b1_s128", "b1_s512")}
    with Daemon(repository, "--frozen", "--recipe-cache", pooled) as daemon:
        for length in (9, 100, 300):
            answer = infer(daemon.client(), "bert", text_inputs(NAMES, 1, length, rng, 200))
            assert answer.capture == "replayed", length
        assert compiles_of(daemon) == 0


def test_damaged_files_are_left_out_and_a_missing_folder_is_named(repository, rng, tmp_path):
    repository.add("bert", models.bert(), config=INLINE)
    one = tmp_path / "one"
    use(repository, one, rng, 9)
    file = next(one.glob("recipe-*.rps"))
    file.write_bytes(file.read_bytes()[:-1])
    assert "1 damaged files are left out" in reprise("store", "merge", one, "--out", tmp_path / "out")
    wrong = reprise("store", "merge", tmp_path / "nowhere", "--out", tmp_path / "out", check=False)
    assert wrong.returncode == 1 and "nowhere' is not a folder" in wrong.stderr
