"""Requests through the unmodified third-party client, and onnxruntime as the oracle."""

import dataclasses
import functools

import numpy as np
import onnxruntime
import tritonclient.grpc as triton
from tritonclient.utils import np_to_triton_dtype


@dataclasses.dataclass
class Answer:
    outputs: dict  # name -> array
    parameters: dict  # name -> value
    model_version: str

    bucket = property(lambda self: self.parameters["reprise.bucket"])
    capture = property(lambda self: self.parameters["reprise.capture"])
    recipe = property(lambda self: self.parameters["reprise.recipe"])
    batch = property(lambda self: self.parameters["reprise.batch"])

    @property
    def batches(self):
        """Returns the ids of all replays that served this request."""
        several = self.parameters.get("reprise.batches")
        return [int(i) for i in several.split(",")] if several else [self.batch]


def tensors(inputs):
    result = []
    for name, array in inputs.items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        # ascontiguousarray would make a scalar one-dimensional.
        tensor.set_data_from_numpy(np.array(array, order="C", copy=None))
        result.append(tensor)
    return result


def infer(client, model, inputs, outputs=None, version="", timeout_s=120):
    """Sends one request; `inputs` maps names to arrays. InferenceServerException on an error."""
    wanted = [triton.InferRequestedOutput(name) for name in outputs] if outputs else None
    result = client.infer(
        model, tensors(inputs), outputs=wanted, model_version=version, client_timeout=timeout_s
    )
    response = result.get_response()
    parameters = {
        name: getattr(value, value.WhichOneof("parameter_choice"))
        for name, value in response.parameters.items()
    }
    arrays = {output.name: result.as_numpy(output.name) for output in response.outputs}
    return Answer(arrays, parameters, response.model_version)


@functools.lru_cache(maxsize=8)
def _session(path, modified_ns):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def reference(path, inputs):
    """Returns onnxruntime's answer: name -> array. A scalar is an array of shape ()."""
    import os

    session = _session(str(path), os.stat(path).st_mtime_ns)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs)))


def assert_same_answer(ours, theirs, what=""):
    """Checks the bound of the design: |ours - theirs| <= 1e-4 + 1e-4 |theirs|; integers are equal."""
    assert sorted(ours) == sorted(theirs), what
    for name, expected in theirs.items():
        got = ours[name]
        expected = np.asarray(expected)
        assert got.shape == expected.shape, f"{what}: output {name}: {got.shape} != {expected.shape}"
        if expected.dtype.kind == "f":
            error = np.abs(got.astype(np.float64) - expected)
            excess = error - (1e-4 + 1e-4 * np.abs(expected))
            worst = float(excess.max()) if excess.size else 0.0
            assert worst <= 0 and np.isfinite(got).all() == np.isfinite(expected).all(), (
                f"{what}: output {name}: largest error {error.max()}, {worst} beyond the bound")
        else:
            assert np.array_equal(got, expected), f"{what}: output {name} differs"


def text_inputs(names, batch, length, rng, vocabulary=1000, ragged=False):
    """Token ids, masks and types for a text model whose inputs are `names`, all int64."""
    mask = np.ones((batch, length), np.int64)
    if ragged:
        for row, valid in enumerate(rng.integers(1, length + 1, batch)):
            mask[row, valid:] = 0
    values = {
        "input_ids": rng.integers(1, vocabulary, (batch, length)),
        "attention_mask": mask,
        "token_type_ids": np.zeros((batch, length), np.int64),
    }
    return {name: values[name].astype(np.int64) for name in names}
