"""The sentences of the tree: comments, string texts, and the prose of scripts and documents."""

import ast
import io
import os
import pathlib
import re
import tokenize

ROOT = pathlib.Path(os.environ.get("REPRISE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TOPS = ("runtime", "command_line", "server", "client", "tools", "tests", "examples", "proto")
HIDDEN = {"build", ".cache", ".git"}  # folders
SCRIPTS = (".py", ".sh", ".cmake", ".yml", ".yaml", ".toml", ".rs")


def sources():
    """Yields the sources of C++ and of protocols."""
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc", ".proto") and "build" not in path.parts:
                yield path


def scripts():
    """Yields the sources in Python and Rust, shell scripts, and files of CMake and YAML."""
    for path in sorted(ROOT.rglob("*")):
        if HIDDEN & set(path.relative_to(ROOT).parts) or not path.is_file():
            continue
        named = path.suffix in SCRIPTS or path.name in ("CMakeLists.txt", "Dockerfile")
        if named or not path.suffix and path.open("rb").read(2) == b"#!":
            yield path


def documents():
    """Yields the pages of Markdown."""
    for path in sorted(ROOT.rglob("*.md")):
        if not HIDDEN & set(path.relative_to(ROOT).parts):
            yield path


def paragraphs(lines):
    """Returns (line, text) of the paragraphs in a block of numbered lines."""
    joined = []
    for number, line in lines:
        if line and joined and joined[-1][1]:
            joined[-1] = joined[-1][0], joined[-1][1] + " " + line
        else:
            joined.append((number, line))
    return [(number, line) for number, line in joined if line]


def comments(text):
    """Yields (line, comment) of a source, the lines of a paragraph joined, in the order of their ends."""
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


# Comments, raw strings, characters and strings.
TOKENS = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<end>\w*)\(.*?\)(?P=end)"|'(?:\\[^'\n]+|[^'\\\n])'"""
                    r"""|"(?P<text>(?:[^"\\\n]|\\.)*)\"""", re.S)


def texts(text):
    """Yields (line, text, statement) of the string literals of two words or more: neighbours joined, no raw
    strings; `statement` is the code before the literal since the last one ended."""
    parts, line, end, statement = [], 1, 0, ""
    for token in [*TOKENS.finditer(text), None]:
        between = text[end:token.start() if token else None]
        ends = token is None or token["text"] is None and not token[0].startswith("/")
        if between.strip() or ends:
            joined = "".join(words for _, words in parts)
            if len(joined.split()) > 1:
                yield parts[0][0], joined, statement
            parts = []
        if token is None:
            return
        statement = re.split(r"[;{}]", statement + between)[-1]
        line += between.count("\n")
        if token["text"] is not None:
            parts.append((line, token["text"]))
        line += token[0].count("\n")
        end = token.end()


def tree_of(text):
    """Returns the syntax tree of a Python script, None for another script."""
    first = text.splitlines()[0] if text else ""
    if first.startswith("#!") and "python" not in first:
        return None
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def script_comments(text):
    """Yields (line, comment) of a script: lines after "#" or "//", and the docstrings of Python."""
    tree = tree_of(text)
    if tree is None:
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r"\s*(?:#|//)+ (.*)", line) or re.search(r"\s(?:#|//) (.*)", line)
            if found:
                yield number, found[1]
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! ")
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, " ".join(ast.get_docstring(node).split())


def prose(text):
    """Returns (line, text) of the paragraphs, items and rows of a document, without its blocks of code."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
    lines = []
    for number, line in enumerate((line.strip() for line in text.splitlines()), 1):
        if re.match(r"[|#*-]|\d+\. ", line):
            lines.append((number, ""))
        lines.append((number, line))
    return paragraphs(lines)


# A declaration of a function, without its template and qualifiers: a type, and a name in capitals and small
# letters, or a getter's. Calls, constants and variables do not match.
QUALIFIERS = re.compile(r"template <(?:[^<>]|<[^<>]*>)*> *|\[\[\w+\]\] *|HWY_\w+ +"
                        r"|(?:static|virtual|explicit|constexpr|inline) +")
FUNCTION = re.compile(
    r"(?!(?:return|else|new|throw|case|using|delete|goto|friend|co_\w+)\b)(?:(?:\w|::|[<>,&*\[\]]) ?)+ [*&]?(?:\w+::)*"
    r"(?:(?![A-Z_]+\()[A-Z]\w*\(|operator\W|~\w+\(|\w+\(\) (?:const|override|noexcept|=|\{))")


def function_comments(text):
    """Yields (line, comment) of the blocks of comments in front of functions."""
    lines, block = text.splitlines(), []
    for number, line in enumerate(lines):
        if re.match(r"\s*//", line):
            block.append((number + 1, line.strip().lstrip("/ ")))
            continue
        if block:
            code, before = " ".join(part.strip() for part in lines[number:number + 6]), None
            while code != before:
                before, code = code, QUALIFIERS.sub("", code, 1) if QUALIFIERS.match(code) else code
            if FUNCTION.match(re.sub(r"(?<=\w) ?<[^()]*?>(?=[ >:&*])", "", code)):
                yield block[0][0], " ".join(words for _, words in block)
        block = []


def function_docstrings(text):
    """Yields (line, docstring) of the functions of a Python script; tests are named by their outcome."""
    for node in ast.walk(tree_of(text) or ast.Module(body=[], type_ignores=[])):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and not node.name.startswith("test_"):
            yield node.body[0].lineno, ast.get_docstring(node)


def no_functions(_):
    """Returns the comments of functions in a text that has no functions."""
    return ()
