"""The pages of the documents: links, paths and pictures lead somewhere, and words are plain and the field's."""

import re
import subprocess
from xml.etree import ElementTree

import pytest

from testing import docs
from testing.daemon import BUILD, SOURCE, commands_of, reprise
from testing.docs import MANUAL, PAGES_OF_TREE, name_of, section, table_rows, without_code


def links(page):
    """(file, anchor) of each link of `page` that leads into this tree."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        yield (page.parent / path).resolve() if path else page, anchor


def anchors(page):
    """Returns the names that headings are linked by, as GitHub makes them: small letters, hyphens for spaces, and no
    other signs; the second heading of a name gets `-1`."""
    found = []
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        double = found.count(slug)
        found.append(f"{slug}-{double}" if double else slug)
    return found


@pytest.mark.parametrize("page", PAGES_OF_TREE, ids=name_of)
def test_links_lead_to_files_and_headings(page):
    broken = [f"{path}#{anchor}" for path, anchor in links(page)
              if not path.exists()
              or (anchor and (path.suffix != ".md" or anchor not in anchors(path)))]
    assert broken == []


def braces(path):
    """`path` with each word of its braces: "ops/{a,b}.h" is "ops/a.h" and "ops/b.h"."""
    match = re.search(r"\{([^{}]*)\}", path)
    if match is None:
        return [path]
    return [whole for word in match.group(1).split(",")
            for whole in braces(path[:match.start()] + word.strip() + path[match.end():])]


def named_paths(page):
    """Returns the files and folders of this tree that `page` names in code, from the root. Words in capitals
    stand for a name of the reader's own."""
    tops = {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"build"}
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for code in re.findall(r"`([^`\n]+)`", text):
        for word in code.split():
            word = word.partition("#")[0].rstrip(".,;:")
            if word.split("/")[0] in tops and "/" in word and not re.search(r"\b[A-Z]{2,}\b|<", word):
                yield from braces(word)


def exists_in_tree(path):
    """Returns whether a path exists; a source may lack its ending: "runtime/engine/model/model"."""
    return any(any(SOURCE.glob(path.rstrip("/") + ending)) for ending in ("", ".h", ".cc", ".py"))


@pytest.mark.parametrize("page", PAGES_OF_TREE, ids=name_of)
def test_paths_that_pages_name_exist(page):
    assert [path for path in named_paths(page) if not exists_in_tree(path)] == []


def test_guides_name_many_paths():
    """The test above sees the names in the guides: a row of their tables that has no path helps no reader."""
    assert len(set(named_paths(SOURCE / "CONTRIBUTING.md"))) > 60


def test_pages_are_found_from_readme():
    """All of docs/, and whatever else has a README, within a few links."""
    seen, new = set(), {SOURCE / "README.md"}
    while new:
        seen |= new
        new = {path for page in new for path, _ in links(page)
               if path.suffix == ".md" and path.exists()} - seen
    assert [name_of(page) for page in PAGES_OF_TREE if page.parent == SOURCE / "docs"
            and page not in seen] == []
    assert len(seen) > 10


def test_every_page_is_in_both_lists_of_pages():
    pages = {page.name for page in (SOURCE / "docs").glob("*.md")} - {"README.md"}
    rows = table_rows((SOURCE / "docs/README.md").read_text().replace("| [", "| `["))
    assert set(re.findall(r"^\| `\[([\w.]+)\]", rows, re.M)) == pages
    listed = section((SOURCE / "README.md").read_text(), "## Where everything is")
    assert set(re.findall(r"\[docs/([\w.]+)\]", listed)) == pages | {"README.md"}


def test_pictures_are_whole_and_shown():
    pictures = set((SOURCE / "docs").glob("*.svg"))
    shown = {path for page in docs.PAGES for path, _ in links(page) if path.suffix == ".svg"}
    assert shown == pictures and len(pictures) > 4
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg"), picture.name


# The field's terms, where a page says how it is here.
TERMS = {
    "docs/generation.md": ["KV cache", "paged attention", "continuous batching", "prefix caching",
                           "speculative decoding", "preemption"],
    "docs/recipes.md": ["autotuning", "constant folding", "graph break", "guard"],
    "docs/padding.md": ["padding mask", "valid length"],
    "docs/serving.md": ["load shedding"],
    "docs/configuration.md": ["load shedding", "autotuning", "speculative decoding", "KV cache"],
    "docs/models.md": ["graph break", "KV cache", "padding mask"],
    "docs/metrics.md": ["KV cache", "paged attention", "prefix caching", "speculative decoding", "preemption",
                        "graph break"],
    "docs/operations.md": ["autotuning", "prefix caching"],
    "docs/scaling.md": ["KV cache"],
    "docs/recompilation.md": ["graph break", "guard", "padding mask"],
    "docs/troubleshooting.md": ["load shedding"],
}


@pytest.mark.parametrize("page", sorted(TERMS))
def test_pages_name_the_terms_of_the_field(page):
    text = docs.squeezed((SOURCE / page).read_text()).lower()
    assert [term for term in TERMS[page] if term.lower() not in text] == []
    glossary = (SOURCE / "docs/README.md").read_text().lower()
    assert [term for term in TERMS[page] if term.lower() not in glossary] == []


# Words that a stranger reads twice; docs/style.md says which to write instead, and quotes them.
HARD_WORDS = re.compile(r"\b(behind|that of|anew|hangs? on|within as long|whoever|somebody|nobody)\b", re.I)


@pytest.mark.parametrize("page", [page for page in MANUAL if page.name != "style.md"], ids=name_of)
def test_pages_are_in_plain_words(page):
    text = docs.squeezed(without_code(page.read_text()))
    assert [text[max(0, m.start() - 30):m.end() + 20] for m in HARD_WORDS.finditer(text)] == []


def test_help_is_in_plain_words():
    texts = [subprocess.run([BUILD / "reprised", "--help"], capture_output=True, text=True,
                            check=True).stdout]
    names = commands_of()
    texts += [reprise(name, "--help") for name in names]
    parameters = (SOURCE / "server/config/model_parameters.cc").read_text()
    texts += ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', parameters.split("kParameters[] = {")[1]))]
    hard = [text[max(0, m.start() - 40):m.end() + 20] for text in map(docs.squeezed, texts)
            for m in HARD_WORDS.finditer(text)]
    assert hard == [] and len(texts) > 15


def test_benchmarks_build_what_they_run():
    """After deploy/demo a build folder lacks most programs: each `run` builds its own, and README names one command."""
    for run in (SOURCE / "tests/bench").glob("*/run"):
        text = run.read_text()
        if "build/release" in text or "Builds release" in text:
            assert "build release -- " in text and "Builds release" in text, run
    target = re.search(r"add_custom_target\(benchmarks DEPENDS ([^)]*)\)", (SOURCE / "tests/bench/CMakeLists.txt").read_text())
    programs = re.findall(r"add_executable\((\w+)", (SOURCE / "tests/bench/CMakeLists.txt").read_text())
    assert sorted([*programs, "reprised", "reprise"]) == sorted(target[1].split())
    assert "--target benchmarks" in (SOURCE / "tests/bench/README.md").read_text()
