"""--gemm-provider decides who multiplies; the answers are the same, and a dump says who did."""

import re

import pytest

from testing.daemon import Daemon, run_reprised
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.repository import PARAPHRASE

NAMES = ["input_ids", "attention_mask"]


@pytest.mark.parametrize("provider,isa,foreign", [
    ("auto", None, False), ("own", None, False), ("openblas", None, True),
    # Where our kernels have no vectors, the library is the faster one.
    ("auto", "baseline", True), ("own", "baseline", False)])
def test_answers_do_not_depend_on_who_multiplies(repository, rng, provider, isa, foreign):
    path = repository.add("model", PARAPHRASE)
    cap = ["--max-isa", isa] if isa else []
    with Daemon(repository, "--gemm-provider", provider, *cap) as daemon:
        inputs = text_inputs(NAMES, 2, 12, rng, ragged=True)
        answer = infer(daemon.client(), "model", inputs)
        assert_same_answer(answer.outputs, reference(path, inputs))
        dump = daemon.reprise("dump", "--recipe", answer.recipe)
        launches = int(re.search(r"foreign launches\s+(\d+)", dump).group(1))
        assert (launches > 0) == foreign, dump


def test_an_unknown_provider_is_a_wrong_flag(tmp_path):
    done = run_reprised("--model-repository", tmp_path, "--gemm-provider", "mkl")
    assert done.returncode == 2 and "openblas" in done.stderr
