"""Comments are sentences that begin with their subject: what is left of other habits may only shrink.

`comment_habits.txt` says how many comments of each area still begin with "Of", "What" or a lower-case
preposition, or say "as long" or "so many" where "that long" or "that many" is meant. An area with more
than its number fails, and so does one with fewer, until its line is brought down:

    python3 tests/structure/test_comments.py           # writes the numbers, if there are no more in all
    python3 tests/structure/test_comments.py --list AREA    # the places

An area is a folder with all that lies in it, at most two deep.
"""

import collections
import os
import pathlib
import re
import sys

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


def comments(text):
    """The comments of a source, each of its lines joined: whole-line ones, then those behind code."""
    block = []
    for line in text.splitlines() + [""]:
        whole = re.match(r"\s*//+ ?(.*)", line)
        if whole:
            block.append(whole.group(1).strip())
            continue
        if block:
            yield from paragraphs(block)
            block = []
        behind = re.search(r"[;,{}()] +// (.*)$", line)
        if behind:
            yield behind.group(1).strip()


def paragraphs(lines):
    """Lines of a block, those of one paragraph joined."""
    joined = []
    for line in lines:
        if line and joined and joined[-1]:
            joined[-1] += " " + line
        else:
            joined.append(line)
    return [line for line in joined if line]


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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(listed(sys.argv[2:])))
    else:
        write_table()
