"""Tokenizers of many kinds, trained on a few sentences, and texts that are hard on them.

The package `tokenizers` both makes them and gives the right tokens.
"""

import random
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog is not amused at all.",
    "Reprise captures a graph once and replays it for every request that fits.",
    "Schöne Grüße aus Köln! Überall hört man fröhliche Lieder.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "日本語の文章は空白で区切られていません。東京は大きい都市です。",
    "안녕하세요 세계, 오늘 날씨가 좋네요.",
    "مرحبا بالعالم، كيف حالك اليوم؟",
    "שלום עולם, מה שלומך היום?",
    "नमस्ते दुनिया, आज मौसम अच्छा है।",
    "Γειά σου Κόσμε, τι κάνεις σήμερα;",
    "def f(x):\n    return {'a': [1, 2.5e-3], \"b\": x ** 2}  # comment",
    "Emojis 😀😃🎉👩‍👩‍👧‍👦🏳️‍🌈 and flags 🇩🇪🇫🇷 here.",
    "Prices: $1,234.56, 99% off; call +49-221-123456 or mail a.b@c-d.org!",
] * 4

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def trained(model, trainer, *, normalizer=None, pre=None, post=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(CORPUS, trainer)
    if post is not None:
        tokenizer.post_processor = post(tokenizer)
    if decoder is not None:
        tokenizer.decoder = decoder
    return tokenizer


def bert_template(tokenizer):
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    return processors.TemplateProcessing(single="[CLS] $A [SEP]",
                                         pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)


def roberta(tokenizer):
    return processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")),
                                        ("<s>", tokenizer.token_to_id("<s>")),
                                        trim_offsets=True, add_prefix_space=True)


def wordpiece(lowercase):
    return trained(models.WordPiece(unk_token="[UNK]"),
                   trainers.WordPieceTrainer(show_progress=False, vocab_size=600, special_tokens=SPECIAL),
                   normalizer=normalizers.BertNormalizer(lowercase=lowercase),
                   pre=pre_tokenizers.BertPreTokenizer(), post=bert_template,
                   decoder=decoders.WordPiece())


def byte_bpe():
    return trained(models.BPE(),
                   trainers.BpeTrainer(show_progress=False, vocab_size=800, special_tokens=ROBERTA,
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                   pre=pre_tokenizers.ByteLevel(add_prefix_space=True), post=roberta,
                   decoder=decoders.ByteLevel())


def gpt4_like():
    """Cuts words by a regular expression, and merges bytes."""
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return trained(models.BPE(),
                   trainers.BpeTrainer(show_progress=False, vocab_size=800, special_tokens=["<|endoftext|>"],
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                   normalizer=normalizers.NFC(), pre=pre, decoder=decoders.ByteLevel())


def plain_bpe():
    return trained(models.BPE(unk_token="[UNK]", fuse_unk=True),
                   trainers.BpeTrainer(show_progress=False, vocab_size=500, special_tokens=SPECIAL),
                   normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(),
                                                    normalizers.StripAccents()]),
                   pre=pre_tokenizers.Whitespace(), post=bert_template)


def clip_like():
    """Words end with a mark of their own."""
    return trained(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
                   trainers.BpeTrainer(show_progress=False, vocab_size=500, special_tokens=SPECIAL,
                                       end_of_word_suffix="</w>"),
                   normalizer=normalizers.Sequence([normalizers.NFC(),
                                                    normalizers.Replace(Regex(r"\s+"), " "),
                                                    normalizers.Lowercase()]),
                   pre=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(),
                                                pre_tokenizers.Digits(individual_digits=True)]),
                   decoder=decoders.BPEDecoder())


def metaspace_bpe():
    """Makes BPE as sentencepiece writes it, with bytes for characters that no piece has."""
    tokenizer = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
                        trainers.BpeTrainer(show_progress=False, vocab_size=900, special_tokens=["<unk>", "<s>", "</s>"] +
                                            [f"<0x{i:02X}>" for i in range(256)]),
                        normalizer=normalizers.Sequence([normalizers.Prepend("▁"),
                                                         normalizers.Replace(" ", "▁")]),
                        decoder=decoders.Sequence([decoders.Replace("▁", " "),
                                                   decoders.ByteFallback(), decoders.Fuse(),
                                                   decoders.Strip(" ", 1, 0)]))
    return tokenizer


def unigram():
    return trained(models.Unigram(),
                   trainers.UnigramTrainer(show_progress=False, vocab_size=400, special_tokens=ROBERTA,
                                           unk_token="<unk>"),
                   normalizer=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                                    normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre=pre_tokenizers.Metaspace(),
                   post=lambda t: processors.TemplateProcessing(
                       single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                       special_tokens=[("<s>", t.token_to_id("<s>")),
                                       ("</s>", t.token_to_id("</s>"))]),
                   decoder=decoders.Metaspace())


