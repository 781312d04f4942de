"""Chat templates are rendered as transformers renders them by jinja2, byte for byte."""

import datetime
import json
import subprocess

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import numpy as np
import pytest
from tokenizers import Tokenizer, models

from testing.chat_templates import TEMPLATES
from testing.daemon import BUILD

CONVERSATIONS = 200
WORDS = ["the sky", "naïve", "日本語 テキスト", "🦜🐙", "  blanks ", "new\nline", "\ttab", "quote's", '"double"',
         "<b>&amp;</b>", "back\\slash", "</think>", "<think>", "{{ x }}", "{% y %}", "/no_think", "", "\r\n\n\n", "é"]
KINDS = [["string"], ["number"], ["integer", "null"], ["boolean"], ["array"], ["object"]]


class GenerationBlocks(jinja2.ext.Extension):
    """`{% generation %}` as transformers has it: a block that only marks its text."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

    def _mark(self, caller):
        return caller()


def environment():
    """Renders templates with transformers."""

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlocks, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


def some_text(rng):
    return " ".join(rng.choice(WORDS, rng.integers(0, 4)))


def some_value(rng, depth=0):
    kind = rng.integers(0, 8 if depth < 2 else 6)
    if kind == 6:
        return [some_value(rng, depth + 1) for _ in range(rng.integers(0, 3))]
    if kind == 7:
        return {some_text(rng): some_value(rng, depth + 1) for _ in range(rng.integers(0, 3))}
    return [some_text(rng), int(rng.integers(-5, 1000)), float(np.round(rng.normal(), 3)), True, None, 1e-7][kind]


def some_tool(rng, name):
    properties = {f"p{i}": {"type": KINDS[rng.integers(0, len(KINDS))], "description": some_text(rng)}
                  for i in range(rng.integers(0, 4))}
    for one in properties.values():
        one["type"] = one["type"][0] if len(one["type"]) == 1 else one["type"]
        if one["type"] == "array":
            one["items"] = {"type": "string"}
        if one["type"] == "object":
            one["additionalProperties"] = {"type": "number"}
    return {"type": "function", "function": {
        "name": name, "description": some_text(rng),
        "parameters": {"type": "object", "properties": properties,
                       "required": [key for key in properties if rng.random() < 0.5]}}}


def some_conversation(rng):
    """Makes a body as clients send it."""
    messages = [{"role": "system", "content": some_text(rng)}] if rng.random() < 0.4 else []
    tools = [some_tool(rng, name) for name in ("get_it", "b")[:rng.integers(0, 3)]]
    for turn in range(rng.integers(1, 4)):
        messages.append({"role": "user", "content": some_text(rng) + " ?"})
        if tools and rng.random() < 0.5:
            calls = [{"id": f"call{turn}{i}", "type": "function", "function": {
                "name": "get_it", "arguments": {some_text(rng) or "k": some_value(rng)}}}
                for i in range(rng.integers(1, 3))]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": some_text(rng)} for call in calls]
        elif rng.random() < 0.8:
            messages.append({"role": "assistant", "content": some_text(rng)})
    body = {"messages": messages, "add_generation_prompt": bool(rng.random() < 0.6)}
    if tools:
        body["tools"] = tools
    if rng.random() < 0.2:
        body["documents"] = [{"title": some_text(rng), "text": some_text(rng)}]
    return body


def expected(template, special, body):
    """Returns the text, or None where the template refuses."""
    try:
        return template.render(messages=body["messages"], tools=body.get("tools"), documents=body.get("documents"),
                               add_generation_prompt=body["add_generation_prompt"], **special)
    except (jinja2.exceptions.TemplateError, TypeError, KeyError, RecursionError):
        return None


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    def make(template, special):
        folder = tmp_path_factory.mktemp("chat")
        Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, "[UNK]")).save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, **special}))
        return folder
    return make


def render(folder, bodies):
    lines = "".join(json.dumps(body) + "\n" for body in bodies)
    done = subprocess.run([str(BUILD / "reprise"), "tokenize", str(folder), "--json", "--chat"], input=lines,
                          capture_output=True, text=True, timeout=300, check=True)
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


@pytest.mark.parametrize("family", TEMPLATES)
def test_texts_are_those_of_jinja2(folder_of, rng, family):
    source, special = TEMPLATES[family]
    template = environment().from_string(source)
    bodies = [some_conversation(rng) for _ in range(CONVERSATIONS)]
    rendered = 0
    for body, text in zip(bodies, render(folder_of(source, special), bodies), strict=True):
        wanted = expected(template, special, body)
        if wanted is None:
            assert "error" in text and text["error"].startswith("the chat template, line "), (body, text)
            continue
        rendered += 1
        assert text == wanted, body
    assert rendered >= CONVERSATIONS // 8, family


def test_a_last_message_is_continued(folder_of):
    source, special = TEMPLATES["chatml"]
    body = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " The sky is"}],
            "continue_final_message": True}
    text, = render(folder_of(source, special), [body])
    assert text.endswith("<|im_start|>assistant\n The sky is"), text
    refused, = render(folder_of(source, special), [{**body, "add_generation_prompt": True}])
    assert "exclude each other" in refused["error"]


def test_parts_of_contents_and_arguments_that_are_texts_are_read(folder_of):
    source, special = TEMPLATES["qwen2.5"]
    one, two = render(folder_of(source, special), [
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                      {"role": "assistant", "content": None, "tool_calls": [
                          {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"b": [1, 2.0]}'}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}])
    assert "user\na\nb<|im_end|>" in one and '"arguments": {"b": [1, 2.0]}}' in one, one
    assert "messages[0].content has a part of type \"image_url\"" in two["error"]


@pytest.mark.parametrize("source", [
    "{% for i in range(99999) %}\n{% for j in range(99999) %}{% set x = i * j %}{% endfor %}{% endfor %}",
    "\n{% set n = namespace(s='xxxxxxxxxx') %}{% for i in range(50) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "\n{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(1) }}",
    "\n{{ messages.nothing.more }}",
    "\n{{ 'x' * 999999999999 }}",
    "\n{% include 'other' %}",
])
def test_hostile_templates_end_with_an_error(folder_of, source):
    answer, = render(folder_of(source, {}), [{"messages": [{"role": "user", "content": "a"}]}])
    assert answer["code"] in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), answer
