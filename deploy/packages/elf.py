"""The needs of a program or a library: other libraries, and versions of symbols."""

import re

from .source import run

# All that a package takes from the system it runs on. They belong to the C and C++ runtime, and
# newer ones serve programs of older ones.
OUTSIDE = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libpthread.so.0",
           "libdl.so.2", "librt.so.1", "libresolv.so.2"}

# The newest versions of symbols that a package may ask for: Debian 12's.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def is_elf(path):
    """Returns whether a file is a program or a library of this kind."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def dynamic(path, tag):
    """Returns the values of `tag` in the dynamic section: NEEDED, RUNPATH, RPATH."""
    return re.findall(rf"\({tag}\)[^\[]*\[([^\]]*)\]", run("readelf", "--dynamic", "--wide", path))


def symbol_versions(path):
    """{(library's family, version)}: GLIBC and (2, 34) for each symbol version that it asks for."""
    text = run("readelf", "--version-info", "--wide", path)
    needs = text[text.find("Version needs section"):] if "Version needs section" in text else ""
    found = re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\b", needs)
    return {(family, tuple(int(part) for part in number.split("."))) for family, number in found}


def too_new(path):
    """Versions of symbols that an older system than the oldest promised one has not."""
    return sorted(f"{family}_{'.'.join(map(str, number))}" for family, number in symbol_versions(path)
                  if number > NEWEST[family])


def newest_glibc(paths):
    """Returns the version of glibc that all of these run with: (2, 35)."""
    return max(number for path in paths for family, number in symbol_versions(path) if family == "GLIBC")


def libraries_of(path):
    """{name: path} of all libraries that it loads when it starts, its own and theirs."""
    found = {}
    for line in run("ldd", path).splitlines():
        match = re.match(r"\s*(\S+) => (not found|.*(?= \(0x))", line)
        if match and match.group(2) == "not found":
            raise SystemExit(f"error: {path} needs {match.group(1)}, which is not installed")
        if match:
            found[match.group(1)] = match.group(2)
    return found
