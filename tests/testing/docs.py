"""The pages of the documentation, and the blocks in them.

A block that cannot run where tests do has a mark in the line above it, `<!-- not run: REASON -->`.
"""

import dataclasses
import pathlib
import re

from testing.daemon import SOURCE

# README.md and docs/, in the order of a reader.
PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]

# Pages of the tree, but none that is built or downloaded into it.
PAGES_OF_TREE = sorted(path for path in SOURCE.rglob("*.md")
                       if not {"build", ".cache", ".git"} & set(path.relative_to(SOURCE).parts))
# Pages of users: the things that they name must be there.
MANUAL = [*PAGES, SOURCE / "deploy/README.md"]

# The first column of its tables has flags and paths of other servers.
OF_OTHERS = SOURCE / "docs/coming.md"

_BLOCK = re.compile(r"(?:^<!-- not run: ([^\n]*?) -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int
    language: str  # "sh", "python", "text": the output of the blocks before it, "pbtxt"; or ""
    text: str
    not_run: str | None  # the reason

    @property
    def name(self):
        return f"{self.page.relative_to(SOURCE)}:{self.line}"


def blocks(page):
    text = page.read_text()
    return [Block(page, text[:match.start(2)].count("\n") + 1, match[2], match[3], match[1])
            for match in _BLOCK.finditer(text)]


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def name_of(page):
    return str(page.relative_to(SOURCE))


def without_code(text):
    """Returns `text` without code blocks and code in lines: a reader sees no links in them."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def table_rows(text):
    """Lines of tables that begin with a name."""
    return "\n".join(line for line in text.splitlines() if line.startswith("| `"))


def section(text, heading):
    """From `heading` to the next one of its level or above it."""
    level = len(heading.split()[0])
    return re.split(rf"^#{{1,{level}}} ", text.split(f"\n{heading}\n")[1], flags=re.M)[0]
