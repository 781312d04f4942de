"""The pages of the documentation, and the blocks in them.

A block that cannot run where tests do has a mark in the line above it, `<!-- not run: REASON -->`.
"""

import dataclasses
import pathlib
import re

from testing.daemon import SOURCE

# README.md and docs/, in the order of a reader.
PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]

# The first column of its tables has flags and paths of other servers.
OF_OTHERS = SOURCE / "docs/coming.md"

_BLOCK = re.compile(r"(?:^<!-- not run: ([^\n]*?) -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int
    language: str  # "sh", "python", "text": what the blocks before it print, "pbtxt"; or ""
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
