"""State between requests: sequences as Triton's clients name them."""

import concurrent.futures
import json
import queue
import time
import urllib.error
import urllib.request

import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from testing import stateful
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until


def tensor(array, name="x", grpc=True):
    module = tritonclient.grpc if grpc else tritonclient.http
    made = module.InferInput(name, list(array.shape), "FP32")
    made.set_data_from_numpy(array)
    return made


def infer(client, model, array, sequence, start=False, end=False, output="y", **more):
    result = client.infer(model, [tensor(array)], sequence_id=sequence, sequence_start=start,
                          sequence_end=end, **more)
    return result.as_numpy(output)


def parameter(name, value):
    return f'parameters {{ key: "reprise.{name}" value {{ string_value: "{value}" }} }}\n'


IDLE = "max_sequence_idle_microseconds: 60000000"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("stateful")

    def add(name, model, config):
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "model.onnx").write_bytes(model.SerializeToString())
        (root / name / "config.pbtxt").write_text(config)

    add("totals", stateful.totals(), stateful.totals_config(batching=IDLE))
    add("begun", stateful.totals(), stateful.totals_config(
        initial='initial_state [ { data_type: TYPE_FP32 dims: [ 4 ] data_file: "first" } ]'))
    (root / "begun" / "initial_state").mkdir()
    (root / "begun" / "initial_state" / "first").write_bytes(
        np.array([1, 2, 3, 4], np.float32).tobytes())
    add("controls", stateful.controls(), stateful.controls_config())
    add("named", stateful.named(), stateful.NAMED_CONFIG)
    add("recurrent", stateful.recurrent(), stateful.RECURRENT_CONFIG)
    add("growing", stateful.growing(), stateful.GROWING_CONFIG)
    add("few", stateful.totals(), stateful.totals_config(
        batching=IDLE, more=parameter("max_live_sequences", 2)))
    add("one", stateful.totals(), stateful.totals_config(
        batching=f"{IDLE} oldest {{ max_candidate_sequences: 1 }}"))
    add("shown", stateful.totals(), stateful.totals_config(
        more='output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }, '
             '{ name: "total_out" data_type: TYPE_FP32 dims: [ 4 ] } ]'))
    add("brief", stateful.totals(), stateful.totals_config(
        batching="max_sequence_idle_microseconds: 50000"))
    with Daemon(root) as started:
        yield started


def ones(rows=1, value=1.0):
    return np.full((rows, 4), value, np.float32)


def test_a_sequence_goes_on_where_its_last_request_ended(daemon):
    client = daemon.client()
    for name in (7, 2**63 - 1, "a call"):
        assert infer(client, "totals", ones(), name, start=True)[0, 0] == 1
        for step in range(2, 6):
            assert infer(client, "totals", ones(), name)[0, 0] == step
        assert infer(client, "totals", ones(value=10), name, end=True)[0, 0] == 15
    # The same id may begin again, also without an end.
    infer(client, "totals", ones(), 7, start=True)
    assert infer(client, "totals", ones(value=3), 7, start=True, end=True)[0, 0] == 3


def test_a_number_and_its_text_are_two_sequences(daemon):
    client = daemon.client()
    infer(client, "totals", ones(), 5, start=True)
    infer(client, "totals", ones(value=100), "5", start=True)
    assert infer(client, "totals", ones(), 5, end=True)[0, 0] == 2
    assert infer(client, "totals", ones(), "5", end=True)[0, 0] == 101


def test_interleaved_requests_of_a_stream_keep_their_order(daemon):
    """Clients do not wait for an answer before they send the next request of a sequence."""
    client, told = daemon.client(), queue.Queue()
    client.start_stream(lambda result, error: told.put((result, error)))
    names = [11, 12, "thirteen"]
    for step in range(8):
        for place, name in enumerate(names):
            client.async_stream_infer(
                "totals", [tensor(ones(value=place + 1))], request_id=f"{place}:{step}",
                sequence_id=name, sequence_start=step == 0, sequence_end=step == 7)
    for _ in range(24):
        result, error = told.get(timeout=60)
        assert error is None
        place, step = map(int, result.get_response().id.split(":"))
        assert result.as_numpy("y")[0, 0] == (place + 1) * (step + 1)
    client.stop_stream()


def test_rows_of_one_request_have_a_state_each(daemon):
    client = daemon.client()
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    infer(client, "totals", array, 21, start=True)
    np.testing.assert_array_equal(infer(client, "totals", array, 21), 2 * array)
    with pytest.raises(InferenceServerException, match="total"):
        infer(client, "totals", ones(2), 21)
    # The request that failed has changed nothing.
    np.testing.assert_array_equal(infer(client, "totals", array, 21, end=True), 3 * array)


