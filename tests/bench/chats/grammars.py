"""Draws answers of grammars and counts those that violate them. Run it by `tests/bench/chats/run grammars`."""

import argparse
import concurrent.futures
import json
import pathlib
import re
import sys
import tempfile

import jsonschema
import requests

from testing import chats
from testing.daemon import Daemon

MAX_TOKENS = 400


def schema(of):
    checker = jsonschema.Draft202012Validator(of, format_checker=jsonschema.FormatChecker())
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": of}}}, (
        lambda text: checker.is_valid(json.loads(text)))


def regex(pattern):
    return {"guided_regex": pattern}, lambda text: re.fullmatch(pattern, text) is not None


def lark(grammar, pattern):
    """`pattern` says the same by recursion: it is reduced until it is one letter."""
    def holds(text):
        before = None
        while before != text:
            before, text = text, re.sub(pattern, "n", text)
        return text == "n"
    return {"guided_grammar": grammar}, holds


def obj(properties, **more):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
            **more}


GRAMMARS = {
    "object": schema(obj({"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}})),
    "enums": schema(obj({"a": {"enum": ["x", 1, None, True]}, "b": {"const": {"k": [1]}}})),
    "numbers": schema(obj({"i": {"type": "integer", "minimum": -5, "maximum": 1200},
                           "f": {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}})),
    "lists": schema({"type": "array", "minItems": 1, "maxItems": 4, "items": {"type": "array", "maxItems": 2,
                                                                            "items": {"type": "boolean"}}}),
    "tuples": schema({"type": "array", "prefixItems": [{"type": "string", "maxLength": 3}, {"type": "null"}],
                      "items": False, "minItems": 2}),
    "optional": schema({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"},
                                                         "c": {"type": "boolean"}}, "additionalProperties": False}),
    "unions": schema({"anyOf": [obj({"kind": {"const": "a"}, "x": {"type": "integer"}}),
                                obj({"kind": {"const": "b"}, "y": {"type": "string", "maxLength": 4}})]}),
    "recursive": schema({"$ref": "#/$defs/tree", "$defs": {"tree": obj({
        "leaf": {"type": "boolean"}, "kids": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/tree"}}})}}),
    "formats": schema(obj({"when": {"type": "string", "format": "date"}, "id": {"type": "string", "format": "uuid"}})),
    "patterns": schema(obj({"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,3}$"}})),
    "mail": regex(r"[a-z]{1,8}@[a-z]{1,6}\.(org|com)"),
    "choice": ({"guided_choice": ["yes", "no", "nobody knows"]}, lambda text: text in ("yes", "no", "nobody knows")),
    "sums": lark('start: term (("+" | "-") term){0,3}\nterm: "n" | "(" pair ")"\npair: part "+" part\n'
                 'part: "n" | "(" part ")"\n', r"n[+-]n|\(n\)"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="grammars; all if not given")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--model", type=pathlib.Path)
    arguments = parser.parse_args()
    violations = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        flags = ("--model", f"m={arguments.model}") if arguments.model else ()
        if not flags:
            chats.write(root / "m")
        with Daemon(root, *flags) as daemon:
            for name in arguments.names or GRAMMARS:
                asked, holds = GRAMMARS[name]

                def draw(seed):
                    answer = requests.post(f"{daemon.http_url}/v1/chat/completions", timeout=600, json={
                        "model": "m", "messages": [{"role": "user", "content": "the sky"}], "seed": seed,
                        "temperature": 1.5, "max_tokens": MAX_TOKENS, **asked})
                    answer.raise_for_status()
                    choice = answer.json()["choices"][0]
                    if choice["finish_reason"] == "length":
                        return None, ""
                    text = choice["message"]["content"]
                    try:
                        return holds(text), text
                    except ValueError:
                        return False, text

                with concurrent.futures.ThreadPoolExecutor(16) as pool:
                    drawn = list(pool.map(draw, range(arguments.samples)))
                wrong = [text for ok, text in drawn if ok is False]
                violations += len(wrong)
                print(f"{name}: {len(wrong)} of {len(drawn)} violate it, {sum(ok is None for ok, _ in drawn)} ran into "
                      f"{MAX_TOKENS} tokens, {len({text for _, text in drawn})} differ", *map(repr, wrong[:3]), flush=True)
    sys.exit(violations > 0)


if __name__ == "__main__":
    main()
