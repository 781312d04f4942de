"""Packages: their contents, their needs from outside, and one version in all of them.

tests/container/test_packages.py runs them in roots that hold nothing else.
"""

import base64
import csv
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

from testing.daemon import BUILD, SOURCE, free_ports
from testing.repository import MINILM

sys.path.insert(0, str(SOURCE / "deploy"))
from packages import __main__ as packaging, elf, image, source, tree  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes all packages of the programs in the build folder, compressed as little as can be."""
    path = tmp_path_factory.mktemp("packages")
    packaging.make_packages(BUILD, path, list(packaging.KINDS), level=1)
    return path


@pytest.fixture(scope="module")
def files(folder, tmp_path_factory):
    """Returns the tree that all packages hold, from the tar file."""
    path = tmp_path_factory.mktemp("a tree")
    with tarfile.open(folder / f"reprise-{source.version()}-linux-x86_64.tar.gz") as archive:
        archive.extractall(path)
    (one,) = path.iterdir()
    return one


def control_of(package):
    text = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^(\S+): (.*)$", text, re.M))


# --- Their needs from outside. ---


def test_no_symbol_is_newer_than_those_of_the_oldest_system(files):
    asked = {path.name: elf.symbol_versions(path) for path in tree.programs_and_libraries(files)}
    assert any(family == "GLIBCXX" for family, _ in asked["reprised"])
    assert {name: elf.too_new(path) for path in tree.programs_and_libraries(files)
            for name in [path.name] if elf.too_new(path)} == {}


def test_symbols_of_a_newer_system_are_noticed(files, monkeypatch):
    monkeypatch.setitem(elf.NEWEST, "GLIBC", (2, 30))
    assert "GLIBC_2.34" in elf.too_new(files / "bin/reprised")
    with pytest.raises(SystemExit, match="GLIBC_2.34"):
        tree.refuse_what_would_not_run(files)


def test_all_libraries_but_those_of_the_runtime_come_along(files):
    for path in tree.programs_and_libraries(files):
        assert elf.dynamic(path, "RPATH") == []
        place = path.parent.relative_to(files)
        assert elf.dynamic(path, "RUNPATH") == [tree.RUNPATHS[str(place)]]
    for program in ("reprised", "reprise"):
        for name, path in elf.libraries_of(files / "bin" / program).items():
            if name not in elf.OUTSIDE:
                assert os.path.realpath(path) == os.path.realpath(files / "lib/reprise" / name)
    # OpenBLAS is loaded where it is installed, and no package needs it.
    assert not list(files.rglob("*blas*"))


def test_a_library_that_was_left_out_is_noticed(files, tmp_path):
    subprocess.run(["cp", "-r", files, tmp_path / "tree"], check=True)
    (tmp_path / "tree/lib/reprise/libssl.so.3").unlink()
    with pytest.raises(SystemExit, match="libssl.so.3"):
        tree.refuse_what_would_not_run(tmp_path / "tree")


# --- One version. ---


def test_one_version_is_in_all_of_them(folder, files):
    version = source.version()
    assert sorted(path.name for path in folder.iterdir()) == sorted([
        "SHA256SUMS", f"reprise-{version}-image.tar", f"reprise-{version}-linux-x86_64.tar.gz",
        f"reprise-{version}.cdx.json", f"reprise_server-{version}-{packaging.wheel.tag_of(files)}.whl",
        f"reprised_{version}_amd64.deb"])
    for program in ("reprised", "reprise"):
        said = subprocess.run([files / "bin" / program, "--version"], capture_output=True, text=True, env={})
        assert said.stdout.strip().split()[-1] == version
    assert control_of(folder / f"reprised_{version}_amd64.deb")["Version"] == version
    assert json.loads((files / "share/doc/reprise/sbom.cdx.json").read_text())["metadata"]["component"][
        "version"] == version
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
                    if path.name != "SHA256SUMS"}


def test_manual_pages_and_completions_come_along(files):
    for place, programs in tree.PRINTED.items():
        for program in programs:
            data = (files / place.format(program=program)).read_bytes()
            text = (gzip.decompress(data) if place.endswith(".gz") else data).decode()
            flag = {"reprise": "health", "reprised": "model-repository"}[program]
            assert program in text and flag in text.replace("\\-", "-"), place


# --- The bill of materials and the licences. ---


def test_the_bill_names_what_is_carried_and_compiled_in(files):
    bill = json.loads((files / "share/doc/reprise/sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    names = {part["name"] for part in bill["components"]}
    # Carried, headers alone, and a crate.
    assert {"openssl", "grpc", "protobuf", "abseil", "nghttp2"} <= names
    assert {"highway", "boost1.74", "nlohmann-json3", "cli11"} <= names
    assert {"tokenizers", "regex"} <= names
    assert not names & {"glibc", "googletest"}
    # Of GCC's libraries the one that libsoxr needs, which has its own package.
    carried = {path.name for path in (files / "lib/reprise").iterdir()}
    assert ("gcc-12" in names) == ("libgomp.so.1" in carried)
    assert not [name for name in carried if name.startswith(("libstdc++", "libgcc_s"))]
    assert all(part["purl"].startswith(("pkg:deb/debian/", "pkg:cargo/")) and part["version"]
               for part in bill["components"])
    identities = [part["bom-ref"] for part in bill["components"]]
    assert len(identities) == len(set(identities))


def test_every_part_has_its_licence(files):
    folder = files / "share/doc/reprise/licenses"
    lines = (folder / "index.txt").read_text().splitlines()
    bill = json.loads((files / "share/doc/reprise/sbom.cdx.json").read_text())
    assert len(lines) == len(bill["components"])
    for line in lines:
        kind, name, version, names = re.fullmatch(r"(\S+) (\S+) (\S+): (.+)", line).groups()
        # A crate without a text of its own has at least the names of common licences.
        assert kind == "cargo" or (folder / f"{kind}-{name}-{version}" / "copyright").is_file(), line
        assert names
    assert (files / "share/doc/reprise/LICENSE").read_text() == (SOURCE / "LICENSE").read_text()


# --- The Debian package. ---


def test_packages_ask_for_the_glibc_that_the_programs_need(folder, files):
    newest = tree.glibc(files)
    assert (2, 31) < newest <= (2, 36)
    control = control_of(folder / f"reprised_{source.version()}_amd64.deb")
    assert f"libc6 (>= {newest[0]}.{newest[1]})" in control["Depends"]
    assert f"manylinux_{newest[0]}_{newest[1]}_x86_64" in packaging.wheel.tag_of(files)


def test_the_debian_package_needs_nothing_but_the_runtime(folder):
    control = control_of(folder / f"reprised_{source.version()}_amd64.deb")
    assert re.findall(r"([\w+-]+) \(", control["Depends"]) == ["libc6", "libstdc++6", "libgcc-s1"]
    assert control["Suggests"] == "libopenblas0-pthread"


def test_the_debian_package_installs_a_unit_that_runs_its_programs(folder, tmp_path):
    subprocess.run(["dpkg-deb", "--extract", folder / f"reprised_{source.version()}_amd64.deb", tmp_path], check=True)
    unit = (tmp_path / "usr/lib/systemd/system/reprised.service").read_text()
    assert unit.startswith("[Unit]\n")
    for command in re.findall(r"^Exec\w+=(\S+)", unit, re.M):
        assert (tmp_path / command.lstrip("/")).is_file(), command
    (environment,) = re.findall(r"^EnvironmentFile=-(\S+)", unit, re.M)
    flags = (tmp_path / environment.lstrip("/")).read_text().splitlines()
    assert all(line.startswith("#") for line in flags)
    owners = subprocess.run(["dpkg-deb", "--contents", folder / f"reprised_{source.version()}_amd64.deb"],
                            capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in owners.splitlines()} == {"root/root"}


# --- The wheel. ---


@pytest.fixture(scope="module")
def wheel(folder):
    (path,) = folder.glob("*.whl")
    return path


def test_the_record_of_the_wheel_holds_what_the_wheel_holds(wheel, files):
    with zipfile.ZipFile(wheel) as archive:
        info = f"reprise_server-{source.version()}.dist-info"
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(f"{info}/RECORD").decode().splitlines())}
        assert sorted(rows) == sorted(archive.namelist())
        for name, (digest, size) in rows.items():
            if not name.endswith("/RECORD"):
                data = archive.read(name)
                ours = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (digest, size) == (f"sha256={ours}", str(len(data)))
        metadata = archive.read(f"{info}/METADATA").decode()
        assert f"Name: reprise-server\nVersion: {source.version()}\n" in metadata
        assert f"Tag: {packaging.wheel.tag_of(files)}\n" in archive.read(f"{info}/WHEEL").decode()


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Makes the environment of a Python that has nothing but the wheel and the standard library."""
    target = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index",
                    "--no-deps", "--target", target, wheel], check=True, stdin=subprocess.DEVNULL)
    return {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin"}


def python(environment, text, *arguments):
    return subprocess.run(["/usr/bin/python3", "-B", "-c", text, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, env=environment)


def test_console_programs_of_the_wheel_are_the_programs(installed):
    for name in ("reprised", "reprise"):
        done = python(installed, f"import sys; from reprise import programs; sys.argv[1:] = ['--version'];"
                      f"programs.{name}()")
        assert (done.stdout, done.returncode) == (f"{name} {source.version()}\n", 0), done.stderr


def test_a_block_of_python_has_a_daemon_that_answers(installed):
    done = python(installed, """
import json, sys, urllib.request
import reprise
with reprise.serve(sys.argv[1], "--log-level", "info") as server:
    with urllib.request.urlopen(server.url + f"/v2/models/{server.models[0]}") as answer:
        print(server.models, json.load(answer)["platform"])
    with urllib.request.urlopen(server.metrics) as answer:
        assert b"reprise_" in answer.read()
print(server.process.returncode)
""", MINILM)
    assert re.fullmatch(r"\['model'\] \S+\n0\n", done.stdout), done.stdout + done.stderr


def test_ports_may_be_given(installed):
    http, metrics = free_ports(2)
    done = python(installed, """
import sys
import reprise
with reprise.serve(sys.argv[1], "--http-port", sys.argv[2], f"--metrics-port={sys.argv[3]}") as server:
    print(server.url, server.metrics)
""", MINILM, str(http), str(metrics))
    assert done.stdout == f"http://127.0.0.1:{http} http://127.0.0.1:{metrics}/metrics\n", done.stdout + done.stderr


@pytest.mark.parametrize("what, flags, says", [
    ("model", ["--frobnicate"], "reprised ended with 2.*--frobnicate"),
    ("broken", [], '"model" version 1 was not loaded'),
    ("nothing", [], "nothing")])
def test_a_daemon_that_does_not_serve_says_why(installed, tmp_path, what, flags, says):
    (tmp_path / "model.onnx").write_bytes(b"no model" if what == "broken" else b"")
    path = {"model": MINILM, "broken": tmp_path / "model.onnx", "nothing": tmp_path / "nothing"}[what]
    done = python(installed, "import sys, reprise\nreprise.serve(sys.argv[1], *sys.argv[2:])", path, *flags)
    assert done.returncode == 1
    assert re.search(f"ServeError: .*{says}", done.stderr, re.S), done.stderr


# --- The image. ---


def test_the_image_is_whole_and_small(folder):
    with tarfile.open(folder / f"reprise-{source.version()}-image.tar") as archive:
        blobs = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    index = json.loads(blobs["index.json"])
    (entry,) = index["manifests"]

    def blob(descriptor):
        data = blobs["blobs/" + descriptor["digest"].replace(":", "/")]
        assert image.digest_of(data) == descriptor["digest"] and len(data) == descriptor["size"]
        return data

    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    assert config["config"]["Labels"]["org.opencontainers.image.version"] == source.version()
    (layer,) = manifest["layers"]
    assert sum(map(len, blobs.values())) < 100e6
    (folder / "layer.tar.gz").write_bytes(blob(layer))
    with tarfile.open(folder / "layer.tar.gz") as archive:
        members = {member.name: member for member in archive}
    (folder / "layer.tar.gz").unlink()
    assert sum(member.size for member in members.values()) < 120e6
    assert {"usr/local/bin/reprised", "usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/libc.so.6"} <= set(
        members)
    assert members["var/cache/reprise"].mode == 0o1777 and members["models"].isdir()
    assert not [name for name in members if re.search(r"bin/(sh|bash|apt|dpkg|perl|gcc)$", name)]


def test_the_dockerfile_copies_all_that_the_build_reads():
    """A folder that the build enters and the image's stage lacks would end it at its first line."""
    text = (SOURCE / "Dockerfile").read_text()
    copied = {source for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M) for source in line.split()}
    allowed = {line[1:].strip() for line in (SOURCE / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == allowed
    top = (SOURCE / "CMakeLists.txt").read_text()
    without_tests = top[:top.index("if(REPRISE_TESTS)")]
    assert set(re.findall(r"add_subdirectory\((\S+)\)", without_tests)) <= copied


def test_image_and_dockerfile_start_alike():
    text = (SOURCE / "Dockerfile").read_text()
    final = text[text.index("FROM scratch"):].replace("\\\n", " ")
    config = image.CONFIG
    for line in ("Entrypoint", "Cmd"):
        assert json.loads(re.search(rf"^{line.upper()} (.*)$", final, re.M).group(1)) == config[line]
    assert re.search(r"^USER (.*)$", final, re.M).group(1) == config["User"]
    assert re.search(r"^ENV (.*)$", final, re.M).group(1) == config["Env"][0]
    assert {f"{port}/tcp" for port in re.search(r"^EXPOSE (.*)$", final, re.M).group(1).split()} == set(
        config["ExposedPorts"])
    options, command = re.search(r"^HEALTHCHECK (.*) CMD (.*)$", final, re.M).groups()
    check = config["Healthcheck"]
    assert ["CMD", *json.loads(command)] == check["Test"]
    seconds = {name: int(value) * 10**9 for name, value in re.findall(r"--([\w-]+)=(\d+)s", options)}
    assert seconds == {"interval": check["Interval"], "timeout": check["Timeout"], "start-period": check["StartPeriod"]}
    assert f"--retries={check['Retries']}" in options
