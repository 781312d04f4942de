"""The documents are true: links, flags, parameters, metrics and commands are those that there are."""

import re
import subprocess

import pytest

from testing import models
from testing.daemon import BUILD, SOURCE, Daemon, flags_of_reprised, reprise
from testing.metrics import Scrape

# Of the tree, but what is built or downloaded into it.
PAGES = sorted(path for path in SOURCE.rglob("*.md")
               if not {"build", ".cache", ".git"} & set(path.relative_to(SOURCE).parts))
CONFIGURATION = (SOURCE / "docs/configuration.md").read_text()
METRICS = (SOURCE / "docs/metrics.md").read_text()


def name_of(page):
    return str(page.relative_to(SOURCE))


def without_code(text):
    """`text` without code blocks and code in lines: what a reader sees of markup in them is no link."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def links(page):
    """(file, anchor) of each link of `page` that leads into this tree."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        yield (page.parent / path).resolve() if path else page, anchor


def anchors(page):
    """What headings are linked by, as GitHub makes it: small letters, hyphens for spaces, and no
    other signs; the second heading of a name gets `-1`."""
    found = []
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        double = found.count(slug)
        found.append(f"{slug}-{double}" if double else slug)
    return found


def table_rows(text):
    """Lines of tables that begin with a name."""
    return "\n".join(line for line in text.splitlines() if line.startswith("| `"))


def section(text, heading):
    """From `heading` to the next one of its level or above it."""
    level = len(heading.split()[0])
    return re.split(rf"^#{{1,{level}}} ", text.split(f"\n{heading}\n")[1], flags=re.M)[0]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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
    """The files and folders of this tree that `page` names in code, from the root. Words in capitals
    stand for a name of the reader's own."""
    tops = {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"build"}
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for code in re.findall(r"`([^`\n]+)`", text):
        for word in code.split():
            word = word.partition("#")[0].rstrip(".,;:")
            if word.split("/")[0] in tops and "/" in word and not re.search(r"\b[A-Z]{2,}\b|<", word):
                yield from braces(word)


