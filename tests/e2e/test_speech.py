"""Sound to text: OpenAI's transcriptions and translations of a Whisper folder, by an unmodified client and by forms."""

import base64
import concurrent.futures
import json
import math
import re
import struct
import urllib.error
import urllib.request
import zlib

import huggingface_hub
import numpy as np
import openai
import pytest

from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.speech import sound, whisper

PATH = "/v1/audio/transcriptions"


def form(fields, boundary="b0undary"):
    """Makes a body of multipart/form-data; values that are bytes are files."""
    body = b""
    for name, value in fields:
        file = '; filename="sound"' if isinstance(value, bytes) else ""
        data = value if isinstance(value, bytes) else str(value).encode()
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


class Served:
    def __init__(self, daemon, model, english):
        self.daemon, self.whisper, self.english = daemon, model, english
        self.client = openai.OpenAI(base_url=f"{daemon.http_url}/v1", api_key="none", max_retries=0)

    def post(self, path=PATH, body=None, kind=None, **fields):
        """Returns the status and the text of the answer."""
        if body is None:
            body, kind = form(fields.items())
        request = urllib.request.Request(f"{self.daemon.http_url}{path}", body, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def segments(self, samples, rate=whisper.RATE, kind="wav", **fields):
        code, answer = self.post(file=sound.encode(samples, rate, kind), model="w", response_format="verbose_json",
                                 **fields)
        assert code == 200, answer
        answer = json.loads(answer)
        return answer, [(one["start"], one["end"], one["text"]) for one in answer["segments"]]


@pytest.fixture(scope="module", params=[True, False], ids=["merged", "split"])
def served(tmp_path_factory, request):
    root = tmp_path_factory.mktemp("speech")
    model = whisper.Whisper(root / "w", merged=request.param)
    english = whisper.Whisper(root / "en", english=True)
    (root / "en" / "config.pbtxt").write_text(
        'parameters { key: "reprise.max_audio_seconds" value { string_value: "5" } }')
    with Daemon(root) as daemon:
        yield Served(daemon, model, english)


def close(found, expected):
    assert [text for _, _, text in found] == [text for _, _, text in expected]
    for one, other in zip(found, expected):
        assert one[:2] == pytest.approx(other[:2], abs=0.006)


def test_the_hubs_client_reads_words(served, rng):
    file = sound.encode(sound.speechlike(rng, 3))
    code, own = served.post(file=file, model="w")
    assert code == 200
    client = huggingface_hub.InferenceClient(model=f"{served.daemon.http_url}/models/w")
    assert client.automatic_speech_recognition(file).text == json.loads(own)["text"]
    body = json.dumps({"inputs": base64.b64encode(file).decode()}).encode()
    assert served.post("/models/w", body, "application/json") == (200, own)
    code, answer = served.post("/models/w", b'{"inputs": "%"}', "application/json")
    assert code == 400 and "base64" in answer
    with urllib.request.urlopen(f"{served.daemon.http_url}/v1/models/w", timeout=60) as answer:
        assert json.load(answer)["task"] == "transcription"


def test_segments_of_a_long_sound_are_those_of_the_definition(served, rng):
    for seconds in (0.3, 2, 7):
        samples = sound.speechlike(rng, seconds)
        language = served.whisper.language(samples)
        answer, found = served.segments(samples)
        close(found, served.whisper.segments(samples, language))
        assert answer["duration"] == pytest.approx(seconds, abs=0.006)
        assert answer["task"] == "transcribe"
        assert answer["language"] == {"en": "english", "de": "german", "fr": "french"}[language]
        assert answer["text"] == "".join(text for _, _, text in found).strip()
        assert answer["usage"] == {"type": "duration", "seconds": math.ceil(seconds)}
        assert all(one["avg_logprob"] < 0 and one["tokens"] for one in answer["segments"])


def test_language_task_and_prompt_stand_in_front_of_the_answer(served, rng):
    samples = sound.speechlike(rng, 3)
    for language in ("de", "german", "German"):
        answer, found = served.segments(samples, language=language)
        close(found, served.whisper.segments(samples, "de"))
        assert answer["language"] == "german"
    _, answer = served.post("/v1/audio/translations", file=sound.encode(samples), model="w", language="fr",
                            response_format="verbose_json")
    assert json.loads(answer)["task"] == "translate"
    close([(one["start"], one["end"], one["text"]) for one in json.loads(answer)["segments"]],
          served.whisper.segments(samples, "fr", task="translate"))
    prompt = served.whisper.tokenizer.encode(" the sky").ids
    before = [served.whisper.ids["startofprev"], *prompt]
    _, found = served.segments(samples, language="de", prompt=" the sky ")
    close(found, served.whisper.segments(samples, "de", before=before))
    # A prompt keeps its last tokens, as many as half of the context.
    _, found = served.segments(samples, language="de", prompt="sky " * 400 + "blue")
    assert found and found != served.whisper.segments(samples, "de")


def test_an_english_model_has_no_languages(served, rng):
    samples = sound.speechlike(rng, 3)
    _, answer = served.post(file=sound.encode(samples), model="en", response_format="verbose_json")
    answer = json.loads(answer)
    close([(one["start"], one["end"], one["text"]) for one in answer["segments"]],
          served.english.segments(samples, None))
    assert answer["language"] == "english"
    code, answer = served.post(file=sound.encode(samples), model="en", language="de")
    assert code == 400 and "English alone" in answer
    code, answer = served.post("/v1/audio/translations", file=sound.encode(samples), model="en")
    assert code == 400 and "English alone" in answer


@pytest.mark.parametrize("kind, rate", [("wav16", 16000), ("flac", 16000), ("mp3", 44100), ("ogg", 22050),
                                        ("opus", 48000), ("wav", 8000), ("wav", 44099), ("flac", 96000)])
def test_formats_and_rates_are_read(served, rng, kind, rate):
    samples = sound.speechlike(rng, 2.5, rate)
    data = sound.encode(samples, rate, kind)
    code, answer = served.post(file=data, model="w", language="en", response_format="verbose_json")
    assert code == 200, answer
    heard, _ = sound.decode(data)
    assert json.loads(answer)["duration"] == pytest.approx(len(heard) / rate, abs=0.006)
    if rate == whisper.RATE:
        expected = served.whisper.segments(heard[:, 0], "en")
        close([(one["start"], one["end"], one["text"]) for one in json.loads(answer)["segments"]], expected)


def test_channels_are_averaged(served, rng):
    mono = sound.speechlike(rng, 1.5)
    weights = np.array([1, 3, 0, 2, 0.5, 0.5, 1, 0])
    _, found = served.segments(mono[:, None] * weights[None], language="en")
    close(found, served.whisper.segments(mono * np.float32(weights.mean()), "en"))


def test_forms_of_an_answer(served, rng):
    samples = sound.speechlike(rng, 5)
    data = sound.encode(samples)
    expected = served.whisper.segments(samples, "en")
    answers = {name: served.post(file=data, model="w", language="en", response_format=name)[1]
               for name in ("json", "text", "srt", "vtt")}
    text = "".join(text for _, _, text in expected).strip()
    assert json.loads(answers["json"])["text"] == text
    assert answers["text"] == text + "\n"
    assert answers["vtt"].startswith("WEBVTT\n\n")
    for name, point, mark in (("srt", ",", r"^\d+\n"), ("vtt", ".", "^")):
        times = re.findall(rf"{mark}(\d\d):(\d\d):(\d\d)\{point}(\d\d\d) --> (\d\d):(\d\d):(\d\d)\{point}(\d\d\d)$",
                           answers[name], re.M)
        assert len(times) == len(expected)
        for time, (start, end, _) in zip(times, expected):
            shown = [int(h) * 3600 + int(m) * 60 + int(s) + int(ms) / 1000 for h, m, s, ms in (time[:4], time[4:])]
            assert shown == pytest.approx([start, end], abs=0.0006)


def test_a_window_without_times_is_asked_for_without(served, rng):
    samples = sound.speechlike(rng, 1.7)
    code, answer = served.post(file=sound.encode(samples), model="w", language="fr")
    assert code == 200
    expected = served.whisper.segments(samples, "fr", times=False)
    assert json.loads(answer)["text"] == "".join(text for _, _, text in expected).strip()


def test_the_client_of_openai_unmodified(served, rng, tmp_path):
    samples = sound.speechlike(rng, 5)
    path = tmp_path / "sound.flac"
    path.write_bytes(sound.encode(samples, kind="flac"))
    heard = sound.decode(path.read_bytes())[0][:, 0]
    expected = served.whisper.segments(heard, "en")
    text = "".join(text for _, _, text in expected).strip()
    create = served.client.audio.transcriptions.create
    with path.open("rb") as file:
        answer = create(model="w", file=file, language="en")
    assert answer.text == text
    with path.open("rb") as file:
        answer = create(model="w", file=file, language="en", response_format="verbose_json",
                        timestamp_granularities=["segment"])
    close([(one.start, one.end, one.text) for one in answer.segments], expected)
    with path.open("rb") as file:
        events = list(create(model="w", file=file, language="en", stream=True))
    assert [one.type for one in events[:-1]] == ["transcript.text.delta"] * (len(events) - 1) and len(events) > 3
    assert "".join(one.delta for one in events[:-1]).strip() == text
    assert events[-1].type == "transcript.text.done" and events[-1].text == text
    with path.open("rb") as file:
        assert served.client.audio.translations.create(model="w", file=file).text


def test_segments_say_how_likely_their_window_is(served, rng):
    for name, model, language in (("w", served.whisper, "en"), ("en", served.english, None)):
        samples = sound.speechlike(rng, 1.5)
        _, answer = served.post(file=sound.encode(samples), model=name, language="en", response_format="verbose_json")
        segments = json.loads(answer)["segments"]
        made = model.decode(samples, model.start(language), times=True)
        text = model.text(made).strip().encode()
        # The window has silence after the sound, and the next one may begin before that.
        segments = [one for one in segments if one["seek"] == 0]
        assert segments
        for one in segments:
            assert one["avg_logprob"] == pytest.approx(model.logprob, abs=1e-4)
            assert one["compression_ratio"] == pytest.approx(len(text) / len(zlib.compress(text)), abs=1e-5)
            assert one["no_speech_prob"] == pytest.approx(model.no_speech(samples), rel=1e-3)
            assert one["temperature"] == 0


def test_a_window_that_is_doubted_is_decoded_again_hotter(served, rng):
    data = sound.encode(sound.speechlike(rng, 1.5))

    def ask(**fields):
        code, answer = served.post(file=data, model="w", language="en", response_format="verbose_json", seed=3, **fields)
        assert code == 200, answer
        return json.loads(answer)
    first = ask()["segments"][0]
    for name, value, sign in (("logprob_threshold", first["avg_logprob"], -1),
                              ("compression_ratio_threshold", first["compression_ratio"], 1)):
        assert ask(**{name: value + sign * 0.01})["segments"][0]["temperature"] == 0
        assert ask(**{name: value - sign * 0.01})["segments"][0]["temperature"] > 0
    # No answer is likely enough: the last one stands, and a draw follows its seed.
    last, asked = ask(logprob_threshold=0), ask(temperature=1)
    assert last["segments"][0]["temperature"] == asked["segments"][0]["temperature"] == 1
    assert last["text"] == asked["text"] != ask()["text"]
    # A client that names a temperature gets it.
    assert ask(temperature=0.5, logprob_threshold=0)["segments"][0]["temperature"] == 0.5


@pytest.mark.parametrize("seconds", [1.5, 5])
def test_a_window_without_speech_has_no_text(served, rng, seconds):
    data = sound.encode(sound.speechlike(rng, seconds))
    for form, empty in (("json", ""), ("verbose_json", ""), ("text", "\n"), ("vtt", "WEBVTT\n\n")):
        answers = [served.post(file=data, model="w", language="en", response_format=form, logprob_threshold=0,
                               no_speech_threshold=threshold) for threshold in (0, 1)]
        texts = [json.loads(answer)["text"] if "json" in form else answer for _, answer in answers]
        assert texts[0] == empty != texts[1]


def test_draws_follow_their_seed(served, rng):
    data = sound.encode(sound.speechlike(rng, 1))
    texts = [served.post(file=data, model="w", language="en", temperature=1.0, seed=seed)[1] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_many_at_once_capture_nothing_and_leave_no_page(served, rng):
    sounds = [sound.speechlike(rng, float(rng.uniform(0.1, 5))) for _ in range(12)]
    before = Scrape(served.daemon.metrics_url).total("reprise_compiles_total")
    heard = Scrape(served.daemon.metrics_url).total("reprise_audio_seconds_total")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda one: served.segments(one, language="en")[1], sounds))
    for samples, found in zip(sounds, answers):
        close(found, served.whisper.segments(samples, "en"))
    scrape = Scrape(served.daemon.metrics_url)
    assert scrape.total("reprise_compiles_total") == before
    assert scrape.total("reprise_audio_seconds_total") - heard == pytest.approx(sum(map(len, sounds)) / whisper.RATE, abs=.1)
    wait_until(lambda: Scrape(served.daemon.metrics_url).by("reprise_pages", "state", model="w").get("used", 0) == 0)


