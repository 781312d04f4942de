"""Models over text: string tensors in, out and between (ai.onnx.ml's encoders, ops that move)."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CITIES = ["Aachen", "Bern", "Cádiz", "Đà Nẵng", ""]
COLOURS = ["red", "green", "blue"]
LABELS = ["no", "yes", "perhaps"]
UNKNOWN = ["Atlantis", "no", "a longer text that no vocabulary has"]


def value(name, dtype, *dims):
    return helper.make_tensor_value_info(name, dtype, list(dims))


def ml(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=op.lower() + "/" + outputs[0],
                            domain="ai.onnx.ml", **attributes)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=op.lower() + "/" + outputs[0], **attributes)


def model(nodes, inputs, outputs, constants=(), opset=19):
    graph = helper.make_graph(nodes, "texts", inputs, outputs, list(constants))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                   helper.make_opsetid("ai.onnx.ml", 3)])
    made.ir_version = 9
    return made


def constant(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def columns(zeros=1):
    """Makes two columns of categories and one of numbers; labels and scores: as converters write a
    pipeline."""
    rng = np.random.default_rng(11)
    width = len(CITIES) + len(COLOURS) + 1
    return model(
        [node("Concat", ["city", "colour"], ["both"], axis=1),
         ml("ArrayFeatureExtractor", ["both", "first"], ["of_city"]),
         ml("ArrayFeatureExtractor", ["both", "second"], ["of_colour"]),
         ml("OneHotEncoder", ["of_city"], ["city_ones"], cats_strings=CITIES, zeros=zeros),
         ml("OneHotEncoder", ["of_colour"], ["colour_ones"], cats_strings=COLOURS, zeros=zeros),
         node("Reshape", ["city_ones", "city_shape"], ["city_flat"]),
         node("Reshape", ["colour_ones", "colour_shape"], ["colour_flat"]),
         node("Concat", ["city_flat", "colour_flat", "size"], ["x"], axis=1),
         ml("LinearClassifier", ["x"], ["label", "raw"], classlabels_strings=LABELS,
            coefficients=rng.normal(size=3 * width), intercepts=rng.normal(size=3),
            post_transform="SOFTMAX", multi_class=0),
         ml("ZipMap", ["raw"], ["maps"], classlabels_strings=LABELS),
         node("Identity", ["raw"], ["scores"])],
        [value("city", TensorProto.STRING, "n", 1), value("colour", TensorProto.STRING, "n", 1),
         value("size", TensorProto.FLOAT, "n", 1)],
        [value("label", TensorProto.STRING, "n"), value("scores", TensorProto.FLOAT, "n", 3)],
        [constant("first", [0]), constant("second", [1]),
         constant("city_shape", [-1, len(CITIES)]), constant("colour_shape", [-1, len(COLOURS)])])


def encoders():
    """Texts to numbers, numbers to texts, texts to texts, each with its default."""
    return model(
        [ml("LabelEncoder", ["city"], ["number"], keys_strings=CITIES,
            values_int64s=[5, 4, 3, 2, 1], default_int64=-7),
         ml("LabelEncoder", ["city"], ["share"], keys_strings=CITIES,
            values_floats=[0.5, 0.25, 2.0, 3.0, 4.0], default_float=9.5),
         ml("LabelEncoder", ["number"], ["name"], keys_int64s=[5, 4], values_strings=["V", "IV"],
            default_string="many"),
         ml("LabelEncoder", ["city"], ["land"], keys_strings=["Bern", "Aachen"],
            values_strings=["Schweiz", "Deutschland"]),
         ml("CategoryMapper", ["city"], ["category"], cats_strings=CITIES,
            cats_int64s=[10, 11, 12, 13, 14], default_int64=99)],
        [value("city", TensorProto.STRING, "n", "m")],
        [value("number", TensorProto.INT64, "n", "m"), value("share", TensorProto.FLOAT, "n", "m"),
         value("name", TensorProto.STRING, "n", "m"), value("land", TensorProto.STRING, "n", "m"),
         value("category", TensorProto.INT64, "n", "m")])


def movers():
    """Texts that are moved and compared."""
    return model(
        [node("Equal", ["a", "b"], ["same"]), node("Where", ["same", "a", "none"], ["chosen"]),
         node("Concat", ["a", "b"], ["joined"], axis=1),
         node("Transpose", ["joined"], ["turned"], perm=[1, 0]),
         node("Gather", ["joined", "last"], ["ends"], axis=1),
         node("Unsqueeze", ["ends", "axis"], ["deep"]),
         node("Equal", ["a", "red"], ["is_red"])],
        [value("a", TensorProto.STRING, "n", 2), value("b", TensorProto.STRING, "n", 2)],
        [value("same", TensorProto.BOOL, "n", 2), value("chosen", TensorProto.STRING, "n", 2),
         value("joined", TensorProto.STRING, "n", 4), value("turned", TensorProto.STRING, 4, "n"),
         value("deep", TensorProto.STRING, 1, "n", 1), value("is_red", TensorProto.BOOL, "n", 2)],
        [helper.make_tensor("none", TensorProto.STRING, [1], ["-"]),
         helper.make_tensor("red", TensorProto.STRING, [], ["red"]), constant("last", [-1]),
         constant("axis", [0])])


def numbers_as_text():
    """Integers that are looked up as text, as converters write an encoder of integers."""
    return model(
        [node("Cast", ["x"], ["text"], to=TensorProto.STRING),
         ml("OneHotEncoder", ["text"], ["ones"], cats_strings=["-3", "0", "12"], zeros=1)],
        [value("x", TensorProto.INT64, "n", 2)], [value("ones", TensorProto.FLOAT, "n", 2, 3)])


def all_models():
    return {"columns": columns, "encoders": encoders, "movers": movers,
            "numbers_as_text": numbers_as_text}


def words(rng, choices, *shape):
    """Makes an array of texts as clients make one; some are none of `choices`."""
    return rng.choice(np.array(list(choices) + UNKNOWN, object), shape)


def inputs_of(name, rng, rows):
    if name == "columns":
        return {"city": words(rng, CITIES, rows, 1), "colour": words(rng, COLOURS, rows, 1),
                "size": rng.normal(size=(rows, 1)).astype(np.float32)}
    if name == "encoders":
        return {"city": words(rng, CITIES, rows, 3)}
    if name == "movers":
        return {"a": words(rng, COLOURS, rows, 2), "b": words(rng, COLOURS, rows, 2)}
    return {"x": rng.choice(np.array([-3, 0, 12, 7, 10**12]), (rows, 2)).astype(np.int64)}


def decoded(outputs):
    """Texts of a client, which are bytes, as text."""
    return {name: np.vectorize(lambda text: text.decode(), otypes=[object])(array)
            if array.dtype == object and array.size else array for name, array in outputs.items()}
