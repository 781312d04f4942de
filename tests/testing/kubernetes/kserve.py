"""Objects of KServe, checked as its Python package has their fields and types; objects of Kubernetes in them are
checked by the API server's schemas.

Only the tables of the package are read: importing it takes a server's worth of other packages.
"""

import ast
import functools
import re

from testing.kubernetes import api
from testing.kubernetes.charts import TOOLS

MODELS = TOOLS / "kserve/models"
ROOTS = {
    ("serving.kserve.io/v1alpha1", "ClusterServingRuntime"): "V1alpha1ClusterServingRuntime",
    ("serving.kserve.io/v1beta1", "InferenceService"): "V1beta1InferenceService",
}
SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float)}


@functools.cache
def fields(name):
    """{JSON name: type} of a class; None where the package has none: a type of Kubernetes."""
    path = MODELS / (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() + ".py")
    if not path.is_file():
        path = next((one for one in MODELS.glob("*.py") if f"class {name}(" in one.read_text()), None)
        if path is None:
            return None
    tables = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("openapi_types", "attribute_map"):
            tables[node.targets[0].id] = ast.literal_eval(node.value)
    return {tables["attribute_map"][own]: kind for own, kind in tables["openapi_types"].items()}


def _check(value, kind, path):
    if found := re.fullmatch(r"list\[(.*)\]", kind):
        assert isinstance(value, list), f"{path}: {value!r} is no list"
        for i, one in enumerate(value):
            _check(one, found.group(1), f"{path}[{i}]")
    elif found := re.fullmatch(r"dict\(str, (.*)\)", kind):
        assert isinstance(value, dict), f"{path}: {value!r} is no object"
        for name, one in value.items():
            _check(one, found.group(1), f"{path}.{name}")
    elif kind in SCALARS:
        assert isinstance(value, SCALARS[kind]) and (kind == "bool" or not isinstance(value, bool)), (
            f"{path}: {value!r} is no {kind}")
    elif (known := fields(kind)) is not None:
        assert isinstance(value, dict), f"{path}: {value!r} is no object"
        for name, one in value.items():
            assert name in known, f"{path}: there is no field {name}"
            _check(one, known[name], f"{path}.{name}")


def check(one):
    """Fails with the path of the field."""
    _check(one, ROOTS[one["apiVersion"], one["kind"]], one["kind"])
    spec = one["spec"].get("predictor", {}).get("model") or {}
    containers = one["spec"].get("containers") or [{"name": "model", "image": "i", "resources": spec["resources"]}]
    api.check([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}],
              "1.37")
