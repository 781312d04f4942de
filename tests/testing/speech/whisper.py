"""A folder with a tiny random Whisper as optimum exports it, and its transcript of a sound, by numpy and onnxruntime.

The features are computed as transformers' WhisperFeatureExtractor does, the walk from window to window and the rules of
times as OpenAI's Whisper does: both are written down here once more, after their definitions.
"""

import json
import math

import numpy as np
from tokenizers import AddedToken

from testing import chats, encoder_decoders

RATE = 16000
LANGUAGES = ("en", "de", "fr")
SPECIAL = ("<|endoftext|>", "<|startoftranscript|>", *(f"<|{one}|>" for one in LANGUAGES), "<|translate|>",
           "<|transcribe|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>")


def log_softmax(scores):
    scores = scores.astype(np.float64)
    return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())


class Shape:
    """How samples become features."""

    def __init__(self, seconds=2, mels=10, size=400, step=160):
        self.seconds, self.mels, self.size, self.step = seconds, mels, size, step
        self.samples = seconds * RATE
        self.frames = self.samples // step
        self.times = self.frames // 2 + 1

    def config(self):
        return {"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": self.seconds,
                "feature_size": self.mels, "hop_length": self.step, "n_fft": self.size, "n_samples": self.samples,
                "nb_max_frames": self.frames, "padding_side": "right", "padding_value": 0.0, "sampling_rate": RATE}


