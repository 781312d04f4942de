"""Tensors in system shared memory, by the published clients and their own helper library."""

import os
import threading
import uuid
from multiprocessing import resource_tracker

import grpc
import numpy as np
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shm
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import (InferenceServerException, np_to_triton_dtype,
                                serialize_byte_tensor)

from testing import models, texts
from testing.daemon import Daemon
from testing.inference import assert_same_answer, reference, text_inputs
from testing.metrics import Scrape

MODELS = {"bert": models.bert, "elementwise": models.elementwise,
          "movers": texts.all_models()["movers"]}
FACES = {"grpc": tritonclient.grpc, "http": tritonclient.http}


@pytest.fixture(scope="module")
def daemon(module_repository, paths):
    with Daemon(module_repository, "--system-shared-memory", "--in-flight-memory-mb",
                "64") as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def no_tracker_stays():
    """Ends a process of Python's own that the clients' library starts, before the interpreter does."""
    yield
    resource_tracker._resource_tracker._stop()


@pytest.fixture(params=sorted(FACES))
def face(request):
    return FACES[request.param]


@pytest.fixture
def client(daemon, face):
    address = (daemon.grpc_address if face is tritonclient.grpc
               else daemon.http_url.removeprefix("http://"))
    with face.InferenceServerClient(address) as client:
        client.unregister_system_shared_memory()
        yield client
        client.unregister_system_shared_memory()


class Region:
    """An object of shared memory, registered by a name of its own."""

    def __init__(self, client, size, registered=None, offset=0):
        self.name = f"region-{uuid.uuid4().hex[:8]}"
        self.key = f"/reprise-test-{uuid.uuid4().hex}"
        self.handle = shm.create_shared_memory_region(self.name, self.key, size)
        try:
            client.register_system_shared_memory(self.name, self.key, registered or size, offset)
        except BaseException:
            shm.destroy_shared_memory_region(self.handle)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shm.destroy_shared_memory_region(self.handle)

    def fill(self, array, offset=0):
        shm.set_shared_memory_region(self.handle, [array], offset)

    def cut(self, size):
        os.truncate("/dev/shm" + self.key, size)


def lying(face, name, array, region, offset=0, size=None):
    tensor = face.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    tensor.set_shared_memory(region.name, array.nbytes if size is None else size, offset)
    return tensor


def wanted(face, name, region, size, offset=0):
    output = face.InferRequestedOutput(name)
    output.set_shared_memory(region.name, size, offset)
    return output


def parameters_of(output):
    if isinstance(output, dict):
        return output.get("parameters", {})
    return {name: getattr(value, value.WhichOneof("parameter_choice"))
            for name, value in output.parameters.items()}


def test_inputs_and_outputs_lie_in_regions(client, face, paths, rng):
    inputs = text_inputs(["input_ids", "attention_mask"], 3, 17, rng, vocabulary=200)
    expected = reference(paths["bert"], inputs)
    size = sum(array.nbytes for array in inputs.values())
    room = sum(array.nbytes for array in expected.values())
    with Region(client, size) as given, Region(client, 64 + room) as taken:
        tensors, outputs, places, offset = [], [], {}, 0
        for name, array in inputs.items():
            given.fill(array, offset)
            tensors.append(lying(face, name, array, given, offset))
            offset += array.nbytes
        offset = 64
        for name, array in expected.items():
            places[name] = offset
            outputs.append(wanted(face, name, taken, array.nbytes, offset))
            offset += array.nbytes
        for _ in range(2):  # a capture, and a replay
            answer = client.infer("bert", tensors, outputs=outputs)
            got = {name: shm.get_contents_as_numpy(taken.handle, array.dtype, list(array.shape),
                                                   places[name]).copy()
                   for name, array in expected.items()}
            assert_same_answer(got, expected)
            for name, array in expected.items():
                said = parameters_of(answer.get_output(name))
                if face is tritonclient.http:
                    assert said == {}  # clients take an output's parameters for its binary data
                    continue
                assert said["shared_memory_region"] == taken.name
                assert said["shared_memory_byte_size"] == array.nbytes
                assert said["shared_memory_offset"] == places[name]


def test_one_tensor_of_a_request_lies_in_a_region_and_the_others_do_not(client, face, paths, rng):
    inputs = text_inputs(["input_ids", "attention_mask"], 2, 9, rng, vocabulary=200)
    expected = reference(paths["bert"], inputs)
    first, *others = expected
    plain = face.InferInput("input_ids", [2, 9], "INT64")
    plain.set_data_from_numpy(inputs["input_ids"])
    with Region(client, 2 * 9 * 8) as given, Region(client, expected[first].nbytes) as taken:
        given.fill(inputs["attention_mask"])
        outputs = [face.InferRequestedOutput(name) for name in others]
        outputs.insert(0, wanted(face, first, taken, expected[first].nbytes))
        answer = client.infer(
            "bert", [plain, lying(face, "attention_mask", inputs["attention_mask"], given)],
            outputs=outputs)
        got = {name: answer.as_numpy(name) for name in others}
        got[first] = shm.get_contents_as_numpy(taken.handle, np.float32,
                                               list(expected[first].shape)).copy()
    assert_same_answer(got, expected)


