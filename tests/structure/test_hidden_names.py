"""A name in an unnamed namespace hides one of a header for its whole room.

A room is one translation unit (cmake/RepriseTargets.cmake), and the compiler is silent where code in the
unnamed namespace of one source finds the constant of another instead of the one that a header of ours
declares for both. Constants and types are looked at; functions differ by their parameters.
"""

import functools
import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("REPRISE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TOPS = ("runtime", "command_line", "server", "client", "tools")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
CONSTANTS = re.compile(r"^(?:inline constexpr|extern const|constexpr|const)\b[^;]*", re.M)
CONSTANT = re.compile(r"\b(k[A-Z]\w*)(?:\[[^\]]*\])? *(?:=|\{|$)")
TYPE = re.compile(r"^(?:struct|class|enum class|union) (\w+)(?: final)?(?: :[^;{]*)? ?\{|^using (\w+) =", re.M)
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
# Headers that are compiled once for each tier, in namespaces of their own.
PER_TIER = "-inl.h"


def names(text):
    """Constants and types that are declared at the beginning of a line: not in a type, not in a function."""
    found = {first or second for first, second in TYPE.findall(text)}
    for declaration in CONSTANTS.findall(text):
        found.update(CONSTANT.findall(declaration))
    return found


def namespace(text):
    found = re.search(r"^namespace ([\w:]+) \{", text, re.M)
    return found[1] if found else ""


@functools.cache
def declared(header):
    text = header.read_text()
    return namespace(text), names(text)


@functools.cache
def headers(path):
    """Headers of ours that `path` includes, directly or not."""
    found, left = set(), [path]
    while left:
        for name in INCLUDE.findall(left.pop().read_text()):
            header = ROOT / name
            if header not in found and header.exists() and not name.endswith(PER_TIER):
                found.add(header)
                left.append(header)
    return found


def hidden(room):
    """Returns 'name (source) hides the name of header' for each name of the room's sources."""
    sources = sorted(room.glob("*.cc"))
    known = [(header, *declared(header)) for header in sorted(set().union(*map(headers, sources)))]
    for source in sources:
        text = source.read_text()
        inside = namespace(text)
        own = set().union(*(names(part) for part in UNNAMED.findall(text)))
        for header, outside, there in known:
            if inside == outside or inside.startswith(f"{outside}::"):
                for name in sorted(own & there):
                    yield f"{name} ({source.relative_to(ROOT)}) hides that of {header.relative_to(ROOT)}"


def test_names_are_read_from_declarations():
    text = ('constexpr char kOne[] = "a",\n               kTwo[] = "b";\nstruct Three {\n  int kFour = 4;\n};\n'
            "using Five = int;\nvoid Six() {\n  constexpr int kSeven = 7;\n}\nstruct Eight;\n")
    assert names(text) == {"kOne", "kTwo", "Three", "Five"}


def test_no_name_of_a_source_hides_one_of_a_header_from_its_room():
    rooms = {source.parent for top in TOPS for source in (ROOT / top).rglob("*.cc")}
    assert len(rooms) > 50, "the sources are elsewhere"
    assert [line for room in sorted(rooms) for line in hidden(room)] == []
