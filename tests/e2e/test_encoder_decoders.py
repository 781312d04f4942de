"""Encoder-decoders make tokens: the same as onnxruntime with explicit caches, greedy and by beams."""

import concurrent.futures
import itertools
import json

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from testing import encoder_decoders, tokens
from testing.daemon import Daemon, reprise
from testing.metrics import Scrape
from testing.patience import wait_until

MODELS = {"t5": ("t5", True, {}), "t5_split": ("t5", False, {"places": "counted"}),
          "bart": ("bart", True, {"rows_of_states": True}), "bart_split": ("bart", False, {}),
          "whisper": ("whisper", True, {}),
          # Its encoder's result is longer than the largest bucket, as in real ones.
          "whisper_split": ("whisper", False, {"rows_of_states": True, "frames": 1100})}
STARTS = {"decoder_start_token_id": 0}


def write(folder, model, facts=None):
    form, merged, options = MODELS[model]
    encoder_decoders.EncoderDecoder(form, **options).write(folder, merged)
    (folder / "config.json").write_text(json.dumps(STARTS | (facts or {})))
    return encoder_decoders.Stepper(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("encoder_decoders")
    steppers = {model: write(root / model / "1", model) for model in MODELS}
    with Daemon(root) as daemon:
        yield daemon, steppers


def prompt(rng, model, length):
    if model.startswith("whisper"):
        frames = MODELS[model][2].get("frames", encoder_decoders.FRAMES)
        return rng.normal(size=(1, encoder_decoders.MEL, frames)).astype(np.float32)
    return [int(one) for one in rng.integers(1, 97, length)]


def generate(daemon, model, asked, **parameters):
    name = "input_ids" if isinstance(asked, list) else "input_features"
    return tokens.generate(daemon, model, asked, name, **parameters)


@pytest.mark.parametrize("model", MODELS)
def test_tokens_are_those_of_onnxruntime_with_its_own_caches(served, rng, model):
    daemon, steppers = served
    for length in (1, 2, 17, 40):
        asked = prompt(rng, model, length)
        answer = generate(daemon, model, asked, max_tokens=40, logprobs=0)
        assert answer["token_ids"] == steppers[model].greedy(asked, 40), (model, length, answer)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wanted", [
    dict(num_beams=2), dict(num_beams=4, length_penalty=2.0, n=3),
    dict(num_beams=3, length_penalty=0.0, early_stopping=True, n=2),
    dict(num_beams=5, length_penalty=1.5, early_stopping="never", n=5)])
def test_beams_are_those_of_a_plain_search(served, rng, model, wanted):
    daemon, steppers = served
    asked = prompt(rng, model, 12)
    # An id that comes up, so that some answers end before others.
    eos = steppers[model].greedy(asked, 6)[-1]
    answer = generate(daemon, model, asked, max_tokens=24, stop_token_ids=[eos], **wanted)
    search = {key: value for key, value in wanted.items() if key != "num_beams"}
    expected = steppers[model].beams(asked, wanted["num_beams"], 24, eos=eos, **search)
    got = answer["token_ids"] if wanted.get("n", 1) > 1 else [answer["token_ids"]]
    assert got == expected, answer


def test_no_length_and_no_mixture_captures_anything_and_no_page_is_left(served, rng):
    daemon, steppers = served
    before = Scrape(daemon.metrics_url).total("reprise_compiles_total")
    names = itertools.cycle(MODELS)
    asked = [(name, prompt(rng, name, int(rng.integers(1, 120))), int(rng.integers(1, 60)),
              int(rng.choice([1, 1, 3]))) for name, _ in zip(names, range(60))]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(
            lambda one: generate(daemon, one[0], one[1], max_tokens=one[2], num_beams=one[3]), asked))
    for (name, ids, tokens, beams), answer in list(zip(asked, answers))[::7]:
        expected = steppers[name].greedy(ids, tokens) if beams == 1 else \
            steppers[name].beams(ids, beams, tokens)[0]
        assert answer["token_ids"] == expected, (name, tokens, beams, answer)
    assert all(len(answer["token_ids"]) == one[2] for one, answer in zip(asked, answers))
    assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == before
    wait_until(lambda: all(
        Scrape(daemon.metrics_url).by("reprise_pages", "state", model=name).get("used", 0) == 0
        for name in MODELS))


@pytest.mark.parametrize("model", ["t5", "bart_split"])
def test_an_answer_is_the_same_to_the_last_bit_whatever_else_runs(served, rng, model):
    daemon, _ = served
    asked = prompt(rng, model, 33)
    wanted = dict(max_tokens=30, temperature=1.2, top_p=0.9, seed=7, logprobs=0)
    alone = generate(daemon, model, asked, **wanted)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        others = [pool.submit(generate, daemon, model, prompt(rng, model, int(n)), max_tokens=40)
                  for n in rng.integers(1, 80, 9)]
        beside = generate(daemon, model, asked, **wanted)
        for other in others:
            other.result()
    assert beside["token_ids"] == alone["token_ids"]
    assert beside["logprobs"] == alone["logprobs"]