def word_level():
    return trained(models.WordLevel(unk_token="[UNK]"),
                   trainers.WordLevelTrainer(show_progress=False, vocab_size=300, special_tokens=SPECIAL),
                   normalizer=normalizers.Strip(),
                   pre=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                pre_tokenizers.Punctuation("isolated")]),
                   post=bert_template)


def scripts_bpe():
    return trained(models.BPE(unk_token="[UNK]"),
                   trainers.BpeTrainer(show_progress=False, vocab_size=500, special_tokens=SPECIAL),
                   pre=pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(),
                                                pre_tokenizers.CharDelimiterSplit(" ")]))


def with_added_tokens():
    """Words that are found before all else: with blanks eaten on a side, and only as whole words."""
    tokenizer = wordpiece(lowercase=True)
    tokenizer.add_tokens([AddedToken("Reprise", single_word=True, normalized=False),
                          AddedToken("graph capture", normalized=True)])
    tokenizer.add_special_tokens([AddedToken("<|tool|>", lstrip=True, rstrip=True)])
    return tokenizer


def truncating():
    """Writes into the file how to cut and to pad, which is the caller's matter here."""
    tokenizer = wordpiece(lowercase=False)
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=16)
    return tokenizer


KINDS = {
    "wordpiece_uncased": lambda: wordpiece(True),
    "wordpiece_cased": lambda: wordpiece(False),
    "byte_bpe": byte_bpe,
    "gpt4_like": gpt4_like,
    "plain_bpe": plain_bpe,
    "clip_like": clip_like,
    "metaspace_bpe": metaspace_bpe,
    "unigram": unigram,
    "word_level": word_level,
    "scripts_bpe": scripts_bpe,
    "with_added_tokens": with_added_tokens,
    "truncating": truncating,
}

# People send these by accident or on purpose.
HARD = [
    "", " ", "\n", "\t \r\n ", "\u00a0\u2003\u200b\ufeff", "a", "\u0000", "\u0001\u0007\u001b[31m",
    "\ufffd", "\ud7ff\ue000", "a\u0301\u0301\u0301", "e\u0301 é ﬁ ﬂ ½ Ⅷ ① ｆｕｌｌ", "\u202eright to left\u202c",
    "👨‍👩‍👧‍👦👨‍👩‍👧‍👦", "🇩🇪🇫🇷🇯🇵", "☠️❤️‍🔥", "x" * 300, "ab" * 2000, " " * 1000, "!" * 500, "日" * 400,
    "[CLS] [SEP] [MASK] <s> </s> <unk> <|endoftext|>", "<|tool|> Reprise graph capture  Reprised",
    "Zażółć gęślą jaźń", "İstanbul ıI", "ß ẞ SS", "Ǆ ǆ ǅ", "ﷺ", "𝓗𝓮𝓵𝓵𝓸 𝟙𝟚𝟛", "\U0001f9d1\u200d\U0001f680",
    "don't won't I'll they've 'quoted'", "a.b.c...d,,,e;;f", "1234567890 12,345.678e-9", "__init__ snake_case CamelCase",
    "mixed日本語and한국어andعربي", "tab\tseparated\tvalues\nnew\r\nlines\r", "\\n \\t \\u0041",
]


def texts(count, seed=1):
    """Hard texts, and random ones over many scripts."""
    rng = random.Random(seed)
    ranges = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x4ff),
              (0x590, 0x5ff), (0x600, 0x6ff), (0x900, 0x97f), (0xe00, 0xe7f), (0x1100, 0x11ff),
              (0x2000, 0x206f), (0x20a0, 0x20bf), (0x2190, 0x21ff), (0x3040, 0x30ff),
              (0x4e00, 0x4fff), (0xac00, 0xacff), (0xfb00, 0xfb4f), (0xfe00, 0xfe0f),
              (0xff00, 0xffef), (0x1f300, 0x1f64f), (0x1d400, 0x1d4ff), (0x0, 0x1f)]
    words = " ".join(CORPUS).split()
    made = list(HARD)
    while len(made) < count:
        parts = []
        for _ in range(rng.randint(1, 12)):
            if rng.random() < 0.5:
                parts.append(rng.choice(words))
            else:
                low, high = rng.choice(ranges)
                parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 8))))
        text = rng.choice([" ", " ", "", "  ", "\n"]).join(parts)
        made.append(unicodedata.normalize("NFD", text) if rng.random() < 0.2 else text)
    return made[:count]
