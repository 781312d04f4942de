"""Decoders make tokens: the same as onnxruntime stepping with its cache, and nothing is captured."""

import concurrent.futures
import json
import pathlib
import queue
import socket
import urllib.error
import urllib.request

import numpy as np
import onnx
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from testing import decoders
from testing.daemon import Daemon, reprise
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.tokens import generate

CONTEXT = 128
LAYOUTS = {"gqa": dict(window=9), "mha": {}, "concat": dict(kv_heads=1, norms=True),
           "range": dict(heads=3, kv_heads=3), "alibi": {}, "onnx": dict(window=5)}


def config(**parameters):
    parameters.setdefault("context", CONTEXT)
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


def prompt(rng, length):
    return [int(one) for one in rng.integers(0, 97, length)]


def post(daemon, model, body):
    """Returns the status and the answer."""
    request = urllib.request.Request(f"{daemon.http_url}/v2/models/{model}/generate", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def resident(daemon):
    """Bytes that the daemon has taken at most."""
    text = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) << 10


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Starts a daemon with a model of each form, and onnxruntime beside each."""
    root = tmp_path_factory.mktemp("decoders")
    steppers = {}
    for form, layout in LAYOUTS.items():
        model = decoders.make(form, **layout)
        folder = root / form / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        (root / form / "config.pbtxt").write_text(config())
        steppers[form] = decoders.Stepper(model)
    with Daemon(root) as daemon:
        yield daemon, steppers


@pytest.mark.parametrize("form", ["gqa", "concat"])
def test_prompts_about_as_long_as_there_are_sequences_get_the_same_tokens(tmp_path, rng, form):
    """A step has places for sequences and for tokens: as many of the one as of the other is nothing special."""
    model = decoders.make(form, **LAYOUTS[form])
    stepper = decoders.Stepper(model)
    most = [1, 2, 3, 4, 7, 8]
    for sequences in most:
        folder = tmp_path / f"m{sequences}" / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        (tmp_path / f"m{sequences}" / "config.pbtxt").write_text(config(max_sequences=sequences))
    prompts = [prompt(rng, length) for length in range(1, 10)]
    expected = [stepper.greedy(ids, 4)[0] for ids in prompts]
    with Daemon(tmp_path) as daemon:
        for sequences in most:
            found = [generate(daemon, f"m{sequences}", ids, max_tokens=4)["token_ids"] for ids in prompts]
            assert found == expected, sequences


@pytest.mark.parametrize("form", LAYOUTS)
def test_tokens_are_those_of_onnxruntime_with_its_own_cache(served, rng, form):
    daemon, steppers = served
    for length in (1, 2, 17, 40):
        ids = prompt(rng, length)
        expected, rows = steppers[form].greedy(ids, 24)
        answer = generate(daemon, form, ids, max_tokens=24, logprobs=0)
        assert answer["token_ids"] == expected, (form, length, answer)
        assert answer["finish_reason"] == "length"
        probabilities = rows - np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(
            -1, keepdims=True)) - rows.max(-1, keepdims=True)
        best = probabilities[np.arange(24), expected]
        np.testing.assert_allclose(answer["logprobs"], best, atol=2e-4)


def test_no_mixture_of_requests_captures_anything_and_no_page_is_left(served, rng):
    daemon, steppers = served
    before = Scrape(daemon.metrics_url).total("reprise_compiles_total")
    asked = [(str(rng.choice(list(LAYOUTS))), prompt(rng, int(rng.integers(1, 90))),
              int(rng.integers(1, 38))) for _ in range(80)]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(
            lambda one: generate(daemon, one[0], one[1], max_tokens=one[2]), asked))
    for (form, ids, tokens), answer in list(zip(asked, answers))[::8]:
        assert answer["token_ids"] == steppers[form].greedy(ids, tokens)[0]
    assert all(len(answer["token_ids"]) == one[2] for one, answer in zip(asked, answers))
    assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == before
    wait_until(lambda: all(
        Scrape(daemon.metrics_url).by("reprise_pages", "state", model=form).get("used", 0) == 0
        for form in LAYOUTS))


def test_the_same_seed_draws_the_same_to_the_last_bit_whatever_else_runs(served, rng):
    daemon, _ = served
    ids = prompt(rng, 33)
    wanted = dict(max_tokens=30, temperature=1.2, top_p=0.9, seed=7, logprobs=0)
    alone = generate(daemon, "concat", ids, **wanted)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        others = [pool.submit(generate, daemon, "concat", prompt(rng, int(n)), max_tokens=40)
                  for n in rng.integers(1, 80, 11)]
        beside = generate(daemon, "concat", ids, **wanted)
        for other in others:
            other.result()
    assert beside["token_ids"] == alone["token_ids"]
    assert beside["logprobs"] == alone["logprobs"]
    assert beside["cached_tokens"] == 32  # its full pages were found


def test_answers_of_one_request_share_the_prompt_and_draw_apart(served, rng):
    daemon, _ = served
    answer = generate(daemon, "gqa", prompt(rng, 20), max_tokens=12, temperature=1, seed=3, n=3)
    assert [len(one) for one in answer["token_ids"]] == [12, 12, 12]
    assert len({tuple(one) for one in answer["token_ids"]}) == 3
    again = generate(daemon, "gqa", prompt(rng, 5), max_tokens=1, temperature=0, n=2)
    assert again["token_ids"][0] == again["token_ids"][1]


def test_stop_ids_and_the_context_end_an_answer(served, rng):
    daemon, _ = served
    ids = prompt(rng, 10)
    free = generate(daemon, "range", ids, max_tokens=20)["token_ids"]
    stop = free[4]
    ended = generate(daemon, "range", ids, max_tokens=20, stop_token_ids=[stop])
    assert ended["token_ids"] == free[:free.index(stop) + 1]
    assert ended["finish_reason"] == "stop"
    full = generate(daemon, "range", prompt(rng, 100), max_tokens=1000)
    assert len(full["token_ids"]) == CONTEXT - 100 and full["finish_reason"] == "length"


@pytest.mark.parametrize("ids, parameters, words", [
    ([1] * CONTEXT, {}, f"the prompt has {CONTEXT} tokens, and the model's context of {CONTEXT}"),
    ([], {}, "the prompt has no tokens"),
    ([1, 97], {}, "value 97 at 1 is out of range [0, 96]"),
    ([1], {"max_token": 3}, "parameter 'max_token' is not known"),
    ([1], {"top_p": 2}, "parameter 'top_p' = 2 is out of range [0, 1]"),
    ([1], {"temperature": "hot"}, "parameter 'temperature' must be a number"),
    ([1], {"stop_token_ids": [200]}, "parameter 'stop_token_ids' = 200 is out of range [0, 96]"),
])
def test_what_can_never_be_served_is_refused_with_both_values(served, ids, parameters, words):
    daemon, _ = served
    assert words in generate(daemon, "alibi", ids, **parameters)["error"]


@pytest.mark.parametrize("parameters, words", [
    ({"allowed_token_ids": [5, 6], "stop_token_ids": [5, 6], "min_tokens": 3},
     "each of the 2 allowed ids would end the answer before 'min_tokens' = 3"),
    ({"stop_token_ids": list(range(97)), "min_tokens": 1}, "each of the 97 ids of the vocabulary would end"),
    ({"logit_bias": {"5": -1e39}}, "parameter 'logit_bias' = -1e+39 for id 5 is out of range"),
    ({"stop_token_ids": [5] * 98}, "parameter 'stop_token_ids' has 98 ids, and the vocabulary 97"),
    ({"allowed_token_ids": [5] * 98}, "parameter 'allowed_token_ids' has 98 ids, and the vocabulary 97"),
    ({"logit_bias": {str(id): 1 for id in range(98)}}, "parameter 'logit_bias' has 98 ids"),
    ({"cache_salt": [1]}, "parameter 'cache_salt' must be a single value"),
])
def test_lists_that_cannot_be_drawn_from_are_the_clients_fault(served, parameters, words):
    daemon, _ = served
    for more in ({}, {"n": 64}):
        code, answer = post(daemon, "gqa", {"input_ids": [1, 2], "parameters": parameters | more})
        assert code == 400 and words in answer["error"], answer


def test_long_lists_cost_what_they_are_once(served, rng):
    """4 MB of ids, 64 answers: refused before any of them begins, while others go on."""
    daemon, steppers = served
    body = {"input_ids": [1, 2, 3], "parameters": {"n": 64, "max_tokens": 4, "stop_token_ids": [5] * 2_000_000}}
    before = resident(daemon)
    ids = prompt(rng, 11)
    for _ in range(3):
        code, answer = post(daemon, "gqa", body)
        assert code == 400 and "has 2000000 ids, and the vocabulary 97" in answer["error"]
        assert generate(daemon, "gqa", ids, max_tokens=5)["token_ids"] == steppers["gqa"].greedy(ids, 5)[0]
    assert resident(daemon) - before < 400 << 20


def test_lists_as_long_as_a_long_vocabulary_are_shared_by_64_answers(repository):
    """4 MB that are all used: each list has an entry for each id, and no answer has its own."""
    ids = 150_000
    repository.add("long", decoders.make("gqa", context=64, vocabulary=ids), config=config(context=64, cache_mb=64))
    with Daemon(repository) as daemon:
        def ask(**parameters):
            code, answer = post(daemon, "long", {"input_ids": [1, 2, 3],
                                                 "parameters": {"max_tokens": 1, "seed": 1, "n": 64} | parameters})
            assert code == 200, answer
            return answer["token_ids"]
        wanted = ask()
        before = resident(daemon)
        body = {"logit_bias": {str(id): 0.0 for id in range(ids)}, "allowed_token_ids": list(range(ids)),
                "stop_token_ids": list(range(ids))}
        assert len(json.dumps(body)) > 4_000_000
        assert ask(**body) == wanted and len(wanted) == 64
        # Parsed JSON, and the lists. Copies for each answer would take a gigabyte.
        assert resident(daemon) - before < 200 << 20


def test_a_time_beyond_the_clock_is_none_and_an_id_is_bounded(served):
    daemon, _ = served
    for timeout in (1e16, 2**63 - 1, 0):
        code, answer = post(daemon, "gqa", {"input_ids": [1], "parameters": {"max_tokens": 2, "timeout": timeout}})
        assert code == 200 and len(answer["token_ids"]) == 2, answer
    code, answer = post(daemon, "gqa", {"input_ids": [1], "id": "x" * 4097, "parameters": {}})
    assert code == 400 and "the request's id has 4097 bytes, the most is 4096" in answer["error"]
    code, answer = post(daemon, "gqa", {"input_ids": [1], "id": "x" * 4096, "parameters": {"max_tokens": 1}})
    assert code == 200 and answer["id"] == "x" * 4096


def test_a_sequence_that_is_set_back_gets_the_same_tokens(repository, rng):
    """Pages for two sequences, and three that want some."""
    model = decoders.make("gqa", size=32, layers=4, context=1024)
    stepper = decoders.Stepper(model)
    repository.add("small", model, config=config(cache_mb=1, context=1024))
    with Daemon(repository) as daemon:
        free = Scrape(daemon.metrics_url).by("reprise_pages", "state", model="small")["free"]
        length = int(free) * 16 // 3
        asked = [prompt(rng, length) for _ in range(3)]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(
                lambda ids: generate(daemon, "small", ids, max_tokens=length // 2), asked))
        for ids, answer in zip(asked, answers):
            assert answer["token_ids"] == stepper.greedy(ids, length // 2)[0]
        pages = Scrape(daemon.metrics_url).by("reprise_pages", "state", model="small")
        assert pages.get("used", 0) == 0 and pages["free"] == free


def test_a_model_that_cannot_be_paged_is_served_as_before(repository):
    repository.add("off", decoders.make("gqa"), config=config(generation="off"))
    with Daemon(repository) as daemon:
        assert "reprise.generation is off" in generate(daemon, "off", [1, 2])["error"]


def test_reprise_generate_needs_no_server(tmp_path, rng):
    model = decoders.make("concat")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    ids = prompt(rng, 21)
    out = reprise("generate", path, "--ids", ",".join(map(str, ids)), "--max-tokens", 9,
                  "--context", CONTEXT)
    expected = decoders.Stepper(model).greedy(ids, 9)[0]
    assert out.split() == ["0", "length", ",".join(map(str, expected))]
    told = json.loads(reprise("generate", path, "--ids", ",".join(map(str, ids)), "--max-tokens", 9,
                              "--context", CONTEXT, "--logprobs", 0, "--speed", "--json"))
    (answer,) = told["answers"]
    assert (answer["prompt"], answer["finish"], answer["ids"]) == (0, "length", expected)
    assert len(answer["logprobs"]) == told["speed"]["new_tokens"] == 9


def ids_input(ids):
    tensor = tritonclient.grpc.InferInput("input_ids", [1, len(ids)], "INT64")
    tensor.set_data_from_numpy(np.array([ids], np.int64))
    return tensor


def test_a_stream_tells_tokens_one_by_one_beside_each_other(served, rng):
    daemon, steppers = served
    client, told = daemon.client(), queue.Queue()
    client.start_stream(lambda result, error: told.put((result, error)))
    asked = {str(i): prompt(rng, 5 + 9 * i) for i in range(4)}
    for name, ids in asked.items():
        client.async_stream_infer(
            "concat", [ids_input(ids)], request_id=name, enable_empty_final_response=True,
            parameters={"max_tokens": 15, "temperature": 0})
    tokens, final = {name: [] for name in asked}, set()
    while len(final) < len(asked):
        result, error = told.get(timeout=60)
        assert error is None
        answer = result.get_response()
        tokens[answer.id] += result.as_numpy("token_ids")[0].tolist()
        if answer.parameters["triton_final_response"].bool_param:
            assert answer.parameters["finish_reason"].string_param == "length"
            final.add(answer.id)
    client.async_stream_infer("concat", [ids_input([1])], parameters={"top_q": 1})
    _, error = told.get(timeout=60)
    assert "parameter 'top_q' is not known" in error.message()
    client.stop_stream()
    for name, ids in asked.items():
        assert tokens[name] == steppers["concat"].greedy(ids, 15)[0]


def test_an_inference_with_ids_alone_answers_with_all_tokens(served, rng):
    daemon, steppers = served
    ids = prompt(rng, 12)
    sampling = tritonclient.grpc.InferInput("sampling_parameters", [1], "BYTES")
    sampling.set_data_from_numpy(
        np.array([json.dumps({"max_tokens": 8, "temperature": 0.0}).encode()], np.object_))
    result = daemon.client().infer("mha", [ids_input(ids), sampling])
    assert result.as_numpy("token_ids").tolist() == [steppers["mha"].greedy(ids, 8)[0]]
    with pytest.raises(InferenceServerException, match="given twice"):
        daemon.client().infer("mha", [ids_input(ids), sampling], parameters={"max_tokens": 3})


def test_alternatives_are_the_best_by_the_scores_of_the_model(served, rng):
    daemon, steppers = served
    ids = prompt(rng, 14)
    answer = generate(daemon, "gqa", ids, max_tokens=5, logprobs=3)
    expected, rows = steppers["gqa"].greedy(ids, 5)
    rows = rows - np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(
        -1, keepdims=True)) - rows.max(-1, keepdims=True)
    best = np.argsort(-rows, axis=1)[:, :3]
    assert [[one["id"] for one in token] for token in answer["top_logprobs"]] == best.tolist()
    told = [[one["logprob"] for one in token] for token in answer["top_logprobs"]]
    np.testing.assert_allclose(told, np.take_along_axis(rows, best, 1), atol=2e-4)
    result = daemon.client().infer("gqa", [ids_input(ids)], parameters={
        "max_tokens": 5, "temperature": 0, "logprobs": 3, "n": 2})
    assert result.as_numpy("token_ids").tolist() == [expected, expected]
    assert result.as_numpy("top_ids").tolist() == [best.tolist()] * 2
    np.testing.assert_allclose(result.as_numpy("top_logprobs"), [told] * 2, rtol=1e-6)
    [*_, last] = events_of(daemon, "gqa", ids, max_tokens=5, logprobs=3)
    assert last["top_logprobs"][0][0]["id"] == int(best[-1][0])


def test_only_allowed_ids_are_drawn(served, rng):
    daemon, _ = served
    answer = generate(daemon, "mha", prompt(rng, 9), max_tokens=20, temperature=1.5, seed=1,
                      allowed_token_ids=[3, 50])
    assert set(answer["token_ids"]) == {3, 50}
    assert "must be a list of at least one id" in generate(
        daemon, "mha", [1], allowed_token_ids=[])["error"]
    assert "parameter 'allowed_token_ids' = 97 is out of range" in generate(
        daemon, "mha", [1], allowed_token_ids=[97])["error"]


def events_of(daemon, model, ids, **parameters):
    parameters.setdefault("temperature", 0)
    body = json.dumps({"input_ids": ids, "parameters": parameters}).encode()
    request = urllib.request.Request(f"{daemon.http_url}/v2/models/{model}/generate_stream", body)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        lines = [line.decode() for line in answer if line.strip()]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line[len("data: "):]) for line in lines]


def test_a_stream_over_http_is_events_of_the_server(served, rng):
    daemon, steppers = served
    ids = prompt(rng, 30)
    events = events_of(daemon, "onnx", ids, max_tokens=12, logprobs=0)
    tokens = [token for event in events for token in event["token_ids"]]
    assert tokens == steppers["onnx"].greedy(ids, 12)[0] and len(events) == 12
    assert [event.get("finish_reason") for event in events] == [None] * 11 + ["length"]
    assert events[-1]["prompt_tokens"] == 30
    with pytest.raises(urllib.error.HTTPError) as refused:
        events_of(daemon, "onnx", [1, 97])
    assert refused.value.code == 400


def test_a_client_that_leaves_gives_its_pages_back(served, rng):
    daemon, _ = served
    with socket.create_connection(("127.0.0.1", daemon.http_port)) as client:
        body = json.dumps({"input_ids": prompt(rng, 3), "parameters": {"max_tokens": 120}})
        client.sendall(f"POST /v2/models/gqa/generate_stream HTTP/1.1\r\nHost: a\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert b"text/event-stream" in client.recv(4096)
    wait_until(lambda: Scrape(daemon.metrics_url).by("reprise_pages", "state",
                                                     model="gqa").get("used", 0) == 0)


@pytest.mark.parametrize("form", ["gqa", "alibi", "onnx"])
@pytest.mark.parametrize("dtype, bound", [("bf16", 0.05), ("int8", 0.1)])
def test_rounded_pages_take_less_and_change_scores_a_little(tmp_path, rng, form, dtype, bound):
    """Forces the tokens of float32: scores are compared after the same text."""
    layout = LAYOUTS[form]
    model = decoders.make(form, **layout)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    ids = prompt(rng, 40)
    _, rows = decoders.Stepper(model).greedy(ids, 1)
    expected = rows[0] - rows[0].max() - np.log(np.exp(rows[0] - rows[0].max()).sum())
    best = int(expected.argmax())
    flags = ("--max-tokens", 1, "--context", CONTEXT, "--logprobs", 0)
    text = ",".join(map(str, ids))
    told = reprise("generate", path, "--ids", text, "--cache-dtype", dtype, *flags).split()
    assert abs(float(told[3]) - expected[int(told[2])]) < bound
    assert int(told[2]) == best or expected[best] - expected[int(told[2])] < bound
    # The same text beside others, over other pages, to the last bit.
    beside = reprise("generate", path, "--ids", ",".join(map(str, prompt(rng, 70))),
                     "--ids", text, "--cache-dtype", dtype, *flags).split()
    assert beside[6:] == told[1:] or beside[5:] == told[1:]


def test_the_bench_says_how_long_tokens_take(served):
    daemon, _ = served
    out = daemon.reprise("bench", "concat", "--generate", "-c", 4, "-n", 12,
                         "--lengths", "uniform:3-40", "--output-lengths", 8, "--max-id", 96, "--rate", 200)
    assert "12 requests in" in out and "0 failed" in out
    for row in ("time to first token", "time per output token", "between two tokens", "new tokens/s"):
        assert row in out


@pytest.mark.parametrize("form", ["gqa", "concat", "range"])
def test_a_batch_that_an_exporter_has_fixed_at_one_changes_nothing(tmp_path, rng, form):
    model = decoders.make(form)
    ids = prompt(rng, 19)
    expected = decoders.Stepper(model).greedy(ids, 8)[0]
    for value in [*model.graph.input, *model.graph.output]:
        batch = value.type.tensor_type.shape.dim[0]
        batch.Clear()
        batch.dim_value = 1
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    out = reprise("generate", path, "--ids", ",".join(map(str, ids)), "--max-tokens", 8,
                  "--context", CONTEXT)
    assert out.split()[2] == ",".join(map(str, expected))


def test_explain_of_a_decoder_begins_with_its_pages(served):
    daemon, _ = served
    lines = daemon.reprise("explain", "mha").splitlines()
    assert lines[0] == "mha version 1: it makes tokens, with keys and values in pages"
    text = "\n".join(lines)
    assert text.index("caches in pages of") < text.index("requests of tensors") < text.index("axis ")
    assert "pages are used, " in text and "NOT safe to pad" not in text


def test_reprise_check_says_whether_tokens_are_made(tmp_path):
    model = decoders.make("mha")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    text = reprise("check", path)
    assert "makes tokens: the server keeps 4 caches" in text
    for dtype in ("bf16", "int8"):
        [line] = [one for one in text.splitlines() if f"reprise.cache_dtype {dtype}" in one]
        mean = float(line.split("differ by ")[1].split()[0])
        assert 0 < mean < 0.05, line
    extra = onnx.helper.make_tensor_value_info("speaker", onnx.TensorProto.FLOAT, ["batch", 4])
    model.graph.input.append(extra)
    path.write_bytes(model.SerializeToString())
    assert "input 'speaker' has no known part in a decoder" in reprise("check", path)
