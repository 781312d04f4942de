"""Comments are sentences with a subject.

No comment begins with "Of", "What" or a lower-case preposition, or says "as long" or "so many" where "that
long" or "that many" is meant.
"""

import re

import sentences

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


def habits(comment):
    """Returns the habits of one comment. A sentence inside it counts too where it begins with Of."""
    parts = re.split(r"(?<=[.;:]) +(?=[A-Z])", comment)
    found = [name for name, form in BEGINNINGS.items()
             for sentence in parts[:None if name == "begins with Of" else 1]
             if form.match(sentence)]
    return found + [name for name, form in WITHIN.items() for _ in form.findall(comment)]


def test_the_habits_are_told_from_sentences():
    assert habits("Of the last look.") == ["begins with Of"]
    assert habits("What the pipeline tells.") == ["begins with What"]
    assert habits("What is it?") == [] and habits("Of course it does.") == []
    assert habits("by axis label") == ["begins with a lower-case preposition"]
    assert habits("Lives as long as the model.") == [] and habits("So many that it waits.") == []
    assert habits("It is kept for as long.") == ["as long"]
    assert habits("Room for so many operands.") == ["so many"]
    assert habits("The key of a recipe. Of a variant it is another one.") == ["begins with Of"]


def test_comments_are_read_line_by_line_and_after_code():
    text = "// One\n// two.\n//\n// Of three.\nint a;  // by four\nchar b[] = \"// no\";\n"
    assert [comment for _, comment in sentences.comments(text)] == ["One two.", "Of three.", "by four"]


def test_no_comment_has_a_habit():
    read, found = 0, []
    for path in sentences.sources():
        for line, comment in sentences.comments(path.read_text(errors="replace")):
            read += 1
            found += [f"{path.relative_to(sentences.ROOT)}:{line}: {habit}: {comment[:100]}" for habit in habits(comment)]
    assert read > 20_000 and not found, "\n".join(found)
