"""Comments, error texts, log lines, help and documents are in plain words.

The words of FORMS are hard to read, and a function's comment that begins with a word of NOUNS names a thing
where it should say what the function does. Each of them occurs fewer than MOST times in 10,000 words of each
kind of KINDS.

    python3 tests/structure/test_words.py                # how often each form is in each kind
    python3 tests/structure/test_words.py KIND [FORM]    # its places
"""

import collections
import re
import sys

import pytest
import sentences

# Words that a reader stumbles on; docs/style.md says which to write instead.
FORMS = {
    "behind": re.compile(r"\bbehind\b"),
    "that of": re.compile(r"\b(?:that|those) of\b"),
    "what": re.compile(r"\b[Ww]hat\b(?![^.]*\?)"),
    "person": re.compile(r"\b(?:[Ww]ho|[Ww]hoever|[Nn]obody|[Ss]omebody|[Ww]hom)\b"),
    "anew": re.compile(r"\banew\b"),
    "hangs on": re.compile(r"\bhangs? on\b"),
}
NOUNS = re.compile(r"(?:A|All|An|As|Both|By|Each|Empty|Equal|Every|False|How|Its|No|None|Nothing|Null|Of|One|Some|The|"
                   r"Those|True|Two|What|When|Where|Whether|Why|Zero|null|nullopt|nullptr)\b")
NO_VERB = "no verb"
MOST = 8  # of 10,000 words

LOGS = re.compile(r"[Ll]og_?\(|Write(?:Event|Of)?\(|->Note\(|\bNote\(|LogLine")
ERRORS = re.compile(r"Error\(|Failed\(|Refus\w*\(|Trouble")
HELPS = ("command_line/", "client/cli/", "tools/", "server/config/flags", "server/config/model_parameters")


def is_test(path):
    """Returns whether a source is a test's."""
    return path.relative_to(sentences.ROOT).parts[0] == "tests"


def of_tree():
    """Yields the sources that are no tests."""
    return (path for path in sentences.sources() if not is_test(path))


def of_helps():
    """Yields the sources of flags, parameters and commands."""
    return (path for path in of_tree() if str(path.relative_to(sentences.ROOT)).startswith(HELPS))


def texts_of(calls):
    """Returns a reader of the texts in statements with one of `calls`; None: of all texts."""
    return lambda text: ((line, words) for line, words, statement in sentences.texts(text)
                         if calls is None or calls.search(statement))


# The kinds of words: files, how their words are read, the comments of functions among them, the least number of
# words that there are.
KINDS = {
    "comments": (sentences.sources, sentences.comments, sentences.function_comments, 200_000),
    "texts": (of_tree, texts_of(None), sentences.no_functions, 25_000),
    "errors": (of_tree, texts_of(ERRORS), sentences.no_functions, 8_000),
    "logs": (of_tree, texts_of(LOGS), sentences.no_functions, 500),
    "helps": (of_helps, texts_of(None), sentences.no_functions, 8_000),
    "comments of tests": (lambda: filter(is_test, sentences.sources()), sentences.comments, sentences.no_functions,
                          20_000),
    "scripts": (sentences.scripts, sentences.script_comments, sentences.function_docstrings, 25_000),
    "documents": (sentences.documents, sentences.prose, sentences.no_functions, 60_000),
}


def forms(words):
    """Returns (form, excerpt) of each occurrence in `words`."""
    return [(name, words[max(0, hit.start() - 60):hit.end() + 60])
            for name, form in FORMS.items() for hit in form.finditer(words)]


def words_of(kind):
    """Returns (the number of words, [(form, place, excerpt)]) of a kind."""
    files, read, functions, _ = KINDS[kind]
    total, found = 0, []
    for path in files():
        text, name = path.read_text(errors="replace"), path.relative_to(sentences.ROOT)
        for line, words in read(text):
            total += len(words.split())
            found += [(form, f"{name}:{line}", excerpt) for form, excerpt in forms(words)]
        found += [(NO_VERB, f"{name}:{line}", words[:120]) for line, words in functions(text)
                  if NOUNS.match(words)]
    return total, found


