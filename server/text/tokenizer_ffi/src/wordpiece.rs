//! vocab.txt: a WordPiece vocabulary, a token a line, as BERT has it.

use std::collections::HashMap;

use serde_json::{json, Value};

use crate::load::Config;
use crate::template::{special_token, template};
use crate::Failure;

pub fn from_vocab(text: &str, config: &Config) -> Result<Value, Failure> {
    let mut vocab: HashMap<&str, usize> = HashMap::new();
    for (id, line) in text.split('\n').enumerate() {
        let token = line.strip_suffix('\r').unwrap_or(line);
        // The last line ends the file, or is a token.
        if !token.is_empty() {
            vocab.insert(token, id);
        }
    }
    let unknown = config.token("unk_token", "[UNK]");
    let separator = config.token("sep_token", "[SEP]");
    let first = config.token("cls_token", "[CLS]");
    for (name, token) in [("unk_token", &unknown), ("sep_token", &separator), ("cls_token", &first)] {
        if !vocab.contains_key(token.as_str()) {
            return Err(Failure::invalid(format!("vocab.txt has no {} {}", name, token)));
        }
    }
    let mut added = Vec::new();
    let padding = config.token("pad_token", "[PAD]");
    let mask = config.token("mask_token", "[MASK]");
    for token in [&padding, &unknown, &first, &separator, &mask] {
        if let Some(id) = vocab.get(token.as_str()) {
            added.push(special_token(*id, token, false));
        }
    }
    added.sort_by_key(|token| token["id"].as_u64());
    let single = format!("{}:0 $A:0 {}:0", first, separator);
    let pair = format!("{}:0 $A:0 {}:0 $B:1 {}:1", first, separator, separator);
    let ids = |token: &str| vocab.get(token).copied();
    Ok(json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": config.flag("tokenize_chinese_chars").unwrap_or(true),
            "strip_accents": config.flag("strip_accents"),
            "lowercase": config.flag("do_lower_case").unwrap_or(true),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template(&single, &pair, &ids),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }))
}