def test_texts_lie_in_regions(client, face):
    given = np.array([[b"red", b""], [b"\xff\x00", b"green"]], object)
    raw = np.frombuffer(serialize_byte_tensor(given).item(), np.uint8)
    with Region(client, raw.nbytes) as region, Region(client, 4096) as taken:
        region.fill(raw)
        tensors = []
        for name in ("a", "b"):
            tensors.append(face.InferInput(name, [2, 2], "BYTES"))
            tensors[-1].set_shared_memory(region.name, raw.nbytes)
        client.infer("movers", tensors, outputs=[wanted(face, "joined", taken, 4096)])
        joined = shm.get_contents_as_numpy(taken.handle, np.object_, [2, 4])
    np.testing.assert_array_equal(joined, np.concatenate([given, given], 1))


def test_regions_are_listed_and_forgotten(client, face):
    def listed(name=""):
        answer = client.get_system_shared_memory_status(name)
        if face is tritonclient.http:
            return {one["name"]: (one["key"], one["offset"], one["byte_size"]) for one in answer}
        return {name: (one.key, one.offset, one.byte_size) for name, one in answer.regions.items()}

    with Region(client, 128) as one, Region(client, 4096, registered=64, offset=32) as other:
        both = {one.name: (one.key, 0, 128), other.name: (other.key, 32, 64)}
        assert listed() == both
        assert listed(other.name) == {other.name: both[other.name]}
        with pytest.raises(InferenceServerException, match="registered already"):
            client.register_system_shared_memory(one.name, other.key, 64)
        client.unregister_system_shared_memory(one.name)
        client.unregister_system_shared_memory(one.name)
        assert list(listed()) == [other.name]
        with pytest.raises(InferenceServerException, match=f"{one.name}.*not registered"):
            listed(one.name)
        client.unregister_system_shared_memory()
        assert listed() == {}


@pytest.mark.parametrize("key, size, offset, words", [
    ("/nobody-made-this", 64, 0, ["nobody-made-this", "No such file"]),
    ("/../etc/passwd", 64, 0, ["is not a name of shared memory"]),
    ("..", 64, 0, ["is not a name of shared memory"]),
    ("", 64, 0, ["is not a name of shared memory"]),
    (None, 129, 0, ["128", "129"]),
    (None, 64, 65, ["128", "129"]),
    (None, 0, 0, ["byte_size is 0"]),
    (None, 1 << 62, 1 << 62, ["4611686018427387904"]),
    (None, 64, (1 << 63) - 1, ["9223372036854775807"]),
])
def test_regions_that_cannot_be_are_refused_by_name(client, key, size, offset, words):
    with Region(client, 128) as region:
        with pytest.raises(InferenceServerException) as caught:
            client.register_system_shared_memory("bad", region.key if key is None else key, size,
                                                 offset)
    for word in ["bad", *words]:
        assert word in str(caught.value)


def test_ranges_outside_a_region_are_refused_with_both_sizes(client, face):
    x = np.ones((2, 5), np.float32)
    with Region(client, 64, registered=40, offset=8) as region:
        region.fill(x, 8)
        fits = lying(face, "x", x, region)
        client.infer("elementwise", [fits], outputs=[wanted(face, "y", region, 40)])
        for tensors, outputs, words in [
                ([lying(face, "x", x, region, offset=1)], [], ["40", "offset 1"]),
                ([lying(face, "x", x, region, size=48)], [], ["48", "40"]),
                ([lying(face, "x", x, region, size=36)], [], ["36", "40"]),
                ([lying(face, "x", x, region, offset=(1 << 63) - 8)], [], ["offset"]),
                ([fits], [wanted(face, "y", region, 41)], ["output", "y", "41", "40"]),
                ([fits], [wanted(face, "y", region, 39)], ["output", "y", "39", "40"])]:
            with pytest.raises(InferenceServerException) as caught:
                client.infer("elementwise", tensors, outputs=outputs)
            for word in words:
                assert word in str(caught.value)
        gone = lying(face, "x", x, region)
        client.unregister_system_shared_memory(region.name)
        with pytest.raises(InferenceServerException, match="input \"x\".*not registered"):
            client.infer("elementwise", [gone])


def test_a_region_that_its_client_has_cut_is_an_error_of_that_request(client, face):
    x = np.arange(4096 * 5, dtype=np.float32).reshape(4096, 5)
    with Region(client, 2 * x.nbytes) as region:
        region.fill(x)
        tensor, output = lying(face, "x", x, region), wanted(face, "y", region, x.nbytes, x.nbytes)
        client.infer("elementwise", [tensor], outputs=[output])
        region.cut(x.nbytes + 4)
        with pytest.raises(InferenceServerException, match="output \"y\".*was cut by its client"):
            client.infer("elementwise", [tensor], outputs=[output])
        assert os.stat("/dev/shm" + region.key).st_size == x.nbytes + 4
        region.cut(100)
        with pytest.raises(InferenceServerException, match="input \"x\".*was cut by its client"):
            client.infer("elementwise", [tensor])
        region.cut(2 * x.nbytes)
        region.fill(x)
        client.infer("elementwise", [tensor], outputs=[output])
        y = shm.get_contents_as_numpy(region.handle, np.float32, [4096, 5], x.nbytes)
        np.testing.assert_array_equal(y, 2 * x + 1)


