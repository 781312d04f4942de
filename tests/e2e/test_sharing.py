"""Which models share a recipe: equal graphs with other weights do, any other difference does not."""

import numpy as np

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape

NAMES = ["input_ids", "attention_mask"]
ALL_VERSIONS = "version_policy { all { } }\n"


def test_versions_that_differ_only_in_weights_capture_once(repository, rng):
    # Below 256 elements an initialiser is a constant, and part of the key by value: hence the width.
    repository.add("bert", models.bert(seed=1, hidden=256), version=1, config=ALL_VERSIONS)
    repository.add("bert", models.bert(seed=2, hidden=256), version=2)
    inputs = text_inputs(NAMES, 1, 20, rng, 200)
    with Daemon(repository) as daemon:
        client = daemon.client()
        first = infer(client, "bert", inputs, version="1")
        second = infer(client, "bert", inputs, version="2")
        assert (first.model_version, second.model_version) == ("1", "2")
        assert first.capture == "captured" and second.capture == "replayed"
        assert first.recipe == second.recipe
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model="bert") == 1
    for version, answer in ((1, first), (2, second)):
        assert_same_answer(answer.outputs, reference(repository.path("bert", version), inputs))
    assert not np.allclose(first.outputs["last_hidden_state"], second.outputs["last_hidden_state"])


def test_models_that_differ_only_in_an_epsilon_never_share(repository, rng):
    repository.add("small", models.bert(epsilon=1e-12))
    repository.add("large", models.bert(epsilon=1e-1))
    inputs = text_inputs(NAMES, 1, 20, rng, 200)
    with Daemon(repository) as daemon:
        client = daemon.client()
        answers = {name: infer(client, name, inputs) for name in ("small", "large")}
        assert answers["small"].recipe != answers["large"].recipe
        assert [a.capture for a in answers.values()] == ["captured", "captured"]
        scrape = Scrape(daemon.metrics_url)
        for name in answers:
            assert scrape.total("reprise_compiles_total", model=name) == 1
    for name, answer in answers.items():
        assert_same_answer(answer.outputs, reference(repository.path(name), inputs), name)
