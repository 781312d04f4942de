"""Custom resources, checked as the API server does by their definitions: types, bounds, and no unknown field.

The definitions come from the packages cloudcoil-models-*, which are made from the CRDs. They are classes of
pydantic with builders around them, for a Python newer than ours: only the fields are read, and unknown ones are
refused.
"""

import ast
import functools
import typing

import pydantic

from testing.kubernetes.charts import TOOLS

MODULES = {
    ("keda.sh/v1alpha1", "ScaledObject"): "cloudcoil/models/keda/v1alpha1.py",
    ("monitoring.coreos.com/v1", "PodMonitor"): "cloudcoil/models/prometheus_operator/v1.py",
}


class Strict(pydantic.BaseModel):
    """Refuses fields that the definition does not have; a number is no text."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, populate_by_name=False)


class ObjectMeta(Strict):
    name: str
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


@functools.cache
def definition(api_version, kind):
    """Returns the class of one kind."""
    tree = ast.parse((TOOLS / MODULES[api_version, kind]).read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    wanted, waiting = {}, [kind]
    while waiting:
        name = waiting.pop()
        if name in wanted or name not in classes:
            continue
        node = classes[name]
        node.body = [item for item in node.body if isinstance(item, ast.AnnAssign)
                     and not item.target.id.startswith("__")] or [ast.Pass()]
        wanted[name] = node
        waiting += [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        # Annotations may be texts.
        waiting += [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)
                    and isinstance(part.value, str) and part.value in classes]
    space = {**vars(typing), **{name: getattr(pydantic, name) for name in ("AwareDatetime", "ConfigDict", "Field", "RootModel")},
             "BaseModel": Strict, "Resource": Strict, "ObjectMeta": ObjectMeta, "UNSET": None}
    # In the order of the file: a class comes after those that it uses.
    body = [node for node in tree.body if getattr(node, "name", None) in wanted]
    exec(compile(ast.Module(body, []), str(TOOLS / MODULES[api_version, kind]), "exec"), space)
    space[kind].model_rebuild(_types_namespace=space)
    return space[kind]


def check(one):
    """Raises pydantic's ValidationError, which names the field."""
    definition(one["apiVersion"], one["kind"]).model_validate(one)