def test_cuts_at_any_time_end_no_request_but_their_own(daemon, client, face):
    x = np.ones((20000, 5), np.float32)
    done = threading.Event()
    with Region(client, 2 * x.nbytes) as region:
        region.fill(x)

        def cut_and_grow():
            while not done.is_set():
                region.cut(0)
                region.cut(x.nbytes)
                region.cut(2 * x.nbytes)

        thread = threading.Thread(target=cut_and_grow)
        thread.start()
        try:
            outcomes = set()
            for _ in range(150):
                try:
                    client.infer("elementwise", [lying(face, "x", x, region)],
                                 outputs=[wanted(face, "y", region, x.nbytes, x.nbytes)])
                    outcomes.add("answered")
                except InferenceServerException as error:
                    assert "was cut by its client" in str(error)
                    outcomes.add("refused")
        finally:
            done.set()
            thread.join()
        assert outcomes, "nothing was asked"
        region.cut(2 * x.nbytes)
        region.fill(x)
        client.infer("elementwise", [lying(face, "x", x, region)],
                     outputs=[wanted(face, "y", region, x.nbytes, x.nbytes)])
        y = shm.get_contents_as_numpy(region.handle, np.float32, list(x.shape), x.nbytes)
        np.testing.assert_array_equal(y, 2 * x + 1)
    assert daemon.process.poll() is None


def test_a_sparse_giant_counts_as_bytes_in_flight(daemon, client, face):
    giant = 1 << 40
    with Region(client, 4096) as region:
        region.cut(giant)
        client.register_system_shared_memory("giant", region.key, giant)
        x = face.InferInput("x", [giant // 20, 5], "FP32")
        x.set_shared_memory("giant", giant // 20 * 20)
        with pytest.raises(InferenceServerException, match="input \"x\"") as caught:
            client.infer("elementwise", [x])
        assert str(giant // 20 * 20) in str(caught.value)
    small = np.ones((1, 5), np.float32)
    with Region(client, small.nbytes) as region:
        region.fill(small)
        client.infer("elementwise", [lying(face, "x", small, region)])
    held = Scrape(daemon.metrics_url).total("reprise_memory_bytes", kind="in_flight")
    assert held < 1 << 20, "bytes of regions are not given back"


def test_streams_take_tensors_in_regions(daemon):
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    client = daemon.client()
    with Region(client, 2 * x.nbytes) as region:
        region.fill(x)
        request = service_pb2.ModelInferRequest(model_name="elementwise")
        tensor = request.inputs.add(name="x", datatype="FP32", shape=[2, 5])
        tensor.parameters["shared_memory_region"].string_param = region.name
        tensor.parameters["shared_memory_byte_size"].int64_param = x.nbytes
        output = request.outputs.add(name="y")
        output.parameters["shared_memory_region"].string_param = region.name
        output.parameters["shared_memory_byte_size"].int64_param = x.nbytes
        output.parameters["shared_memory_offset"].int64_param = x.nbytes
        with grpc.insecure_channel(daemon.grpc_address) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            answer, = stub.ModelStreamInfer(iter([request]), timeout=60)
        assert not answer.error_message
        assert list(answer.infer_response.raw_output_contents) == [b""]
        y = shm.get_contents_as_numpy(region.handle, np.float32, [2, 5], x.nbytes)
        np.testing.assert_array_equal(y, 2 * x + 1)
    client.unregister_system_shared_memory()


@pytest.mark.parametrize("body, words", [
    ({"key": 7, "byte_size": 64}, ["key"]), ({"key": "/k"}, ["byte_size", "missing"]),
    ({"key": "/k", "byte_size": "64"}, ["byte_size"]), ([], ["must be a JSON object"])])
def test_bodies_that_are_no_region_are_refused_by_name(daemon, body, words):
    reply = requests.post(f"{daemon.http_url}/v2/systemsharedmemory/region/r/register", json=body,
                          timeout=60)
    assert reply.status_code == 400
    for word in words:
        assert word in reply.json()["error"]


def test_without_the_flag_there_is_no_shared_memory(module_repository, paths, face):
    with Daemon(module_repository) as off:
        address = (off.grpc_address if face is tritonclient.grpc
                   else off.http_url.removeprefix("http://"))
        with face.InferenceServerClient(address) as client:
            client.unregister_system_shared_memory()
            with pytest.raises(InferenceServerException, match="--system-shared-memory"):
                client.register_system_shared_memory("region", "/key", 64)
            x = face.InferInput("x", [2, 5], "FP32")
            x.set_shared_memory("region", 40)
            with pytest.raises(InferenceServerException, match="--system-shared-memory"):
                client.infer("elementwise", [x])