def test_answers_of_one_request_share_the_encoders_result_and_draw_apart(served, rng):
    daemon, _ = served
    answer = generate(daemon, "bart", prompt(rng, "bart", 20), max_tokens=12, temperature=1.5, seed=3, n=3)
    assert [len(one) for one in answer["token_ids"]] == [12, 12, 12]
    assert len({tuple(one) for one in answer["token_ids"]}) == 3


def test_the_clients_own_beginning_stands_in_front_of_the_answer(served, rng):
    daemon, steppers = served
    asked = prompt(rng, "whisper", 0)
    answer = generate(daemon, "whisper", asked, max_tokens=9, decoder_input_ids=[0, 7, 9])
    assert answer["token_ids"] == steppers["whisper"].greedy(asked, 9, start=(0, 7, 9))


def test_a_spectrum_comes_as_a_tensor_too(served, rng):
    daemon, steppers = served
    asked = prompt(rng, "whisper", 0)
    tensor = tritonclient.grpc.InferInput("input_features", list(asked.shape), "FP32")
    tensor.set_data_from_numpy(asked)
    answer = daemon.client().infer("whisper", [tensor], parameters={"max_tokens": 11, "temperature": 0})
    assert answer.as_numpy("token_ids")[0].tolist() == steppers["whisper"].greedy(asked, 11)
    ids = tritonclient.grpc.InferInput("input_ids", [1, 5], "INT64")
    ids.set_data_from_numpy(np.array([[4, 8, 15, 16, 23]], np.int64))
    answer = daemon.client().infer("t5_split", [ids], parameters={"max_tokens": 9, "num_beams": 3})
    assert answer.as_numpy("token_ids")[0].tolist() == steppers["t5_split"].beams([4, 8, 15, 16, 23], 3, 9)[0]


@pytest.mark.parametrize("model, asked, parameters, words", [
    ("t5", [1, 97], {}, "97"),
    ("t5", [], {}, "the prompt has no tokens"),
    ("t5", [1] * 5000, {}, "the prompt has 5000 tokens, and there is room for 4096"),
    ("bart", [3], {"decoder_input_ids": [97]}, "value 97 at 0 is out of range [0, 96]"),
    ("bart", [3], {"num_beams": 2, "top_p": 0.5}, "parameter 'top_p' does not apply where 'num_beams' = 2"),
    ("bart", [3], {"num_beams": 2, "temperature": 0.5}, "parameter 'temperature' does not apply"),
    ("bart", [3], {"num_beams": 2, "n": 3}, "parameter 'n' = 3 is more than 'num_beams' = 2"),
    ("bart", [3], {"num_beams": 65}, "parameter 'num_beams' = 65 is out of range [1, 64]"),
    ("bart", [3], {"length_penalty": 2}, "parameter 'length_penalty' is of beams alone"),
    ("bart", [3], {"early_stopping": "soon"}, "parameter 'early_stopping' must be true, false or \"never\""),
    ("whisper", [3], {}, "the prompt of this model is its input 'input_features'"),
    ("whisper", np.zeros((1, 3, 40)), {}, "input 'input_features' has shape [1, 3, 40]"),
])
def test_what_can_never_be_served_is_refused_with_both_values(served, model, asked, parameters, words):
    daemon, _ = served
    assert words in generate(daemon, model, asked, **parameters)["error"]


def test_files_beside_the_model_say_how_answers_begin_and_end(tmp_path, rng):
    stepper = write(tmp_path / "bart", "bart")
    asked = prompt(rng, "bart", 15)
    free = stepper.greedy(asked, 12, start=(2,))
    facts = {"decoder_start_token_id": 2, "forced_bos_token_id": 11, "forced_eos_token_id": 5,
             "eos_token_id": 5, "begin_suppress_tokens": [free[0]], "bad_words_ids": [[31]]}
    (tmp_path / "bart" / "generation_config.json").write_text(json.dumps(facts))
    with Daemon(tmp_path) as daemon:
        answer = generate(daemon, "bart", asked, max_tokens=9)
        assert answer["token_ids"][0] == 11 and 31 not in answer["token_ids"]
        assert answer["token_ids"][-1] == 5 and answer["finish_reason"] == "stop"
        beams = generate(daemon, "bart", asked, max_tokens=9, num_beams=3)["token_ids"]
        assert beams[0] == 11 and beams[-1] == 5 and 31 not in beams


