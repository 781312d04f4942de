"""`reprise chat` as a person has it: on a terminal, with Ctrl-C, tools and schemas."""

import json
import os
import pty
import select
import subprocess
import time

import pytest
from tokenizers import AddedToken

from testing import chats
from testing import decoders as tiny
from testing.daemon import BUILD, Daemon

CTRL_C, CTRL_D = "\x03", "\x04"
CALL = '<tool_call>{"name": "get_it", "arguments": {"place": "here"}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "get_it", "description": "d", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}
SCHEMA = {"type": "object", "properties": {"blue": {"type": "boolean"}}, "required": ["blue"],
          "additionalProperties": False}


class Terminal:
    """A program on a terminal of its own, as a person has it."""

    def __init__(self, *command, wait_s=60):
        self._command, self._wait_s = [str(one) for one in command], wait_s
        self.text = ""  # all that was shown

    def __enter__(self):
        self._ours, theirs = pty.openpty()
        # `setsid --ctty` makes the terminal the controlling one: Ctrl-C becomes a signal there.
        self.process = subprocess.Popen(["setsid", "--ctty", "--wait", *self._command],
                                        stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            os.write(self._ours, b"\x1c")  # SIGQUIT, to all that it is the terminal of
            self.process.wait(30)
        os.close(self._ours)

    def write(self, text):
        os.write(self._ours, text.encode())

    def _read(self, until):
        """Takes more output; returns False where nothing more comes."""
        left = until - time.monotonic()
        if left <= 0 or not select.select([self._ours], [], [], left)[0]:
            return False
        try:
            part = os.read(self._ours, 1 << 16)
        except OSError:  # EIO: the last one that had the terminal has ended
            return False
        self.text += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)

    def wait_for(self, found, after=0):
        """Waits until `found`, a text or a question about the text, holds of the output from `after` on."""
        holds = (lambda text: found in text) if isinstance(found, str) else found
        until = time.monotonic() + self._wait_s
        while not holds(self.text[after:]):
            assert self._read(until), f"{found!r} was not shown: {self.text[after:]!r}"
        return self.text[after:]

    def wait(self):
        """Waits for the end; the exit code."""
        until = time.monotonic() + self._wait_s
        while self._read(until):
            pass
        return self.process.wait(max(1, until - time.monotonic()))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """`talks` goes on and on; `calls` answers whatever it hears with one call."""
    root = tmp_path_factory.mktemp("terminal")
    for name, context in (("talks", 1 << 16), ("calls", 2048)):
        chats.write(root / name, context=context)
    made = chats.tokenizer()
    made.add_tokens([AddedToken(CALL, special=False)])
    made.save(str(root / "calls" / "tokenizer.json"))
    end = made.token_to_id("<|im_end|>")
    letter = made.token_to_id("a")
    for name, followers in (("talks", {-1: letter}),
                            ("calls", {-1: end, made.encode("\n").ids[0]: made.token_to_id(CALL)})):
        context = 1 << 16 if name == "talks" else 2048
        model = tiny.make("gqa", vocabulary=made.get_vocab_size(), context=context)
        (root / name / "1" / "model.onnx").write_bytes(tiny.with_followers(model, followers).SerializeToString())
    with Daemon(root) as daemon:
        yield root, daemon


def place(models, name, where):
    root, daemon = models
    return [root / name / "1" / "model.onnx"] if where == "here" else [name, "--server", daemon.http_url]


@pytest.mark.parametrize("where", ["here", "server"])
def test_ctrl_c_ends_the_answer_and_not_the_chat(models, where):
    with Terminal(BUILD / "reprise", "chat", *place(models, "talks", where), "--temperature", "0") as terminal:
        terminal.wait_for(">>> ")
        terminal.write("half a line" + CTRL_C)  # is dropped
        for _ in range(2):
            terminal.wait_for(">>> ", len(terminal.text) - 4)
            asked = len(terminal.text)
            terminal.write("talk\n")
            terminal.wait_for("a" * 40, asked)
            terminal.write(CTRL_C)
            shown = terminal.wait_for(lambda text: "the first after" in text and text.endswith(">>> "), asked)
            made = int(shown.split("[")[1].split(" tokens")[0])
            assert made >= 40 and shown.count("a" * 40) >= 1 and made < (1 << 16) - 1000, shown[-200:]
        terminal.write("/bye\n")
        assert terminal.wait() == 0


@pytest.mark.parametrize("where", ["here", "server"])
def test_the_person_gives_the_results_of_tools(models, tmp_path, where):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([TOOL]))
    with Terminal(BUILD / "reprise", "chat", *place(models, "calls", where), "--tools", tools) as terminal:
        terminal.wait_for(">>> ")
        terminal.write("what is there?\n")
        shown = terminal.wait_for("get_it = ")
        assert 'get_it {"place": "here"}' in shown and "<tool_call>" not in shown
        # The model is told the result, and calls again; no answer follows.
        asked = len(terminal.text)
        terminal.write("a house\n")
        assert 'get_it {"place": "here"}' in terminal.wait_for("get_it = ", asked)
        asked = len(terminal.text)
        terminal.write(CTRL_D)
        terminal.wait_for(">>> ", asked)
        terminal.write(CTRL_D)
        assert terminal.wait() == 0


@pytest.mark.parametrize("where", ["here", "server"])
def test_answers_are_of_the_schema(models, tmp_path, where):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    with Terminal(BUILD / "reprise", "chat", *place(models, "calls", where), "--json-schema", schema) as terminal:
        terminal.wait_for(">>> ")
        asked = len(terminal.text)
        terminal.write("is it?\n")
        shown = terminal.wait_for("the first after", asked)
        assert set(json.loads(shown[shown.index("{"):shown.rindex("}") + 1])) == {"blue"}
        terminal.write("/bye\n")
        assert terminal.wait() == 0


def test_files_that_are_no_json_are_named(models, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for flag in ("--tools", "--json-schema"):
        done = subprocess.run([str(BUILD / "reprise"), "chat", *map(str, place(models, "calls", "here")), flag,
                               str(broken)], input="", capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and f"'{broken}' is not JSON" in done.stderr, done.stderr
