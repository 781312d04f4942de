"""`cmake --install` gives programs, libraries, headers and a package that others can build against."""

import json
import os
import re
import shutil
import subprocess

import pytest
from PIL import Image

from testing import models
from testing.daemon import BUILD, SOURCE, Daemon
from testing.repository import MINILM, Repository


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=600, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Makes a prefix whose path does not look like a system's, with a space in it."""
    path = tmp_path_factory.mktemp("install") / "a prefix"
    run("cmake", "--install", BUILD, "--prefix", path)
    return path


def build_example(name, prefix, folder):
    """Configures and builds examples/<name> against the installed package; its program."""
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    environment = {**os.environ, "CCACHE_BASEDIR": str(prefix.parent), "CCACHE_NOHASHDIR": "1"}
    run("cmake", "-S", SOURCE / "examples" / name, "-B", folder, "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold -Wl,--strip-debug", *launcher)
    run("cmake", "--build", folder, env=environment)
    return folder / name


def test_installed_programs_run(prefix):
    for program in ("reprised", "reprise"):
        assert re.search(r"\d+\.\d+\.\d+", run(prefix / "bin" / program, "--version"))


def test_installed_headers_come_alone(prefix, tmp_path):
    """Each header compiles as the only one of a file. The build shows it for those that are the
    first include of their source; the others are compiled here, and all must be installed whole."""
    root = prefix / "include/reprise"
    headers = sorted(str(h.relative_to(root)) for h in root.rglob("*.h"))
    assert {"runtime/engine/engine.h", "runtime/device/cpu/cpu_device.h", "client/client.h",
            "proto/grpc_service.pb.h"} <= set(headers)
    unproved = []
    for header in headers:
        text = (root / header).read_text()
        missing = [h for h in re.findall(r'^#include "([^"]+)"', text, re.M) if h not in headers]
        # Headers of protobuf that generated code includes come with protobuf.
        assert [h for h in missing if h.split("/")[0] in ("runtime", "client", "proto")] == []
        source = SOURCE / re.sub(r"\.h$", ".cc", header)
        first = re.search(r"^#include .*$", source.read_text(), re.M) if source.exists() else None
        if header.startswith("proto/") or (first and first.group() == f'#include "{header}"'):
            continue
        unproved.append(header)
    for i, header in enumerate(unproved):
        (tmp_path / f"{i}.cc").write_text(f'#include "{header}"\n')
    run("g++", "-std=c++20", "-fsyntax-only", "-I", root, *sorted(tmp_path.glob("*.cc")))


@pytest.fixture(scope="module")
def in_process(prefix, tmp_path_factory):
    return build_example("in_process", prefix, tmp_path_factory.mktemp("in_process"))


def test_example_captures_and_replays_in_process(in_process, tmp_path):
    lines = run(in_process, MINILM, 40, tmp_path / "metrics.json").splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("captured: ") and lines[1].startswith("replayed: ")
    keys = [re.search(r"recipe (\w+), bucket b1_s64", line).group(1) for line in lines]
    assert keys[0] == keys[1]
    assert "[1, 40, 384]" in lines[0]
    model = json.loads((tmp_path / "metrics.json").read_text())["models"][0]
    assert model["compiles"] == 1 and model["replays"] == 2
    assert [capture["recipe"] for capture in model["captures"]] == keys[:1]


