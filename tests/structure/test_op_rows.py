"""All knowledge of an op stands in its row: no other file keeps a table of ops by name.

A new op touches its row, its kernel, its plan and its test. `Det` is the proof: it is batched, packed,
bounded and fast, and nothing but those names it.
"""

import functools
import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("REPRISE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

# An op by its name, or by the struct that holds it (runtime/ops/ROOM/*_op.h).
OP_NAME = re.compile(r'"((?:reprise\.|com\.microsoft\.)?[A-Z][A-Za-z0-9]+)"|\b(\w+Op)::kName\b')

# Files whose lists of names are their purpose: the rows, plans of kernels, how the importer rewrites
# ops of files into rows, activations, which LSTM's attributes call as ops are called, and forms that
# are looked for in a file of ONNX, whose ops are no rows yet.
LISTS = re.compile(r"runtime/ops/rows_\w+\.cc|runtime/device/.*plan\w*\.cc|runtime/onnx/rewrites[\w/]*\.cc"
                   r"|runtime/ops/recurrent/recurrent_activations\.cc|tools/files/static_forms\.cc")

# A list in braces, or an array of anything.
TABLE = re.compile(r"\{[^{}();]*\}|\]\s*=\s*\{.*?\};", re.S)

# A condition that asks for a few ops is no table.
MOST_NAMES = 4


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                yield str(path.relative_to(ROOT)), path.read_text()


@functools.cache
def typed_ops():
    """Returns the name of each op that has a struct, by the struct."""
    named = re.compile(r'(?:struct (\w+Op)\s+(?:: NamedOp<|\{\s+static constexpr char kName\[\] =\s+)'
                       r'|using (\w+Op) =\s+\w+<)"([^"]+)"')
    return {struct or alias: op for path, text in sources("runtime/ops") if path.endswith("_op.h")
            for struct, alias, op in named.findall(text)}


def ops_in(text):
    typed = typed_ops()
    return {quoted or typed.get(struct, struct) for quoted, struct in OP_NAME.findall(text)}


def op_names():
    rows = "".join(text for path, text in sources("runtime/ops") if "rows_" in path)
    return ops_in("\n".join(re.findall(r'^    \{\{([^,]+),', rows, re.M)))


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
            names = ops & ops_in(match.group())
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


def test_internal_ops_and_those_that_most_files_name_have_types():
    internal = {op for op in op_names() if op.startswith("reprise.")}
    assert internal - set(typed_ops().values()) == set()
    assert len(set(typed_ops().values()) & op_names()) > 100


def test_a_typed_op_is_named_by_its_type():
    """Where a room may include the header of an op, it does not repeat the op's name."""
    typed = set(typed_ops().values())
    quoted = 0
    for path, text in sources("runtime/passes", "runtime/certify", "runtime/device", "runtime/recipe",
                              "runtime/engine"):
        code = re.sub(r"//.*", "", text)
        found = sorted({name for name, struct in OP_NAME.findall(code) if name in typed})
        assert not found, f"{path} names {found}: use the types of runtime/ops/*/*_op.h"
        quoted += 1
    assert quoted > 300


def test_typed_ops_are_rows_and_have_no_more_inputs_than_these():
    typed = typed_ops()
    most = {}
    for path, text in sources("runtime/ops"):
        if "rows_" in path:
            for quoted, struct, inputs in re.findall(r'^    \{\{(?:"([^"]+)"|(\w+)::kName), \d+, (-?\d+)', text, re.M):
                most[quoted or typed[struct]] = int(inputs)
    assert set(typed.values()) - set(most) == set()
    listed = 0
    for path, text in sources("runtime/ops"):
        if not path.endswith("_op.h"):
            continue
        for struct, body in re.findall(r"struct (\w+Op)\s+: NamedOp<[^>]+> \{(\}|.*?\n\});", text, re.S):
            inputs = re.search(r"enum Input : size_t \{([^}]*)\}", body)
            if inputs is None:
                continue
            # A template stands for each op that is made of it.
            for op in [struct] if struct in typed else re.findall(rf"using (\w+Op) =\s+{struct}<", text):
                listed += 1
                count = len([name for name in inputs.group(1).split(",") if name.strip()])
                assert most[typed[op]] in (-1, *range(count, count + 8)), op
    assert listed > 60
