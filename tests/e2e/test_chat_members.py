"""Members of requests for texts that few clients send: scores of a prompt, tokens of a conversation, one call alone."""

import json
import re
import urllib.error
import urllib.request

import numpy as np
import openai
import pytest
from tokenizers import AddedToken

from testing import chats
from testing import decoders as tiny
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until

CHAT = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the sky is é"}]
CALLS = ('<tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>\n'
         '<tool_call>{"name": "b", "arguments": {}}</tool_call> and so on')
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "ab"]


class Served:
    def __init__(self, daemon, tokenizer, stepper):
        self.daemon, self.tokenizer, self.stepper = daemon, tokenizer, stepper
        self.client = openai.OpenAI(base_url=f"{daemon.http_url}/v1", api_key="none", max_retries=0)

    def post(self, path, body):
        request = urllib.request.Request(f"{self.daemon.http_url}{path}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def logprobs(self, ids):
        """Returns the log-probabilities of all tokens after each of `ids`."""
        self.stepper.reset()
        scores = self.stepper.step(ids).astype(np.float64)
        return scores - scores.max(-1, keepdims=True) - np.log(
            np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("members")
    tokenizer = chats.write(root / "m")
    chats.write(root / "calls")
    chats.write(root / "adds", chat_template="{% for m in messages %}{{ m.role + ':' + m.content + '|' }}{% if m.role == "
                "'boom' %}{{ raise_exception('no') }}{% endif %}{% endfor %}")
    # As Mistral's template does.
    chats.write(root / "short", chat_template="{# [TOOL_CALLS] #}{% for m in messages %}{{ m.role + '|' }}"
                "{% for call in m.tool_calls %}{% if call.id|length != 9 %}{{ raise_exception('length 9') }}{% endif %}"
                "{{ call.function.name }}{% endfor %}{% endfor %}")
    made = chats.tokenizer()
    made.add_tokens([AddedToken(CALLS, special=False)])
    made.save(str(root / "calls" / "tokenizer.json"))
    model = tiny.make("gqa", vocabulary=made.get_vocab_size(), context=2048)
    followers = {-1: made.token_to_id("<|im_end|>"), made.encode("\n").ids[0]: made.token_to_id(CALLS)}
    (root / "calls" / "1" / "model.onnx").write_bytes(tiny.with_followers(model, followers).SerializeToString())
    with Daemon(root) as daemon:
        yield Served(daemon, tokenizer, tiny.Stepper(str(root / "m" / "1" / "model.onnx")))


@pytest.mark.parametrize("words", [1, 2, 40, 300])
def test_echo_tells_what_the_model_gave_each_token_of_the_prompt(served, words):
    prompt = " ".join(["the sky is blue"] * words)[:6 if words == 1 else None]
    ids = served.tokenizer.encode(prompt).ids
    answer = served.client.completions.create(model="m", prompt=prompt, max_tokens=4, temperature=0, echo=True,
                                              logprobs=2)
    choice, = answer.choices
    plain = served.client.completions.create(model="m", prompt=prompt, max_tokens=4, temperature=0, logprobs=2)
    told, new = choice.logprobs, plain.choices[0].logprobs
    assert choice.text == prompt + plain.choices[0].text
    assert len(told.tokens) == len(ids) + len(new.tokens)
    assert "".join(told.tokens[:len(ids)]) == prompt
    assert told.token_logprobs[0] is None and told.top_logprobs[0] is None
    expected = served.logprobs(ids)
    assert told.token_logprobs[1:len(ids)] == pytest.approx(
        [expected[i, one] for i, one in enumerate(ids[1:])], abs=2e-3)
    for i in range(1, len(ids)):
        assert max(told.top_logprobs[i].values()) == pytest.approx(expected[i - 1].max(), abs=2e-3)
    assert told.token_logprobs[len(ids):] == pytest.approx(new.token_logprobs, abs=1e-4)
    assert told.text_offset[:len(ids)] == [prompt.index(prompt)] + [
        len("".join(told.tokens[:i])) for i in range(1, len(ids))]


def test_scores_of_a_prompt_are_told_with_each_answer_and_in_streams(served):
    prompt = "the sky is blue " * 20
    asked = dict(model="m", prompt=[prompt, "blue"], max_tokens=3, temperature=0.9, seed=3, echo=True, logprobs=0, n=3)
    whole = served.client.completions.create(**asked)
    for k, choice in enumerate(whole.choices):
        ids = served.tokenizer.encode([prompt, "blue"][k // 3]).ids
        assert len(choice.logprobs.tokens) >= len(ids) and choice.logprobs.token_logprobs[0] is None
        assert choice.logprobs.token_logprobs[:len(ids)] == whole.choices[k // 3 * 3].logprobs.token_logprobs[:len(ids)]
    parts = {}
    for chunk in served.client.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            parts.setdefault(choice.index, []).extend(choice.logprobs.token_logprobs if choice.logprobs else [])
    for k, choice in enumerate(whole.choices):
        assert parts[k] == choice.logprobs.token_logprobs


def test_pages_of_others_do_not_hide_scores_of_a_prompt(served):
    prompt = "the sky is blue and so on " * 30
    served.client.completions.create(model="m", prompt=prompt, max_tokens=1)
    first, second = (served.client.completions.create(model="m", prompt=prompt, max_tokens=1, temperature=0, echo=True,
                                                      logprobs=0) for _ in range(2))
    assert first.choices[0].logprobs.token_logprobs == second.choices[0].logprobs.token_logprobs
    assert second.usage.prompt_tokens_details.cached_tokens == 0
    wait_until(lambda: Scrape(served.daemon.metrics_url).by("reprise_pages", "state", model="m").get("used", 0) == 0)


def test_conversations_become_tokens_as_in_a_chat(served):
    for extra in ({}, {"add_generation_prompt": False}, {"tools": TOOLS}):
        status, answer = served.post("/tokenize", {"model": "m", "messages": CHAT, "return_token_strs": True, **extra})
        assert status == 200, answer
        text = served.tokenizer.decode(answer["tokens"], skip_special_tokens=False)
        assert text.startswith("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nthe sky is é<|im_end|>\n")
        assert text.endswith("assistant\n") == ("add_generation_prompt" not in extra)
        assert ('"name": "a"' in text) == ("tools" in extra)
        assert answer["count"] == len(answer["tokens"]) == len(answer["token_strs"])
        if "add_generation_prompt" in extra:
            continue
        chat = served.client.chat.completions.create(model="m", messages=CHAT, max_tokens=1, **(
            {**extra, "tool_choice": "auto"} if extra else {}))
        assert chat.usage.prompt_tokens == answer["count"]
    for body, words in (({"messages": []}, "empty"), ({"messages": CHAT, "prompt": "a"}, "both given"),
                        ({"messages": [{"content": "x"}]}, "role")):
        status, answer = served.post("/tokenize", {"model": "m", **body})
        assert status == 400 and words in json.dumps(answer)


def test_parallel_calls_are_left_out_where_they_are_not_wanted(served):
    asked = dict(model="calls", messages=CHAT, tools=TOOLS, max_tokens=50, temperature=0)
    both = served.client.chat.completions.create(**asked)
    assert [one.function.name for one in both.choices[0].message.tool_calls] == ["a", "b"]
    alone = served.client.chat.completions.create(**asked, parallel_tool_calls=False)
    call, = alone.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("a", {"x": 1})
    assert alone.choices[0].message.content is None and alone.choices[0].finish_reason == "tool_calls"
    deltas = [one.delta for part in served.client.chat.completions.create(
        **asked, parallel_tool_calls=False, stream=True) for one in part.choices]
    calls = [one for delta in deltas for one in delta.tool_calls or []]
    assert {one.index for one in calls} == {0} and calls[0].function.name == "a"
    assert not any(delta.content for delta in deltas)


def test_a_content_that_is_null_next_to_calls_is_empty_where_the_template_takes_none(served):
    """As LangChain sends a conversation with the result of a tool back."""
    call = {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    told = [*CHAT, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "7", "tool_call_id": "1"}]
    status, answer = served.post("/v1/chat/completions", {"model": "adds", "messages": told, "max_tokens": 2})
    assert status == 200, answer
    del told[-2]["content"]
    assert served.post("/v1/chat/completions", {"model": "adds", "messages": told, "max_tokens": 2})[0] == 200
    status, answer = served.post("/tokenize", {"model": "adds", "messages": told})
    assert "assistant:|tool:7|" in served.tokenizer.decode(answer["tokens"], skip_special_tokens=False)
    # Any other fault of the template is told as it is.
    status, answer = served.post("/v1/chat/completions", {"model": "adds", "messages": [
        {"role": "assistant", "content": None}, {"content": "x", "role": "boom"}]})
    assert status == 400 and "none" in answer["error"]["message"], answer


@pytest.mark.parametrize("stream", [False, True])
def test_ids_of_calls_are_those_that_the_template_takes(served, stream):
    asked = dict(model="short", messages=CHAT, tools=TOOLS, tool_choice="required", max_tokens=200, seed=2)
    if stream:
        chunks = list(served.client.chat.completions.create(**asked, stream=True))
        ids = [call.id for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or [] if call.id]
    else:
        ids = [call.id for call in served.client.chat.completions.create(**asked).choices[0].message.tool_calls]
    assert ids and all(len(one) == 9 and one.isalnum() for one in ids) and len(set(ids)) == len(ids)
    told = [*CHAT, {"role": "assistant", "tool_calls": [
        {"id": ids[0], "type": "function", "function": {"name": "a", "arguments": "{}"}}]}]
    assert served.post("/v1/chat/completions", {"model": "short", "messages": told, "max_tokens": 1})[0] == 200
    told[-1]["tool_calls"][0]["id"] = "call_1234567890"
    assert served.post("/v1/chat/completions", {"model": "short", "messages": told, "max_tokens": 1})[0] == 400


@pytest.mark.parametrize("body,words", [
    ({"tools": [TOOLS[0], {"type": "custom", "custom": {"name": "x"}}]}, '"tools"[1] is of type "custom"'),
    ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}}, "allowed_tools"),
    ({"structured_outputs": {"structural_tag": {}}}, "structural_tag"),
    ({"structured_outputs": {"json": {"type": "object"}, "json_object": True}}, "second"),
])
def test_what_changes_an_answer_and_is_not_known_is_refused_by_name(served, body, words):
    status, answer = served.post("/v1/chat/completions", {"model": "m", "messages": CHAT, "max_tokens": 2, **body})
    assert status == 400 and words in answer["error"]["message"], answer


@pytest.mark.parametrize("body,param", [
    ({"temperature": "hot"}, "temperature"), ({"tools": 3}, "tools"), ({"n": 0}, "n"), ({"max_tokens": 0}, "max_tokens"),
    ({"response_format": {"type": "x"}}, "response_format"), ({"messages": [CHAT[0], {"role": "user", "content": 3}]},
                                                              "messages[1].content"), ({"model": "none"}, "model"),
    ({"messages": [{"role": "user", "content": "the " * 3000}]}, None)])
def test_errors_name_the_member_in_fault(served, body, param):
    status, answer = served.post("/v1/chat/completions", {"model": "m", "messages": CHAT, **body})
    assert status in (400, 404) and answer["error"]["param"] == param, answer


@pytest.mark.parametrize("form,holds", [
    ({"type": "json", "value": {"type": "object", "properties": {"a": {"enum": [7]}}, "required": ["a"]}},
     lambda text: json.loads(text) == {"a": 7}),
    ({"type": "regex", "value": "[ab]{3}"}, lambda text: re.fullmatch("[ab]{3}", text))])
def test_formats_of_text_generation_inference_are_kept(served, form, holds):
    status, answer = served.post("/v1/chat/completions", {
        "model": "m", "messages": CHAT, "max_tokens": 100, "seed": 1, "response_format": form})
    assert status == 200 and holds(answer["choices"][0]["message"]["content"]), answer


@pytest.mark.parametrize("files,ends", [
    ({}, {"<|im_end|>"}),
    ({"config.json": {"eos_token_id": "<|tool|>"}}, {"<|im_end|>", "<|tool|>"}),
    ({"config.json": {"eos_token_id": "<|tool|>"}, "generation_config.json": {"eos_token_id": ["<|tool|>"]}}, {"<|tool|>"})])
def test_the_tokenizers_end_ends_answers_unless_a_file_about_them_says_otherwise(tmp_path, files, ends):
    made = chats.write(tmp_path / "m")
    (tmp_path / "m" / "1" / "generation_config.json").unlink()
    for name, members in files.items():
        ids = members["eos_token_id"]
        ids = [made.token_to_id(one) for one in ids] if isinstance(ids, list) else made.token_to_id(ids)
        (tmp_path / "m" / name).write_text(json.dumps({"eos_token_id": ids}))
    with Daemon(tmp_path) as daemon:
        client = openai.OpenAI(base_url=f"{daemon.http_url}/v1", api_key="none", max_retries=0)
        for token in ("<|im_end|>", "<|tool|>"):
            answer = client.completions.create(model="m", prompt="a", max_tokens=3, temperature=0, logit_bias={
                str(made.token_to_id(token)): 100})
            assert (answer.choices[0].finish_reason == "stop") == (token in ends), token


def test_any_object_is_a_structured_output(served):
    body = {"model": "m", "messages": CHAT, "max_tokens": 200, "seed": 1, "structured_outputs": {
        "json": None, "json_object": True, "disable_fallback": False}}
    status, answer = served.post("/v1/chat/completions", body)
    choice, = answer["choices"]
    assert status == 200 and choice["message"]["content"].startswith("{")
    assert choice["finish_reason"] == "length" or isinstance(json.loads(choice["message"]["content"]), dict)
