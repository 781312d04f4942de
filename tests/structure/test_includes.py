"""The allowed includes: every #include of the code is an edge of the design, or this fails.

Floors without a circle, so that a part can be read, tested and replaced without the floors above it.
A floor with many files has rooms, the folders below it, and the same holds among them. Tests may
include anything.
"""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("REPRISE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

# Folder -> the folders it may include directly; the includes of those come with them.
MAY_INCLUDE = {
    "runtime/base": [],
    "runtime/base/cpu": ["runtime/base"],
    "runtime/json": ["runtime/base"],
    "runtime/bucket": ["runtime/base"],
    "runtime/graph": ["runtime/base"],
    "runtime/memory": ["runtime/graph"],
    "runtime/shapes": ["runtime/graph"],
    "runtime/ops/kit": ["runtime/shapes"],
    "runtime/ops/maps": ["runtime/ops/quantized", "runtime/ops/movement"],
    "runtime/ops/axis": ["runtime/ops/maps"],
    "runtime/ops/weights": ["runtime/ops/kit"],
    "runtime/ops/elementwise": ["runtime/ops/kit"],
    "runtime/ops/movement": ["runtime/ops/kit"],
    "runtime/ops/reduce": ["runtime/ops/kit"],
    "runtime/ops/products": ["runtime/ops/elementwise"],
    "runtime/ops/windows": ["runtime/ops/products"],
    "runtime/ops/attention": ["runtime/ops/products", "runtime/ops/reduce"],
    "runtime/ops/recurrent": ["runtime/ops/kit"],
    "runtime/ops/quantized": ["runtime/ops/attention", "runtime/ops/windows"],
    "runtime/ops/classical": ["runtime/ops/kit"],
    "runtime/ops/control": ["runtime/ops/kit"],
    "runtime/ops/custom": ["runtime/ops/axis"],
    "runtime/ops": ["runtime/ops/axis", "runtime/ops/weights", "runtime/ops/movement",
        "runtime/ops/recurrent", "runtime/ops/quantized", "runtime/ops/classical",
        "runtime/ops/control", "runtime/ops/custom"],
    "runtime/onnx/kit": ["runtime/ops"],
    "runtime/onnx/file": ["runtime/ops"],
    "runtime/onnx/structure": ["runtime/onnx/kit", "runtime/onnx/file"],
    "runtime/onnx/rewrites": ["runtime/onnx/kit", "runtime/onnx/file"],
    "runtime/onnx/classical": ["runtime/onnx/kit", "runtime/onnx/file"],
    "runtime/onnx/values": ["runtime/onnx/structure", "runtime/onnx/classical"],
    "runtime/onnx/gguf": ["runtime/onnx/file"],
    "runtime/onnx": ["runtime/onnx/rewrites", "runtime/onnx/values", "runtime/onnx/gguf"],
    "runtime/passes/kit": ["runtime/ops"],
    "runtime/passes/specialize": ["runtime/passes/kit"],
    "runtime/passes/read": ["runtime/passes/specialize"],
    "runtime/passes/match": ["runtime/passes/kit"],
    "runtime/passes/simplify": ["runtime/passes/match", "runtime/passes/specialize"],
    "runtime/passes/fuse": ["runtime/passes/match"],
    "runtime/passes/quantized": ["runtime/passes/match"],
    "runtime/passes/layout": ["runtime/passes/quantized"],
    "runtime/passes/pack": ["runtime/passes/match", "runtime/passes/specialize"],
    "runtime/passes/paged": ["runtime/passes/pack", "runtime/passes/read"],
    "runtime/passes/cut": ["runtime/passes/kit"],
    "runtime/passes/live": ["runtime/passes/read"],
    "runtime/passes": ["runtime/passes/specialize", "runtime/passes/simplify",
        "runtime/passes/fuse", "runtime/passes/layout", "runtime/passes/pack",
        "runtime/passes/paged", "runtime/passes/cut", "runtime/passes/live",
        "runtime/passes/read"],
    "runtime/device": ["runtime/ops", "runtime/base/cpu"],
    "runtime/certify": ["runtime/ops"],
    "runtime/device/reference": ["runtime/device"],
    "runtime/device/cpu/simd": ["runtime/device"],
    "runtime/device/cpu/plan": ["runtime/device/cpu/simd"],
    "runtime/device/cpu/elementwise": ["runtime/device/cpu/plan"],
    "runtime/device/cpu/gemm": ["runtime/device/cpu/elementwise"],
    "runtime/device/cpu/movement": ["runtime/device/cpu/gemm"],
    "runtime/device/cpu/recurrent": ["runtime/device/cpu/gemm"],
    "runtime/device/cpu/resize": ["runtime/device/cpu/plan"],
    "runtime/device/cpu/classical": ["runtime/device/cpu/elementwise"],
    "runtime/device/cpu/attention": ["runtime/device/cpu/gemm"],
    "runtime/device/cpu/conv": ["runtime/device/cpu/gemm"],
    "runtime/device/cpu/packed": ["runtime/device/cpu/attention", "runtime/device/cpu/movement"],
    "runtime/device/cpu/paged": ["runtime/device/cpu/plan"],
    "runtime/device/cpu/int8": ["runtime/device/cpu/conv"],
    "runtime/device/cpu": ["runtime/device/cpu/recurrent", "runtime/device/cpu/resize",
        "runtime/device/cpu/classical", "runtime/device/cpu/packed", "runtime/device/cpu/paged",
        "runtime/device/cpu/int8"],
    "runtime/recipe": ["runtime/passes", "runtime/memory", "runtime/device", "proto/recipe"],
    # Proofs of padding, which run a model through the engine's interfaces.
    "runtime/verify": ["runtime/recipe", "runtime/certify"],
    "runtime/engine/types": ["runtime/recipe", "runtime/onnx", "runtime/bucket", "runtime/verify"],
    "runtime/engine/metrics": ["runtime/engine/types", "runtime/json"],
    "runtime/engine/replay": ["runtime/engine/types"],
    "runtime/engine/traffic": ["runtime/engine/types"],
    "runtime/engine/parameters": ["runtime/engine/replay"],
    "runtime/engine/packing": ["runtime/engine/parameters"],
    "runtime/engine/model": ["runtime/engine/packing", "runtime/engine/traffic"],
    "runtime/engine/load": ["runtime/engine/model"],
    "runtime/engine/capture": ["runtime/engine/load"],
    "runtime/engine/tune": ["runtime/engine/capture"],
    "runtime/engine/tail": ["runtime/engine/capture"],
    "runtime/engine/batch": ["runtime/engine/capture"],
    "runtime/engine/audit": ["runtime/engine/batch", "runtime/engine/tune", "runtime/json"],
    "runtime/engine": ["runtime/engine/metrics", "runtime/engine/tail", "runtime/engine/audit"],
    "runtime/sequences": ["runtime/memory"],
    "runtime/ranks": ["runtime/device"],
    "runtime/generate": ["runtime/engine", "runtime/sequences", "runtime/ranks"],
    "runtime/batching": ["runtime/base"],
    # The engine in a program.
    "runtime/launch": ["runtime/engine", "runtime/batching"],
    "runtime/lazy": ["runtime/engine"],
    "runtime/program": ["runtime/launch", "runtime/lazy", "runtime/device/cpu"],
    # The flags of both programs.
    "command_line": ["runtime/base"],
    "server/config": ["command_line", "runtime/base/cpu", "runtime/engine", "runtime/ranks",
        "proto/model_config"],
    "server/metrics": ["runtime/engine"],
    "server/text": ["runtime/base"],
    "server/wire": ["runtime/onnx", "proto/model_config"],
    "server/access": ["runtime/base"],
    "server/tracing": ["runtime/base", "proto/otlp"],
    "server/transport": ["runtime/base"],
    "server/hub": ["server/text", "runtime/generate"],
    "server/fetch": ["server/hub"],
    "server/pictures": ["client/images", "server/hub"],
    "server/repository": ["server/pictures", "server/fetch", "server/wire", "server/config", "server/hub", "runtime/generate"],
    "server/shared_memory": ["server/transport"],
    "server/prefixes": ["server/transport", "runtime/sequences"],
    "server/requests": ["server/repository", "server/hub", "runtime/batching", "server/access",
                        "server/shared_memory", "server/tracing"],
    "server/tasks": ["server/hub", "server/requests"],
    "server/protocol": ["server/requests", "proto/grpc_service", "proto/admin"],
    "server/speech": ["server/hub", "runtime/sequences"],
    "server/chat": ["server/hub"],
    "server/generate": ["server/protocol", "server/chat"],
    "server/http2": ["server/transport", "server/wire", "server/access", "server/tracing"],
    "server/rpc": ["server/generate", "server/http2", "server/metrics", "proto/admin",
                   "proto/recipe", "proto/health", "proto/orca_service", "proto/reflection_v1",
                   "proto/reflection_v1alpha"],
    "server/http": ["server/repository", "server/transport", "server/metrics", "server/access",
                    "server/tracing"],
    "server/page": ["server/http", "server/tasks"],
    "server/rest": ["server/generate", "server/http"],
    "server/text_api": ["server/tasks", "server/rest", "server/chat", "server/speech",
                        "server/vision"],
    "server/vision": ["server/rest"],
    "server/openapi": ["server/text_api"],
    "server": ["server/prefixes", "server/rpc", "proto/orca_report", "server/page", "server/openapi", "server/vision", "runtime/device/cpu", "runtime/device/reference"],
    "client/images": ["runtime/base/cpu"],
    "client": ["runtime/base", "client/images", "proto/grpc_service", "proto/admin"],
    "client/files": ["runtime/base"],
    "client/cli": ["client", "client/files", "command_line"],
    # Commands that need no server run the engine themselves.
    "tools/files": ["runtime/recipe", "runtime/onnx", "runtime/bucket"],
    "tools/reports": ["tools/files", "client/cli", "runtime/generate", "runtime/device/cpu"],
    "tools/bisect": ["runtime/engine", "runtime/onnx"],
    "tools/serve": ["tools/files", "client/cli", "server/repository", "runtime/device/cpu"],
    "tools": ["tools/bisect", "tools/reports", "tools/serve", "server/hub", "server/chat", "runtime/generate",
              "runtime/device/cpu"],
    "proto/recipe": [], "proto/model_config": [],
    "proto/grpc_service": ["proto/model_config"], "proto/admin": ["proto/recipe"],
    "proto/orca_report": [], "proto/orca_service": ["proto/orca_report"],
    "proto/otlp": [], "proto/health": [], "proto/reflection_v1": [], "proto/reflection_v1alpha": [],
}
# Libraries that only some floors may know.
OUTSIDE = {
    "grpcpp/": ["client"],
    "grpc/": ["client"],
    "nghttp2/": ["server/http2"],
    "openssl/": ["server/transport", "server/fetch"],
    "curl/": ["server/fetch"],
    "yaml-cpp/": ["command_line"],
    "archive": ["server/fetch"],
    "prometheus/": ["server/metrics", "server/rpc", "server/page", "server"],
    "boost/": ["server/transport", "server/http", "server/http2", "server/prefixes"],
    "simdjson.h": ["server/rest", "server/generate", "server/hub", "server/chat", "server/text_api", "server/http",
        "server/repository", "server/vision"],
    "httplib.h": ["client/cli"],
    "sndfile.h": ["server/speech"],
    "soxr.h": ["server/speech"],
    "jpeglib.h": ["client/images"],
    "png.h": ["client/images"],
    "CLI/": ["command_line", "server/config", "client/cli", "tools", "tools/serve"],
}


def reach(folder):
    """`folder` and everything that it may include."""
    found, left = set(), [folder]
    while left:
        here = left.pop()
        if here not in found:
            found.add(here)
            left.extend(MAY_INCLUDE[here])
    return found


def sources():
    for top in ("runtime", "command_line", "server", "client", "tools"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path


def includes(path):
    return re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', path.read_text(), re.M)


def owner(include):
    """Returns the folder that a file of ours belongs to, or the name of generated code; None: not ours."""
    match = re.fullmatch(r"(proto/\w+?)(\.grpc)?\.pb\.h", include)
    if match:
        return match.group(1)
    if include.split("/")[0] in ("runtime", "command_line", "server", "client", "tools"):
        return str(pathlib.PurePosixPath(include).parent)
    return None


def test_every_include_is_an_edge_of_the_design():
    wrong = []
    for path in sources():
        folder = str(path.parent.relative_to(ROOT))
        assert folder in MAY_INCLUDE, f"{folder} is not in the design: say what it may include"
        for include in includes(path):
            other = owner(include)
            if other is not None and other not in reach(folder):
                wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert wrong == []


def test_outside_libraries_are_known_only_where_they_belong():
    wrong = []
    for path in sources():
        folder = str(path.parent.relative_to(ROOT))
        for include in includes(path):
            for prefix, allowed in OUTSIDE.items():
                if include.startswith(prefix) and folder not in allowed:
                    wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert wrong == []


def test_floors_have_no_circle():
    for folder, below in MAY_INCLUDE.items():
        assert all(folder not in reach(other) for other in below), folder


# The largest number of files in one folder, and the folders that are not divided yet.
MOST_FILES = 45
LARGE = {"tests/e2e"}


def test_folders_are_small():
    sizes = {}
    for top in ("runtime", "command_line", "server", "client", "tools", "tests"):
        for folder, folders, files in os.walk(ROOT / top):
            folders[:] = [f for f in folders if f != "__pycache__"]
            sizes[str(pathlib.Path(folder).relative_to(ROOT))] = len(files)
    assert {f: n for f, n in sizes.items() if n > MOST_FILES and f not in LARGE} == {}
    assert [f for f in LARGE if sizes.get(f, 0) <= MOST_FILES] == [], "is small by now"


# Floors that have rooms.
FLOORS = ("runtime/ops", "runtime/onnx", "runtime/passes", "runtime/device/cpu", "runtime/engine")


def test_every_room_says_what_it_is():
    rooms = [folder for folder in MAY_INCLUDE if folder.startswith(tuple(f + "/" for f in FLOORS))]
    assert len(rooms) > len(FLOORS)
    assert [room for room in rooms if not (ROOT / room / "README.md").exists()] == []