def rates(total, found):
    """Returns how often each form occurs in 10,000 words."""
    counted = collections.Counter(form for form, *_ in found)
    return {form: round(10_000 * count / total, 1) for form, count in counted.items()}


def too_often(total, found):
    """Returns the rates of the forms that are too frequent."""
    return {form: rate for form, rate in rates(total, found).items() if rate >= MOST}


def test_string_texts_are_read_without_comments_and_raw_strings():
    text = 'Error("one "  // "not this"\n    "two", \'"\', R"(three four)", "five", 1\'000, "six \\"7\\"");'
    assert [read[:2] for read in sentences.texts(text)] == [(1, "one two"), (2, 'six \\"7\\"')]
    assert list(texts_of(ERRORS)(text + ' f("a b"); Log("c d");')) == [(1, "one two"), (2, 'six \\"7\\"')]
    assert list(texts_of(LOGS)(text + ' f("a b"); log(StrCat(x, "c d"));')) == [(2, "c d")]


def test_documents_are_read_without_code():
    text = "# One\ntwo\nthree\n```sh\nfour\n```\n| five |\n| six |\n- seven\n  eight\n"
    assert sentences.prose(text) == [(1, "# One two three"), (7, "| five |"), (8, "| six |"), (9, "- seven eight")]


def test_scripts_are_read_with_docstrings():
    assert list(sentences.script_comments('"""One\ntwo."""\nx = "#"  # three\n')) == [(3, "three"), (1, "One two.")]
    assert list(sentences.script_comments("#!/bin/sh\n# one\nrun  # two\n")) == [(2, "one"), (3, "two")]


@pytest.mark.parametrize("code, counts", [
    ("int64_t Size(const Shape& shape);", True),
    ("template <typename T, class U = A<T>>\n[[nodiscard]] absl::StatusOr<std::vector<T>> Of(T x) {", True),
    ("  static std::optional<std::pair<int, int>> Find() {", True),
    ("  const Tensor& value() const { return value_; }", True),
    ("Foo& operator=(const Foo&) = delete;", True),
    ("constexpr std::chrono::seconds kTime(2);", False),
    ("  std::vector<int> sizes(rank, 1);", False),
    ("  return Size(shape);", False),
    ("  Size(shape);", False),
    ("CHECK(x == y);", False),
    ("  int64_t size = Size(shape);", False),
    ("class Pool : public Base {", False),
])
def test_comments_of_functions_are_told_from_others(code, counts):
    found = list(sentences.function_comments("// The size.\n" + code + "\n"))
    assert found == ([(1, "The size.")] if counts else [])
    assert not list(sentences.function_comments("// The size.\n\n" + code + "\n"))


def test_forms_are_told_from_plain_words():
    def found(words):
        return [form for form, _ in forms(words)]
    assert found("What it takes is that of whoever asks.") == ["that of", "what", "person"]
    assert found("It hangs on sizes behind the cut, made anew.") == ["behind", "anew", "hangs on"]
    assert found("What is it? It depends on the sizes after the cut, made again.") == []
    assert NOUNS.match("Whether it fits.") and not NOUNS.match("Returns whether it fits.")
    assert not NOUNS.match("Adds one.") and not NOUNS.match("Nulls go.")
    assert too_often(10_000, [("what", "", "")] * 8 + [("anew", "", "")] * 7) == {"what": 8.0}


@pytest.mark.parametrize("kind", KINDS)
def test_hard_words_are_rare(kind):
    total, found = words_of(kind)
    frequent = too_often(total, found)
    assert total > KINDS[kind][3]
    assert not frequent, "\n".join([f"of 10,000 words of {kind}: {frequent}"] +
                                   [f"{place}: {form}: {excerpt}" for form, place, excerpt in found
                                    if form in frequent])


def main(kind=None, form=None):
    """Prints the rates of all kinds, or the places of one."""
    for name in KINDS if kind is None else ():
        total, found = words_of(name)
        print(f"{name}: {total} words;", ", ".join(f"{form} {rate}" for form, rate in rates(total, found).items()))
    for found, place, excerpt in words_of(kind)[1] if kind else ():
        if form in (None, found):
            print(f"{place}: {found}: {excerpt}")


if __name__ == "__main__":
    main(*sys.argv[1:])
