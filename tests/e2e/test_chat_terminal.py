"""`reprise chat` as a person has it: on a terminal, with Ctrl-C, tools and schemas."""

import json
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tokenizers import AddedToken

from testing import chats
from testing import decoders as tiny
from testing.daemon import BUILD, Daemon
from testing.terminal import CTRL_C, CTRL_D, Terminal

CALL = '<tool_call>{"name": "get_it", "arguments": {"place": "here"}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "get_it", "description": "d", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}
SCHEMA = {"type": "object", "properties": {"blue": {"type": "boolean"}}, "required": ["blue"],
          "additionalProperties": False}


def with_followers(model, followers):
    """`model` with scores that make one id follow another, {id: the next}; -1 stands for all others."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    logits = next(one for one in model.graph.output if one.name == "logits")
    width = logits.type.tensor_type.shape.dim[-1].dim_value
    table = np.zeros((width, width), np.float32)
    for row in range(width):
        table[row, followers.get(row, followers[-1])] = 1e6
    for node in model.graph.node:
        node.output[:] = ["own_logits" if name == "logits" else name for name in node.output]
    model.graph.initializer.append(numpy_helper.from_array(table, "followers"))
    model.graph.node.extend([helper.make_node("Gather", ["followers", "input_ids"], ["follow"]),
                             helper.make_node("Add", ["own_logits", "follow"], ["logits"])])
    return model


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
        (root / name / "1" / "model.onnx").write_bytes(with_followers(model, followers).SerializeToString())
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
        # The model is told the result, and calls again; nobody answers.
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
        assert done.returncode != 0 and f"'{broken}' is no JSON" in done.stderr, done.stderr
