"""Folders with the smallest models that tell how a text came to them: sums of rows of tables."""

import json
import pathlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

IDENTITY = "torch.nn.modules.linear.Identity"


def vocabulary(words):
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]


class TinyFolder:
    """A WordPiece vocabulary and a model: `table` has a row for each id, `positions` one for each position.
    Where `positions` is none the model takes ids and a mask alone."""

    def __init__(self, path, words, table, positions=None, output="last_hidden_state",
                 of_tokens=False, **config):
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True)
        self.words = vocabulary(words)
        self.table = np.asarray(table, np.float32)
        self.write("config.json", {"architectures": ["BertModel"], "model_type": "bert",
                                   "max_position_embeddings": 32, **config})
        (self.path / "vocab.txt").write_text("".join(word + "\n" for word in self.words))
        (self.path / "model.onnx").write_bytes(self.model(positions, output, of_tokens).SerializeToString())

    def write(self, name, value):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def model(self, positions, output, of_tokens=False):
        """last_hidden_state [batch, sequence, width], or logits [batch, width], the sum over the tokens;
        `of_tokens`: logits of each."""
        inputs = ["input_ids", "attention_mask"]
        constants = [numpy_helper.from_array(self.table, "table")]
        nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words"])]
        last = "words"
        if positions is not None:
            inputs.append("position_ids")
            constants.append(numpy_helper.from_array(np.asarray(positions, np.float32), "places"))
            nodes += [helper.make_node("Gather", ["places", "position_ids"], ["placed"]),
                      helper.make_node("Add", [last, "placed"], ["both"])]
            last = "both"
        if output == "logits" and not of_tokens:
            constants.append(numpy_helper.from_array(np.array([1], np.int64), "over"))
            constants.append(numpy_helper.from_array(np.array([2], np.int64), "last_axis"))
            nodes += [helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
                      helper.make_node("Unsqueeze", ["mask", "last_axis"], ["column"]),
                      helper.make_node("Mul", [last, "column"], ["kept"]),
                      helper.make_node("ReduceSum", ["kept", "over"], [output], keepdims=0)]
            dims = ["batch", self.table.shape[1]]
        else:
            nodes.append(helper.make_node("Identity", [last], [output]))
            dims = ["batch", "sequence", self.table.shape[1]]
        graph = helper.make_graph(
            nodes, "tiny",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
             for name in inputs],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, dims)], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        return model

    def ids(self, *words):
        return [self.words.index(word) for word in words]
