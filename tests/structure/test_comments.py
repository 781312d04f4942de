"""Comments, error texts and documents are plain sentences.

Two tests count. `comment_habits.txt` says how many comments of each area still begin with "Of", "What"
or a lower-case preposition, or say "as long" or "so many" where "that long" or "that many" is meant. An
area with more than its number fails, and so does one with fewer, until its line is brought down. An area
is a folder with all that lies in it, at most two deep.

The words of FORMS are hard to read: each occurs fewer than MOST times in 10,000 words of the comments of
all sources together, and of their string texts, of the comments of tests, and of the documents.

    python3 tests/structure/test_comments.py           # writes the habits, if there are no more in all
    python3 tests/structure/test_comments.py --list AREA          # the places of habits
    python3 tests/structure/test_comments.py --words              # how often each form is in each kind
    python3 tests/structure/test_comments.py --words KIND [FORM]  # its places
"""

import collections
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("REPRISE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TABLE = pathlib.Path(__file__).with_name("comment_habits.txt")
TOPS = ("runtime", "command_line", "server", "client", "tools", "tests", "examples", "proto")

PREPOSITIONS = ("about after against along among before behind beside between beyond by for from in "
                "into of on over since through to under until with without").split()
BEGINNINGS = {
    "begins with Of": re.compile(r"Of (?!course)"),
    "begins with What": re.compile(r"What (?!.*\?)"),
    "begins with a lower-case preposition": re.compile(
        rf"(?:{'|'.join(PREPOSITIONS)}|at(?! least| most)) "),
}
# "as long as it lives" and "so many that" compare; "within as long" and "so many launches" do not.
WITHIN = {
    "as long": re.compile(r"\bas (?:long|many|much|large|often)\b(?!(?:\W+\w+){0,6}\W+as\b)"),
    "so many": re.compile(r"\bso (?:many|much|long)\b(?!(?:\W+\w+){0,8}\W+(?:that|as)\b)"),
}
# Words that a reader stumbles on; docs/style.md says which to write instead.
FORMS = {
    "behind": re.compile(r"\bbehind\b"),
    "that of": re.compile(r"\b(?:that|those) of\b"),
    "what": re.compile(r"\b[Ww]hat\b(?![^.]*\?)"),
    "person": re.compile(r"\b(?:[Ww]ho|[Ww]hoever|[Nn]obody|[Ss]omebody|[Ww]hom)\b"),
    "anew": re.compile(r"\banew\b"),
    "hangs on": re.compile(r"\bhangs? on\b"),
}
MOST = 8  # of 10,000 words


def numbered_comments(text):
    """(line, comment) of a source, the lines of a paragraph joined, in the order of their ends."""
    block = []
    for number, line in enumerate(text.splitlines() + [""], 1):
        whole = re.match(r"\s*//+ ?(.*)", line)
        if whole:
            block.append((number, whole.group(1).strip()))
            continue
        yield from paragraphs(block)
        block = []
        trailing = re.search(r"[;,{}()] +// (.*)$", line)
        if trailing:
            yield number, trailing.group(1).strip()


def paragraphs(lines):
    """(line, text) of the paragraphs in a block of numbered lines."""
    joined = []
    for number, line in lines:
        if line and joined and joined[-1][1]:
            joined[-1] = joined[-1][0], joined[-1][1] + " " + line
        else:
            joined.append((number, line))
    return [(number, line) for number, line in joined if line]


def comments(text):
    """The comments of a source, the lines of a paragraph joined."""
    return [comment for _, comment in numbered_comments(text)]


# Comments, raw strings, characters and strings.
TOKENS = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<end>\w*)\(.*?\)(?P=end)"|'(?:\\[^'\n]+|[^'\\\n])'"""
                    r"""|"(?P<text>(?:[^"\\\n]|\\.)*)\"""", re.S)


def numbered_texts(text):
    """(line, text) of the string literals of two words or more: neighbours joined, no raw strings."""
    parts, line, end = [], 1, 0
    for token in [*TOKENS.finditer(text), None]:
        between = text[end:token.start() if token else None]
        ends = token is None or token["text"] is None and not token[0].startswith("/")
        if between.strip() or ends:
            joined = "".join(words for _, words in parts)
            if len(joined.split()) > 1:
                yield parts[0][0], joined
            parts = []
        if token is None:
            return
        line += between.count("\n")
        if token["text"] is not None:
            parts.append((line, token["text"]))
        line += token[0].count("\n")
        end = token.end()


def numbered_prose(text):
    """(line, text) of the paragraphs, items and rows of a document, without its blocks of code."""
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
    lines = []
    for number, line in enumerate((line.strip() for line in prose.splitlines()), 1):
        if re.match(r"[|#*-]|\d+\. ", line):
            lines.append((number, ""))
        lines.append((number, line))
    return paragraphs(lines)


def habits(comment):
    """The habits of one comment. A sentence inside it counts too where it begins with Of."""
    sentences = re.split(r"(?<=[.;:]) +(?=[A-Z])", comment)
    found = [name for name, form in BEGINNINGS.items()
             for sentence in sentences[:None if name == "begins with Of" else 1]
             if form.match(sentence)]
    return found + [name for name, form in WITHIN.items() for _ in form.findall(comment)]


def sources():
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc", ".proto") and "build" not in path.parts:
                yield path


def documents():
    for path in sorted(ROOT.rglob("*.md")):
        if not {"build", ".cache", ".git"} & set(path.relative_to(ROOT).parts):
            yield path


def is_test(path):
    return path.relative_to(ROOT).parts[0] == "tests"


