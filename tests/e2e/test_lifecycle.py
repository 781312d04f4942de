"""Start and stop: SIGTERM answers what was accepted, refuses what comes after, and ends with 0."""

import signal
import threading

import numpy as np
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.repository import MINILM

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def test_sigterm_answers_accepted_requests_and_ends_with_0(repository, rng):
    repository.add("minilm", MINILM)
    with Daemon(repository) as daemon:
        inputs = text_inputs(NAMES, 8, 128, rng)
        infer(daemon.client(), "minilm", inputs)  # captured, so that the rest is replays
        outcomes, answered = [], threading.Event()

        def work():
            client = daemon.client()
            while True:
                try:
                    answer = infer(client, "minilm", inputs)
                    outcomes.append(np.isfinite(answer.outputs["last_hidden_state"]).all())
                    answered.set()
                except InferenceServerException as error:
                    outcomes.append(str(error.status()))
                    return

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert answered.wait(60)
        daemon.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert daemon.process.wait(60) == 0
        refused = [o for o in outcomes if isinstance(o, str)]
        # Each client ends with its first refusal: never a lost answer, never another code.
        assert len(refused) == 8
        assert all("UNAVAILABLE" in status for status in refused), refused
        assert all(o is np.True_ or o == True for o in outcomes if not isinstance(o, str))  # noqa


def test_idle_daemon_ends_at_once_on_sigterm_and_on_sigint(repository):
    repository.add("elementwise", models.elementwise())
    for number in (signal.SIGTERM, signal.SIGINT):
        with Daemon(repository) as daemon:
            daemon.process.send_signal(number)
            assert daemon.process.wait(10) == 0


def test_empty_repository_is_ready(repository):
    with Daemon(repository) as daemon:
        client = daemon.client()
        assert client.is_server_ready()
        assert list(client.get_model_repository_index().models) == []


def test_repository_through_a_symbolic_link_is_served(repository, tmp_path, rng):
    repository.add("elementwise", models.elementwise())
    link = tmp_path / "a link with spaces"
    link.symlink_to(repository.root, target_is_directory=True)
    with Daemon(link) as daemon:
        x = rng.normal(size=(2, 5)).astype(np.float32)
        answer = infer(daemon.client(), "elementwise", {"x": x})
        assert np.array_equal(answer.outputs["y"], 2 * x + 1)
