"""A folder with a tiny decoder that chats: a tokenizer of bytes with some words, and a chat template."""

import json

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from testing import decoders as tiny

WORDS = ("the", "sky", "is", "blue", "END")
SPECIAL = ("<|im_start|>", "<|im_end|>", "<|tool|>")
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
            "{% if m.tool_calls %}<tool_call>{{ m.tool_calls | tojson }}</tool_call>{% endif %}<|im_end|>\n"
            "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tokenizer(special=SPECIAL):
    """Makes each byte a token, and some words with a blank in front, as GPT-2 has them."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: id for id, letter in enumerate(letters)}
    merges = []
    for word in WORDS:
        token = "Ġ"
        for letter in word:
            if (token, letter) not in merges:
                merges.append((token, letter))
            token += letter
            vocabulary.setdefault(token, len(vocabulary))
    made = Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True) for token in special])
    return made


def write_texts(folder, **config):
    """Writes the files of the texts next to a model; the tokenizer."""
    made = tokenizer()
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": TEMPLATE, "eos_token": "<|im_end|>", **config}))
    (folder / "1" / "generation_config.json").write_text(
        json.dumps({"eos_token_id": made.token_to_id("<|im_end|>")}))
    return made


def write(folder, context=2048, **config):
    """Writes the model's folder; its tokenizer."""
    (folder / "1").mkdir(parents=True)
    model = tiny.make("gqa", vocabulary=tokenizer().get_vocab_size(), context=context)
    (folder / "1" / "model.onnx").write_bytes(model.SerializeToString())
    return write_texts(folder, **config)
