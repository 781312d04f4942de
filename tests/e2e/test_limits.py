"""The limits of a request: time, memory, and a stream only as long as its client waits for it."""

import concurrent.futures
import ctypes
import json
import os
import pathlib
import queue
import re
import signal
import socket
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, tensors
from testing.metrics import Scrape

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WIDTH = 256
# A limit of the server for loops: some seconds of them, on any machine.
MANY_TRIPS = (1 << 20) - 1
MOST_SECONDS = 90  # of one test, of which the longest takes 14 on two cores that others use too


def parameter(name, value):
    return (f'parameters {{ key: "reprise.{name}" value {{ string_value: "{value}" }} }}\n')


def graph(nodes, inputs, out, constants=()):
    made = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info("y", out, None)],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def looping():
    """Makes as many products as `trips` says."""
    weight = np.eye(WIDTH, dtype=np.float32)
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"]),
         helper.make_node("MatMul", ["a", "w"], ["next"], name="product")], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", BOOL, []),
         helper.make_tensor_value_info("a", FLOAT, None)],
        [helper.make_tensor_value_info("goes", BOOL, []),
         helper.make_tensor_value_info("next", FLOAT, None)])
    return graph([helper.make_node("Loop", ["trips", "", "x"], ["y"], name="rounds", body=body)],
                 [("x", FLOAT, [WIDTH, WIDTH]), ("trips", INT64, [])], FLOAT, [("w", weight)])


def long_chain(products=600):
    """Makes one long replay: products of squares, one after the other, 1.3 TFLOP: no test waits for its
    end here, which comes after minutes where others want the cores."""
    nodes = [helper.make_node("MatMul", [f"h{i}" if i else "x", "w"],
                              [f"h{i + 1}" if i + 1 < products else "y"], name=f"m{i}")
             for i in range(products)]
    return graph(nodes, [("x", FLOAT, [1024, 1024])], FLOAT, [("w", np.eye(1024, dtype=np.float32))])