def test_example_says_why_a_model_is_refused(in_process, tmp_path):
    (tmp_path / "odd.onnx").write_bytes(models.unknown_op().SerializeToString())
    done = subprocess.run([in_process, tmp_path / "odd.onnx"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and "Frobnicate" in done.stderr


def test_example_captures_ops_and_binds_a_model(prefix, tmp_path_factory):
    program = build_example("capture", prefix, tmp_path_factory.mktemp("capture"))
    lines = run(program, MINILM, 16).splitlines()
    assert lines[:2] == ["a[0] = 1, b[0] = 4, b[3] = 10", "a[0] = 10, b[0] = 22, b[3] = 10"]
    assert re.search(r"NonZero is not supported during capture, at main.cc:\d+: .*before the capture",
                     lines[2])
    assert re.fullmatch(r"'\w+' \[1, 16, 384\] after 3 replays begins with -?[\d.e-]+", lines[3])


def test_example_gives_the_same_bits_lazily_and_as_graphs(prefix, tmp_path_factory):
    program = build_example("lazy", prefix, tmp_path_factory.mktemp("lazy"))

    def digest(*arguments):
        return re.search(r"digest (\w+)", run(program, *arguments)).group(1)

    assert digest("lazy") == digest("graph")
    assert digest("lazy", "unfused") == digest("graph", "unfused") == digest("eager", "unfused")
    values = {mode: float(re.search(r"first ([\d.]+)", run(program, mode)).group(1))
              for mode in ("lazy", "eager")}
    assert abs(values["lazy"] - values["eager"]) <= 2e-4


def test_example_batches_what_is_submitted(prefix, tmp_path_factory):
    program = build_example("async", prefix, tmp_path_factory.mktemp("async"))
    assert run(program, MINILM, 24).splitlines() == [
        "12 answers by futures, 12 by callbacks, the largest batch had more than one row",
        "streams: in order"]
    assert run(program.parent / "own_batches") == "all are right, in batches\n"


def test_example_brings_ops_of_its_own(prefix, tmp_path_factory):
    program = build_example("custom_op", prefix, tmp_path_factory.mktemp("custom_op"))
    assert run(program).splitlines() == ["the library brings example.Reverse",
                                         "clamped: 1 1.5 2 2", "reversed: 8 1.5 1.25 -1"]
    symbols = run("nm", "-D", "--undefined-only", *program.parent.glob("*example_ops.so"))
    assert "reprise" not in symbols


def test_example_rounds_the_ops_that_rules_name(prefix, tmp_path_factory):
    program = build_example("precision", prefix, tmp_path_factory.mktemp("precision"))
    rounded, kept = (run(program, MINILM, rules, 16) for rules in ("bf16: MatMul", "bf16: Conv"))
    assert float(re.search(r"off by at most ([\d.e-]+)", rounded).group(1)) > 0
    assert "off by at most 0," in kept


@pytest.fixture(scope="module")
def remote(prefix, tmp_path_factory):
    return build_example("remote", prefix, tmp_path_factory.mktemp("remote"))


def test_remote_example_calls_a_server(remote, tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("minilm", MINILM)
    repository.add("odd", models.unknown_op())
    with Daemon(repository) as daemon:
        assert run(remote, daemon.grpc_address).splitlines() == ["minilm 1 READY",
                                                                 "odd 1 UNAVAILABLE"]
        first, second = (run(remote, daemon.grpc_address, "minilm", 40).splitlines()
                         for _ in range(2))
        assert first[:-1] == second[:-1] and "1x40x384" in first[0]
        assert re.fullmatch(r"bucket t64, recipe \w+, captured", first[-1])
        assert second[-1] == first[-1].replace("captured", "replayed")


def test_remote_example_says_what_went_wrong(remote, tmp_path):
    done = subprocess.run([remote, "127.0.0.1:1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr


def test_shared_memory_example_compares_with_messages(prefix, tmp_path):
    program = build_example("shared_memory", prefix, tmp_path / "build")
    repository = Repository(tmp_path / "models")
    repository.add("minilm", MINILM)
    with Daemon(repository, "--system-shared-memory") as daemon:
        for length in (40, 41):
            assert re.fullmatch(rf"\S+ 1x{length}x384: {length * 384 * 4} bytes in shared memory, "
                                r"the same as by message\n",
                                run(program, daemon.grpc_address, "minilm", length))
    with Daemon(repository) as daemon:
        done = subprocess.run([program, daemon.grpc_address, "minilm"], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 1 and "--system-shared-memory" in done.stderr


def test_example_loads_images_without_server_and_engine(prefix, tmp_path):
    loader = build_example("loader", prefix, tmp_path / "build")
    images = tmp_path / "images"
    images.mkdir()
    for i in range(3):
        Image.new("RGB", (40 + i, 30), (i, 2 * i, 255)).save(images / f"{i}.png")
    lines = run(loader, images, "Resize([8, 8], interpolation=nearest)", 2).splitlines()
    assert lines[0] == f"2 of 2 rows, sum {64 * (255 + 258):.3f}: {images}/0.png {images}/1.png"
    assert lines[1].startswith("1 of 2 rows, sum ") and lines[1].endswith("2.png")
    assert lines[2].startswith("3 of 3 images took the plain path: Resize([8, 8], interpolation=")


def test_programs_install_without_the_libraries(tmp_path):
    run("cmake", "--install", BUILD, "--prefix", tmp_path, "--component", "programs", "--strip")
    files = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()}
    assert files == {"bin/reprised", "bin/reprise"}


@pytest.mark.parametrize("component, file, command", [
    ("development", "runtime/libruntime_launch.a", "--target development"),
    ("programs", "reprised", "--target reprised reprise")])
def test_an_install_of_what_is_not_built_says_what_builds_it(tmp_path, component, file, command):
    """By the script that CMake made, with the folder of the build replaced by an empty one."""
    script = (BUILD / "cmake_install.cmake").read_text().replace(str(BUILD / file), str(tmp_path / "empty" / file))
    (tmp_path / "install.cmake").write_text(script)
    done = subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={tmp_path}/prefix", f"-DCMAKE_INSTALL_COMPONENT={component}",
                           "-P", tmp_path / "install.cmake"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode != 0
    assert command in done.stderr and file in done.stderr, done.stderr
    assert not (tmp_path / "prefix/lib").exists() and not (tmp_path / "prefix/bin").exists()