def exists_in_tree(path):
    """A source may be named without its ending: "runtime/engine/model/model"."""
    return any(any(SOURCE.glob(path.rstrip("/") + ending)) for ending in ("", ".h", ".cc", ".py"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_that_pages_name_exist(page):
    assert [path for path in named_paths(page) if not exists_in_tree(path)] == []


def test_guides_name_many_paths():
    """The test above sees what the guides name: a row of their tables that has no path helps nobody."""
    assert len(set(named_paths(SOURCE / "CONTRIBUTING.md"))) > 60


def test_pages_are_found_from_readme():
    """All of docs/, and whatever else has a README, within a few links."""
    seen, new = set(), {SOURCE / "README.md"}
    while new:
        seen |= new
        new = {path for page in new for path, _ in links(page)
               if path.suffix == ".md" and path.exists()} - seen
    assert [name_of(page) for page in PAGES if page.parent == SOURCE / "docs"
            and page not in seen] == []
    assert len(seen) > 10


def test_flags_are_those_of_the_daemon():
    real = flags_of_reprised() - {"--help", "--version"}
    rows = table_rows(section(CONFIGURATION, "## Flags of reprised")).splitlines()
    named = "\n".join(row.split("|")[1] for row in rows)
    assert set(re.findall(r"--[a-z][a-z-]+", named)) == real


def test_parameters_are_those_of_the_server():
    source = (SOURCE / "server/config/model_parameters.cc").read_text()
    real = {name + rest for name, rest in re.findall(r'\{"(reprise\.[\w.]+)", "([^"]*)"', source)}
    rows = section(CONFIGURATION, "## config.pbtxt")
    assert set(re.findall(r"^\| `(reprise\.[^`]+)`", rows, re.M)) == real


def test_hints_are_those_of_the_server():
    source = (SOURCE / "server/config/config_hints.cc").read_text()
    words = dict(re.findall(r'string_view (k\w+) = "([^"]*)";', source))
    real = {(name + "*" if name.endswith(".") else name, words.get(said, said.strip('"')))
            for name, said in re.findall(r'\{"([^"]+)",\s*("[^"]*"|k\w+)\}', source)}
    rows = section(CONFIGURATION, "### Hints of Triton's configs")
    assert set(re.findall(r"^\| `([^`]+)` \| (.*) \|$", rows, re.M)) == real


def rows_of_members():
    """The table of folder_members.cc as docs have its rows."""
    source = (SOURCE / "server/hub/folder_members.cc").read_text()
    words = dict(re.findall(r'constexpr char (k\w+)\[\] =\s*"([^"]*)";', source))
    rows = []
    for file, member, use, values, says in re.findall(
            r'\{(k\w+), "([^"]+)", (k\w+),\s*((?:R"\(.*?\)")|(?:"[^"]*")),\s*'
            r'((?:"[^"]*"\s*)+|k\w+)\}', source):
        values = re.fullmatch(r'(?:R"\(|")(.*?)(?:\)"|")', values)[1]
        says = words.get(says) or "".join(re.findall(r'"([^"]*)"', says))
        only = "refused" if values == "[]" else f"only `{values}`"
        use = {"kRead": "read", "kUnread": "not read", "kOnly": only,
               "kOnlyAlone": f"{only} without tokenizer.json"}[use]
        name = "any other" if member == "*" else f"`{member}`"
        rows.append(f"| `{words[file]}` | {name} | {use} | {says} |")
    # Each row of the table was understood.
    assert len(rows) == len(re.findall(r"^    \{k\w+, \"", source, re.M)) > 100
    return rows


def test_members_of_folders_are_those_of_the_table():
    page = section((SOURCE / "docs/texts.md").read_text(), "### Members of a folder's files")
    said = [row for row in page.splitlines() if re.match(r"\| `[\w/.]+\.json` \|", row)]
    assert said == rows_of_members()


def test_classes_of_tokenizers_are_those_of_the_library():
    source = (SOURCE / "server/text/tokenizer_ffi/src/classes.rs").read_text()
    files = {"VOCAB_TXT": "`vocab.txt`", "VOCAB_AND_MERGES": "`vocab.json`",
             "SENTENCEPIECE": "a sentencepiece model"}
    real = {}
    for kind, name in re.findall(r'\((\w+), "(\w+)", Family::', source):
        real.setdefault(files[kind], []).append(name)
    page = section((SOURCE / "docs/texts.md").read_text(), "## From a folder to vectors")
    assert {file: re.search(rf"^\| {re.escape(file)} \| (\w+(?:, \w+)+) \|$", page, re.M)[1].split(", ")
            for file in real} == real


def test_reasons_of_a_compile_are_those_of_the_engine():
    source = (SOURCE / "runtime/engine/types/names.cc").read_text()
    body = source.split("CompileReasonName(CompileReason reason) {")[1].split("\n}")[0]
    rows = table_rows(section(METRICS, "### Reasons of a compile"))
    named = [name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert named == re.findall(r'return "(\w+)"', body)


@pytest.fixture(scope="module")
def scrape(module_repository):
    module_repository.add("bert", models.bert())
    with Daemon(module_repository) as daemon:
        return Scrape(daemon.metrics_url)


def test_metrics_are_those_of_a_scrape(scrape):
    named = set(re.findall(r"`(\w+?)(?:\{[^`]*\})?`", table_rows(METRICS)))
    families = set(re.findall(r"^# TYPE (\w+) ", scrape.text, re.M))
    ours = {f for f in families if f.startswith("reprise_")}
    assert ours - named == set()
    # Counted once a node falls back, and of models that are cut: not there before.
    assert {n for n in named if n.startswith("reprise_")} - ours <= {
        "reprise_reference_kernels_total", "reprise_eager_nodes_total",
        "reprise_eager_seconds_total"}


def commands(page):
    """Words of each call of `reprise` or `reprised` in the shell blocks of `page`."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = line.split(" #")[0].split()
            if words and re.fullmatch(r"(?:[\w./]*/)?reprised?", words[0]):
                yield words[0].rpartition("/")[2], words[1:]


def known_words(program, arguments):
    """What `--help` says of the command that `arguments` call."""
    if program == "reprised":
        return subprocess.run([BUILD / "reprised", "--help"], capture_output=True, text=True,
                              check=True).stdout
    command = arguments[:2] if arguments[:1] == ["store"] else arguments[:1]
    return reprise(*command, "--help")


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=name_of)
def test_commands_have_the_flags_that_they_are_shown_with(page):
    for program, arguments in commands(page):
        real = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", known_words(program, arguments)))
        shown = {word.split("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
        assert shown <= real, f"{program} {' '.join(arguments)}"


def test_the_table_of_operators_is_that_of_the_rows():
    """What docs/models.md says of each fact is what `reprise check --ops` counts and lists."""
    said = {}
    for row in section((SOURCE / "docs/models.md").read_text(), "### What is known of an operator").splitlines():
        cells = [cell.strip() for cell in row.strip("| ").split(" | ")]
        if len(cells) == 4 and re.fullmatch(r"\d+ of \d+", cells[1]):
            said[cells[0]] = (cells[1], cells[3])
    printed = reprise("check", "--ops")
    real = {name: (count, ops.strip()) for name, count, ops in re.findall(
        r"^missing (\w+): (\d+ of \d+); then [^\n]*\n((?:  [^\n]*\n)?)", printed, re.M)}
    assert set(said) == set(real) and len(real) == 6
    for fact, (count, ops) in real.items():
        assert said[fact][0] == count, fact
        if said[fact][1] != "see the command":
            assert said[fact][1] == ops, fact
    # The matrix has a line for each op, and a column for each fact.
    assert re.search(r"^Det +rule +last dims +last dims +fixed +- +fast$", printed, re.M)