def collecting():
    """Makes a row of a million numbers an iteration, all of which are kept."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"]),
         helper.make_node("Expand", ["x", "wide"], ["row"])], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", BOOL, [])],
        [helper.make_tensor_value_info("goes", BOOL, []),
         helper.make_tensor_value_info("row", FLOAT, None)])
    return graph([helper.make_node("Loop", ["trips", ""], ["all"], name="collect", body=body),
                  helper.make_node("ReduceSum", ["all"], ["y"])],
                 [("x", FLOAT, [1]), ("trips", INT64, [])], FLOAT, [("wide", np.array([1 << 20]))])


def sized(op, *rest):
    """Makes y = the sum of the result of `op`; how much of it `n`, a value of the request, says."""
    constants = {"Range": [("zero", np.int64(0)), ("one", np.int64(1))], "Pad": [("front", [0])]}
    nodes = {
        "Range": [helper.make_node("Range", ["zero", "n", "one"], ["made"], name="make")],
        "ConstantOfShape": [helper.make_node("ConstantOfShape", ["n"], ["made"], name="make")],
        "Expand": [helper.make_node("Expand", ["x", "n"], ["made"], name="make")],
        "Tile": [helper.make_node("Tile", ["x", "n"], ["made"], name="make")],
        "Pad": [helper.make_node("Concat", ["front", "n"], ["pads"], axis=0),
                helper.make_node("Pad", ["x", "pads"], ["made"], name="make")],
    }[op]
    nodes += [helper.make_node("Cast", ["made"], ["floats"], to=FLOAT),
              helper.make_node("ReduceSum", ["floats"], ["sum"]),
              helper.make_node("Add", ["sum", "x"], ["y"])]
    return graph(nodes, [("x", FLOAT, [1]), ("n", INT64, [] if op == "Range" else [1])], FLOAT,
                 constants.get(op, []))


def whole(op, rank, **attributes):
    """Makes y = the sum of the result of `op`, whose kernel is plain loops that cannot be cut, of a tensor as
    large as `n` says."""
    operands = {"Einsum": ["wide"] * 4, "NonMaxSuppression": ["boxes", "wide", "most"],
                "Det": ["eye"]}
    nodes = [helper.make_node("Expand", ["x", "n"], ["wide"])]
    constants = []
    if op == "Det":
        nodes.append(helper.make_node("EyeLike", ["wide"], ["eye"]))
    if op == "NonMaxSuppression":
        # No box overlaps another, so that each is compared with all.
        nodes += [helper.make_node("Shape", ["wide"], ["count"], start=2),
                  helper.make_node("Squeeze", ["count"], ["last"]),
                  helper.make_node("Range", ["zero", "last", "one"], ["places"]),
                  helper.make_node("Cast", ["places"], ["left"], to=FLOAT),
                  helper.make_node("Reshape", ["left", "column"], ["lefts"]),
                  helper.make_node("Add", ["lefts", "corners"], ["boxes"])]
        constants = [("zero", np.int64(0)), ("one", np.int64(1)), ("column", [1, -1, 1]),
                     ("corners", np.array([0, 0, 1, 0.5], np.float32)),
                     ("most", [1 << 40])]
    nodes += [helper.make_node(op, operands.get(op, ["wide"]), ["made"], name="heavy", **attributes),
              helper.make_node("Cast", ["made"], ["floats"], to=FLOAT),
              helper.make_node("ReduceSum", ["floats"], ["y"])]
    return graph(nodes, [("x", FLOAT, [1]), ("n", INT64, [rank])], FLOAT, constants)


# Models, sizes for many minutes, and sizes for no time with the answer.
WHOLE = {
    "einsum": (whole("Einsum", 1, equation="a,b,c,d->"), [4000], [3], 81),
    "lrn": (whole("LRN", 4, size=1000001, alpha=0.0), [1, 1000000, 1, 1], [1, 5, 1, 1], 5),
    "det": (whole("Det", 2), [3000, 3000], [1, 1], 1),
    "pool": (whole("LpPool", 4, kernel_shape=[2000, 2000], pads=[1000] * 4, p=3),
             [1, 1, 2500, 2500], [1, 1, 1, 1], 4),
    "nms": (whole("NonMaxSuppression", 3), [1, 1, 500_000], [1, 1, 3], 3),
}


def transform():
    """Makes a transform whose length, no power of two, `n` says: tables beside it are many times larger."""
    return graph([helper.make_node("DFT", ["x", "n"], ["made"], name="heavy", axis=1),
                  helper.make_node("ReduceSum", ["made"], ["y"])],
                 [("x", FLOAT, [1, 4, 1]), ("n", INT64, [])], FLOAT)


def slow_to_measure():
    """Makes a constant that takes hours to make, whatever a request says."""
    return graph([helper.make_node("ConstantOfShape", ["size"], ["zeros"]),
                  helper.make_node("LRN", ["zeros"], ["made"], name="heavy", size=1000001),
                  helper.make_node("ReduceSum", ["made"], ["sum"], keepdims=0),
                  helper.make_node("Add", ["x", "sum"], ["y"])],
                 [("x", FLOAT, ["batch"])], FLOAT, [("size", [1, 1000000, 1, 4])])


SIZED = ["Range", "ConstantOfShape", "Expand", "Tile", "Pad"]
X = np.ones(1, np.float32)
SQUARE = np.ones((WIDTH, WIDTH), np.float32)


@pytest.fixture(scope="module")
def daemon(module_repository):
    repository = module_repository
    repository.add("quick", models.elementwise())
    repository.add("brief", looping(), config=parameter("max_request_ms", 300))
    repository.add("looping", looping(), config=parameter("max_request_ms", 0))
    repository.add("chain", long_chain(), config=parameter("max_request_ms", 0))
    repository.add("short_chain", long_chain(), config=parameter("max_request_ms", 100))
    repository.add("collecting", collecting(), config=parameter("max_request_mb", 64))
    for op in SIZED:
        repository.add(f"sized_{op.lower()}", sized(op), config=parameter("max_request_mb", 64))
    for name, (model, *_) in WHOLE.items():
        repository.add(name, model, config=parameter("max_request_ms", 1000))
    repository.add("transform", transform(), config=parameter("max_request_mb", 256))
    repository.add("slow_to_measure", slow_to_measure(), config=parameter("max_request_ms", 300))
    with Daemon(repository, "--streams", "1") as running:
        capture_chain(running)
        yield running


def capture_chain(daemon):
    """Captures, so that the timed part below computes; the replay itself is not waited for."""
    end = time.monotonic() + 60
    while "chain" not in daemon.reprise("recipes"):
        assert time.monotonic() < end, "the chain is not captured"
        with pytest.raises(InferenceServerException):
            infer(daemon.client(), "chain", {"x": np.ones((1024, 1024), np.float32)}, timeout_s=0.5)


@pytest.fixture(autouse=True)
def ends(request):
    """Fails a test that waits for ever with the line it waits in, and ends its daemon."""
    def give_up(*_):
        raise TimeoutError(f"{request.node.name} takes more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def error_of(daemon, model, inputs, **arguments):
    with pytest.raises(InferenceServerException) as error:
        infer(daemon.client(), model, inputs, **arguments)
    return error.value


def assert_stream_is_free(daemon):
    """Checks that the only stream takes a request at once, though its last run would take much longer."""
    begin = time.monotonic()
    ones = np.ones((2, 5), np.float32)
    assert (infer(daemon.client(), "quick", {"x": ones}, timeout_s=60).outputs["y"] == 3).all()
    return time.monotonic() - begin


def rounds(trips=MANY_TRIPS):
    return {"x": SQUARE, "trips": np.array(trips, np.int64)}


def test_loop_without_an_end_is_refused_by_its_time_and_its_node(daemon):
    error = error_of(daemon, "brief", rounds())
    assert error.status() == "StatusCode.RESOURCE_EXHAUSTED"
    assert "reprise.max_request_ms" in error.message() and "the limit is 300" in error.message()
    assert "product" in error.message() or "rounds" in error.message(), error.message()
    assert (infer(daemon.client(), "brief", rounds(3)).outputs["y"] == 1).all()


def test_replay_that_takes_too_long_is_refused_by_its_launch(daemon):
    error = error_of(daemon, "short_chain", {"x": np.ones((1024, 1024), np.float32)})
    assert error.status() == "StatusCode.RESOURCE_EXHAUSTED"
    assert re.search(r"'m\d+' \(", error.message()) and "the limit is 100" in error.message()


def test_what_iterations_keep_counts(daemon):
    error = error_of(daemon, "collecting", {"x": X, "trips": np.array(1000, np.int64)})
    assert error.status() == "StatusCode.INVALID_ARGUMENT"
    assert "reprise.max_request_mb" in error.message(), error.message()
    few = infer(daemon.client(), "collecting", {"x": X, "trips": np.array(5, np.int64)})
    assert few.outputs["y"] == 5 << 20


@pytest.mark.parametrize("op", SIZED)
def test_size_that_a_value_decides_is_checked_before_it_is_made(daemon, op):
    shape = [] if op == "Range" else [1]
    before = daemon.rss_bytes()
    error = error_of(daemon, f"sized_{op.lower()}", {"x": X, "n": np.full(shape, 1 << 28, np.int64)})
    assert error.status() == "StatusCode.INVALID_ARGUMENT", error.message()
    assert "reprise.max_request_mb" in error.message() and str(64 << 20) in error.message()
    assert "make" in error.message() or "made" in error.message(), error.message()
    assert daemon.rss_bytes() - before < 256 << 20
    few = infer(daemon.client(), f"sized_{op.lower()}", {"x": X, "n": np.full(shape, 1000, np.int64)})
    want = {"Range": 499501, "ConstantOfShape": 1, "Expand": 1001, "Tile": 1001, "Pad": 2}[op]
    assert few.outputs["y"] == want


@pytest.mark.parametrize("name", WHOLE)
def test_kernel_that_runs_as_a_whole_ends_in_time(daemon, name):
    _, many, few, want = WHOLE[name]
    error = error_of(daemon, name, {"x": X, "n": np.array(many, np.int64)})
    assert error.status() == "StatusCode.RESOURCE_EXHAUSTED", error.message()
    assert "the limit is 1000 (reprise.max_request_ms)" in error.message()
    # Where others take the cores, a waiting client is answered before the kernel comes to look.
    grace_is_over = re.match(r"the request has computed for (\d+) ms", error.message())
    if grace_is_over:
        assert int(grace_is_over.group(1)) >= 1500
    else:
        assert "heavy" in error.message() or "made" in error.message(), error.message()
    assert assert_stream_is_free(daemon) < 30
    answer = infer(daemon.client(), name, {"x": X, "n": np.array(few, np.int64)})
    assert abs(answer.outputs["y"].sum() - want) < 1e-3


def test_what_a_kernel_needs_beside_its_result_counts(daemon):
    x = np.ones((1, 4, 1), np.float32)
    before = daemon.rss_bytes()
    error = error_of(daemon, "transform", {"x": x, "n": np.array((1 << 23) + 1, np.int64)})
    assert error.status() == "StatusCode.INVALID_ARGUMENT", error.message()
    assert "bytes besides its operands" in error.message()
    assert "heavy" in error.message() and "reprise.max_request_mb" in error.message()
    assert daemon.rss_bytes() - before < 512 << 20
    few = infer(daemon.client(), "transform", {"x": x, "n": np.array(4, np.int64)})
    assert few.outputs["y"].sum() == 4


def test_model_that_takes_long_to_measure_is_loaded_without(daemon):
    """The daemon of this file would not be ready otherwise."""
    error = error_of(daemon, "slow_to_measure", {"x": X})
    assert error.status() == "StatusCode.RESOURCE_EXHAUSTED", error.message()
    assert "reprise.max_request_ms" in error.message()
    assert "heavy" in error.message() or "the request has computed for" in error.message()


def test_long_replay_does_not_keep_others_waiting(repository):
    """It has borrowed every core, and keeps them to its end, which comes after minutes."""
    repository.add("quick", models.elementwise())
    repository.add("chain", long_chain(), config=parameter("max_request_ms", 0))
    with Daemon(repository, "--streams", "2") as daemon:
        capture_chain(daemon)
        ones = np.ones((2, 5), np.float32)
        infer(daemon.client(), "quick", {"x": ones})
        answers = queue.Queue()
        call = daemon.client().async_infer(
            "chain", tensors({"x": np.ones((1024, 1024), np.float32)}),
            lambda result, error: answers.put(error))
        wait_until_it_runs(daemon)
        slowest = 0
        for _ in range(20):
            begin = time.monotonic()
            assert (infer(daemon.client(), "quick", {"x": ones}).outputs["y"] == 3).all()
            slowest = max(slowest, time.monotonic() - begin)
        assert answers.empty(), "the replay was too short for this test"
        call.cancel()
        # Some milliseconds where no other process wants the cores.
        assert slowest < 3


def late_by(daemon, call, deadline_s):
    """Returns how long after its deadline `call` was answered."""
    begin = time.monotonic()
    with pytest.raises(InferenceServerException) as error:
        call()
    return time.monotonic() - begin - deadline_s, error.value


@pytest.mark.parametrize("model, inputs", [
    ("looping", rounds()), ("chain", {"x": np.ones((1024, 1024), np.float32)})])
def test_deadline_ends_what_runs(daemon, model, inputs):
    late, error = late_by(daemon, lambda: infer(daemon.client(), model, inputs, timeout_s=0.2), 0.2)
    assert error.status() == "StatusCode.DEADLINE_EXCEEDED"
    assert_stream_is_free(daemon)
    # By the server's own account, which the client does not wait for.
    scrape = Scrape(daemon.metrics_url)
    codes = scrape.by("reprise_requests_total", "code", model=model)
    assert codes.get("DEADLINE_EXCEEDED", 0) + codes.get("CANCELLED", 0) >= 1
    assert late < 5


def test_timeout_parameter_is_answered_while_the_request_runs(daemon):
    client = daemon.client()
    begin = time.monotonic()
    with pytest.raises(InferenceServerException) as error:
        client.infer("looping", tensors(rounds()), timeout=200_000, client_timeout=60)
    took = time.monotonic() - begin
    assert error.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    assert "after a stream had begun" in error.value.message()
    # 50 ms late at most where no other process wants the cores.
    assert took < 5
    assert_stream_is_free(daemon)


def test_client_that_vanishes_frees_the_stream(daemon):
    body = json.dumps({"inputs": [
        {"name": "x", "shape": [WIDTH, WIDTH], "datatype": "FP32", "data": [1] * (WIDTH * WIDTH)},
        {"name": "trips", "shape": [], "datatype": "INT64", "data": [MANY_TRIPS]}]})
    with socket.create_connection(("127.0.0.1", daemon.http_port)) as connection:
        connection.sendall((f"POST /v2/models/looping/infer HTTP/1.1\r\nHost: d\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        wait_until_it_runs(daemon)
    assert_stream_is_free(daemon)


def wait_until_it_runs(daemon):
    """Until a request has left the queue, with a stream that is busy with it."""
    end = time.monotonic() + 30
    ticks = busy_ticks(daemon)
    while time.monotonic() < end:
        if busy_ticks(daemon) - ticks > 20:
            return
        time.sleep(0.02)
    raise AssertionError("nothing runs")


def busy_ticks(daemon):
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_many_that_give_up_leave_nothing_behind(daemon):
    def give_up(i):
        with pytest.raises(InferenceServerException):
            infer(daemon.client(), ("looping", "brief")[i % 2], rounds(), timeout_s=0.1)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(give_up, range(24)))
    assert_stream_is_free(daemon)
    assert Scrape(daemon.metrics_url).total("reprise_stuck_streams") == 0


def test_what_runs_is_stopped_when_the_time_to_end_is_over(repository):
    repository.add("looping", looping(), config=parameter("max_request_ms", 0))
    daemon = Daemon(repository, "--streams", "1", "--exit-timeout-secs", "4",
                    "--drain-grace-secs", "0")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with daemon:
            asked = pool.submit(lambda: infer(daemon.client(), "looping", rounds(), timeout_s=60))
            wait_until_it_runs(daemon)
            begin = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(30) == 0, daemon.log()
            assert time.monotonic() - begin < 7
            with pytest.raises(InferenceServerException) as error:
                asked.result()
            assert error.value.status() == "StatusCode.UNAVAILABLE"


class Held:
    """A thread of another process that does not go on: a hang looks like this from outside."""

    SEIZE, INTERRUPT, DETACH, WAIT_ALL = 0x4206, 0x4207, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __init__(self, thread):
        self._thread = thread

    def __enter__(self):
        if self.libc.ptrace(self.SEIZE, self._thread, None, None) != 0:
            pytest.skip("the system does not let a process hold another one's thread")
        self.libc.ptrace(self.INTERRUPT, self._thread, None, None)
        os.waitpid(self._thread, self.WAIT_ALL)
        return self

    def __exit__(self, *_):
        self.libc.ptrace(self.DETACH, self._thread, None, None)

    def wait_end(self, within_s):
        """Waits until the thread has ended: its process cannot be waited for before its holder knows."""
        end = time.monotonic() + within_s
        while os.waitpid(self._thread, self.WAIT_ALL | os.WNOHANG)[0] == 0:
            assert time.monotonic() < end, "the process of the held thread does not end"
            time.sleep(0.02)


def busiest_thread(pid):
    """Returns the thread that computes now, whatever others took at the start."""
    def ticks(task):
        fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11])

    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    before = {task.name: ticks(task) for task in tasks}
    end = time.monotonic() + 30
    while time.monotonic() < end:
        time.sleep(0.05)
        grown = {task.name: ticks(task) - before[task.name] for task in tasks}
        if max(grown.values()) >= 10:  # 0.1 s
            return int(max(grown, key=grown.get))
    raise AssertionError(f"no thread of {pid} computes")


def test_stuck_stream_is_told_of_and_does_not_keep_the_process(repository):
    repository.add("looping", looping(), config=parameter("max_request_ms", 0))
    # A stream of one thread, so that no helper of it is the one that is held.
    daemon = Daemon(repository, "--streams", "1", "--threads-per-stream", "1",
                    "--exit-timeout-secs", "6",
                    "--drain-grace-secs", "0")
    daemon.start()
    try:
        daemon.wait_ready()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            # Given up by the test, not by a clock: its runs are held before that, however slowly.
            answers = queue.Queue()
            call = daemon.client().async_infer("looping", tensors(rounds()),
                                               lambda result, error: answers.put(error))
            wait_until_it_runs(daemon)
            with Held(busiest_thread(daemon.process.pid)):
                call.cancel()
                assert answers.get(timeout=30) is not None
                end = time.monotonic() + 30
                while daemon.http_status("/v2/health/ready") == 200 and time.monotonic() < end:
                    time.sleep(0.1)
                assert daemon.http_status("/v2/health/ready") == 503
                assert not daemon.client().is_server_ready()
                assert Scrape(daemon.metrics_url).total("reprise_stuck_streams") == 1
                assert 'stream 0, which runs model "looping" version 1, is stuck' in daemon.log()
            # It comes back by itself.
            end = time.monotonic() + 30
            while daemon.http_status("/v2/health/ready") != 200 and time.monotonic() < end:
                time.sleep(0.1)
            assert daemon.http_status("/v2/health/ready") == 200
            assert Scrape(daemon.metrics_url).total("reprise_stuck_streams") == 0

            asked = pool.submit(
                lambda: infer(daemon.client(), "looping", rounds(), timeout_s=60))
            wait_until_it_runs(daemon)
            with Held(busiest_thread(daemon.process.pid)) as held:
                begin = time.monotonic()
                daemon.process.send_signal(signal.SIGTERM)
                held.wait_end(30)
                assert daemon.process.wait(30) == 1
                assert time.monotonic() - begin < 9
            assert "still waiting for: streams that run" in daemon.log(), daemon.log()
            with pytest.raises(InferenceServerException):
                asked.result()
    finally:
        daemon.kill()
