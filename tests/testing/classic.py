"""Models of ai.onnx.ml as converters write them: trees, linear models, support vectors, features.

Numbers are random, forms are those that skl2onnx and onnxmltools export (probabilities as a tensor).
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "ai.onnx.ml"
COLUMNS = 6
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def trees(rng, count, depth, modes=("BRANCH_LEQ",), missing=False):
    """Attributes nodes_..., and (tree, node) of every leaf."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes",
                                 "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = []

    def add(tree, level):
        own = sum(1 for t in nodes["treeids"] if t == tree)
        row = len(nodes["treeids"])
        leaf = level == depth or (level > 0 and rng.random() < 0.2)
        # A quarter of a whole: rows often equal it.
        values = dict(treeids=tree, nodeids=own, featureids=int(rng.integers(COLUMNS)),
                      values=float(rng.integers(-8, 9)) / 4,
                      modes="LEAF" if leaf else str(rng.choice(modes)), truenodeids=0,
                      falsenodeids=0, missing_value_tracks_true=int(missing and rng.random() < 0.5))
        for key, value in values.items():
            nodes[key].append(value)
        if leaf:
            leaves.append((tree, own))
            return own
        nodes["truenodeids"][row] = add(tree, level + 1)
        nodes["falsenodeids"][row] = add(tree, level + 1)
        return own

    for tree in range(count):
        add(tree, 0)
    return {f"nodes_{key}": values for key, values in nodes.items()}, leaves


def weights(prefix, given):
    """Attributes of (leaf, target, weight)."""
    return {f"{prefix}_treeids": [leaf[0] for leaf, _, _ in given],
            f"{prefix}_nodeids": [leaf[1] for leaf, _, _ in given],
            f"{prefix}_ids": [target for _, target, _ in given],
            f"{prefix}_weights": [float(weight) for _, _, weight in given]}


def model(nodes, outputs, constants=(), version=3):
    """From `X` [batch, COLUMNS]; `outputs` maps names to dtypes."""
    graph = helper.make_graph(
        nodes, "classic",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["batch", COLUMNS])],
        [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()],
        initializer=list(constants))
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, version)])


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op.lower()}_{outputs[0]}", domain=DOMAIN,
                            **attributes)


CLASSES = {"label": TensorProto.INT64, "probabilities": TensorProto.FLOAT}


def forest(rng, classes=3, post_transform="NONE"):
    """Makes a random forest: every leaf has the shares of all classes; of two classes one's alone."""
    nodes, leaves = trees(rng, 20, 7)
    given = []
    for leaf in leaves:
        shares = rng.dirichlet(np.ones(classes)) / 20
        given += [(leaf, target, shares[target]) for target in range(classes if classes > 2 else 1)]
    return model([node("TreeEnsembleClassifier", ["X"], list(CLASSES), **nodes,
                       **weights("class", given), classlabels_int64s=[10 * i for i in
                                                                      range(classes)],
                       post_transform=post_transform)], CLASSES)


def boosted(rng, classes=2):
    """Makes gradient boosting: a tree for each class in turn, missing numbers go either way."""
    nodes, leaves = trees(rng, 30, 5, MODES, missing=True)
    lines = 1 if classes == 2 else classes
    given = [(leaf, leaf[0] % lines, rng.normal()) for leaf in leaves]
    return model([node("TreeEnsembleClassifier", ["X"], list(CLASSES), **nodes,
                       **weights("class", given), classlabels_int64s=list(range(classes)),
                       base_values=[0.1] * lines,
                       post_transform="LOGISTIC" if classes == 2 else "SOFTMAX")], CLASSES)


def regressor(rng, aggregate="SUM", targets=1):
    nodes, leaves = trees(rng, 12, 6, MODES[:4], missing=True)
    given = [(leaf, target, rng.normal()) for leaf in leaves for target in range(targets)]
    return model([node("TreeEnsembleRegressor", ["X"], ["y"], **nodes,
                       **weights("target", given), n_targets=targets, aggregate_function=aggregate,
                       base_values=[0.5] * targets)], {"y": TensorProto.FLOAT})


def pipeline(rng):
    """Missing numbers filled in, columns scaled, a line for each of three classes."""
    nodes = [
        node("Imputer", ["X"], ["filled"], imputed_value_floats=rng.normal(size=COLUMNS),
             replaced_value_float=float("nan")),
        node("Scaler", ["filled"], ["scaled"], offset=rng.normal(size=COLUMNS),
             scale=rng.random(COLUMNS)),
        node("LinearClassifier", ["scaled"], ["label", "scores"],
             coefficients=rng.normal(size=3 * COLUMNS), intercepts=rng.normal(size=3),
             classlabels_ints=[2, 4, 6], post_transform="SOFTMAX"),
        node("Normalizer", ["scores"], ["probabilities"], norm="L1"),
    ]
    return model(nodes, CLASSES)


def support_vectors(rng, probabilities=True, kernel="RBF"):
    vectors, classes = 30, 3
    attributes = {"prob_a": -rng.random(3) - 0.5, "prob_b": rng.normal(size=3)}
    return model([node(
        "SVMClassifier", ["X"], list(CLASSES), kernel_type=kernel, kernel_params=[0.3, 0.1, 3.0],
        support_vectors=rng.normal(size=vectors * COLUMNS),
        coefficients=rng.normal(size=(classes - 1) * vectors), rho=rng.normal(size=3) * 0.1,
        vectors_per_class=[12, 8, 10], classlabels_ints=[1, 2, 3],
        **(attributes if probabilities else {}))], CLASSES)


