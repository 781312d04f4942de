"""The Debian package: the tree below /usr, the unit, and a file for flags."""

import os
import pathlib
import shutil
import textwrap

from .source import DEPLOY, SUMMARY, date, run, version
from .tree import glibc

UNIT = DEPLOY / "systemd/reprised.service"

CONTROL = """\
Package: reprised
Version: {version}
Architecture: amd64
Maintainer: The Reprise Authors
Section: net
Priority: optional
Installed-Size: {kilobytes}
Depends: libc6 (>= {glibc}), libstdc++6 (>= 12), libgcc-s1 (>= 12)
Recommends: ca-certificates
Suggests: libopenblas0-pthread
Description: {summary}
 The daemon reprised serves texts, prompts and tensors by the protocols of OpenAI,
 Cohere, KServe and Triton; reprise is its command line.
 .
 Libraries other than those of the C and C++ runtime are in /usr/lib/reprise. With
 libopenblas0-pthread, products of kinds that Reprise has no fast kernels for run faster.
"""

FLAGS = """\
# Flags of reprised.service, after those of the unit: reprised --help lists them.
#REPRISED_FLAGS="--log-format json --grpc-address 0.0.0.0"
"""

# The service is not started: it has no models yet. A running one is asked to start again with the new programs.
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  if [ -n "$2" ]; then systemctl try-restart reprised.service || true; fi
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now reprised.service || true
fi
"""
POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
"""


def unit():
    """Returns the unit of deploy/systemd with the programs where this package has them."""
    text = UNIT.read_text()
    if "/usr/local/bin/" not in text:
        raise SystemExit(f"error: {UNIT} names no program in /usr/local/bin")
    lines = text.replace("/usr/local/bin/", "/usr/bin/").splitlines(keepends=True)
    # How to install it by hand is the head of the file.
    return "".join(lines[next(i for i, line in enumerate(lines) if line.startswith("[Unit]")):])


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def make(tree, folder, scratch, level):
    """Writes reprised_VERSION_amd64.deb into `folder`; its path."""
    root = pathlib.Path(scratch) / "deb"
    shutil.copytree(tree, root / "usr")
    documents = root / "usr/share/doc/reprised"
    (root / "usr/share/doc/reprise").rename(documents)
    # Where users of Debian look for it.
    shutil.copyfile(documents / "LICENSE", documents / "copyright")
    write(root / "usr/lib/systemd/system/reprised.service", unit())
    write(root / "etc/reprise/reprised.env", FLAGS)
    write(root / "DEBIAN/conffiles", "/etc/reprise/reprised.env\n")
    for name, text in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
        write(root / "DEBIAN" / name, textwrap.dedent(text), 0o755)
    kilobytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    write(root / "DEBIAN/control",
          CONTROL.format(version=version(), kilobytes=kilobytes, summary=SUMMARY,
                         glibc=".".join(map(str, glibc(tree)))))
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    package = folder / f"reprised_{version()}_amd64.deb"
    run("dpkg-deb", "--root-owner-group", "-Zzstd", f"-z{2 * level}", "--build", root, package,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(date())})
    shutil.rmtree(root)
    return package
