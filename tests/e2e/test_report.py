"""`reprise report` writes one HTML file with all compiles of a server, and their causes."""

import html.parser
import json
import re

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs

NAMES = ["input_ids", "attention_mask"]
PADDED = """parameters { key: "reprise.packing" value { string_value: "off" } }
parameters { key: "reprise.capture" value { string_value: "inline" } }
"""


class Page(html.parser.HTMLParser):
    """The rows of all tables, the texts of all folds, and whatever is asked of elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.folds, self.asked, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "link", "img", "iframe") or dict(attributes).get("src"):
            self.asked.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "pre":
            self.folds.append("")
        if tag not in ("meta", "i"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "i":
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        if self.open and self.open[-1] == "pre":
            self.folds[-1] += data


def test_a_report_has_captures_guards_padding_and_graphs_in_one_file(repository, rng, tmp_path):
    repository.add("bert", models.bert(), config=PADDED)
    repository.add("<other>", models.bert(hidden=16), config=PADDED)
    path = tmp_path / "report.html"
    with Daemon(repository) as daemon:
        for length in (60, 100):
            infer(daemon.client(), "bert", text_inputs(NAMES, 1, length, rng, 200))
        told = daemon.reprise("report", "--out", path)
        assert re.search(r"report.html: .* 2 models, 2 captures", told)
        text = path.read_text()
        told = json.loads(daemon.reprise("report", "--out", tmp_path / "again.html", "--json"))
        assert (told["models"], told["captures"]) == (2, 2)
        assert told["bytes"] == (tmp_path / "again.html").stat().st_size
        page = Page(text)
        missing = daemon.reprise("report", "bart", "--out", path, check=False)
        assert missing.returncode == 1 and "no model 'bart'" in missing.stderr
    assert page.open == [] and page.asked == []
    assert not re.search(r"https?://", text)
    captures = [row for row in page.rows if len(row) == 10 and row[2] in ("b1_s64", "b1_s128")]
    assert [(row[2], row[4]) for row in captures] == [("b1_s64", "first_request"),
                                                     ("b1_s128", "new_shape")]
    assert captures[1][5] == "b1_s64: sequence 64, needed 128"
    assert "1, at most" in captures[1][8] and "reprise.warmup" in captures[1][9]
    guards = [row for row in page.rows if row[:2] == ["sequence", "may be padded"]]
    assert guards and "input_ids" in guards[0][4]
    padding = [row for row in page.rows if row[0] == "sequence" and len(row) == 4]
    assert [row[1:3] for row in padding] == [["0", "0"], ["160", "32"]]  # <other> is the first by name
    assert any("MatMul" in fold or "Linear" in fold for fold in page.folds)
    assert "&lt;other&gt; version 1" in text and "<other>" not in text
