"""reprise.precision: bf16 and int8 answers close to the exact ones, smaller weights, and nothing shared."""

import re

import numpy as np
import pytest

from testing import exporters, models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.repository import MINILM, PADDED, PARAPHRASE, Repository

BERT_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
PATHS = {"minilm": (MINILM, BERT_INPUTS), "paraphrase": (PARAPHRASE, BERT_INPUTS[:2])}


def config(precision, more=""):
    return f'parameters {{ key: "reprise.precision" value {{ string_value: "{precision}" }} }}\n' + more


@pytest.fixture(scope="module")
def daemon(module_repository):
    for name, (path, _) in PATHS.items():
        module_repository.add(name, path, config=config("bf16"))
        module_repository.add(f"{name}_padded", path, config=config("bf16", PADDED))
        module_repository.add(f"{name}_bytes", path, config=config("int8"))
        module_repository.add(f"{name}_bytes_padded", path, config=config("int8", PADDED))
        module_repository.add(f"{name}_exact", path, config=config("exact"))
    with Daemon(module_repository) as daemon:
        yield daemon


def far(ours, theirs):
    """Returns the largest difference, as a part of the largest element."""
    return float(np.abs(ours.astype(np.float64) - theirs).max() / np.abs(theirs).max())


def cosine(ours, theirs):
    a, b = ours.ravel().astype(np.float64), theirs.ravel().astype(np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("name", PATHS)
def test_answers_are_those_of_rounded_operands(daemon, rng, name):
    path, inputs = PATHS[name]
    client = daemon.client()
    for rows, length in [(1, 3), (1, 30), (3, 61), (1, 200), (8, 100)]:
        request = text_inputs(inputs, rows, length, rng, ragged=rows > 1)
        expected = reference(path, request)
        assert_same_answer(infer(client, f"{name}_exact", request).outputs, expected)
        for served, least, most in ((name, 0.9995, 0.03), (f"{name}_padded", 0.9995, 0.03),
                                    (f"{name}_bytes", 0.997, 0.12), (f"{name}_bytes_padded", 0.997, 0.12)):
            answer = infer(client, served, request)
            differences = []
            for output, array in expected.items():
                got = answer.outputs[output]
                if "attention_mask" in request and got.shape[:2] == request["attention_mask"].shape:
                    counts = request["attention_mask"].astype(bool)
                    got, array = got[counts], array[counts]
                differences.append(far(got, array))
                assert cosine(got, array) > least, (served, rows, length, output)
            # 2^-9 of each operand, or 2^-8 of a row's range, through the layers. One output may depend on no
            # product.
            assert 1e-5 < max(differences) < most, (served, rows, length, differences)


@pytest.mark.parametrize("served", ["minilm", "minilm_padded", "paraphrase", "minilm_bytes",
                                    "minilm_bytes_padded", "paraphrase_bytes"])
def test_mates_and_buckets_change_no_bit(daemon, rng, served):
    names = PATHS[served.split("_")[0]][1]
    requests = [text_inputs(names, 1, int(length), rng) for length in rng.integers(2, 120, 40)]
    client = daemon.client()
    alone = [infer(client, served, request).outputs for request in requests]
    shared = together(lambda request: infer(client, served, request).outputs, requests, clients=16)
    for one, other in zip(alone, shared):
        for output, array in one.items():
            assert np.array_equal(other[output], array), far(other[output], array)


# Ops that round, and products in fewer bits: the form that a model stores and the ones made at load.
FORMS = {"bf16": (MINILM, {"precision": "bf16"}), "bf16_of_floats": (PARAPHRASE, {"precision": "bf16"}),
         "int8": (MINILM, {"precision": "int8"}), "int8_of_floats": (PARAPHRASE, {"precision": "int8"}),
         "int8_by_block": (PARAPHRASE, {"precision": "int8", "weights": "int4"}),
         "bf16_by_block": (PARAPHRASE, {"precision": "bf16", "weights": "int4"}),
         "int8_relative": (exporters.deberta(), {"precision": "int8"})}


@pytest.mark.parametrize("isa", ["avx2", "amx"])
def test_no_bit_depends_on_mates_buckets_or_threads_under_any_cap(tmp_path, rng, isa):
    served = {}
    repository = Repository(tmp_path)
    for form, (path, settings) in FORMS.items():
        text = "".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
                       for key, value in settings.items())
        repository.add(form, path, config=text)
        repository.add(f"{form}_padded", path, config=text + PADDED)
        names = BERT_INPUTS if path == MINILM else BERT_INPUTS[:2]
        lengths = [2, 3, 4, *rng.integers(2, exporters.POSITIONS, 13)]
        served[form] = [text_inputs(names, 1, int(length), rng, exporters.VOCABULARY) for length in lengths]
    answers = {}
    for threads in (1, 2):
        with Daemon(repository, "--max-isa", isa, "--threads-per-stream", str(threads)) as daemon:
            client = daemon.client()
            for form, requests in served.items():
                for name in (form, f"{form}_padded"):
                    for way, clients in (("alone", 1), ("crowd", 16)):
                        answers[form, name, way, threads] = together(
                            lambda request: infer(client, name, request).outputs, requests, clients=clients)
    differing = [(form, *how, i, output, far(other[output], array))
                 for (form, *how), got in answers.items()
                 for i, (one, other) in enumerate(zip(answers[form, form, "alone", 1], got))
                 for output, array in one.items() if not np.array_equal(other[output], array)]
    assert differing == []


