"""Folders as model hubs have them, with random weights, and the Python stack's answers to their texts."""

import json
import pathlib
import struct

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from testing import models, tokenizer_kinds

HIDDEN = 32
POSITIONS = 128


def add_head(model, labels, of_tokens):
    """logits [batch, labels] of the first token, or [batch, sequence, labels]; the only output then."""
    rng = np.random.default_rng(5)
    graph = model.graph
    weight = rng.normal(0, 1, (HIDDEN, labels)).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(weight, "head_weight"))
    x = "last_hidden_state"
    if not of_tokens:
        graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "head_first"))
        graph.node.append(helper.make_node("Gather", [x, "head_first"], ["head_token"], axis=1))
        x = "head_token"
    graph.node.append(helper.make_node("MatMul", [x, "head_weight"], ["logits"]))
    dims = ["batch", "sequence", labels] if of_tokens else ["batch", labels]
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, dims))
    return model


class Folder:
    """One model: its tokenizer, its ONNX file and the files beside them. The Python side of it is
    onnxruntime and the package `tokenizers`."""

    def __init__(self, path, tokenizer=None, seed=0, file="model.onnx", labels=None, of_tokens=False):
        self.path = pathlib.Path(path)
        self.tokenizer = tokenizer or tokenizer_kinds.wordpiece(True)
        self.model = models.bert(opset=17, hidden=HIDDEN, positions=POSITIONS, seed=seed,
                                 vocabulary=self.tokenizer.get_vocab_size(),
                                 outputs=("last_hidden_state",))
        if labels is not None:
            add_head(self.model, len(labels), of_tokens)
        self.file = self.path / file
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(self.model.SerializeToString())
        self.tokenizer.save(str(self.path / "tokenizer.json"))
        kind = "BertModel" if labels is None else (
            "BertForTokenClassification" if of_tokens else "BertForSequenceClassification")
        config = {"architectures": [kind], "model_type": "bert",
                  "max_position_embeddings": POSITIONS}
        if labels is not None:
            config["id2label"] = {str(i): label for i, label in enumerate(labels)}
        self.write("config.json", config)
        self._session = None

    def write(self, name, value):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def sentence_transformer(self, pooling="mean_tokens", normalize=True, dense=None, most=64,
                             prompts=None):
        """Writes modules.json and the modules it names. `dense`: the width of a layer after the pooling."""
        modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
        self.write("sentence_bert_config.json", {"max_seq_length": most, "do_lower_case": False})
        self.write("1_Pooling/config.json", {"word_embedding_dimension": HIDDEN,
                                             f"pooling_mode_{pooling}": True})
        self.pooling, self.normalize, self.dense, self.most = pooling, normalize, None, most
        if dense:
            rng = np.random.default_rng(9)
            self.dense = (rng.normal(0, 0.3, (dense, HIDDEN)).astype(np.float32),
                          rng.normal(0, 0.3, dense).astype(np.float32))
            modules.append(("2_Dense", "Dense"))
            self.write("2_Dense/config.json", {
                "in_features": HIDDEN, "out_features": dense, "bias": True,
                "activation_function": "torch.nn.modules.activation.Tanh"})
            write_safetensors(self.path / "2_Dense/model.safetensors",
                              {"linear.weight": self.dense[0], "linear.bias": self.dense[1]})
        if normalize:
            modules.append((f"{len(modules)}_Normalize", "Normalize"))
        self.write("modules.json", [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)])
        self.write("config_sentence_transformers.json", {"prompts": prompts or {},
                                                         "default_prompt_name": None})
        return self

    def run(self, text, pair=None, most=None):
        """Returns onnxruntime's answer to one text, and its tokens."""
        if self._session is None:
            self._session = onnxruntime.InferenceSession(self.model.SerializeToString(),
                                                         providers=["CPUExecutionProvider"])
        if most:
            self.tokenizer.enable_truncation(most)
        else:
            self.tokenizer.no_truncation()
        encoded = self.tokenizer.encode(text, pair)
        inputs = {"input_ids": np.array([encoded.ids], np.int64),
                  "attention_mask": np.ones((1, len(encoded.ids)), np.int64)}
        return self._session.run(None, inputs)[0][0], encoded

    def embed(self, text, most=None):
        """Embeds texts as sentence-transformers would."""
        hidden, _ = self.run(text, most=most)
        if self.pooling == "mean_tokens":
            vector = hidden.mean(0)
        elif self.pooling == "cls_token":
            vector = hidden[0]
        elif self.pooling == "max_tokens":
            vector = hidden.max(0)
        elif self.pooling == "mean_sqrt_len_tokens":
            vector = hidden.sum(0) / np.sqrt(len(hidden))
        elif self.pooling == "weightedmean_tokens":
            weights = np.arange(1, len(hidden) + 1)
            vector = (hidden * weights[:, None]).sum(0) / weights.sum()
        elif self.pooling == "lasttoken":
            vector = hidden[-1]
        if self.dense is not None:
            vector = np.tanh(self.dense[0] @ vector + self.dense[1])
        return vector / np.linalg.norm(vector) if self.normalize else vector


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
