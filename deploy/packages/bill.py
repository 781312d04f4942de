"""The bill of materials: all linked and compiled code, with versions and licences.

Three sources, none of them a list by hand: the Debian packages that own the carried libraries, those that own
the headers which the build read, and the crates of the tokenizer's lock file.
"""

import dataclasses
import datetime
import json
import pathlib
import re
import shutil
import subprocess
import uuid

from .source import ROOT, date, run, version

CRATE = ROOT / "server/text/tokenizer_ffi/Cargo.toml"
# The C and C++ runtime, which packages take from the system.
RUNTIME = re.compile(r"(libc6|libstdc\+\+|linux-libc|libgcc).*")
# The standard library of Rust, which is linked into the tokenizer.
RUST = "libstd-rust-web-dev"


@dataclasses.dataclass(frozen=True)
class Part:
    """One thing that is in the programs or beside them."""
    name: str
    version: str
    purl: str
    license: str  # an expression, or names with commas between
    texts: tuple  # files with licences


def owners(paths):
    """Returns the Debian packages that own these files."""
    # Where /lib is a link to /usr/lib, packages know a file by either name.
    names = sorted({name for path in paths for name in (path, re.sub(r"^/usr/lib", "/lib", path),
                                                        re.sub(r"^/lib", "/usr/lib", path))})
    done = subprocess.run(["dpkg-query", "--search", *names], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    return {package.strip().split(":")[0] for line in done.stdout.splitlines()
            for package in line.rsplit(": ", 1)[0].split(",")}


def headers_read(build):
    """Returns the headers of the system that any source of the programs includes."""
    headers, ours = set(), False
    for line in run("ninja", "-C", build, "-t", "deps").splitlines():
        if not line.startswith(" "):
            ours = not line.startswith(("tests/", "ninja:"))
        elif ours and line.strip().startswith("/usr/include/"):
            headers.add(line.strip())
    return headers


def licence_names(copyright_file):
    """Returns the short names of a machine-readable copyright file, each once."""
    names = re.findall(r"^License: *(\S.*?)\s*$", copyright_file.read_text(errors="replace"), re.M)
    return ", ".join(sorted(set(names))) or "see its text"


def debian_parts(build, carried):
    # Libraries are installed under names that are links to files with the whole version.
    packages = owners(list(carried) + [str(pathlib.Path(path).resolve()) for path in carried])
    packages |= owners(headers_read(build)) | {RUST}
    found = {}
    for package in sorted(p for p in packages if not RUNTIME.fullmatch(p)):
        source, number, architecture = run(
            "dpkg-query", "--show", "--showformat=${source:Package} ${Version} ${Architecture}", package).split()
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright")
        if not text.is_file():
            raise SystemExit(f"error: the package {package} has no copyright file")
        # A library and its headers are one thing: the package that is carried names it.
        if source not in found or not package.endswith("-dev"):
            found[source] = Part(source, number, f"pkg:deb/debian/{source}@{number}?arch={architecture}",
                                 licence_names(text), (text,))
    return list(found.values())


def crate_parts():
    """Returns the crates that are linked into the tokenizer: those that its own build reaches, without tests'."""
    all_of_it = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", CRATE,
                               "--filter-platform", "x86_64-unknown-linux-gnu"))
    packages = {package["id"]: package for package in all_of_it["packages"]}
    nodes = {node["id"]: node for node in all_of_it["resolve"]["nodes"]}
    root = all_of_it["resolve"]["root"]
    reached, left = set(), [root]
    while left:
        one = left.pop()
        if one in reached:
            continue
        reached.add(one)
        left += [dep["pkg"] for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    parts = []
    for one in sorted(reached - {root}):
        package = packages[one]
        folder = pathlib.Path(package["manifest_path"]).parent
        texts = sorted(path for path in folder.iterdir()
                       if path.is_file() and re.match(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", path.name, re.I))
        expression = re.sub(r" */ *", " OR ", package["license"] or "")
        parts.append(Part(package["name"], package["version"], f"pkg:cargo/{package['name']}@{package['version']}",
                          expression, tuple(texts)))
    return parts


def parts(build, carried):
    """Returns all parts of the programs of the folder `build`, with the carried libraries of these paths."""
    return debian_parts(build, carried) + crate_parts()


def write_licences(all_parts, folder):
    """Writes one folder a part, with its licences as they were found. Crates that carry none name one of the common
    licences in their manifest: the line in index.txt says which."""
    folder.mkdir(parents=True)
    lines = []
    for part in all_parts:
        kind = part.purl.split("/")[0].split(":")[1]
        if part.texts:
            place = folder / f"{kind}-{part.name}-{part.version}"
            place.mkdir()
            for text in part.texts:
                shutil.copyfile(text, place / text.name)
        lines.append(f"{kind} {part.name} {part.version}: {part.license}")
    (folder / "index.txt").write_text("\n".join(lines) + "\n")


def cyclonedx(all_parts):
    """Returns the bill as a CycloneDX document."""
    expression = re.compile(r"[\w.+()-]+( (OR|AND|WITH) [\w.+()-]+)*")

    def licence(part):
        if part.purl.startswith("pkg:cargo/") and expression.fullmatch(part.license):
            return [{"expression": part.license}]
        return [{"license": {"name": part.license}}]

    time = datetime.datetime.fromtimestamp(date(), datetime.timezone.utc)
    names = "".join(sorted(part.purl for part in all_parts))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'reprise {version()} {names}')}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": "reprise", "name": "reprise", "version": version(),
                          "licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": [{"type": "library", "bom-ref": part.purl, "name": part.name, "version": part.version,
                        "purl": part.purl, "licenses": licence(part)} for part in all_parts],
        "dependencies": [{"ref": "reprise", "dependsOn": [part.purl for part in all_parts]}],
    }
