"""Clients that send requests at a rate, check each answer, and count errors and times."""

import contextlib
import dataclasses
import threading
import time

import numpy as np
import requests
from tritonclient.grpc import service_pb2, service_pb2_grpc

from testing.patience import wait_until

INPUT = np.arange(10, dtype=np.float32).reshape(2, 5)
EXPECTED = 2 * INPUT + 1  # of models.elementwise


def grpc_call(proxy, model="m"):
    """Returns (how the model is asked once, how to close the channel)."""
    message = service_pb2.ModelInferRequest(model_name=model)
    message.inputs.add(name="x", datatype="FP32", shape=INPUT.shape)
    message.raw_input_contents.append(INPUT.tobytes())
    channel = proxy.channel()
    infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer

    def ask(metadata=None):
        reply = infer(message, timeout=60, metadata=metadata)
        assert reply.raw_output_contents[0] == EXPECTED.tobytes()

    infer(message, timeout=60, wait_for_ready=True)
    return ask, channel.close


def http_call(proxy, model="m"):
    """Makes the same over HTTP, with connections of each thread's own."""
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(INPUT.shape), "data": INPUT.ravel().tolist()}]}
    own = threading.local()
    sessions = []

    def ask(metadata=None):
        if not hasattr(own, "session"):
            own.session = requests.Session()
            sessions.append(own.session)
        reply = own.session.post(f"{proxy.http_url}/v2/models/{model}/infer", json=body, timeout=60,
                                 headers=dict(metadata or ()))
        assert reply.status_code == 200, f"{reply.status_code} {reply.text}"
        assert reply.json()["outputs"][0]["data"] == EXPECTED.ravel().tolist()

    ask()
    return ask, lambda: [session.close() for session in sessions]


def bert_call(proxy, length=64):
    """Asks a model that takes CPU time, over gRPC."""
    message = service_pb2.ModelInferRequest(model_name="bert")
    for name in ("input_ids", "attention_mask"):
        message.inputs.add(name=name, datatype="INT64", shape=[1, length])
        message.raw_input_contents.append(np.ones(length, np.int64).tobytes())
    channel = proxy.channel()
    infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
    infer(message, timeout=60, wait_for_ready=True)
    return lambda: infer(message, timeout=60), channel.close


CALLS = {"grpc": grpc_call, "http": http_call}


@dataclasses.dataclass
class Load:
    """The results that the clients saw."""

    seconds: list = dataclasses.field(default_factory=list)
    errors: list = dataclasses.field(default_factory=list)

    @property
    def count(self):
        return len(self.seconds) + len(self.errors)

    def wait_for(self, more):
        """Until so many further requests have ended."""
        goal = self.count + more
        wait_until(lambda: self.count >= goal)


def load(face, proxy, clients=6, rate=120):
    """Asks through `proxy` at `rate` a second while the block runs; yields the Load."""
    return asking(*CALLS[face](proxy), clients, rate)


@contextlib.contextmanager
def asking(ask, close, clients, rate):
    """Calls `ask` at `rate` a second while the block runs, `close` at its end; yields the Load."""
    seen, stop = Load(), threading.Event()

    def client():
        while not stop.is_set():
            begin = time.monotonic()
            try:
                ask()
                seen.seconds.append(time.monotonic() - begin)
            except Exception as error:  # whatever a user would see
                seen.errors.append(f"{time.monotonic() - begin:.2f} s: {error}")
            stop.wait(max(0, clients / rate - (time.monotonic() - begin)))  # the rate of arrivals

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for one in threads:
        one.start()
    try:
        yield seen
    finally:
        stop.set()
        for one in threads:
            one.join()
        close()