def test_precision_is_shown_wherever_one_looks(daemon, rng):
    infer(daemon.client(), "minilm", text_inputs(BERT_INPUTS, 1, 10, rng))
    infer(daemon.client(), "minilm_exact", text_inputs(BERT_INPUTS, 1, 10, rng))
    assert "precision: bf16" in daemon.reprise("explain", "minilm")
    assert "precision: exact" in daemon.reprise("explain", "minilm_exact")
    assert "model minilm: loaded with precision bf16 in" in daemon.log()
    assert "model minilm_exact: loaded with precision exact in" in daemon.log()
    # Q, K and V of a layer are one product.
    assert re.search(r"model minilm_bytes: int8 applies to (\d+) of \1 products with weights, and to 6 att",
                     daemon.log())
    assert re.search(r"model minilm: bf16 applies to (\d+) of \1 products with weights, and to 6 att",
                     daemon.log())
    rows = daemon.reprise("recipes", "minilm").splitlines()
    assert "precision" in rows[0] and all("bf16" in row for row in rows[2:])
    recipe = rows[-1].split()[0]
    dump = daemon.reprise("dump", "--recipe", recipe)
    assert re.search("gemm_(blocks_)?bf16_", dump)
    infer(daemon.client(), "paraphrase_bytes", text_inputs(BERT_INPUTS[:2], 1, 10, rng))
    recipe = daemon.reprise("recipes", "paraphrase_bytes").splitlines()[-1].split()[0]
    assert "gemm_rounded_u8s8_" in daemon.reprise("dump", "--recipe", recipe)
    parameters = daemon.client().get_model_config("minilm").config.parameters
    assert parameters["reprise.precision"].string_value == "bf16"


def test_wrong_value_is_refused_by_name(repository, rng):
    repository.add("wrong", models.bert(), config=config("fp16"))
    repository.add("right", models.bert(), config=config("bf16"))
    with Daemon(repository) as daemon:
        assert not daemon.client().is_model_ready("wrong")
        assert ('parameter reprise.precision is "fp16": must be exact, bf16, int8, auto:COSINE, fast or '
                'fast:COSINE') in daemon.log()
        infer(daemon.client(), "right", text_inputs(BERT_INPUTS[:2], 1, 10, rng, 200))


def test_stored_recipes_of_one_precision_are_none_of_the_other(repository, tmp_path, rng):
    flags = ["--recipe-cache", str(tmp_path / "store")]
    request = text_inputs(BERT_INPUTS[:2], 1, 10, rng, 200)
    answers = {}
    for precision in ["exact", "bf16", "bf16", "exact"]:
        repository.add("bert", models.bert(), config=config(precision))
        with Daemon(repository, *flags) as daemon:
            answer = infer(daemon.client(), "bert", request).outputs
            scrape = Scrape(daemon.metrics_url)
            captured = scrape.total("reprise_compiles_total")
            if precision in answers:
                assert captured == 0
                for name, array in answers[precision].items():
                    assert far(answer[name], array) < 1e-4  # tuning may exchange a kernel
            else:
                assert captured > 0
                answers[precision] = answer
            if precision == "bf16" and captured > 0:
                assert scrape.total("reprise_store_misses_total", reason="other_precision") > 0
    assert any(far(answers["bf16"][name], array) > 1e-5 for name, array in answers["exact"].items())


def test_weights_of_floats_are_kept_in_fewer_bits(repository, rng):
    """reprise.weights at precision exact: the same rows, weights of a fourth and of an eighth."""
    request = text_inputs(BERT_INPUTS[:2], 2, 20, rng, 200)
    forms = {"stored": 1, "int8": 0.3, "int4": 0.2}
    for form in forms:
        repository.add(form, models.bert(hidden=128), config='parameters { key: "reprise.weights" value '
                       f'{{ string_value: "{form}" }} }}\n')
    repository.add("wrong", models.bert(), config='parameters { key: "reprise.weights" value { string_value: "int2" } }')
    with Daemon(repository) as daemon:
        client = daemon.client()
        answers = {form: infer(client, form, request).outputs for form in forms}
        for name, array in answers["stored"].items():
            assert 1e-6 < far(answers["int8"][name], array) < 0.05
            assert 1e-3 < far(answers["int4"][name], array) < 0.4
        assert not client.is_model_ready("wrong")
        assert 'parameter reprise.weights is "int2": must be stored, int8 or int4' in daemon.log()