def neighbours(rng, blocks=False):
    """Makes the mean of the five nearest of a table: a Scan over it finds how far each of its rows is, as
    a straight line or along the blocks of a city."""
    tensor, make = helper.make_tensor_value_info, helper.make_node
    distance = [make("Abs", ["difference"], ["sizes"]),
                make("ReduceSum", ["sizes", "axis"], ["sum"], keepdims=0)] if blocks else [
                    make("ReduceSumSquare", ["difference"], ["sum"], axes=[1], keepdims=0)]
    body = helper.make_graph(
        [make("Identity", ["x"], ["same"]), make("Sub", ["x", "row"], ["difference"]), *distance,
         make("Identity", ["sum"], ["distance"])],
        "body", [tensor("x", TensorProto.FLOAT, None), tensor("row", TensorProto.FLOAT, None)],
        [tensor("same", TensorProto.FLOAT, None), tensor("distance", TensorProto.FLOAT, None)],
        initializer=[numpy_helper.from_array(np.array([1]), "axis")])
    nodes = [
        make("Scan", ["X", "table"], ["rest", "by_row"], name="scan", body=body, num_scan_inputs=1),
        make("Transpose", ["by_row"], ["sums"], perm=[1, 0]),
        *([] if blocks else [make("Sqrt", ["sums"], ["roots"])]),
        make("TopK", ["sums" if blocks else "roots", "count"], ["distances", "places"], largest=0),
        make("Gather", ["targets", "places"], ["nearest"]),
        make("ReduceMean", ["nearest"], ["y"], axes=[1], keepdims=0),
    ]
    table = rows(rng, 90)
    return model(nodes, {"distances": TensorProto.FLOAT, "y": TensorProto.FLOAT}, [
        numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([5]), "count"),
        numpy_helper.from_array(rng.normal(size=len(table)).astype(np.float32), "targets")])


def codes(rng):
    """Whole columns coded: categories as ones among zeros, labels as others, joined for a line."""
    nodes = [
        node("ArrayFeatureExtractor", ["X", "first"], ["kind"]),
        node("ArrayFeatureExtractor", ["X", "others"], ["rest"]),
        node("OneHotEncoder", ["kind"], ["ones"], cats_int64s=[-1, 0, 1]),
        helper.make_node("Reshape", ["ones", "flat"], ["columns"], name="reshape"),
        node("Binarizer", ["rest"], ["high"], threshold=0.25),
        node("LabelEncoder", ["high"], ["coded"], keys_floats=[0.0, 1.0],
             values_floats=[-3.0, 5.0], default_float=9.0),
        node("FeatureVectorizer", ["columns", "coded"], ["joined"],
             inputdimensions=[3, COLUMNS - 1]),
        node("LinearRegressor", ["joined"], ["y"], coefficients=rng.normal(size=COLUMNS + 2),
             intercepts=[0.25]),
    ]
    constants = [numpy_helper.from_array(np.array(values, np.int64), name)
                 for name, values in {"first": [0], "others": list(range(1, COLUMNS)),
                                      "flat": [-1, 3]}.items()]
    return model(nodes, {"y": TensorProto.FLOAT}, constants)


def mapped(rng):
    """Makes a classifier whose probabilities come as maps from labels: converters do so by default."""
    inner = forest(rng)
    inner.graph.node[0].output[1] = "scores"
    inner.graph.node.append(
        node("ZipMap", ["scores"], ["probabilities"], classlabels_int64s=[0, 10, 20]))
    of_maps = helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    inner.graph.output[1].CopyFrom(helper.make_value_info("probabilities", of_maps))
    return inner


def text_labels(rng):
    """Makes a classifier whose labels are text."""
    inner = forest(rng)
    for attribute in inner.graph.node[0].attribute:
        if attribute.name == "classlabels_int64s":
            inner.graph.node[0].attribute.remove(attribute)
            break
    inner.graph.node[0].attribute.append(
        helper.make_attribute("classlabels_strings", ["setosa", "virginica", "versicolor"]))
    inner.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    return inner


def rows(rng, count, missing=False):
    """[count, COLUMNS], whole quarters."""
    x = (rng.integers(-10, 11, (count, COLUMNS)) / 4).astype(np.float32)
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


def all_models():
    """name -> a function that makes the model."""
    rng = np.random.default_rng(3)
    return {
        "forest": lambda: forest(rng), "forest_of_two": lambda: forest(rng, 2),
        "boosted": lambda: boosted(rng), "boosted_of_three": lambda: boosted(rng, 3),
        "softmax_zero": lambda: forest(rng, 4, "SOFTMAX_ZERO"),
        "regressor": lambda: regressor(rng),
        "average": lambda: regressor(rng, "AVERAGE", 2), "least": lambda: regressor(rng, "MIN"),
        "most": lambda: regressor(rng, "MAX", 3),
        "pipeline": lambda: pipeline(rng), "support": lambda: support_vectors(rng),
        "support_votes": lambda: support_vectors(rng, probabilities=False),
        "support_poly": lambda: support_vectors(rng, kernel="POLY"), "codes": lambda: codes(rng),
        "neighbours": lambda: neighbours(rng),
        "neighbours_by_blocks": lambda: neighbours(rng, blocks=True),
    }
