"""The models of a run, their requests, and the answers that onnxruntime gives."""

import dataclasses

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from testing import decoders, families, models, windows
from testing.inference import reference
from testing.repository import MINILM, PADDED

REQUESTS = 16  # of each version of a model
NEW_TOKENS = 12
TEXT = {"batch": (1, 3), "sequence": (1, 60)}


@dataclasses.dataclass
class Case:
    """A model with two versions, of which one has other weights; or a decoder, which has one."""

    name: str
    versions: dict  # number -> the argument of Repository.add
    sizes: dict  # symbol -> (least, most)
    config: str | None = None
    asked: list = dataclasses.field(default_factory=list)  # inputs; prompts of a decoder
    answers: dict = dataclasses.field(default_factory=dict)  # number -> the answers of each of these

    generates = property(lambda self: self.name == "decoder")


def with_other_weights(model):
    """Makes the same computation: large float weights are reversed."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for weight in other.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype == np.float32 and array.size >= 64:
            weight.CopyFrom(numpy_helper.from_array(np.roll(array, 1).copy(), weight.name))
    return other


def make_cases():
    def both(name, model, sizes, **more):
        return Case(name, {1: model, 2: with_other_weights(model)}, sizes, **more)

    image = {"batch": (1, 2), "height": (32, 96), "width": (32, 96)}
    style = next(iter(families.OPSETS))
    return [
        Case("minilm", {1: MINILM}, TEXT),
        both("bert", families.make(families.bert, style), TEXT),
        both("pairs", families.make(families.cross_encoder, style), TEXT),
        both("padded", models.bert(), TEXT, config=PADDED),
        both("similarity", models.similarity(), {"batch": (1, 6), "sequence": (1, 40)}),
        both("resnet", windows.resnet(), image),
        both("line", windows.text_line(), {"batch": (1, 3), "width": (16, 200)}),
        both("audio", windows.wav2vec(), {"batch": (1, 2), "sequence": (200, 500)}),
        both("detector", windows.detector(), image),
        Case("decoder", {1: decoders.make("gqa")}, {}),
    ]


def draw_inputs(session_inputs, sizes, rng):
    chosen = {symbol: int(rng.integers(low, high + 1)) for symbol, (low, high) in sizes.items()}
    inputs = {}
    for one in session_inputs:
        shape = [dim if isinstance(dim, int) else chosen.get(dim, 2) for dim in one.shape]
        if "int" not in one.type:
            inputs[one.name] = rng.standard_normal(shape).astype(np.float32)
            continue
        low, high = (1, 2) if "mask" in one.name else (0, 1) if "type" in one.name else (1, 100)
        dtype = np.int64 if "64" in one.type else np.int32
        inputs[one.name] = rng.integers(low, high, shape).astype(dtype)
    return inputs


def answer_all(cases, paths, rng):
    """Fills in the requests of each case, and the answers. `paths`: (name, version) -> file."""
    for case in cases:
        if case.generates:
            stepper = decoders.Stepper(str(paths[case.name, 1]))
            case.asked = [rng.integers(1, 50, rng.integers(2, 40)).tolist()
                          for _ in range(REQUESTS)]
            case.answers[1] = [stepper.greedy(prompt, NEW_TOKENS) for prompt in case.asked]
            continue
        described = onnxruntime.InferenceSession(str(paths[case.name, 1]),
                                                 providers=["CPUExecutionProvider"])
        case.asked = [draw_inputs(described.get_inputs(), case.sizes, rng)
                      for _ in range(REQUESTS)]
        for version in case.versions:
            path = paths[case.name, version]
            case.answers[version] = [reference(path, inputs) for inputs in case.asked]
