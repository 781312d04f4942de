"""What is known of an op stands in its row: no other file keeps a table of ops by name.

A new op touches its row, its kernel, its plan and its test. `Det` is the proof: it is batched, packed,
bounded and fast, and nothing but those names it.
"""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("REPRISE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

OP_NAME = re.compile(r'"((?:reprise\.|com\.microsoft\.)?[A-Z][A-Za-z0-9]+)"')

# Files whose lists of names are their purpose: the rows, plans of kernels, how the importer rewrites
# what files hold into rows, and activations, which LSTM's attributes call as ops are called.
LISTS = re.compile(r"runtime/ops/rows_\w+\.cc|runtime/device/.*plan\w*\.cc|runtime/onnx/rewrites\w*\.cc"
                   r"|runtime/ops/recurrent/recurrent_activations\.cc")

# A list in braces, or an array of anything.
TABLE = re.compile(r"\{[^{}();]*\}|\]\s*=\s*\{.*?\};", re.S)

# A condition that asks for a few ops is no table.
MOST_NAMES = 4


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                yield str(path.relative_to(ROOT)), path.read_text()


def op_names():
    rows = "".join(text for path, text in sources("runtime/ops") if "rows_" in path)
    return set(re.findall(r'^    \{\{"([^"]+)"', rows, re.M))


def test_rows_are_found():
    assert {"Add", "reprise.Attention", "Det"} <= op_names()
    assert len(op_names()) > 200


def test_no_table_of_ops_stands_beside_the_rows():
    ops = op_names()
    found = []
    for path, text in sources("runtime", "server", "tools"):
        if LISTS.fullmatch(path):
            continue
        for match in TABLE.finditer(text):
            names = ops & set(OP_NAME.findall(match.group()))
            if len(names) > MOST_NAMES:
                line = text[: match.start()].count("\n") + 1
                found.append(f"{path}:{line} lists {len(names)} ops: a fact of op_facts.h says it")
    assert not found, "\n".join(found)


def test_a_new_op_touches_its_row_and_its_plan():
    named = {path for path, text in sources("runtime", "server", "client", "tools") if '"Det"' in text}
    assert named == {"runtime/ops/rows_layers.cc", "runtime/device/cpu/gemm/gemm_plans.cc"}


def test_what_a_new_op_has_of_its_own_is_in_its_kernel_and_plan():
    mentioned = {path for path, text in sources("runtime") if re.search(r"\b(Plan)?Det(Rule|Kernel|Axis|Params)?\b", text)}
    assert mentioned == {
        "runtime/ops/rows_layers.cc",
        "runtime/ops/products/det.h",
        "runtime/ops/products/det.cc",
        "runtime/device/cpu/gemm/gemm_plans.cc",
        "runtime/device/cpu/gemm/gemm_plans.h",
        "runtime/device/cpu/gemm/plan_det.cc",
    }