def test_behind_ids_of_the_client_nothing_is_forced_twice(tmp_path, rng):
    """Places of forced ids are counted in the whole sequence; ids suppressed first are not the first new id."""
    steppers = {name: write(tmp_path / name, "t5") for name in ("task", "bos")}
    asked = prompt(rng, "t5", 9)
    given = {"task": [0, 50, 11, 12], "bos": [0, 7]}
    free = {name: steppers[name].greedy(asked, 6, start=tuple(ids)) for name, ids in given.items()}
    rules = {"task": {"forced_decoder_ids": [[1, None], [2, 11], [3, 12]]}, "bos": {"forced_bos_token_id": 7}}
    for name, facts in rules.items():
        (tmp_path / name / "generation_config.json").write_text(json.dumps(STARTS | facts))
    suppressing = tmp_path / "suppressing"
    suppressed = write(suppressing, "t5")
    (suppressing / "generation_config.json").write_text(json.dumps(
        STARTS | rules["task"] | {"begin_suppress_tokens": [free["task"][0]]}))
    with Daemon(tmp_path) as daemon:
        for name, ids in given.items():
            for beams in (1, 2):
                expected = free[name] if beams == 1 else steppers[name].beams(asked, 2, 6, start=tuple(ids))[0]
                answer = generate(daemon, name, asked, max_tokens=6, num_beams=beams, decoder_input_ids=ids)
                assert answer["token_ids"] == expected, (name, beams)
        # The ids that the client leaves open are forced.
        answer = generate(daemon, "task", asked, max_tokens=6, decoder_input_ids=[0, 50])
        assert answer["token_ids"] == [11, 12] + free["task"][:4]
        assert generate(daemon, "task", asked, max_tokens=6)["token_ids"][1:3] == [11, 12]
        assert generate(daemon, "bos", asked, max_tokens=6)["token_ids"][0] == 7
        answer = generate(daemon, "suppressing", asked, max_tokens=1, decoder_input_ids=given["task"])
        suppressed.encode(asked)
        scores, _ = suppressed.step(given["task"], {})
        assert answer["token_ids"] == [int(np.argsort(-scores)[1])]


def test_a_forced_id_that_is_not_the_models_is_named(tmp_path):
    write(tmp_path / "t5", "t5", {"forced_eos_token_id": 97})
    with Daemon(tmp_path) as daemon:
        assert "forces id 97, which is out of range [0, 96]" in generate(daemon, "t5", [1, 2])["error"]


def test_sequences_that_are_set_back_get_the_same_tokens(repository, rng):
    """Pages for two answers, and more that want some; beams among them."""
    folder = repository.root / "small" / "1"
    stepper = encoder_decoders.Stepper(encoder_decoders.EncoderDecoder("bart", layers=4).write(folder))
    (folder / "config.json").write_text(json.dumps(STARTS))
    (repository.root / "small" / "config.pbtxt").write_text(
        'parameters { key: "reprise.cache_mb" value { string_value: "1" } }')
    with Daemon(repository) as daemon:
        free = Scrape(daemon.metrics_url).by("reprise_pages", "state", model="small")["free"]
        length = int(free) * 16 // 5
        asked = [(prompt(rng, "bart", min(length, 100)), beams) for beams in (1, 2, 1, 2)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda one: generate(
                daemon, "small", one[0], max_tokens=30, num_beams=one[1]), asked))
        for (ids, beams), answer in zip(asked, answers):
            expected = stepper.greedy(ids, 30) if beams == 1 else stepper.beams(ids, beams, 30)[0]
            assert answer["token_ids"] == expected
        pages = Scrape(daemon.metrics_url).by("reprise_pages", "state", model="small")
        assert pages.get("used", 0) == 0 and pages["free"] == free


def test_without_its_first_id_a_model_says_what_is_missing(tmp_path):
    folder = tmp_path / "t5"
    encoder_decoders.EncoderDecoder("t5").write(folder)
    with Daemon(tmp_path) as daemon:
        assert "decoder_start_token_id" in generate(daemon, "t5", [1, 2])["error"]
        ids = tritonclient.grpc.InferInput("input_ids", [1, 3], "INT64")
        ids.set_data_from_numpy(np.array([[4, 8, 15]], np.int64))
        mask = tritonclient.grpc.InferInput("attention_mask", [1, 3], "INT64")
        mask.set_data_from_numpy(np.ones((1, 3), np.int64))
        answer = daemon.client().infer("t5", [ids, mask])
        assert answer.as_numpy("last_hidden_state").shape[:2] == (1, 3)
        with pytest.raises(InferenceServerException):
            daemon.client().infer("t5", [ids])


@pytest.mark.parametrize("model", ["t5", "whisper_split"])
def test_reprise_generate_needs_no_server(tmp_path, rng, model):
    stepper = write(tmp_path, model)
    asked = prompt(rng, model, 21)
    if model == "t5":
        source = ("--ids", ",".join(map(str, asked)))
    else:
        np.save(tmp_path / "asked.npy", asked)
        source = ("--features", tmp_path / "asked.npy")
    out = reprise("generate", tmp_path, *source, "--max-tokens", 9)
    assert out.split() == ["0", "length", ",".join(map(str, stepper.greedy(asked, 9)))]
    out = reprise("generate", tmp_path, *source, "--max-tokens", 9, "--beams", 3, "--n", 2)
    expected = [",".join(map(str, one)) for one in stepper.beams(asked, 3, 9, n=2)]
    assert out.split() == ["0", "length", expected[0], "0", "length", expected[1]]