def flac_that_claims(samples):
    """Makes a FLAC whose header says that it has so many."""
    data = bytearray(sound.encode(np.zeros(2000), kind="flac"))
    place = 8 + 10  # after the mark, the block's head, and the sizes of blocks and frames
    bits = int.from_bytes(data[place:place + 8], "big")
    data[place:place + 8] = (bits >> 36 << 36 | samples).to_bytes(8, "big")
    return bytes(data)


def wav_header(channels=1, rate=16000, bits=16, kind=1, size=0):
    return (b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, kind, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits) +
            b"data" + struct.pack("<I", size))


@pytest.mark.parametrize("data, words", [
    (b"", "0 bytes is neither WAV, FLAC, MP3 nor OGG"),
    (b"hello, world, this is no sound", "neither WAV, FLAC, MP3 nor OGG"),
    (b"\0\0\0\x20ftypM4A \0\0\0\0", "MP4"),
    (b"\x1a\x45\xdf\xa3" + bytes(60), "WebM"),
    (wav_header(), "has no samples"),
    (wav_header()[:30], "no sound"),
    (b"fLaC" + bytes(100), "no sound"),
    (b"OggS" + bytes(100), "no sound"),
    (b"ID3" + bytes(100), "no s"),
    (wav_header(rate=7), "7 samples a second"),
    (wav_header(rate=2 ** 31 - 1, size=8) + bytes(8), "samples a second"),
    (flac_that_claims(2 ** 36 - 1), "seconds, the limit is 7200"),
    (sound.encode(np.full(4000, np.nan)), "not a number in second 0"),
])
def test_hostile_sounds_are_refused(served, data, words):
    code, answer = served.post(file=data, model="w", language="en")
    assert code == 400 and words in json.loads(answer)["error"]["message"], answer


