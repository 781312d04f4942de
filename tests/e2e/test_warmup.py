"""Ready means primed: which captures come before readiness, how far it is, and which events end it."""

import json
import re
import signal

import numpy as np
import pytest
from onnx import TensorProto
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until

NAMES = ["input_ids", "attention_mask"]


def config(**parameters):
    parameters.setdefault("packing", "off")
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


def warmup_of(daemon):
    return daemon.readiness()["models"][0]["warmup"]


def wait_for_warmup(daemon):
    """Follows the warm-up, as a person would, until nothing of it is left."""
    return daemon.reprise("warmup", "bert")


def test_without_a_list_nothing_is_captured_before_readiness(repository):
    repository.add("bert", models.bert(), config=config())
    with Daemon(repository) as daemon:
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0
        assert daemon.readiness() == {
            "ready": True, "state": "serving", "models": [{"name": "bert", "version": "1", "state": "READY"}]}


def test_a_warm_model_serves_every_bucket_and_captures_nothing_for_a_request(repository, rng):
    repository.add("bert", models.bert(), config=config(warmup="all"))
    with Daemon(repository) as daemon:
        client = daemon.client()
        # The largest are there: nothing waits, whatever comes first.
        for rows, length in [(1, 3), (8, 512), (32, 128), (16, 200), (2, 77)]:
            answer = infer(client, "bert", text_inputs(NAMES, rows, length, rng, 200))
            assert answer.capture in ("replayed", "larger"), (rows, length, answer.capture)
        assert "33 of 33 recipes are ready" in wait_for_warmup(daemon)
        for rows, length, bucket in [(1, 3, "b1_s16"), (3, 60, "b4_s64"), (8, 512, "b8_s512")]:
            answer = infer(client, "bert", text_inputs(NAMES, rows, length, rng, 200))
            assert (answer.capture, answer.bucket) == ("replayed", bucket)
        scrape = Scrape(daemon.metrics_url)
        reasons = scrape.by("reprise_compiles_total", "reason", model="bert")
        assert {reason for reason, count in reasons.items() if count} == {"warmup"}
        assert scrape.total("reprise_warmup_done") == scrape.total("reprise_warmup_wanted")
        assert re.search(r"warm-up: 3 of 3 recipes after .*\n(.*\n)*.*ready: 1 models", daemon.log())


def test_a_lengths_file_chooses_what_is_warmed_up(repository, rng):
    path = repository.add("bert", models.bert(),
                          config=config(warmup_lengths="lengths.txt", warmup_ready="all"))
    (path.parent.parent / "lengths.txt").write_text("# seen last week\n12 900\n40 100\n")
    with Daemon(repository) as daemon:
        buckets = {line.split()[3] for line in daemon.reprise("recipes").splitlines()[2:]}
        assert buckets == {"b1_s16", "b32_s16", "b1_s64", "b32_s64"}


def test_a_bucket_that_the_model_does_not_have_refuses_the_model(repository):
    repository.add("bert", models.bert(), config=config(warmup="b1_s17"))
    with Daemon(repository) as daemon:
        model = daemon.readiness()["models"][0]
        assert model["state"] == "UNAVAILABLE" and "b1_s17" in model["reason"]


def test_memory_ends_a_warmup_early_and_says_so(repository):
    repository.add("bert", models.bert(), config=config(warmup="all", warmup_memory_mb=1))
    with Daemon(repository) as daemon:
        state = warmup_of(daemon)
        assert state["done"] < state["wanted"]
        assert "reprise.warmup_memory_mb" in state["stopped"]
        done = daemon.reprise("warmup", "bert", check=False)
        assert done.returncode == 1 and "reprise.warmup_memory_mb" in done.stderr


def test_a_packed_model_is_warmed_up_by_either_kind_of_label(repository, rng):
    repository.add("bert", models.bert(),
                   config=config(packing="auto", warmup="t64,b4_s64,b2_s512", warmup_ready="all"))
    with Daemon(repository) as daemon:
        state = warmup_of(daemon)
        assert state["done"] == state["wanted"] == 3
        for rows, length, bucket in [(1, 64, "t64"), (4, 64, "t256"), (2, 500, "t1024")]:
            answer = infer(daemon.client(), "bert", text_inputs(NAMES, rows, length, rng, 200))
            assert (answer.capture, answer.bucket) == ("replayed", bucket)


def test_a_frozen_daemon_serves_what_was_warmed_up(repository, rng):
    repository.add("bert", models.bert(), config=config(warmup="b4_s64"))
    with Daemon(repository, "--frozen") as daemon:
        client = daemon.client()
        assert infer(client, "bert", text_inputs(NAMES, 4, 60, rng, 200)).capture == "replayed"
        assert infer(client, "bert", text_inputs(NAMES, 1, 5, rng, 200)).capture == "larger"
        with pytest.raises(InferenceServerException, match="nearest that is ready is b4_s64"):
            infer(client, "bert", text_inputs(NAMES, 1, 100, rng, 200))


def test_the_command_warms_up_a_running_daemon(repository, rng):
    repository.add("bert", models.bert(), config=config())
    with Daemon(repository) as daemon:
        assert "2 of 2 recipes are ready" in daemon.reprise("warmup", "bert", "--buckets",
                                                            "b1_s16,b2_s32")
        answer = infer(daemon.client(), "bert", text_inputs(NAMES, 2, 20, rng, 200))
        assert (answer.capture, answer.bucket) == ("replayed", "b2_s32")
        wrong = daemon.reprise("warmup", "bert", "--buckets", "b3_s16", check=False)
        assert wrong.returncode == 1 and "b3_s16" in wrong.stderr


