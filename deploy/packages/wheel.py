"""The wheel `reprise-server`: the tree inside the Python module `reprise`, and two console programs."""

import base64
import hashlib
import time
import zipfile

from .source import DEPLOY, SUMMARY, date, version
from .tree import glibc

MODULE = DEPLOY / "python/reprise"

METADATA = """\
Metadata-Version: 2.1
Name: reprise-server
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{description}"""
WHEEL = "Wheel-Version: 1.0\nGenerator: deploy/package\nRoot-Is-Purelib: false\nTag: {tag}\n"
ENTRY_POINTS = "[console_scripts]\nreprise = reprise.programs:reprise\nreprised = reprise.programs:reprised\n"


def tag_of(tree):
    """Makes the tag as auditwheel does: any Python, and the glibc that the programs need."""
    return f"py3-none-manylinux_{'_'.join(map(str, glibc(tree)))}_x86_64"


def files(tree):
    """(name in the wheel, bytes, mode) of all that it holds but the record."""
    for path in sorted(MODULE.glob("*.py")):
        yield f"reprise/{path.name}", path.read_bytes(), 0o644
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            yield f"reprise/tree/{path.relative_to(tree)}", path.read_bytes(), path.stat().st_mode & 0o777
    info = f"reprise_server-{version()}.dist-info"
    metadata = METADATA.format(version=version(), summary=SUMMARY,
                               description=(DEPLOY / "python/README.md").read_text())
    for name, text in (("METADATA", metadata), ("WHEEL", WHEEL.format(tag=tag_of(tree))), ("entry_points.txt", ENTRY_POINTS),
                       ("LICENSE", (tree / "share/doc/reprise/LICENSE").read_text())):
        yield f"{info}/{name}", text.encode(), 0o644


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make(tree, folder, scratch, level):
    """Writes reprise_server-VERSION-TAG.whl into `folder`; its path."""
    package = folder / f"reprise_server-{version()}-{tag_of(tree)}.whl"
    written = time.gmtime(date())[:6]
    record = ""
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, written)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        for name, data, mode in files(tree):
            add(name, data, mode)
            record += record_line(name, data)
        name = f"reprise_server-{version()}.dist-info/RECORD"
        add(name, (record + f"{name},,\n").encode(), 0o644)
    return package
