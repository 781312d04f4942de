"""README.md and docs/ are true: their blocks of commands run as they stand, and print the pages' output."""

import collections
import dataclasses
import re

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from testing.daemon import SOURCE
from testing.docs import PAGES, blocks, squeezed
from testing.reader import Reader

# Blocks that do not run here, by their reasons: how many there are.
NOT_RUN = {"installs packages and builds": 1, "needs a collector": 1, "needs docker": 1,
           "needs the network": 1, "two servers that wait for each other": 1}

# Has a test of its own, in which a page is one session: test_recompilation.py.
WALK = SOURCE / "docs/recompilation.md"

RUN = [page for page in PAGES
       if page != WALK and any(block.language in ("sh", "python") for block in blocks(page))]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with Reader(tmp_path_factory.mktemp("reader")) as reader:
        yield reader


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(SOURCE)))
def test_commands_of_a_page_run_as_they_stand(page, reader):
    typed = [block for block in blocks(page) if block.language in ("sh", "python")
             and block.not_run is None]
    if "build/release/reprised" not in typed[0].text:  # else the page starts its own
        reader.begin()
    printed, ran, session = "", 0, ""
    for block in blocks(page):
        if block.not_run is not None:
            continue
        if block.language == "text":
            for line in block.text.splitlines():
                assert squeezed(line) in squeezed(printed), (block.name, printed)
        if block.language == "sh" and "build/release/reprised" in block.text:
            session = ""  # of the daemon before
        if block.language == "python":
            session += block.text
            block = dataclasses.replace(block, text=session)
        if block.language in ("sh", "python"):
            printed, ran = reader.run(block), ran + 1
    assert ran > 0 and reader.served_throughout(), reader.log()


def test_blocks_that_do_not_run_are_known():
    reasons = collections.Counter(block.not_run for page in PAGES for block in blocks(page)
                                  if block.not_run is not None)
    assert reasons == NOT_RUN
    marks = sum(page.read_text().count("<!-- not run") for page in PAGES)
    assert marks == sum(NOT_RUN.values()), "a mark is the line above its block"


def test_every_block_says_what_it_is():
    known = {"sh", "python", "text", "cpp", "pbtxt", ""}
    assert [block.name for page in PAGES for block in blocks(page)
            if block.language not in known] == []
    # One that begins as a command does is marked as one.
    assert [block.name for page in PAGES for block in blocks(page) if block.language == "" and
            re.match(r"(build/|deploy/|curl |python3 |import |cmake )", block.text)] == []


def test_configs_that_pages_show_are_configs():
    shown = [block for page in PAGES for block in blocks(page) if block.language == "pbtxt"]
    assert len(shown) >= 2
    for block in shown:
        text_format.Parse(block.text, model_config_pb2.ModelConfig())
