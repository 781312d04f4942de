"""Writes one decoder in the forms that all sides read, with the same weights.

python weights.py SmolLM2-135M-Instruct.Q4_1.gguf FOLDER

model.onnx         as onnxruntime's model builder writes decoders: GroupQueryAttention with rotary
                   positions, MatMulNBits of 4 bits in blocks of 32, the head of 8 bits
float32.onnx       the same with the products' weights as float32
model.gguf         the same for llama.cpp and OpenVINO GenAI
genai_config.json  for onnxruntime-genai
shape.json         the cost of a token, and prompts of real words

A block of Q4_1 begins at any number, one of MatMulNBits at a whole multiple of its scale. So blocks
are rounded again, to scales that float16 holds, and the result is put into model.gguf as well.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
from gguf import GGUFReader, dequantize
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, KV_HEADS, SIZE, VOCABULARY, CONTEXT, BLOCK = 30, 9, 3, 64, 49152, 2048, 32
BASE, EPSILON, END = 100000.0, 1e-5, 2
MICROSOFT = {"domain": "com.microsoft"}
TEXTS = [
    "Why is the sky blue in the day but red in the evening",
    "Write a short story about a small dog that finds a golden key in the garden",
    "Explain how a computer stores numbers and why some of them are not exact",
    "List three good reasons to learn a new language and say how long it takes",
]


def round_four_bits(tensor):
    """Scales, zero points and numbers of each block; `tensor` of the GGUF becomes the same."""
    x = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    x = x.reshape(x.shape[0], -1, BLOCK)
    low, high = np.minimum(x.min(2), 0), np.maximum(x.max(2), 0)
    scales = np.maximum((high - low) / 15, 1e-6).astype(np.float16).astype(np.float32)
    zeros = np.clip(np.rint(-low / scales), 0, 15)
    numbers = np.clip(np.rint(x / scales[..., None]) + zeros[..., None], 0, 15).astype(np.uint8)
    blocks = tensor.data.reshape(*scales.shape, 20)
    blocks[..., 0:2] = scales.astype("<f2")[..., None].view(np.uint8)
    blocks[..., 2:4] = (-zeros * scales).astype("<f2")[..., None].view(np.uint8)
    blocks[..., 4:] = numbers[..., :16] | numbers[..., 16:] << 4
    return scales, zeros.astype(np.uint8), numbers


def split_eight_bits(tensor):
    """Splits blocks of Q8_0, which MatMulNBits holds as they are."""
    blocks = np.asarray(tensor.data).reshape(tensor.data.shape[0], -1, 34)
    scales = blocks[..., 0:2].copy().view("<f2")[..., 0].astype(np.float32)
    numbers = (blocks[..., 2:].copy().view(np.int8).astype(np.int16) + 128).astype(np.uint8)
    return scales, np.full(scales.shape, 128, np.uint8), numbers


def packed_nibbles(x):
    if x.shape[-1] % 2:
        x = np.concatenate([x, np.zeros((*x.shape[:-1], 1), np.uint8)], -1)
    return x[..., 0::2] | x[..., 1::2] << 4


class Writer:
    """Two graphs that differ in their products alone."""

    def __init__(self, tensors):
        self.tensors, self.rounded = tensors, {}
        self.nodes, self.products, self.constants = [], [], []
        self.small, self.wide = [], []  # initializers of one graph
        self.parameters = {"layers": 0, "head": 0}

    def node(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs[0]

    def const(self, name, array, into=None):
        into = self.constants if into is None else into
        into.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def norm_weight(self, name):
        return self.const(name, np.array(self.tensors[name].data, np.float32))

    def linear(self, x, tensor, out, bits=4):
        scales, zeros, numbers = (round_four_bits if bits == 4 else split_eight_bits)(
            self.tensors[tensor])
        n, k = numbers.shape[0], numbers.shape[1] * BLOCK
        self.parameters["layers" if bits == 4 else "head"] += n * k
        pack = packed_nibbles if bits == 4 else lambda x: x
        names = [self.const(f"{out}.{kind}", array, self.small) for kind, array in
                 (("q", pack(numbers)), ("s", scales), ("z", pack(zeros)))]
        exact = (numbers.astype(np.float32) - zeros[..., None]) * scales[..., None]
        self.rounded[tensor] = exact.reshape(n, k)
        self.const(out + ".w", self.rounded[tensor].T, self.wide)
        self.products.append(len(self.nodes))
        self.nodes.append((
            helper.make_node("MatMulNBits", [x, *names], [out], K=k, N=n, bits=bits,
                             block_size=BLOCK, **MICROSOFT),
            helper.make_node("MatMul", [x, out + ".w"], [out])))
        return out

    def skip_norm(self, skip, added, weight, layer, name):
        self.node("SkipSimplifiedLayerNormalization", [skip, added, self.norm_weight(weight)],
                  [f"{layer}.{name}", "", "", f"{layer}.{name}.sum"], epsilon=EPSILON, **MICROSOFT)
        return f"{layer}.{name}", f"{layer}.{name}.sum"

    def save(self, path, inputs, outputs, which):
        nodes = [node[which] if isinstance(node, tuple) else node for node in self.nodes]
        graph = helper.make_graph(
            nodes, "decoder", [helper.make_tensor_value_info(*x) for x in inputs],
            [helper.make_tensor_value_info(*x) for x in outputs],
            self.constants + (self.wide if which else self.small))
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])
        onnx.save(model, path)


def add_decoder(w):
    """Adds all nodes; returns the names and shapes of the graph's inputs and outputs."""
    float32, int64, int32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
    inputs = [("input_ids", int64, ["batch_size", "sequence_length"]),
              ("attention_mask", int64, ["batch_size", "total_sequence_length"])]
    outputs = [("logits", float32, ["batch_size", "sequence_length", VOCABULARY])]
    angles = np.outer(np.arange(CONTEXT), BASE ** (-np.arange(SIZE // 2) / (SIZE // 2)))
    w.const("cos", np.cos(angles).astype(np.float32))
    w.const("sin", np.sin(angles).astype(np.float32))
    w.const("axis", np.array([1], np.int64))
    w.const("one", np.array(1, np.int64))
    w.node("ReduceSum", ["attention_mask", "axis"], ["counted"], keepdims=0)
    w.node("Sub", ["counted", "axis"], ["last"])
    w.node("Cast", ["last"], ["lengths"], to=int32)
    w.node("Shape", ["attention_mask"], ["sizes"])
    w.node("Gather", ["sizes", "one"], ["total64"], axis=0)
    w.node("Cast", ["total64"], ["total"], to=int32)
    embedding = w.tensors["token_embd.weight"]
    w.const("embedding", dequantize(embedding.data, embedding.tensor_type).astype(np.float32))
    x = w.node("Gather", ["embedding", "input_ids"], ["embedded"])
    y = w.node("SimplifiedLayerNormalization", [x, w.norm_weight("blk.0.attn_norm.weight")], ["norm"],
               epsilon=EPSILON, axis=-1, stash_type=1)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        caches = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        present = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        shape = ["batch_size", KV_HEADS, "past_sequence_length", SIZE]
        inputs += [(name, float32, shape) for name in caches]
        outputs += [(name, float32, [*shape[:2], "total_sequence_length", SIZE]) for name in present]
        q, k, v = (w.linear(y, f"{block}attn_{kind}.weight", f"{layer}.{kind}") for kind in "qkv")
        w.node("GroupQueryAttention", [q, k, v, *caches, "lengths", "total", "cos", "sin"],
               [f"{layer}.attended", *present], num_heads=HEADS, kv_num_heads=KV_HEADS,
               scale=SIZE ** -0.5, do_rotary=1, rotary_interleaved=1, **MICROSOFT)
        y = w.linear(f"{layer}.attended", block + "attn_output.weight", f"{layer}.o")
        y, x = w.skip_norm(x, y, block + "ffn_norm.weight", layer, "middle")
        gate, up = (w.linear(y, f"{block}ffn_{kind}.weight", f"{layer}.{kind}")
                    for kind in ("gate", "up"))
        w.node("Sigmoid", [gate], [f"{layer}.sigmoid"])
        w.node("Mul", [gate, f"{layer}.sigmoid"], [f"{layer}.silu"])
        w.node("Mul", [f"{layer}.silu", up], [f"{layer}.gated"])
        y = w.linear(f"{layer}.gated", block + "ffn_down.weight", f"{layer}.down")
        following = (f"blk.{layer + 1}.attn_norm.weight" if layer + 1 < LAYERS
                     else "output_norm.weight")
        y, x = w.skip_norm(x, y, following, layer, "end")
    w.linear(y, "token_embd.weight", "logits", bits=8)
    return inputs, outputs


def genai_config():
    return {
        "model": {
            "bos_token_id": 1, "eos_token_id": END, "pad_token_id": END, "context_length": CONTEXT,
            "type": "llama", "vocab_size": VOCABULARY,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": "model.onnx", "head_size": SIZE, "hidden_size": HEADS * SIZE,
                "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
                "num_hidden_layers": LAYERS,
                "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                           "past_key_names": "past_key_values.%d.key",
                           "past_value_names": "past_key_values.%d.value"},
                "outputs": {"logits": "logits", "present_key_names": "present.%d.key",
                            "present_value_names": "present.%d.value"}}},
        "search": {"max_length": CONTEXT, "do_sample": False, "past_present_share_buffer": True}}


def prompts_of(reader):
    """TEXTS as a chat: each word is looked up whole, which these are."""
    field = reader.fields["tokenizer.ggml.tokens"]
    tokens = [bytes(field.parts[i]).decode() for i in field.data]
    ids = {token: i for i, token in enumerate(tokens)}
    newline = ids["\u010a"]
    return [[ids["<|im_start|>"], ids["user"], newline]
            + [ids[word if i == 0 else "\u0120" + word] for i, word in enumerate(text.split())]
            + [ids["?"], ids["<|im_end|>"], newline, ids["<|im_start|>"], ids["ass"], ids["istant"], newline]
            for text in TEXTS]


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / "model.gguf"
    shutil.copyfile(source, copy)
    copy.chmod(0o644)
    reader = GGUFReader(copy, "r+")
    w = Writer({tensor.name: tensor for tensor in reader.tensors})
    inputs, outputs = add_decoder(w)
    w.save(folder / "model.onnx", inputs, outputs, 0)
    w.save(folder / "float32.onnx", inputs, outputs, 1)
    small = sum(len(x.raw_data) for x in w.small)
    (folder / "genai_config.json").write_text(json.dumps(genai_config(), indent=1))
    (folder / "shape.json").write_text(json.dumps({
        "layers": LAYERS, "heads": HEADS, "kv_heads": KV_HEADS, "size": SIZE,
        "vocabulary": VOCABULARY, "parameters": w.parameters, "weight_bytes": small,
        "prompts": prompts_of(reader)}))


if __name__ == "__main__":
    main()