def test_the_first_state_is_that_of_the_file(daemon):
    client = daemon.client()
    first = infer(client, "begun", ones(2), 1, start=True, end=True)
    np.testing.assert_array_equal(first, [[2, 3, 4, 5]] * 2)


def test_controls_say_where_a_sequence_begins_and_ends(daemon):
    client = daemon.client()
    zero = np.zeros((2, 1), np.float32)
    for flags, expected in (((True, False), [11, -1, 1, 77]), ((False, False), [10, -1, 1, 77]),
                            ((False, True), [10, 2.5, 1, 77])):
        told = infer(client, "controls", zero, 77, *flags, output="flags")
        np.testing.assert_array_equal(told, [expected] * 2)
    with pytest.raises(InferenceServerException, match='sequence_id is "a", the model takes UINT64'):
        infer(client, "controls", zero, "a", start=True)


def test_a_model_may_be_told_the_text_that_names_the_sequence(daemon):
    client = daemon.client()
    zero = np.zeros((2, 1), np.float32)
    told = infer(client, "named", zero, "caller 5", start=True, output="who")
    assert told.tolist() == [[b"caller 5"], [b"caller 5"]]


def test_a_recurrent_model_hears_a_stream_in_pieces(daemon, rng):
    session = onnxruntime.InferenceSession(stateful.recurrent().SerializeToString())
    client = daemon.client()
    x = rng.normal(size=(1, 50, 8)).astype(np.float32)
    whole = session.run(["y"], {"x": x, "h": np.zeros((1, 16), np.float32)})[0]
    ends = [0, 1, 2, 9, 10, 31, 50]
    pieces = [infer(client, "recurrent", x[:, a:b], 3, start=a == 0, end=b == 50)
              for a, b in zip(ends, ends[1:])]
    np.testing.assert_allclose(np.concatenate(pieces, 1), whole, atol=1e-4)


