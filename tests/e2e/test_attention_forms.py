"""Sinks, smooth softmax, caps, joined operands and norms: paged, carried by clients, and as they are."""

import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc
import tritonclient.utils
from onnx import TensorProto, helper, numpy_helper

from testing import decoders, tokens
from testing.daemon import Daemon, reprise
from testing.metrics import Scrape

CONTEXT, TOKENS = 128, 24


def model_of(name, **more):
    form, options = decoders.VARIANTS[name]
    return decoders.make(form, **options, **more)


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Starts a daemon with a model of each kind twice: with pages, and without."""
    root = tmp_path_factory.mktemp("attention")
    steppers = {}
    for name in decoders.VARIANTS:
        for suffix, parameters in (("", dict(context=CONTEXT)), ("_off", dict(generation="off"))):
            folder = root / f"{name}{suffix}" / "1"
            folder.mkdir(parents=True)
            (folder / "model.onnx").write_bytes(model_of(name).SerializeToString())
            (folder.parent / "config.pbtxt").write_text(config(**parameters))
        steppers[name] = decoders.Stepper(model_of(name, plain=True))
    with Daemon(root) as daemon:
        yield daemon, steppers


def generate(daemon, model, ids):
    return tokens.generate(daemon, model, ids, max_tokens=TOKENS, logprobs=0)


def step(client, model, stepper, ids):
    """Returns the scores of `ids` after the ids that the stepper has seen, whose caches are sent."""
    total = stepper.length + len(ids)
    feeds = {"input_ids": np.array([ids], np.int64), **stepper.past}
    if "attention_mask" in stepper.names:
        feeds["attention_mask"] = np.ones((1, total), np.int64)
    if "position_ids" in stepper.names:
        feeds["position_ids"] = np.arange(stepper.length, total)[None]
    inputs = []
    for name, array in feeds.items():
        kind = "FP32" if array.dtype == np.float32 else "INT64"
        inputs.append(tritonclient.grpc.InferInput(name, array.shape, kind))
        inputs[-1].set_data_from_numpy(array)
    return client.infer(model, inputs)


@pytest.mark.parametrize("name", decoders.VARIANTS)
def test_tokens_are_those_of_onnxruntime_with_its_own_cache(served, rng, name):
    daemon, steppers = served
    for length in (1, 18, 40):
        ids = [int(one) for one in rng.integers(0, 97, length)]
        expected, rows = steppers[name].greedy(ids, TOKENS)
        answer = generate(daemon, name, ids)
        assert answer["token_ids"] == expected, (name, length, answer)
        shifted = rows - rows.max(-1, keepdims=True)
        best = (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))[np.arange(TOKENS), expected]
        np.testing.assert_allclose(answer["logprobs"], best, atol=2e-4)


@pytest.mark.parametrize("suffix", ["", "_off"])
@pytest.mark.parametrize("name", decoders.VARIANTS)
def test_caches_that_clients_carry_give_the_same(served, rng, name, suffix):
    daemon, steppers = served
    stepper = steppers[name]
    stepper.reset()
    before = Scrape(daemon.metrics_url).total("reprise_compiles_total", model=name)
    with tritonclient.grpc.InferenceServerClient(daemon.grpc_address) as client:
        for count in (19, 1, 3, 1):
            ids = [int(one) for one in rng.integers(0, 97, count)]
            answer = step(client, name + suffix, stepper, ids)
            np.testing.assert_allclose(answer.as_numpy("logits")[0], stepper.step(ids), rtol=1e-4,
                                       atol=1e-4)
            for past, rows in stepper.past.items():
                present = answer.as_numpy(past.replace("past_key_values", "present"))
                np.testing.assert_allclose(present, rows, rtol=1e-4, atol=1e-4)
    if not suffix:
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total", model=name) == before


def quantized(kind, bits, heads=4, kv_heads=2, size=16):
    """Makes one GroupQueryAttention whose caches hold integers."""
    count = kv_heads * size if kind == "PER_CHANNEL" else 1
    scale = np.linspace(0.01, 0.03, count, dtype=np.float32) * (1 if bits == 8 else 15)
    dtype = TensorProto.INT8 if bits == 8 else TensorProto.UINT8
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", "past_k", "past_v", "last", "length", *[""] * 5, "scale", "scale"],
        ["y", "new_k", "new_v"], domain="com.microsoft", num_heads=heads, kv_num_heads=kv_heads,
        k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits)

    def value(name, of, *dims):
        return helper.make_tensor_value_info(name, of, dims)
    rows, cells = ("batch", "rows"), ("batch", kv_heads, "past", size * bits // 8)
    graph = helper.make_graph(
        [node], "g",
        [value("q", TensorProto.FLOAT, *rows, heads * size),
         *(value(name, TensorProto.FLOAT, *rows, kv_heads * size) for name in "kv"),
         *(value(name, dtype, *cells) for name in ("past_k", "past_v")),
         value("last", TensorProto.INT32, "batch"), value("length", TensorProto.INT32)],
        [value("y", TensorProto.FLOAT, *rows, heads * size),
         *(value(name, dtype, "batch", kv_heads, "total", cells[-1])
           for name in ("new_k", "new_v"))],
        [numpy_helper.from_array(scale, "scale")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


KINDS = {"one8": ("PER_TENSOR", 8), "many8": ("PER_CHANNEL", 8), "one4": ("PER_TENSOR", 4),
         "many4": ("PER_CHANNEL", 4)}


def test_quantised_caches_hold_what_onnxruntime_puts_there(repository, rng):
    for name, (kind, bits) in KINDS.items():
        repository.add(name, quantized(kind, bits))
    with Daemon(repository) as daemon, \
            tritonclient.grpc.InferenceServerClient(daemon.grpc_address) as client:
        for name, (kind, bits) in KINDS.items():
            session = onnxruntime.InferenceSession(quantized(kind, bits).SerializeToString(),
                                                   providers=["CPUExecutionProvider"])
            empty = np.zeros((2, 2, 0, 16 * bits // 8), np.int8 if bits == 8 else np.uint8)
            past = [empty, empty]
            for rows in (5, 1, 1):  # onnxruntime takes several after a past in a batch of one alone
                total = past[0].shape[2] + rows
                feeds = {"q": rng.normal(size=(2, rows, 64)), "k": rng.normal(size=(2, rows, 32)),
                         "v": rng.normal(size=(2, rows, 32))}
                feeds = {key: array.astype(np.float32) for key, array in feeds.items()}
                feeds.update(past_k=past[0], past_v=past[1], length=np.array(total, np.int32),
                             last=np.full(2, total - 1, np.int32))
                y, *past = session.run(None, feeds)
                inputs = []
                for key, array in feeds.items():
                    dtype = tritonclient.utils.np_to_triton_dtype(array.dtype)
                    inputs.append(tritonclient.grpc.InferInput(key, array.shape, dtype))
                    inputs[-1].set_data_from_numpy(array)
                answer = client.infer(name, inputs)
                np.testing.assert_allclose(answer.as_numpy("y"), y, rtol=1e-4, atol=1e-5)
                for key, cells in zip(("new_k", "new_v"), past):
                    np.testing.assert_array_equal(answer.as_numpy(key), cells)


@pytest.mark.parametrize("attribute, value, words", [
    ("causal", 0, "attribute 'causal' = 0 is not supported"),
    ("sliding_window_cache", 1, "attribute 'sliding_window_cache' = 1 is not supported"),
    ("qk_output", 1, "attribute 'qk_output' = 1 is not supported"),
    ("kv_cache_bit_width", 2, "'v_quant_type' = 'NONE' and 'kv_cache_bit_width' = 2 are not supported"),
    ("k_quant_type", "PER_TENSOR", "attributes 'k_quant_type' = 'PER_TENSOR', 'v_quant_type' = 'NONE'"),
])
def test_what_has_no_steps_is_refused_by_name(tmp_path, attribute, value, words):
    model = decoders.make("gqa")
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(helper.make_attribute(attribute, value))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    told = reprise("check", path, check=False)
    assert words in told.stdout + told.stderr
