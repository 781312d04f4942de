"""The tar file: the tree, which runs wherever it is unpacked."""

import gzip
import pathlib

from . import archive
from .source import date, version


def make(tree, folder, scratch, level):
    """Writes reprise-VERSION-linux-x86_64.tar.gz into `folder`; its path."""
    name = f"reprise-{version()}-linux-x86_64"
    plain = archive.write_tar(pathlib.Path(scratch) / "tree.tar", tree, name)
    package = folder / f"{name}.tar.gz"
    with open(package, "wb") as raw, gzip.GzipFile("", "wb", level, raw, mtime=date()) as packed:
        packed.write(plain.read_bytes())
    plain.unlink()
    return package