def test_sounds_that_are_cut_say_what_they_still_hold(served, rng):
    for kind in ("flac", "ogg", "mp3", "wav16"):
        data = sound.encode(sound.speechlike(rng, 4), kind=kind)
        for size in (len(data) // 2, len(data) - 1, 60, 200):
            code, answer = served.post(file=data[:size], model="w", language="en")
            assert code in (200, 400), (kind, size, answer)


def test_bytes_that_were_changed_end_nothing(served, rng):
    for kind in ("flac", "ogg", "mp3", "wav"):
        data = sound.encode(sound.speechlike(rng, 1), kind=kind)
        for _ in range(25):
            changed = bytearray(data)
            for _ in range(rng.integers(1, 20)):
                changed[int(rng.integers(0, len(data) if rng.random() < 0.5 else 200))] = int(rng.integers(0, 256))
            code, answer = served.post(file=bytes(changed), model="w", language="en")
            assert code in (200, 400), (kind, answer)


@pytest.mark.parametrize("fields, words", [
    ({"model": "w"}, 'no part \\"file\\"'),
    ({"response_format": "x"}, "it must be json, text, verbose_json, srt, vtt"),
    ({"language": "klingon"}, "none of the model's 3"),
    ({"temperature": "hot"}, "must be a number"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": "nan"}, "temperature"),
    ({"stream": "maybe"}, "must be true or false"),
    ({"stream": "true", "response_format": "srt"}, "json or text"),
    ({"timestamp_granularities[]": "word"}, "cross attentions"),
    ({"timestamp_granularities[]": "letter"}, "segment is supported"),
    ({"logprob_threshold": "low"}, "must be a number"),
    ({"no_speech_threshold": "nan"}, "must be a number"),
    ({"timestamp_granularities[]": "segment"}, "needs"),
    ({"include[]": "logprobs"}, "not supported"),
])
def test_wishes_that_cannot_be_met_are_refused_by_name(served, fields, words):
    if "model" not in fields:
        fields = {"file": sound.encode(np.zeros(800)), "model": "w", **fields}
    code, answer = served.post(**fields)
    assert code == 400 and words in answer, answer


def test_requests_that_are_no_forms_and_models_that_hear_nothing(served):
    for body, kind in ((b"{}", "application/json"), (b"", "multipart/form-data"),
                       (b"--a\r\n", "multipart/form-data; boundary=a"), (b"x" * 100, "multipart/form-data; boundary=a")):
        code, answer = served.post(body=body, kind=kind)
        assert code == 400 and "error" in json.loads(answer)
    data = sound.encode(np.zeros(800))
    code, answer = served.post(file=data, model="nobody")
    assert code == 404 and json.loads(answer)["error"]["code"] == "model_not_found"
    code, answer = served.post(file=data)
    assert code == 400 and "2 models make texts of sound: en, w" in answer
    code, answer = served.post("/models/w/v1/audio/transcriptions", file=data, language="en")
    assert code == 200, answer


def test_a_sound_beyond_the_limit_is_refused_with_both_values(served):
    code, answer = served.post(file=sound.encode(np.zeros(16000 * 7)), model="en")
    assert code == 400 and "has 7 seconds, the limit is 5 (reprise.max_audio_seconds)" in answer


def test_a_client_that_leaves_ends_its_transcript(served, rng):
    body, kind = form([("file", sound.encode(sound.speechlike(rng, 200), kind="ogg")), ("model", "w"),
                       ("language", "en"), ("stream", "true")])
    request = urllib.request.Request(f"{served.daemon.http_url}{PATH}", body, {"Content-Type": kind})
    answer = urllib.request.urlopen(request, timeout=60)
    assert answer.readline().startswith(b"data: {\"type\":\"transcript.text.delta\"")
    answer.close()

    def generated():
        return Scrape(served.daemon.metrics_url).total("reprise_tokens_total", kind="generated")
    running = lambda: Scrape(served.daemon.metrics_url).total("reprise_sequences", state="running")
    wait_until(lambda: running() == 0)
    wait_until(lambda: (before := generated()) == generated() and running() == 0 and before > 0)


def test_files_that_cannot_be_used_are_named(tmp_path):
    for name, change, words in (
            ("kind", {"feature_extractor_type": "WhisperFeatureExtractorFast"}, "WhisperFeatureExtractorFast"),
            ("mels", {"feature_size": 0}, "feature_size is 0"),
            ("other", {"feature_extractor_type": "ViTFeatureExtractor"}, "no preprocessor_config.json of Whisper")):
        made = whisper.Whisper(tmp_path / name)
        (tmp_path / name / "preprocessor_config.json").write_text(json.dumps(made.shape.config() | change))
    with Daemon(tmp_path) as daemon:
        served = Served(daemon, None, None)
        data = sound.encode(np.zeros(800))
        for name, words in (("kind", "WhisperFeatureExtractorFast"), ("mels", "feature_size is 0"),
                            ("other", "no preprocessor_config.json of Whisper")):
            code, answer = served.post(file=data, model=name)
            assert code in (400, 412) and words in answer, (code, answer)