def test_explain_shows_the_certificate_and_each_capture(repository, rng):
    repository.add("bert", models.bert(), config=config())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for length in (60, 100):
            infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
        text = daemon.reprise("explain", "bert")
        assert re.search(r"axis sequence.*: safe to pad", text)
        assert "no node lets a position see the padding after it" in text
        assert re.search(r"free     .*input_ids", text)
        assert re.search(r"#2 .*b1_s128 .*new_shape", text)
        assert "nearest  b1_s64: sequence 64, needed 128" in text
        assert "waited   1 request, at most" in text
        assert 'avoid    reprise.warmup: "b1_s128"' in text
        assert daemon.reprise("explain").count("nearest") == 2


def test_a_warmup_ends_where_the_daemon_does(repository):
    repository.add("bert", models.bert(hidden=256, layers=12),
                   config="max_batch_size: 64\n" + config(
                       warmup="all", warmup_ready="all", warmup_seconds=0))
    daemon = Daemon(repository)
    daemon.start()
    try:
        wait_until(lambda: "warm-up: 1 of" in daemon.log())
        daemon.process.terminate()
        assert daemon.process.wait(60) == 0
    finally:
        daemon.kill()
    assert re.search(r"recipes are left out: the server is stopping", daemon.log())


def row(length):
    return {"x": np.linspace(-1, 1, length, dtype=np.float32)[None]}


def test_exact_sizes_are_captured_ahead_where_no_bucket_can_be(repository):
    repository.add("mixes", models.mixes_sequence(),
                   config=config(warmup="batch=1,sequence=10; batch=1,sequence=12"))
    with Daemon(repository) as daemon:
        client = daemon.client()
        # The largest is there when the model is ready, the other one a little later.
        wait_until(lambda: warmup_of(daemon)["done"] == 2)
        assert warmup_of(daemon)["failed"] == 0
        for length in (10, 12):
            answer = infer(client, "mixes", row(length))
            assert answer.capture == "replayed" and answer.bucket == "exact"
        assert "3 of 3 recipes" in daemon.reprise("warmup", "mixes", "--sizes",
                                                  "batch=1,sequence=14")
        assert infer(client, "mixes", row(14)).capture == "replayed"
        told = daemon.reprise("warmup", "mixes", "--all")
        assert "may not be padded" in told
        assert "captured for all 3 of 3 sizes that requests have had" in told
        wrong = daemon.reprise("warmup", "mixes", "--sizes", "sequence=14", check=False)
        assert wrong.returncode == 1 and "no axis batch" in wrong.stderr


def test_sizes_that_the_model_does_not_take_are_refused_with_both_numbers(repository):
    repository.add("audio", models.windowed_audio(9, 4))
    with Daemon(repository) as daemon:
        wrong = daemon.reprise("warmup", "audio", "--sizes", "batch=1,sequence=3", check=False)
        assert wrong.returncode == 1 and "INVALID_ARGUMENT" in wrong.stderr
        assert "takes sizes of 9 and more along axis sequence, not 3" in wrong.stderr


def found():
    """Makes the elements above 0, doubled by a product, and their number in the answer's size."""
    g = models.Graph(13)
    where = g.node("Transpose", g.node("NonZero", g.node("Greater", "x", g.scalar(0.0))),
                   perm=[1, 0])
    kept = g.unsqueeze(g.node("GatherND", "x", where), 1)
    weights = np.random.default_rng(0).normal(0, 1, (1, 64))
    g.rename(g.node("Relu", g.node("MatMul", kept, g.const(weights))), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", "sequence"])],
                   [("y", TensorProto.FLOAT, ["found", 64])])


def test_sections_behind_cuts_are_captured_ahead_too(repository):
    repository.add("found", found(), config=config(warmup="batch=1,sequence=12"))
    with Daemon(repository) as daemon:
        misses = json.loads(daemon.reprise("explain", "found", "--json"))["captures"]["misses"]
        assert {m["reason"] for m in misses} == {"warmup"}
        assert any(m["section"] for m in misses)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_replays_total") == 0


def test_a_frozen_model_that_nothing_can_serve_is_not_ready(repository):
    repository.add("bert", models.bert(), config=config())
    with Daemon(repository, "--frozen") as daemon:
        assert not daemon.client().is_model_ready("bert")
        assert not daemon.client().is_server_ready()
        assert "is frozen and has no recipe" in daemon.readiness()["reason"]
        refused = daemon.reprise("health", "bert", check=False)
        assert refused.returncode == 1
        daemon.reprise("warmup", "bert", "--buckets", "b1_s16")
        assert daemon.client().is_model_ready("bert") and daemon.client().is_server_ready()


@pytest.mark.parametrize("length, code", [(8, 0), (100, 3)])
def test_the_exit_code_says_whether_a_request_compiled_anything_after_the_warm_up(
        repository, rng, length, code):
    repository.add("bert", models.bert(), config=config(warmup="b1_s16", capture="inline"))
    daemon = Daemon(repository, "--fail-on-compile", "true")
    daemon.start()
    try:
        daemon.wait_ready()
        infer(daemon.client(), "bert", text_inputs(NAMES, 1, length, rng, 200))
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == code, daemon.log()
    finally:
        daemon.kill()
    told = [line for line in daemon.log().splitlines() if "--fail-on-compile" in line]
    assert len(told) == (2 if code else 0)
    assert not code or "model bert: captured b1_s128" in told[0] and "1 recipe was compiled" in told[1]
