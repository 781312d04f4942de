"""Tokens of a GGUF file are the same as its original tokenizer's, for each kind of vocabulary."""

import io
import json
import os
import re

import gguf
import pytest
import sentencepiece
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

from testing import tokenizer_kinds
from testing.daemon import SOURCE, reprise
from test_tokenizers import lines

# REPRISE_TEXTS=100000 compares that many.
TEXTS = tokenizer_kinds.texts(int(os.environ.get("REPRISE_TEXTS", 800)))
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

# How the tokenizer.json of models with each pre-tokenizer cuts texts.
WORDS = {
    "llama-bpe": (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                  r"|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "qwen2": (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
              r"|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "gpt-4o": (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
               r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
               r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "tekken": (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
               r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "gpt-2": None,
}
# The pre-tokenizers, by the tokenizer.json of their models: the words above; digits that are words of
# their own; NFC; words that are tokens whatever the merges say; and a token in front of a text.
PRE = {
    **{name: dict(words="gpt-2") for name in ("gpt-2", "default", "phi-2", "jina-en", "roberta-bpe")},
    **{name: dict(words="gpt-2", nfc=True) for name in ("mpt", "olmo")},
    **{name: dict(words="gpt-2", digits=True) for name in ("smollm", "starcoder", "refact")},
    "command-r": dict(words="gpt-2", digits=True, nfc=True),
    **{name: dict(words="llama-bpe", whole=True, begins=True)
       for name in ("llama-bpe", "llama3", "llama-v3", "falcon3")},
    **{name: dict(words="llama-bpe") for name in ("dbrx", "smaug-bpe")},
    **{name: dict(words="qwen2", nfc=True) for name in ("qwen2", "deepseek-r1-qwen", "stablelm2")},
    "gpt-4o": dict(words="gpt-4o"),
    "tekken": dict(words="tekken", whole=True, begins=True),
}


def write(path, members):
    """Writes a file with nothing but its members."""
    writer = gguf.GGUFWriter(path, "llama")
    members(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def byte_pairs(words, digits=False, nfc=False, whole=False, begins=False):
    """Trains a tokenizer as those models have it."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=whole))
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=WORDS[words] is None)
    if WORDS[words] is not None:
        cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS[words]), "isolated"), cut])
    elif digits:
        cut = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), cut])
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.train_from_iterator(tokenizer_kinds.CORPUS, trainers.BpeTrainer(
        show_progress=False, vocab_size=900, special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if begins:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A", pair="<|endoftext|> $A <|endoftext|>:1 $B:1",
            special_tokens=[("<|endoftext|>", 0)])
    return tokenizer


def test_every_pre_tokenizer_is_tried():
    table = (SOURCE / "server/hub/gguf_tokenizer.cc").read_text().split("kWords[] = {")[1].split("};")[0]
    assert set(re.findall(r'\{"([^"]+)"', table)) == set(PRE)


@pytest.mark.parametrize("pre", PRE)
def test_byte_pairs_are_those_of_each_pre_tokenizer(pre, tmp_path):
    tokenizer = byte_pairs(**PRE[pre])
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)

    def members(writer):
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(tokens)
        writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
        writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(2)
    path = write(tmp_path / "model.gguf", members)
    texts = TEXTS + ["<|im_start|>user\nIt's 12345 o'clock, I'LL go.<|im_end|>\n", "  a   b\n\n c\t"]
    for text, answer in zip(texts, lines(path, texts), strict=True):
        assert answer["ids"] == tokenizer.encode(text).ids, text
    ids = [tokenizer.encode(text).ids for text in TEXTS[:200]]
    assert lines(path, ids, "--decode") == [tokenizer.decode(one, skip_special_tokens=False) for one in ids]


def pieces(kind, **options):
    """Makes a model of sentencepiece."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tokenizer_kinds.CORPUS), model_writer=model, model_type=kind, vocab_size=600,
        hard_vocab_limit=False, minloglevel=2, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def add_pieces(writer, model, name):
    writer.add_tokenizer_model(name)
    count = model.get_piece_size()
    writer.add_token_list([model.id_to_piece(i) for i in range(count)])
    writer.add_token_scores([model.get_score(i) for i in range(count)])
    writer.add_token_types([2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1
                            for i in range(count)])


def readable(texts):
    """Without the marks of sentencepiece itself, and names of special pieces, which stand for themselves here."""
    return [text for text in texts if not any(mark in text for mark in ("\u2581", "<", "\0"))]


@pytest.mark.parametrize("spaced", [True, False])
def test_pieces_of_a_llama_are_those_of_sentencepiece(spaced, tmp_path):
    model = pieces("bpe", byte_fallback=True, normalization_rule_name="identity",
                   remove_extra_whitespaces=False, add_dummy_prefix=spaced, unk_id=0, bos_id=1, eos_id=2,
                   character_coverage=0.98)

    def members(writer):
        add_pieces(writer, model, "llama")
        writer.add_add_space_prefix(spaced)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_add_bos_token(True)
    path = write(tmp_path / "model.gguf", members)
    texts = [text for text in readable(TEXTS) if text]
    for text, answer in zip(texts, lines(path, texts), strict=True):
        assert answer["ids"] == [1, *model.encode(text)], text
    ids = [model.encode(text) for text in texts[:200]]
    assert lines(path, ids, "--decode") == [model.decode(one) for one in ids]


def test_unigram_pieces_are_those_of_sentencepiece(tmp_path):
    model = pieces("unigram", normalization_rule_name="nmt_nfkc", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    normalizer = field(model.serialized_model_proto(), 3)
    charsmap = field(normalizer, 2)

    def members(writer):
        add_pieces(writer, model, "t5")
        writer.add_precompiled_charsmap(charsmap)
        writer.add_remove_extra_whitespaces(True)
        writer.add_eos_token_id(1)
        writer.add_unk_token_id(2)
    path = write(tmp_path / "model.gguf", members)
    # The result of the crate `tokenizers` for such a model: test_tokenizers.py holds it to sentencepiece.
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/spiece.model").write_bytes(model.serialized_model_proto())
    expected = lines(tmp_path / "folder", TEXTS)
    for text, answer, wanted in zip(TEXTS, lines(path, TEXTS), expected, strict=True):
        assert answer["ids"] == [*wanted["ids"], 1], text


def field(message, wanted):
    """Returns the bytes of field `wanted` of a protocol buffer whose fields are texts, messages and single bytes."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 128:
                return value, at
    at = 0
    while at < len(message):
        tag, at = varint(at)
        if tag & 7 == 5:
            at += 4
            continue
        size, at = varint(at)
        if tag & 7 == 2:
            if tag >> 3 == wanted:
                return message[at:at + size]
            at += size
    raise AssertionError(f"no field {wanted}")


@pytest.mark.parametrize("lower", [True, False])
def test_word_pieces_are_those_of_bert(lower, tmp_path):
    tokenizer = tokenizer_kinds.wordpiece(lower)
    vocab = tokenizer.get_vocab()
    tokens = sorted(vocab, key=vocab.get)

    def members(writer):
        writer.add_tokenizer_model("bert")
        writer.add_token_list([token if token.startswith("[") and token.endswith("]") else
                               token[2:] if token.startswith("##") else "\u2581" + token for token in tokens])
        writer.add_token_types([3 if token in tokenizer_kinds.SPECIAL else 1 for token in tokens])
    path = write(tmp_path / "model.gguf", members)
    for text, answer in zip(TEXTS, lines(path, TEXTS), strict=True):
        assert answer["ids"] == tokenizer.encode(text).ids, text


def test_what_is_not_known_is_refused_by_name(tmp_path):
    def tried(**changes):
        def members(writer):
            writer.add_tokenizer_model(changes.get("model", "gpt2"))
            writer.add_tokenizer_pre(changes.get("pre", "gpt-2"))
            writer.add_token_list(["a", "b", "ab"])
            writer.add_token_types(changes.get("types", [1, 1, 1]))
            writer.add_token_merges(changes.get("merges", ["a b"]))
            if "bos" in changes:
                writer.add_bos_token_id(changes["bos"])
                writer.add_add_bos_token(True)
            if "eos" in changes:
                writer.add_eos_token_id(changes["eos"])
        path = write(tmp_path / "model.gguf", members)
        return reprise("tokenize", path, "ab", check=False).stderr
    assert tried() == ""
    assert "pre-tokenizer 'viking' is not supported" in tried(pre="viking")
    assert "a tokenizer 'rwkv' is not supported" in tried(model="rwkv")
    assert "'tokenizer.ggml.token_type' has 2 entries for 3 tokens" in tried(types=[1, 1])
    assert "'ab' is not a pair" in tried(merges=["ab"])
    assert "'tokenizer.ggml.bos_token_id' is 7 of 3 tokens" in tried(bos=7)
    assert "'tokenizer.ggml.eos_token_id' is 3 of 3 tokens" in tried(eos=3)
    assert "there is no member 'tokenizer.ggml.scores'" in tried(model="llama")
