//! vocab.txt: a WordPiece vocabulary, a token a line, as BERT and MPNet have it.

use std::collections::HashMap;

use serde_json::{json, Value};

use crate::classes::Family;
use crate::load::Config;
use crate::template::{special_token, template};
use crate::Failure;

/// The special tokens of a class, by the names that files give them.
const BERT: [(&str, &str); 5] = [
    ("pad_token", "[PAD]"),
    ("unk_token", "[UNK]"),
    ("cls_token", "[CLS]"),
    ("sep_token", "[SEP]"),
    ("mask_token", "[MASK]"),
];
const MPNET: [(&str, &str); 7] = [
    ("pad_token", "<pad>"),
    ("unk_token", "[UNK]"),
    ("cls_token", "<s>"),
    ("sep_token", "</s>"),
    ("mask_token", "<mask>"),
    ("bos_token", "<s>"),
    ("eos_token", "</s>"),
];

pub fn from_vocab(text: &str, family: Family, config: &Config) -> Result<Value, Failure> {
    let mut vocab: HashMap<&str, usize> = HashMap::new();
    for (id, line) in text.split('\n').enumerate() {
        let token = line.strip_suffix('\r').unwrap_or(line);
        // The last line ends the file, or is a token.
        if !token.is_empty() {
            vocab.insert(token, id);
        }
    }
    let mpnet = family == Family::MpNet;
    let names: &[(&str, &str)] = if mpnet { &MPNET } else { &BERT };
    let mut added: Vec<Value> = Vec::new();
    for (name, default) in names {
        let token = config.token(name, default);
        let Some(id) = vocab.get(token.as_str()) else {
            if matches!(*name, "unk_token" | "cls_token" | "sep_token") {
                return Err(Failure::invalid(format!("vocab.txt has no {} {}", name, token)));
            }
            continue;
        };
        if !added.iter().any(|one| one["id"].as_u64() == Some(*id as u64)) {
            added.push(special_token(*id, &token, mpnet && *name == "mask_token"));
        }
    }
    added.sort_by_key(|token| token["id"].as_u64());
    let unknown = config.token("unk_token", names[1].1);
    let first = config.token("cls_token", names[2].1);
    let separator = config.token("sep_token", names[3].1);
    let ids = |token: &str| vocab.get(token).copied();
    let processor = if mpnet {
        json!({"type": "RobertaProcessing", "sep": [separator, ids(&separator)],
               "cls": [first, ids(&first)], "trim_offsets": true, "add_prefix_space": false})
    } else {
        let single = format!("{}:0 $A:0 {}:0", first, separator);
        let pair = if family == Family::Splinter {
            let question = config.token("question_token", "[QUESTION]");
            format!("{}:0 $A:0 {}:0 .:0 {}:0 $B:1 {}:1", first, question, separator, separator)
        } else {
            format!("{}:0 $A:0 {}:0 $B:1 {}:1", first, separator, separator)
        };
        template(&single, &pair, &ids)?
    };
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
        "post_processor": processor,
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