def test_sequences_beside_each_other_answer_as_alone(daemon, rng):
    streams = rng.normal(size=(16, 1, 40, 8)).astype(np.float32)

    def run(place):
        with daemon.client() as client:
            return [infer(client, "recurrent", streams[place][:, 4 * i:4 * i + 4], 100 + place,
                          start=i == 0, end=i == 9) for i in range(10)]

    alone = [run(place) for place in range(16)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        beside = list(pool.map(run, range(16)))
    for one, other in zip(alone, beside):
        np.testing.assert_allclose(np.concatenate(other, 1), np.concatenate(one, 1), atol=1e-5)


def test_state_may_grow(daemon, rng):
    client = daemon.client()
    x = rng.normal(size=(1, 12, 4)).astype(np.float32)
    for i in range(6):
        y = infer(client, "growing", x[:, 2 * i:2 * i + 2], 9, start=i == 0, end=i == 5)
        np.testing.assert_allclose(y, x[:, :2 * i + 2].mean(1), atol=1e-5)


@pytest.mark.parametrize("sequence, words, code", [
    (0, "sequence_id must be a number that is not 0, or a text", "INVALID_ARGUMENT"),
    (404, "sequence 404 is not known: it has not begun on this server", "FAILED_PRECONDITION"),
    ("nobody", 'sequence "nobody" is not known', "FAILED_PRECONDITION"),
])
def test_a_request_of_no_sequence_is_refused(daemon, sequence, words, code):
    with pytest.raises(InferenceServerException, match=words) as refused:
        infer(daemon.client(), "totals", ones(), sequence)
    assert refused.value.status() == f"StatusCode.{code}"


def test_an_ended_sequence_is_known_no_more(daemon):
    client = daemon.client()
    infer(client, "totals", ones(), 31, start=True, end=True)
    with pytest.raises(InferenceServerException, match="sequence 31 is not known"):
        infer(client, "totals", ones(), 31)


def test_an_idle_sequence_is_forgotten_and_its_memory_given_back(daemon):
    client = daemon.client()
    infer(client, "brief", ones(), 1, start=True)
    wait_until(lambda: Scrape(daemon.metrics_url).by(
        "reprise_live_sequences_total", "event", model="brief").get("idle", 0) == 1)
    assert Scrape(daemon.metrics_url).total("reprise_state_bytes", model="brief") == 0
    with pytest.raises(InferenceServerException, match="sequence 1 is not known"):
        infer(client, "brief", ones(), 1)


def test_no_more_sequences_live_than_may(daemon):
    client = daemon.client()
    for name in (1, 2):
        infer(client, "few", ones(), name, start=True)
    with pytest.raises(InferenceServerException, match="of 2 sequences is kept already, and of 2"):
        infer(client, "few", ones(), 3, start=True)
    infer(client, "few", ones(), 1, end=True)
    assert infer(client, "few", ones(), 3, start=True)[0, 0] == 1
    assert infer(client, "few", ones(), 2)[0, 0] == 2
    for name in (2, 3):
        infer(client, "few", ones(), name, end=True)


def test_a_sequence_beyond_the_candidates_waits_for_a_place(daemon):
    client = daemon.client()
    infer(client, "one", ones(), 1, start=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        second = pool.submit(infer, daemon.client(), "one", ones(value=5), 2, True, True)
        wait_until(lambda: Scrape(daemon.metrics_url).total(
            "reprise_sequence_requests_waiting", model="one") == 1)
        assert infer(client, "one", ones(), 1)[0, 0] == 2
        assert not second.done()
        infer(client, "one", ones(), 1, end=True)
        assert second.result(timeout=30)[0, 0] == 5


def test_a_request_that_waits_for_its_turn_has_a_deadline(daemon):
    client = daemon.client()
    infer(client, "one", ones(), 1, start=True)
    begin = time.monotonic()
    with pytest.raises(InferenceServerException) as late:
        infer(client, "one", ones(), 2, start=True, timeout=100_000)
    assert late.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    assert time.monotonic() - begin < 20
    infer(client, "one", ones(), 1, end=True)


def test_clients_neither_see_nor_send_what_the_server_keeps(daemon):
    client = daemon.client()
    metadata = client.get_model_metadata("totals")
    assert [one.name for one in metadata.inputs] == ["x"]
    assert [one.name for one in metadata.outputs] == ["y"]
    config = client.get_model_config("totals").config
    assert [one.name for one in config.input] == ["x"] and config.HasField("sequence_batching")
    inputs = [tensor(ones()), tensor(ones(), "total")]
    with pytest.raises(InferenceServerException, match='input "total" belongs to the sequence'):
        client.infer("totals", inputs, sequence_id=1, sequence_start=True)
    result = client.infer("shown", [tensor(ones())], sequence_id=1, sequence_start=True)
    assert result.as_numpy("total_out")[0, 0] == 1
    assert infer(client, "shown", ones(), 1, end=True, output="total_out")[0, 0] == 2


def test_sequences_over_http(daemon):
    with tritonclient.http.InferenceServerClient(daemon.http_url.removeprefix("http://")) as client:
        for step in range(1, 4):
            result = client.infer("totals", [tensor(ones(), grpc=False)], sequence_id=55,
                                  sequence_start=step == 1, sequence_end=step == 3)
            assert result.as_numpy("y")[0, 0] == step
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}],
            "parameters": {"sequence_id": "over http", "sequence_start": "yes"}}
    request = urllib.request.Request(f"{daemon.http_url}/v2/models/totals/infer",
                                     json.dumps(body).encode())
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert "sequence_start must be true or false" in refused.value.read().decode()
    # JSON's numbers keep their value: no other sequence stands for a negative one.
    body["parameters"] = {"sequence_id": -3, "sequence_start": True}
    request.data = json.dumps(body).encode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert refused.value.code == 400
    assert "sequence_id must be an unsigned integer of 64 bits or a text, it is -3" in (
        refused.value.read().decode())


def test_a_sequence_survives_no_reload_and_its_client_is_told(repository):
    repository.add("totals", stateful.totals(), config=stateful.totals_config(batching=IDLE))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        client = daemon.client()
        infer(client, "totals", ones(), 1, start=True)
        repository.add("totals", stateful.totals(), version=2)
        client.load_model("totals")
        with pytest.raises(InferenceServerException, match="before the model was reloaded"):
            infer(client, "totals", ones(), 1)
        assert infer(client, "totals", ones(), 1, start=True)[0, 0] == 1


@pytest.mark.parametrize("config, words", [
    ('sequence_batching { state [ { input_name: "no" output_name: "total_out" } ] }',
     'names input "no", the model has x, total'),
    ('sequence_batching { state [ { input_name: "total" output_name: "y" data_type: TYPE_INT8 } ] }',
     'state "total".data_type is TYPE_INT8, the model has TYPE_FP32'),
    ('sequence_batching { state [ { input_name: "total" output_name: "y" dims: [ 5 ] } ] }',
     'state "total": dim 1 is 5, the model has 4'),
    ('sequence_batching { control_input [ { name: "total" control [ { kind: '
     'CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ] }',
     'control_input "total" is TYPE_INT32, the model has TYPE_FP32'),
    ('sequence_batching { state [ { input_name: "total" output_name: "y" initial_state '
     '[ { data_file: "gone" } ] } ] }', "initial_state.data_file"),
])
def test_a_config_that_the_model_contradicts_is_refused_with_both(repository, config, words):
    repository.add("totals", stateful.totals(), config=config)
    with Daemon(repository, "--strict-readiness", "false") as daemon:
        index = daemon.client().get_model_repository_index().models
        assert words in index[0].reason
