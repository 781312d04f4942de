"""Text in, text out: OpenAI's completions and chats by an unmodified client, and texts by the inference protocol."""

import concurrent.futures
import json
import re
import subprocess
import urllib.error
import urllib.request

import jsonschema
import numpy as np
import openai
import pytest
import requests
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from testing import chats
from testing.daemon import BUILD, Daemon, reprise
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.tokens import generate

CHAT = [{"role": "user", "content": "the sky is"}]
TOOL = {"type": "function", "function": {"name": "get_it", "description": "d", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "maxLength": 8},
                                     "days": {"$ref": "#/$defs/days"}},
    "required": ["place", "days"], "additionalProperties": False, "$defs": {"days": {"enum": [1, 2, 3]}}}}}


class Served:
    def __init__(self, daemon, tokenizer):
        self.daemon, self.tokenizer = daemon, tokenizer
        self.client = openai.OpenAI(base_url=f"{daemon.http_url}/v1", api_key="none", max_retries=0)

    def post(self, path, body):
        """Returns the status and the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.daemon.http_url}{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("chat")
    tokenizer = chats.write(root / "m")
    with Daemon(root) as daemon:
        yield Served(daemon, tokenizer)


def whole_text(served, ids):
    return served.tokenizer.decode(ids, skip_special_tokens=True)


def without_end(ids, served):
    return ids[:-1] if ids and ids[-1] == served.tokenizer.token_to_id("<|im_end|>") else ids


def test_a_completion_is_the_text_of_the_tokens(served):
    prompt = "the sky é"
    ids = served.tokenizer.encode(prompt).ids
    tokens = generate(served.daemon, "m", ids, max_tokens=40)
    text = whole_text(served, without_end(tokens["token_ids"], served))
    answer = served.client.completions.create(model="m", prompt=prompt, max_tokens=40, temperature=0)
    assert answer.choices[0].text == text
    assert answer.choices[0].finish_reason == tokens["finish_reason"]
    assert answer.usage.prompt_tokens == len(ids)
    assert answer.usage.completion_tokens == len(tokens["token_ids"])
    assert answer.usage.total_tokens == len(ids) + len(tokens["token_ids"])
    assert answer.model_extra["reprise"]["captures"] == 0
    assert answer.model_extra["reprise"]["time_to_first_token_ms"] > 0
    by_ids = served.client.completions.create(model="m", prompt=ids, max_tokens=40, temperature=0)
    assert by_ids.choices[0].text == text
    echoed = served.client.completions.create(model="m", prompt=prompt, max_tokens=40, temperature=0, echo=True)
    assert echoed.choices[0].text == prompt + text


def test_lists_of_prompts_and_several_answers_have_a_choice_each(served):
    prompts = ["the sky", "blue", "is"]
    answer = served.client.completions.create(model="m", prompt=prompts, n=2, max_tokens=6, seed=3)
    assert [choice.index for choice in answer.choices] == list(range(6))
    alone = [served.client.completions.create(model="m", prompt=one, n=2, max_tokens=6, seed=3) for one in prompts]
    assert [choice.text for choice in answer.choices] == [c.text for one in alone for c in one.choices]
    ids = [served.tokenizer.encode(one).ids for one in prompts]
    by_ids = served.client.completions.create(model="m", prompt=ids, n=2, max_tokens=6, seed=3)
    assert [choice.text for choice in by_ids.choices] == [choice.text for choice in answer.choices]
    assert answer.usage.prompt_tokens == sum(map(len, ids))


@pytest.mark.parametrize("seed", range(6))
def test_a_stream_joined_is_the_whole_and_has_no_half_letter(served, seed):
    asked = dict(model="m", prompt="the", max_tokens=120, temperature=1.5, seed=seed, n=2)
    whole = served.client.completions.create(**asked)
    texts = {0: "", 1: ""}
    finishes = {}
    usage = None
    for chunk in served.client.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            finishes[choice.index] = choice.finish_reason
        usage = chunk.usage or usage
    assert [texts[0], texts[1]] == [choice.text for choice in whole.choices]
    assert [finishes[0], finishes[1]] == [choice.finish_reason for choice in whole.choices]
    assert usage.completion_tokens == whole.usage.completion_tokens
    # Random bytes are no letters; a letter comes whole, so that no part ends within it.
    tokens = generate(served.daemon, "m", served.tokenizer.encode("the").ids, max_tokens=120, temperature=1.5,
                      seed=seed, n=2)
    for k in range(2):
        assert texts[k] == whole_text(served, without_end(tokens["token_ids"][k], served))


def test_stop_texts_end_an_answer_and_are_never_told_in_part(served):
    asked = dict(model="m", prompt="blue", max_tokens=100, temperature=1.2, seed=5)
    text = served.client.completions.create(**asked).choices[0].text
    # Some text within it that spans tokens, of letters that stay letters.
    found = next(re.finditer(r"[ -~]{3,}", text), None)
    assert found is not None, text
    stop = text[found.start() + 1:found.start() + 3]
    begin = text.index(stop)
    stopped = served.client.completions.create(**asked, stop=[stop, "never there"])
    assert stopped.choices[0].text == text[:begin]
    assert stopped.choices[0].finish_reason == "stop"
    assert stopped.choices[0].model_extra["stop_reason"] == stop
    assert stopped.usage.completion_tokens < 100
    parts = [chunk.choices[0].text for chunk in served.client.completions.create(**asked, stop=stop, stream=True)]
    assert "".join(parts) == text[:begin]
    kept = served.client.completions.create(**asked, stop=stop, extra_body={"include_stop_str_in_output": True})
    assert kept.choices[0].text == text[:begin] + stop


def test_chats_are_completions_of_the_template(served):
    prompt = "<|im_start|>user\nthe sky is<|im_end|>\n<|im_start|>assistant\n"
    asked = dict(model="m", temperature=0.9, seed=1)
    plain = served.client.completions.create(**asked, prompt=prompt, max_tokens=30)
    chat = served.client.chat.completions.create(**asked, messages=CHAT, max_completion_tokens=30)
    assert chat.choices[0].message.content == plain.choices[0].text
    assert chat.choices[0].message.role == "assistant"
    assert chat.usage.prompt_tokens == plain.usage.prompt_tokens
    parts = list(served.client.chat.completions.create(
        **asked, messages=CHAT, max_tokens=30, stream=True, stream_options={"include_usage": True},
        user="somebody", metadata={"a": "b"}, extra_body={"unknown_member": 1}))
    assert parts[0].choices[0].delta.role == "assistant"
    assert "".join(c.delta.content or "" for p in parts for c in p.choices) == plain.choices[0].text
    assert parts[-1].choices == [] and parts[-1].usage.total_tokens == chat.usage.total_tokens
    # Without a limit an answer ends by itself, or with the context.
    long = served.client.chat.completions.create(model="m", messages=CHAT, seed=4, temperature=0.01)
    assert long.choices[0].finish_reason in ("stop", "length")
    assert long.usage.completion_tokens > 30


def test_a_second_chat_reads_the_pages_of_the_first(served):
    messages = [{"role": "user", "content": "the sky " * 20}]
    served.client.chat.completions.create(model="m", messages=messages, max_tokens=2)
    again = served.client.chat.completions.create(model="m", messages=messages, max_tokens=2)
    assert again.usage.prompt_tokens_details.cached_tokens >= 16
    assert again.model_extra["reprise"]["cached_tokens"] == again.usage.prompt_tokens_details.cached_tokens


def test_headers_say_how_many_tokens_pages_had(served):
    body = {"model": "m", "messages": [{"role": "user", "content": "a header " * 20}], "max_tokens": 2}
    found = []
    for path, more in (("/v1/chat/completions", {}), ("/v1/chat/completions", {}), ("/v1/chat/completions", {"stream": True})):
        reply = requests.post(f"{served.daemon.http_url}{path}", json={**body, **more}, timeout=60)
        found.append(int(reply.headers["x-reprise-cached-tokens"]))
    assert found[0] == 0 and found[1] == found[2] >= 16
    prompts = {"model": "m", "prompt": ["a header", "another"], "max_tokens": 2}
    assert "x-reprise-cached-tokens" in requests.post(
        f"{served.daemon.http_url}/v1/completions", json=prompts, timeout=60).headers
    # The second prompt's tokens are not known when the answer begins.
    assert "x-reprise-cached-tokens" not in requests.post(
        f"{served.daemon.http_url}/v1/completions", json={**prompts, "stream": True}, timeout=60).headers


def test_rendered_prompts_are_the_tokens_that_are_computed(served):
    prompt = "the sky é"
    ids = served.tokenizer.encode(prompt).ids
    assert served.post("/v1/completions/render", {"model": "m", "prompt": prompt, "max_tokens": 4}) == (
        200, [{"token_ids": ids}])
    assert served.post("/v1/completions/render", {"model": "m", "prompt": [prompt, "a"]}) == (
        200, [{"token_ids": ids}, {"token_ids": served.tokenizer.encode("a").ids}])
    assert served.post("/models/m/v1/completions/render", {"prompt": [ids, [5]]}) == (
        200, [{"token_ids": ids}, {"token_ids": [5]}])
    status, rendered = served.post("/v1/chat/completions/render", {
        "model": "m", "messages": CHAT, "max_tokens": 4, "temperature": 0.5, "stream": True, "unknown_member": 1})
    assert status == 200
    assert rendered["token_ids"] == served.post("/tokenize", {"model": "m", "messages": CHAT})[1]["tokens"]
    answer = served.client.chat.completions.create(model="m", messages=CHAT, max_tokens=1)
    assert len(rendered["token_ids"]) == answer.usage.prompt_tokens
    assert served.post("/v1/completions/render", {"model": "m"})[0] == 400
    assert served.post("/v1/chat/completions/render", {"model": "m", "messages": 1})[0] == 400


def test_logprobs_are_told_in_the_forms_of_both(served):
    plain = served.client.completions.create(model="m", prompt="the", max_tokens=5, temperature=0, logprobs=3,
                                             extra_body={"ignore_eos": True})
    told = plain.choices[0].logprobs
    assert len(told.tokens) == len(told.token_logprobs) == len(told.top_logprobs) == len(told.text_offset) == 5
    ids = generate(served.daemon, "m", served.tokenizer.encode("the").ids, max_tokens=5, logprobs=3, ignore_eos=True)
    assert told.token_logprobs == pytest.approx(ids["logprobs"], abs=1e-6)
    assert told.text_offset[0] == 0
    chat = served.client.chat.completions.create(model="m", messages=CHAT, max_tokens=4, temperature=0, logprobs=True,
                                                 top_logprobs=2, extra_body={"ignore_eos": True})
    content = chat.choices[0].logprobs.content
    assert len(content) == 4 and all(len(one.top_logprobs) == 2 for one in content)
    assert all(one.top_logprobs[0].logprob == one.logprob for one in content)
    assert bytes(b for one in content for b in one.bytes).decode(errors="replace") == chat.choices[0].message.content


SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "is": {"type": "boolean"}},
          "required": ["name", "is"], "additionalProperties": False}


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_kept(served, stream):
    for seed in range(8):
        asked = dict(model="m", messages=CHAT, temperature=1.4, seed=seed, max_tokens=300, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}})
        if stream:
            chunks = list(served.client.chat.completions.create(**asked, stream=True))
            text = "".join(c.delta.content or "" for p in chunks for c in p.choices)
            finish = chunks[-1].choices[0].finish_reason
        else:
            choice = served.client.chat.completions.create(**asked).choices[0]
            text, finish = choice.message.content, choice.finish_reason
        assert finish == "stop", text
        value = json.loads(text)
        assert set(value) == {"name", "is"} and isinstance(value["is"], bool) and len(value["name"]) <= 6


@pytest.mark.parametrize("form", ["json_schema", "json_object", "guided_json"])
def test_an_object_has_the_properties_of_its_schema_alone(served, form):
    """Random weights would add others for ever."""
    schema = {"type": "object", "properties": {"name": {"enum": ["a", "b"]}, "n": {"type": "integer", "maximum": 9}},
              "required": ["name"]}
    asked = {"json_schema": {"response_format": {"type": form, "json_schema": {"name": "x", "schema": schema}}},
             # As some clients name a schema.
             "json_object": {"response_format": {"type": form, "schema": schema}},
             "guided_json": {"guided_json": schema}}[form]
    for seed in range(8):
        choice = served.client.chat.completions.create(model="m", messages=CHAT, temperature=1.4, seed=seed,
                                                       max_tokens=300, extra_body=asked).choices[0]
        value = json.loads(choice.message.content)
        assert choice.finish_reason == "stop" and value["name"] in "ab" and set(value) <= {"name", "n"}


def test_other_grammars_are_kept(served):
    def ask(**extra):
        return served.client.completions.create(model="m", prompt="the", max_tokens=60, temperature=1.3,
                                                extra_body=extra, n=4).choices
    assert all(re.fullmatch(r"[a-c]{2,4}!", one.text) for one in ask(guided_regex="[a-c]{2,4}!"))
    assert all(one.text in ("yes", "no") for one in ask(guided_choice=["yes", "no"]))
    assert all(re.fullmatch(r"(ab|c)+;", one.text) for one in ask(guided_grammar='start: ("ab" | "c")~1..5 ";"'))
    assert all(one.text in ("1", "2") for one in ask(structured_outputs={"choice": ["1", "2"]}))
    obj = served.client.chat.completions.create(model="m", messages=CHAT, max_tokens=400, seed=2,
                                                response_format={"type": "json_object"}).choices[0]
    if obj.finish_reason == "stop":
        assert isinstance(json.loads(obj.message.content), dict)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_it"}}])
def test_a_call_that_is_demanded_is_made(served, choice):
    other = {"type": "function", "function": {"name": "other", "parameters": {
        "type": "object", "properties": {}, "additionalProperties": False}}}
    for seed in range(4):
        asked = dict(model="m", messages=CHAT, tools=[TOOL, other], tool_choice=choice, temperature=1.2, seed=seed,
                     max_tokens=400, parallel_tool_calls=False)
        whole = served.client.chat.completions.create(**asked).choices[0]
        assert whole.finish_reason == "tool_calls", whole
        call, = whole.message.tool_calls
        assert call.function.name in (("get_it", "other") if choice == "required" else ("get_it",))
        arguments = json.loads(call.function.arguments)
        if call.function.name == "get_it":
            assert set(arguments) == {"place", "days"} and arguments["days"] in (1, 2, 3)
        parts = [c.delta for p in served.client.chat.completions.create(**asked, stream=True) for c in p.choices]
        calls = [one for part in parts for one in part.tool_calls or []]
        assert calls[0].id and calls[0].function.name == call.function.name
        assert "".join(one.function.arguments or "" for one in calls) == call.function.arguments
        assert not any(part.content for part in parts)
        # OpenAI's client puts the entries of a chunk together by their place.
        assert not any(len({one.index for one in part.tool_calls or []}) < len(part.tool_calls or []) for part in parts)
        with served.client.chat.completions.stream(**asked) as stream:
            joined, = stream.get_final_completion().choices[0].message.tool_calls
        assert (joined.function.name, joined.function.arguments) == (call.function.name, call.function.arguments)


def test_a_function_without_a_schema_takes_nothing(served):
    call, = served.client.chat.completions.create(
        model="m", messages=CHAT, tools=[{"type": "function", "function": {"name": "bare"}}], tool_choice="required",
        temperature=1.2, seed=1, max_tokens=400, parallel_tool_calls=False).choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("bare", "{}")


def test_texts_by_the_inference_protocol(served):
    status, answer = served.post("/v2/models/m/generate", {"text_input": "the sky", "parameters": {
        "max_tokens": 12, "temperature": 0}})
    assert status == 200, answer
    plain = served.client.completions.create(model="m", prompt="the sky", max_tokens=12, temperature=0)
    assert answer["text_output"] == plain.choices[0].text
    assert answer["prompt_tokens"] == len(served.tokenizer.encode("the sky").ids)
    # As Triton's clients send them.
    assert served.post("/v2/models/m/generate", {"text_input": "the sky", "max_tokens": 12, "temperature": 0})[1][
        "text_output"] == answer["text_output"]
    request = urllib.request.Request(
        f"{served.daemon.http_url}/v2/models/m/generate_stream",
        json.dumps({"text_input": "the sky", "parameters": {"max_tokens": 12, "temperature": 0}}).encode())
    with urllib.request.urlopen(request, timeout=60) as stream:
        events = [json.loads(line[6:]) for line in stream.read().decode().split("\n\n") if line]
    assert "".join(event["text_output"] for event in events) == answer["text_output"]
    client = served.daemon.client()
    text = tritonclient.grpc.InferInput("text_input", [1], "BYTES")
    text.set_data_from_numpy(np.array([b"the sky"], dtype=object))
    result = client.infer("m", [text], parameters={"max_tokens": 12, "temperature": 0})
    assert result.as_numpy("text_output")[0].decode() == answer["text_output"]
    stop = answer["text_output"][3:5]
    stopped = client.infer("m", [text], parameters={"max_tokens": 12, "temperature": 0, "stop": json.dumps([stop])})
    assert stopped.as_numpy("text_output")[0].decode() == answer["text_output"].split(stop)[0]
    with pytest.raises(InferenceServerException, match="not known"):
        client.infer("m", [text], parameters={"no_such": 1})


def test_requests_and_answers_are_what_openapi_says(served):
    with urllib.request.urlopen(f"{served.daemon.http_url}/openapi.json", timeout=10) as answer:
        page = json.load(answer)
    for path, body in (("/v1/completions", {"prompt": ["a", "b"], "max_tokens": 2, "logprobs": 1}),
                       ("/models/m/v1/chat/completions", {"messages": CHAT, "max_tokens": 2, "logprobs": True})):
        operation = page["paths"][path.replace("/m/", "/{model}/")]["post"]
        status, answer = served.post(path, body)
        assert status == 200, answer
        for content, value in ((operation["requestBody"], body), (operation["responses"]["200"], answer)):
            schema = content["content"]["application/json"]["schema"]
            jsonschema.validate(value, {**schema, "components": page["components"]})


def test_models_are_listed_with_what_they_do(served):
    model, = served.client.models.list().data
    assert model.id == "m" and model.model_extra["task"] == "generation" and model.model_extra["chats"]
    assert model.model_extra["max_model_len"] == 2048


@pytest.mark.parametrize("path,body,status,words", [
    ("/v1/completions", {"model": "m"}, 400, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": []}, 400, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": ""}, 400, "no tokens"),
    ("/v1/completions", {"model": "m", "prompt": [99999]}, 400, "99999"),
    ("/v1/completions", {"model": "m", "prompt": "a", "suffix": "b"}, 400, "suffix"),
    ("/v1/completions", {"model": "m", "prompt": "a", "best_of": 4}, 400, "best_of"),
    ("/v1/completions", {"model": "m", "prompt": "a", "echo": True, "logprobs": 1, "num_beams": 2}, 400, "echo"),
    ("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 0}, 400, "max_tokens"),
    ("/v1/completions", {"model": "m", "prompt": "a", "temperature": -1}, 400, "temperature"),
    ("/v1/completions", {"model": "m", "prompt": "a", "logit_bias": {"x": 1}}, 400, "logit_bias"),
    ("/v1/completions", {"model": "m", "prompt": "a", "stop": ""}, 400, "stop"),
    ("/v1/completions", {"model": "m", "prompt": "a", "n": 1000}, 400, "n"),
    ("/v1/completions", {"model": "m", "prompt": "the " * 3000}, 400, "2048"),
    ("/v1/completions", {"model": "none", "prompt": "a"}, 404, "none"),
    ("/v1/completions", {"model": "m", "prompt": "a", "guided_regex": "("}, 400, ""),
    ("/v1/completions", {"model": "m", "prompt": "a", "guided_regex": "a", "guided_choice": ["b"]}, 400, "second"),
    ("/v1/chat/completions", {"model": "m"}, 400, "messages"),
    ("/v1/chat/completions", {"model": "m", "messages": []}, 400, "empty"),
    ("/v1/chat/completions", {"model": "m", "messages": "x"}, 400, "messages"),
    ("/v1/chat/completions", {"model": "m", "messages": [3]}, 400, "messages[0]"),
    ("/v1/chat/completions", {"model": "m", "messages": [{"content": "x"}]}, 400, "role"),
    ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
     400, "input_audio"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "top_logprobs": 2}, 400, "top_logprobs"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "response_format": {"type": "x"}}, 400, "response_format"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "response_format": {
        "type": "json_schema", "json_schema": {"schema": {"type": "objekt"}}}}, 400, "objekt"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "tool_choice": "required"}, 400, "tools"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "tools": 3}, 400, "tools"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "tools": [TOOL], "tool_choice": {
        "type": "function", "function": {"name": "absent"}}}, 400, "absent"),
    ("/v1/chat/completions", {"model": "m", "messages": CHAT, "chat_template": "x"}, 400, "chat_template"),
    ("/v1/chat/completions", b"{", 400, ""),
    ("/v1/chat/completions", b"[]", 400, ""),
    ("/v2/models/m/generate", {"text_input": 3}, 400, "text_input"),
    ("/v2/models/m/generate", {"text_input": "a", "input_ids": [1]}, 400, "two prompts"),
    ("/v2/models/m/generate", {}, 400, "text_input"),
    ("/v2/models/m/generate", {"text_input": "a", "max_new_words": 3}, 400, "max_new_words"),
    ("/v2/models/m/generate", {"text_input": "a", "top_k": 3, "parameters": {"top_k": 4}}, 400, "top_k"),
])
def test_bad_requests_are_refused_by_name(served, path, body, status, words):
    code, answer = served.post(path, body)
    assert code == status, answer
    error = answer["error"]
    if path.startswith("/v1"):
        assert set(error) == {"message", "type", "param", "code"}
        error = error["message"]
    assert words in error, answer


def test_a_prompt_beyond_the_context_is_told_apart(served):
    for body in ({"prompt": "the " * 3000}, {"prompt": [1] * 2048}):
        code, answer = served.post("/v1/completions", {"model": "m", **body})
        assert code == 400 and answer["error"]["code"] == "context_length_exceeded", answer
        assert "2047" in answer["error"]["message"]
    with pytest.raises(openai.BadRequestError) as refused:
        served.client.chat.completions.create(model="m", messages=[{"role": "user", "content": "the " * 3000}])
    assert refused.value.code == "context_length_exceeded"


def test_hostile_bodies_give_no_server_error(served, rng):
    base = {"model": "m", "messages": CHAT, "max_tokens": 2, "tools": [TOOL], "stop": ["a"], "logit_bias": {"1": 2},
            "response_format": {"type": "json_object"}, "stream_options": {"include_usage": True}, "n": 1,
            "tool_choice": "auto", "logprobs": True, "top_logprobs": 1, "chat_template_kwargs": {"a": 1}}
    values = [None, True, -1, 0, 10**30, 1.5, "", "x", [], {}, [[]], {"a": {}}, "\ud800", [None], {"type": 3},
              [{"type": "function"}], [{"function": {"name": 3}}], {"json_schema": 3}]
    for key in base:
        for value in values:
            code, answer = served.post("/v1/chat/completions", {**base, key: value})
            assert code < 500, (key, value, answer)
    for _ in range(60):
        text = bytearray(json.dumps(base).encode())
        for _ in range(rng.integers(1, 4)):
            text[rng.integers(0, len(text))] = int(rng.integers(0, 256))
        code, answer = served.post("/v1/chat/completions", bytes(text))
        assert code < 500, (text, answer)


def test_a_client_that_leaves_ends_its_answer(served):
    running = lambda: Scrape(served.daemon.metrics_url).total("reprise_sequences", state="running")
    stream = served.client.completions.create(model="m", prompt="the", max_tokens=400, stream=True,
                                              extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    wait_until(lambda: running() == 0)


def test_sixteen_chats_at_once_capture_nothing(served):
    before = Scrape(served.daemon.metrics_url).total("reprise_compiles_total")

    def ask(k):
        return served.client.chat.completions.create(model="m", messages=CHAT * (1 + k % 3), max_tokens=20, seed=k)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(32)))
    assert all(answer.choices[0].finish_reason in ("stop", "length") for answer in answers)
    assert [ask(k).choices[0].message.content for k in (0, 9)] == [
        answers[k].choices[0].message.content for k in (0, 9)]
    assert Scrape(served.daemon.metrics_url).total("reprise_compiles_total") == before


def test_a_chat_on_the_command_line(served, tmp_path):
    folder = tmp_path / "m"
    chats.write(folder)
    model = folder / "1" / "model.onnx"
    for where in ([str(model)], ["m", "--server", served.daemon.http_url]):
        done = subprocess.run([str(BUILD / "reprise"), "chat", *where, "--max-tokens", "8", "--temperature", "0"],
                              input="the sky\n/clear\nagain\n/bye\n", capture_output=True, text=True,
                              errors="replace", timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("tokens, ") == 2, done.stderr
        done = subprocess.run([str(BUILD / "reprise"), "chat", *where, "--max-tokens", "8", "--json"],
                              input="the sky\nagain\n", capture_output=True, text=True, timeout=120)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["role"] for answer in answers] == ["assistant"] * 2 and all(a["content"] for a in answers)
        schema = tmp_path / "schema.json"
        schema.write_text(json.dumps(SCHEMA))
        done = subprocess.run([str(BUILD / "reprise"), "chat", *where, "--json-schema", str(schema), "--seed", "1"],
                              input="the sky\n", capture_output=True, text=True, timeout=120)
        assert set(json.loads(done.stdout)) == {"name", "is"}, done.stdout + done.stderr
    text = reprise("generate", model, "--text", "the sky", "--max-tokens", "12")
    plain = served.client.completions.create(model="m", prompt="the sky", max_tokens=12, temperature=0)
    assert plain.choices[0].text.split("\n")[0] in text
