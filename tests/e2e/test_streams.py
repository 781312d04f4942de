"""ModelStreamInfer: requests and answers of one stream."""

import queue
import threading

import grpc
import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import assert_same_answer, reference, tensors, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until

MODELS = {"bert": models.bert}
NAMES = ["input_ids", "attention_mask"]


def message(request_id, inputs, model="bert", **parameters):
    request = service_pb2.ModelInferRequest(model_name=model, id=request_id)
    for name, array in inputs.items():
        tensor = request.inputs.add(name=name, datatype="INT64")
        tensor.shape.extend(array.shape)
        request.raw_input_contents.append(array.tobytes())
    for name, value in parameters.items():
        request.parameters[name].bool_param = value
    return request


@pytest.fixture
def stub(daemon):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def test_the_published_client_streams(daemon, paths, rng):
    requests = {str(i): text_inputs(NAMES, 1, length, rng, vocabulary=200)
                for i, length in enumerate(rng.integers(2, 40, 200))}
    answers = queue.Queue()
    with daemon.client() as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for request_id, inputs in requests.items():
            client.async_stream_infer("bert", tensors(inputs), request_id=request_id)
        for _ in range(len(requests)):
            result, error = answers.get(timeout=120)
            assert error is None
            inputs = requests.pop(result.get_response().id)
            expected = reference(paths["bert"], inputs)
            assert_same_answer({name: result.as_numpy(name) for name in expected}, expected)
        client.stop_stream()
    assert not requests


def test_request_that_fails_says_so_and_the_stream_goes_on(stub, rng):
    good = text_inputs(NAMES, 1, 5, rng, vocabulary=200)
    bad = dict(good, input_ids=np.full((1, 5), 5000))
    sent = [message("a", good), message("b", bad), message("c", good, model="brt"),
            message("d", {"input_ids": good["input_ids"]}), message("e", good)]
    answers = {answer.infer_response.id: answer for answer in stub.ModelStreamInfer(iter(sent))}
    assert sorted(answers) == list("abcde")
    assert not answers["a"].error_message and not answers["e"].error_message
    assert "5000" in answers["b"].error_message
    assert "brt" in answers["c"].error_message
    assert "attention_mask" in answers["d"].error_message
    assert answers["e"].infer_response.outputs


def test_answers_come_in_the_order_of_their_requests(stub, rng):
    """Clients may tell them apart by nothing else: long ones first, and one that is refused."""
    lengths = [128, 1, 64, 2, 3, 100, 1, 5] * 12
    sent = [message(str(i), text_inputs(NAMES, 1, n, rng, vocabulary=200),
                    model="bert" if i % 7 else "nobody") for i, n in enumerate(lengths)]
    answers = [answer.infer_response.id for answer in stub.ModelStreamInfer(iter(sent))]
    assert answers == [str(i) for i in range(len(lengths))]


def test_stream_without_requests_ends(stub):
    assert list(stub.ModelStreamInfer(iter([]))) == []


def test_last_answer_of_a_request_is_marked_where_that_is_asked_for(stub, rng):
    inputs = text_inputs(NAMES, 1, 5, rng, vocabulary=200)
    sent = [message("a", inputs, triton_enable_empty_final_response=True), message("b", inputs)]
    answers = {answer.infer_response.id: answer.infer_response
               for answer in stub.ModelStreamInfer(iter(sent))}
    assert answers["a"].parameters["triton_final_response"].bool_param
    assert "triton_final_response" not in answers["b"].parameters


def test_client_that_does_not_read_is_read_no_further(daemon, stub, rng):
    # 2000 answers of a megabyte would be 2 GB.
    inputs = text_inputs(NAMES, 32, 256, rng, vocabulary=200)
    sent = [0]

    def requests():
        for i in range(2000):
            sent[0] += 1
            yield message(str(i), inputs)

    stream = stub.ModelStreamInfer(requests())
    next(stream)
    before, still = -1, 0
    while still < 10:
        threading.Event().wait(0.1)
        still = still + 1 if sent[0] == before else 0
        before = sent[0]
    assert sent[0] < 1000
    assert daemon.rss_bytes() < 1.5e9
    stream.cancel()
    assert daemon.client().is_server_live()


def test_cancelled_stream_takes_its_requests_along(repository, rng):
    repository.add("bert", models.bert(),
                   config='dynamic_batching { max_queue_delay_microseconds: 30000000 }')
    with Daemon(repository) as daemon, grpc.insecure_channel(daemon.grpc_address) as channel:
        def depth():
            return Scrape(daemon.metrics_url).total("reprise_queue_depth", model="bert")

        inputs = text_inputs(NAMES, 1, 5, rng, vocabulary=200)
        more = threading.Event()

        def requests():
            for i in range(5):
                yield message(str(i), inputs)
            more.wait()

        stream = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(requests())
        wait_until(lambda: depth() == 5)
        stream.cancel()
        wait_until(lambda: depth() == 0)
        more.set()


def test_daemon_ends_while_streams_are_open(repository, rng):
    repository.add("bert", models.bert())
    inputs = text_inputs(NAMES, 1, 5, rng, vocabulary=200)
    with Daemon(repository, "--exit-timeout-secs", "2") as daemon:
        client = tritonclient.grpc.InferenceServerClient(daemon.grpc_address)
        answers = queue.Queue()
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("bert", tensors(inputs))
        result, error = answers.get(timeout=60)
        assert error is None
        daemon.process.terminate()
        assert daemon.process.wait(60) == 0
        with pytest.raises(InferenceServerException):
            client.is_server_live()
        client.close()