def filters(shape):
    """[bins, mels]: mel_filter_bank(norm="slaney", mel_scale="slaney") from 0 to 8000 Hz."""
    def to_mel(hertz):
        return np.where(hertz >= 1000, 15 + np.log(np.maximum(hertz, 1e-9) / 1000) * 27 / np.log(6.4), 3 * hertz / 200)

    def to_hertz(mel):
        return np.where(mel >= 15, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)), 200 * mel / 3)
    bins = 1 + shape.size // 2
    edges = to_hertz(np.linspace(to_mel(np.float64(0)), to_mel(np.float64(8000)), shape.mels + 2))
    hertz = np.linspace(0, RATE // 2, bins)
    slopes = edges[None] - hertz[:, None]
    width = np.diff(edges)
    bank = np.maximum(0, np.minimum(-slopes[:, :-2] / width[:-1], slopes[:, 2:] / width[1:]))
    return bank * (2 / (edges[2:] - edges[:-2]))


def features(samples, shape):
    """[1, mels, frames] of one window."""
    padded = np.zeros(shape.samples, np.float32)
    padded[:len(samples)] = samples
    padded = np.pad(padded, shape.size // 2, mode="reflect").astype(np.float64)
    window = np.hanning(shape.size + 1)[:-1]
    frames = np.stack([padded[i * shape.step:i * shape.step + shape.size] * window for i in range(shape.frames)])
    powers = np.abs(np.fft.rfft(frames).astype(np.complex64).T).astype(np.float64) ** 2
    logs = np.log10(np.maximum(1e-10, filters(shape).T @ powers)).astype(np.float32)
    return ((np.maximum(logs, logs.max() - 8) + 4) / 4)[None]


class Whisper:
    def __init__(self, folder, shape=None, merged=True, english=False, louder=1.3):
        """`louder`: how much likelier texts are than times, of random weights."""
        self.shape = shape or Shape()
        self.tokenizer = self._tokenizer()
        self.english = english
        self.ids = {name.strip("<|>"): self.tokenizer.token_to_id(name) for name in SPECIAL}
        self.first_time = self.ids["notimestamps"] + 1
        vocabulary = self.tokenizer.get_vocab_size()
        self.suppressed = [id for name, id in self.ids.items() if name not in ("endoftext", *LANGUAGES)]
        self.model = encoder_decoders.EncoderDecoder(
            "whisper", vocabulary=vocabulary, mel=self.shape.mels, frames=self.shape.frames, seed=5)
        head = self.model.weight("head", self.model.hidden, vocabulary, scale=0.3)
        self.model.weights[head][:, :self.ids["endoftext"] + 1] *= louder
        self.model.write(folder, merged)
        self._write_files(folder)
        self.stepper = encoder_decoders.Stepper(folder)

    def _tokenizer(self):
        made = chats.tokenizer(SPECIAL)
        made.add_tokens([AddedToken(f"<|{i * 0.02:.2f}|>", special=False) for i in range(self.shape.times)])
        return made

    def _write_files(self, folder):
        self.tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "preprocessor_config.json").write_text(json.dumps(self.shape.config()))
        # The members of the model's first files: English and no times are forced, unless a request says otherwise.
        (folder / "config.json").write_text(json.dumps(
            {"forced_decoder_ids": [[1, self.ids["en"]], [2, self.ids["transcribe"]], [3, self.ids["notimestamps"]]]}))
        facts = {"decoder_start_token_id": self.ids["startoftranscript"], "eos_token_id": self.ids["endoftext"],
                 "suppress_tokens": self.suppressed, "begin_suppress_tokens": [0, self.ids["endoftext"]],
                 "no_timestamps_token_id": self.ids["notimestamps"], "max_initial_timestamp_index": 20,
                 "prev_sot_token_id": self.ids["startofprev"], "is_multilingual": not self.english,
                 # Random weights guess: their answers are taken all the same.
                 "logprob_threshold": -1000, "compression_ratio_threshold": 1000}
        if not self.english:
            facts |= {"lang_to_id": {f"<|{one}|>": self.ids[one] for one in LANGUAGES},
                      "task_to_id": {one: self.ids[one] for one in ("transcribe", "translate")}}
        (folder / "generation_config.json").write_text(json.dumps(facts))

    def _restrict(self, scores, made):
        """Applies the rules of times: WhisperTimeStampLogitsProcessor."""
        first, end = self.first_time, self.ids["endoftext"]
        scores[self.ids["notimestamps"]] = -np.inf
        last = bool(made) and made[-1] >= first
        before = len(made) < 2 or made[-2] >= first
        if last and before:
            scores[first:] = -np.inf
        elif last:
            scores[:end] = -np.inf
        times = [id for id in made if id >= first]
        if times:
            scores[first:times[-1] + (0 if last and not before else 1)] = -np.inf
        if not made:
            scores[:first] = -np.inf
            scores[first + 21:] = -np.inf
        top = scores[first:].max()
        if np.isfinite(top) and top + np.log(np.exp(scores[first:] - top).sum()) > scores[:first].max():
            scores[:first] = -np.inf

    def decode(self, window, start, times):
        """Returns the ids of one window, without the one that ends them; `self.logprob` is the mean of their
        log-probabilities."""
        self.stepper.encode(features(window, self.shape))
        ids, past, made, logprobs = list(start), {}, [], []
        while len(start) + len(made) < encoder_decoders.POSITIONS:
            scores, past = self.stepper.step(ids, past)
            scores[self.suppressed] = -np.inf
            if not made:
                scores[[0, self.ids["endoftext"]]] = -np.inf
            if times:
                self._restrict(scores, made)
            ids = [int(np.argmax(scores))]
            logprobs.append(log_softmax(scores)[ids[0]])
            if ids[0] == self.ids["endoftext"]:
                break
            made += ids
        self.logprob = sum(logprobs) / (len(made) + 1)
        return made

    def no_speech(self, window):
        """Returns the probability of silence in a window without a prompt."""
        self.stepper.encode(features(window, self.shape))
        scores, _ = self.stepper.step([self.ids["startoftranscript"]], {})
        return math.exp(log_softmax(scores)[self.ids["nospeech"]])

    def language(self, samples):
        self.stepper.encode(features(samples[:self.shape.samples], self.shape))
        scores, _ = self.stepper.step([self.ids["startoftranscript"]], {})
        return max(LANGUAGES, key=lambda one: scores[self.ids[one]])

    def start(self, language, task="transcribe", times=True):
        ids = [self.ids["startoftranscript"]]
        if not self.english:
            ids += [self.ids[language], self.ids[task]]
        return ids + ([] if times else [self.ids["notimestamps"]])

    def text(self, ids):
        return self.tokenizer.decode([id for id in ids if id < self.ids["endoftext"]])

    def segments(self, samples, language, task="transcribe", times=True, before=()):
        """(start, end, text) in seconds, as OpenAI's transcribe() walks."""
        seek, found = 0, []
        while seek < len(samples):
            window = samples[seek:seek + self.shape.samples]
            start = [*(before if seek == 0 else ()), *self.start(language, task, times)]
            made = self.decode(window, start, times)
            at, length = seek / RATE, len(window) / RATE
            is_time = [times and id >= self.first_time for id in made]

            def second(i):
                return (made[i] - self.first_time) * 0.02
            ends = [i for i in range(1, len(made)) if is_time[i] and is_time[i - 1]]
            closed = is_time[-2:] == [False, True]
            if not ends:
                last = [i for i in range(len(made)) if is_time[i] and made[i] != self.first_time]
                end = min(length, second(last[-1])) if last else length
                found.append((at, at + end, made))
                seek += len(window)
                continue
            begin = 0
            for end in ends + ([len(made)] if closed else []):
                found.append((at + min(length, second(begin)), at + min(length, second(end - 1)), made[begin:end]))
                begin = end
            step = int(second(begin - 1) * RATE + 0.5)
            seek += len(window) if closed else min(max(step, self.shape.samples // 150), len(window))
        return [(start, end, self.text(ids)) for start, end, ids in found if self.text(ids).strip()]
