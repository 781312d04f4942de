"""The documents are true: flags, parameters, metrics, routes and commands are the real ones.

Tables are held to the lists in the code both ways; names elsewhere in a page must be real names. Pages by
themselves are the matter of test_doc_pages.py, the effects of blocks of commands of test_doc_commands.py."""

import json
import re
import subprocess
import urllib.request

import pytest

from testing import models
from testing import docs
from testing.daemon import (BUILD, SOURCE, Daemon, commands_of, flags_of_reprised, reprise,
                            run_reprised)
from testing.docs import MANUAL, name_of, section, table_rows
from testing.metrics import Scrape

CONFIGURATION = (SOURCE / "docs/configuration.md").read_text()
METRICS = (SOURCE / "docs/metrics.md").read_text()
SERVING = (SOURCE / "docs/serving.md").read_text()


def test_flags_are_those_of_the_daemon():
    real = flags_of_reprised() - {"--help", "--version"}
    rows = table_rows(section(CONFIGURATION, "## Flags of reprised")).splitlines()
    named = "\n".join(row.split("|")[1] for row in rows)
    assert set(re.findall(r"--[a-z][a-z0-9-]+", named)) == real


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
    """Returns the table of folder_members.cc as docs have its rows."""
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
    body = source.split("kCompileReasons[kNumCompileReasons] = {")[1].split("}")[0]
    rows = table_rows(section(METRICS, "### Reasons of a compile"))
    named = [name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert named == re.findall(r'"(\w+)"', body)


@pytest.fixture(scope="module")
def running(module_repository):
    """Starts a daemon with one model: its scrape, and its routes."""
    module_repository.add("bert", models.bert())
    with Daemon(module_repository) as daemon:
        return Scrape(daemon.metrics_url), described_routes(daemon)


@pytest.fixture
def scrape(running):
    return running[0]


@pytest.fixture
def routes(running):
    return running[1]


# Not there before a node falls back, a model is cut, or an answer is computed again.
LATER = {"reprise_reference_kernels_total", "reprise_eager_nodes_total", "reprise_eager_seconds_total",
         "reprise_audited_answers_total"}


def test_metrics_are_those_of_a_scrape(scrape):
    named = set(re.findall(r"`(\w+?)(?:\{[^`]*\})?`", table_rows(METRICS)))
    families = set(re.findall(r"^# TYPE (\w+) ", scrape.text, re.M))
    ours = {f for f in families if f.startswith("reprise_")}
    assert ours - named == set()
    assert {n for n in named if n.startswith("reprise_")} - ours <= LATER


def commands(page):
    """Words of each call of `reprise` or `reprised` in the shell blocks of `page`."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = line.split(" #")[0].split()
            if words and re.fullmatch(r"(?:[\w./]*/)?reprised?", words[0]):
                yield words[0].rpartition("/")[2], words[1:]


def known_words(program, arguments):
    """Returns the `--help` of the command that `arguments` call."""
    if program == "reprised":
        return subprocess.run([BUILD / "reprised", "--help"], capture_output=True, text=True,
                              check=True).stdout
    command = arguments[:2] if arguments[:1] == ["store"] else arguments[:1]
    return reprise(*command, "--help")


@pytest.mark.parametrize("page", [page for page in docs.PAGES_OF_TREE if any(commands(page))], ids=name_of)
def test_commands_have_the_flags_that_they_are_shown_with(page):
    for program, arguments in commands(page):
        real = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", known_words(program, arguments)))
        shown = {word.split("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
        assert shown <= real, f"{program} {' '.join(arguments)}"


def test_the_table_of_operators_is_that_of_the_rows():
    """Docs/models.md says of each fact the same as `reprise check --ops` counts and lists."""
    said = {}
    for row in section((SOURCE / "docs/models.md").read_text(), "### Facts of an operator").splitlines():
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
    assert re.search(r"^Det +map +last dims +last dims +fixed +- +fast$", printed, re.M)


def defaults_of_flags():
    """Returns the default of each flag of the daemon that its manual page names, by flag."""
    page = run_reprised("--man").stdout.replace("\\-", "-")
    return dict(re.findall(r"^\\fB(--[a-z][\w-]*)\\fR.*\n.*[(;] ?default ([^;)]+)[;)]", page, re.M))


def test_defaults_of_flags_are_those_of_the_daemon():
    real, said = defaults_of_flags(), {}
    for row in table_rows(section(CONFIGURATION, "## Flags of reprised")).splitlines():
        names, default = row.split(" | ")[:2]
        flags = re.findall(r"--[a-z][\w-]+", names)
        values = [value.strip("` ") for value in default.split(",")]
        said.update(zip(flags, values if len(flags) == len(values) else values * len(flags)))
    assert len(real) > 25
    # A 0 that means a choice of the daemon's own may be said in words.
    wrong = {flag: (said[flag], value) for flag, value in real.items() if said[flag] != value
             and not (value in ("0", "") and not re.search(r"\d", said[flag]))}
    assert wrong == {}


def test_commands_are_those_of_the_command_line():
    cli = (SOURCE / "docs/cli.md").read_text()
    named = re.findall(r"^\| `([\w-]+)`", section(cli, "## All commands"), re.M)
    commands = commands_of()
    assert sorted(named) == sorted(commands)


def described_routes(daemon):
    """METHOD, path and tag of each route that /openapi.json describes, which a unit test holds to the router's
    table; second spellings, with a version or below a model's own path, are left out."""
    with urllib.request.urlopen(f"{daemon.http_url}/openapi.json", timeout=30) as answer:
        paths = json.load(answer)["paths"]
    return {(method.upper(), path, operation["tags"][0]) for path, operations in paths.items()
            for method, operation in operations.items()
            if "/versions/" not in path and not path.startswith("/models/")}


def test_routes_are_those_of_the_server(routes):
    named = set()
    for row in table_rows(section(SERVING, "### HTTP")).splitlines():
        paths, methods = row.split(" | ")[:2]
        before = ""
        for path in re.findall(r"`([^`]+)`", paths):
            # ".../unload" follows the path before it.
            path = path.replace("...", before.rpartition("/")[0]) if path.startswith("...") else path
            named |= {(method, path) for method in methods.split(", ")}
            before = path
    cuda = {(method, path) for method, path in named if path.startswith("/v2/cudasharedmemory")}
    real = {(method, path) for method, path, tag in routes if tag != "Texts"}
    assert cuda and named - cuda == {route for route in real if not route[1].startswith("/v2/cudasharedmemory")}


def test_calls_of_grpc_are_those_of_the_server():
    real = {}
    table = (SOURCE / "server/access/right_table.cc").read_text()
    for service, call in re.findall(r'\{"/([\w.]+)/(\w*)", Right', table):
        real.setdefault(service, set()).update({call} - {""})
    said = {}
    for row in table_rows(section(SERVING, "### gRPC")).splitlines():
        services, calls = row.strip("| ").split(" | ")
        for service in re.findall(r"`([\w.]+)`", services):
            said[service] = set(re.findall(r"`(\w+)`", calls))
    assert said == real and len(real) > 4


def test_paths_of_texts_are_those_of_the_server(routes):
    real = {path for _, path, tag in routes if tag == "Texts"}
    named = section((SOURCE / "docs/texts.md").read_text(), "## Paths")
    paths = {path.split()[-1] for path in re.findall(r"`((?:GET |POST )?/[^` ]*)`", named)}
    assert len(real) > 15
    # Below a model's own path they are there once more.
    assert paths - {"/models/NAME", "/v1"} == real


def test_request_parameters_are_those_of_the_server():
    source = (SOURCE / "server/protocol/request_parameters.cc").read_text()
    rows = table_rows(section(SERVING, "## Request parameters"))
    named = {name for row in rows.splitlines() for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}
    header = (SOURCE / "server/protocol/request_parameters.h").read_text()
    constants = dict(re.findall(r'constexpr char (k\w+)\[\] = "([\w.]+)"', header))
    read = set(re.findall(r'name == "([\w.]+)"', source))
    read |= {constants[name] for name in re.findall(r"name == (k\w+)", source) if name in constants}
    assert named == read and len(named) > 5


def response_parameters():
    return set(re.findall(r'"(reprise\.\w+)"', (SOURCE / "server/protocol/answers.cc").read_text()))


def test_response_parameters_are_those_of_the_server():
    rows = section(SERVING, "## Response parameters")
    named = {name for row in table_rows(rows).splitlines()
             for name in re.findall(r"`(reprise\.\w+)`", row.split("|")[1])}
    assert named - {"reprise.capture"} == response_parameters() - {"reprise.capture"}


def test_parameters_of_generation_are_those_of_the_server():
    source = (SOURCE / "server/generate/sampling_parameters.cc").read_text()
    real = set(re.findall(r'^    \{"(\w+)",', source, re.M))
    rows = table_rows(section((SOURCE / "docs/generation.md").read_text(), "## Asking"))
    named = {name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    # The parameters that Triton's clients send by themselves.
    assert named == real - {"stream", "triton_enable_empty_final_response"}


def test_errors_are_those_of_the_server():
    source = (SOURCE / "server/wire/error_table.cc").read_text()
    real = set(re.findall(r'"([A-Z_]+)", \d+, (\d+)\}', source)) - {("OK", "200")}
    rows = re.findall(r"^\| ([A-Z_]+) \| (\d+) \|", section(SERVING, "## Errors"), re.M)
    assert set(rows) == real and len(real) > 10


def test_rights_and_limits_are_those_of_keys():
    text = re.sub(r"^```.*?^```", "", (SOURCE / "docs/operations.md").read_text(), flags=re.M | re.S)
    operations = section(text, "## Keys")
    names = re.search(r"kNames\[\] = \{([^}]*)\}",
                      (SOURCE / "server/access/right_table.cc").read_text())[1]
    limits = re.findall(r'name == "(\w+)"', (SOURCE / "server/access/key_file.cc").read_text())
    rows = table_rows(operations).splitlines()
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == (set(re.findall(r'"(\w+)"', names)) | set(limits)) - {"none"}


def code_of(page):
    """Returns the code in lines and in blocks of a page, with the language of each block."""
    for block in docs.blocks(page):
        yield block.text
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    if page == docs.OF_OTHERS:
        text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.M)
    yield from re.findall(r"`([^`\n]+)`", text)


# Programs whose flags are not ours.
FOREIGN = re.compile(r"\b(docker|kubectl|cmake|ctest|curl|cp|mkdir|install|systemctl|openssl|git|perf|hf|yolo|optimum-cli)\b")


@pytest.fixture(scope="module")
def known_flags():
    """Returns the flags of the daemon, of all commands, and of the scripts of this tree."""
    known = flags_of_reprised()
    names = commands_of()
    stores = commands_of("store")
    for command in [*([name] for name in names), *(["store", name] for name in stores)]:
        known |= set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", reprise(*command, "--help")))
    scripts = [*(SOURCE / "tests/bench").rglob("*.py"), *(SOURCE / "tests/bench").rglob("run"),
               SOURCE / "tests/run", SOURCE / "deploy/demo", SOURCE / "tools/tidy",
               SOURCE / "tools/format", *(SOURCE / "tests/bench").rglob("*.cc")]
    for script in scripts:
        known |= set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", script.read_text(errors="replace")))
    return known


@pytest.mark.parametrize("page", MANUAL, ids=name_of)
def test_flags_that_pages_name_are_there(page, known_flags):
    named = set()
    for code in code_of(page):
        for line in code.splitlines():
            if not FOREIGN.search(line):
                named |= set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", line))
    assert named - known_flags == set()


@pytest.mark.parametrize("page", MANUAL, ids=name_of)
def test_metrics_that_pages_name_are_there(page, scrape):
    families = set(re.findall(r"^# TYPE (\w+) ", scrape.text, re.M)) | LATER
    known = families | {f"{name}_{end}" for name in families for end in ("bucket", "count", "sum")}
    named = {name for code in code_of(page) for name in re.findall(r"\b(reprise_\w+)(?![\w./])", code)}
    assert named - known == set()


@pytest.mark.parametrize("page", MANUAL, ids=name_of)
def test_parameters_that_pages_name_are_there(page):
    source = (SOURCE / "server/config/model_parameters.cc").read_text()
    real = {name.rstrip(".") for name, _ in re.findall(r'\{"(reprise\.[\w.]+)", "([^"]*)"', source)}
    real |= response_parameters() | {"reprise.waited", "reprise.on_miss", "reprise.log_level"}
    # Ops of our own have a capital.
    named = {name for code in code_of(page)
             for name in re.findall(r"\breprise\.[a-z]\w*(?:\.[a-z]\w*)?", code)}
    named = {name for name in named
             if not re.fullmatch(r"reprise\.(v1\b.*|h|cmake|yaml|json|service|md|fish|1)", name)}
    unknown = {name for name in named
               if name not in real and name.rpartition(".")[0] not in real}
    assert unknown == set()