# The kinds of words: files, and how their words are read.
KINDS = {
    "comments": (lambda: (path for path in sources() if not is_test(path)), numbered_comments),
    "texts": (lambda: (path for path in sources() if not is_test(path)), numbered_texts),
    "comments of tests": (lambda: filter(is_test, sources()), numbered_comments),
    "documents": (documents, numbered_prose),
}


def forms(words):
    """(form, excerpt) of each occurrence in `words`."""
    return [(name, words[max(0, hit.start() - 60):hit.end() + 60])
            for name, form in FORMS.items() for hit in form.finditer(words)]


def words_of(kind):
    """(the number of words, [(form, place, excerpt)]) of a kind."""
    files, read = KINDS[kind]
    total, found = 0, []
    for path in files():
        for line, words in read(path.read_text(errors="replace")):
            total += len(words.split())
            place = f"{path.relative_to(ROOT)}:{line}"
            found += [(form, place, excerpt) for form, excerpt in forms(words)]
    return total, found


def too_often(total, found):
    """How often each form that is too frequent occurs in 10,000 words."""
    counted = collections.Counter(form for form, *_ in found)
    rates = {form: round(10_000 * count / total, 1) for form, count in counted.items()}
    return {form: rate for form, rate in rates.items() if rate >= MOST}


def places():
    """(area, file, habit, comment) of every deviation."""
    for path in sources():
        name = path.relative_to(ROOT)
        for comment in comments(path.read_text(errors="replace")):
            for habit in habits(comment):
                yield "/".join(name.parent.parts[:2]), name, habit, comment


def counts():
    return dict(sorted(collections.Counter(area for area, *_ in places()).items()))


def table():
    rows = (line.split() for line in TABLE.read_text().splitlines() if line and line[0] != "#")
    return {area: int(count) for count, area in rows}


def test_the_habits_are_told_from_sentences():
    assert habits("Of the last look.") == ["begins with Of"]
    assert habits("What the pipeline tells.") == ["begins with What"]
    assert habits("What is it?") == [] and habits("Of course it does.") == []
    assert habits("by axis label") == ["begins with a lower-case preposition"]
    assert habits("Lives as long as the model.") == [] and habits("So many that it waits.") == []
    assert habits("It is kept for as long.") == ["as long"]
    assert habits("Room for so many operands.") == ["so many"]
    assert habits("The key of a recipe. Of a variant it is another one.") == ["begins with Of"]


def test_comments_are_read_line_by_line_and_behind_code():
    text = "// One\n// two.\n//\n// Of three.\nint a;  // by four\nchar b[] = \"// no\";\n"
    assert list(comments(text)) == ["One two.", "Of three.", "by four"]


def test_string_texts_are_read_without_comments_and_raw_strings():
    text = 'Error("one "  // "not this"\n    "two", \'"\', R"(three four)", "five", 1\'000, "six \\"7\\"");'
    assert list(numbered_texts(text)) == [(1, "one two"), (2, 'six \\"7\\"')]


def test_documents_are_read_without_code():
    text = "# One\ntwo\nthree\n```sh\nfour\n```\n| five |\n| six |\n- seven\n  eight\n"
    assert numbered_prose(text) == [(1, "# One two three"), (7, "| five |"), (8, "| six |"), (9, "- seven eight")]


def test_forms_are_told_from_plain_words():
    def found(words):
        return [form for form, _ in forms(words)]
    assert found("What it takes is that of whoever asks.") == ["that of", "what", "person"]
    assert found("It hangs on sizes behind the cut, made anew.") == ["behind", "anew", "hangs on"]
    assert found("What is it? It depends on the sizes after the cut, made again.") == []
    assert too_often(10_000, [("what", "", "")] * 8 + [("anew", "", "")] * 7) == {"what": 8.0}


@pytest.mark.parametrize("kind", KINDS)
def test_hard_words_are_rare(kind):
    total, found = words_of(kind)
    rates = too_often(total, found)
    assert total > 20_000
    assert not rates, "\n".join([f"of 10,000 words of {kind}: {rates}"] +
                                [f"{place}: {form}: {excerpt}" for form, place, excerpt in found
                                 if form in rates])


def listed(areas):
    return [f"{path}: {habit}: {comment[:100]}" for area, path, habit, comment in places()
            if area in areas]


def test_no_area_has_more_of_the_old_habits_than_its_number():
    known, now = table(), counts()
    grown = [area for area in now if now[area] > known.get(area, 0)]
    told = [f"{area}: {now[area]}, not {known.get(area, 0)}" for area in grown]
    assert not grown, "\n".join(told + listed(grown))
    shrunk = {area: now.get(area, 0) for area in known if now.get(area, 0) < known[area]}
    assert not shrunk, f"well done; bring {TABLE.name} down: python3 {__file__}"


def write_table():
    now = counts()
    if TABLE.exists() and sum(now.values()) > sum(table().values()):
        raise SystemExit(f"{sum(now.values())} are more than {sum(table().values())} before")
    TABLE.write_text("# Comments of each area with the habits that test_comments.py names; only "
                     "downwards.\n" + "".join(f"{count:4} {area}\n" for area, count in now.items()))
    print(f"{sum(now.values())} in {len(now)} areas")


def print_words(kind=None, form=None):
    if kind is None:
        for name in KINDS:
            total, found = words_of(name)
            counted = collections.Counter(form for form, *_ in found)
            print(f"{name}: {total} words;",
                  ", ".join(f"{form} {10_000 * counted[form] / total:.1f}" for form in FORMS))
        return
    for found, place, excerpt in words_of(kind)[1]:
        if form in (None, found):
            print(f"{place}: {found}: {excerpt}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--words"]:
        print_words(*sys.argv[2:])
    elif sys.argv[1:2] == ["--list"]:
        print("\n".join(listed(sys.argv[2:])))
    else:
        write_table()
