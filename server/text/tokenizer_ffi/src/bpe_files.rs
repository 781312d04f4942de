//! vocab.json and merges.txt: BPE of bytes, as GPT-2, RoBERTa and DeBERTa have it, and of words that end
//! with a mark, as CLIP has it.

use std::collections::HashMap;

use serde_json::{json, Value};

use crate::classes::Family;
use crate::load::Config;
use crate::template::{bos_and_eos, special_token, template};
use crate::Failure;

/// The special tokens of a class, by the names that files give them.
const ROBERTA: &[(&str, &str)] = &[
    ("bos_token", "<s>"),
    ("pad_token", "<pad>"),
    ("eos_token", "</s>"),
    ("unk_token", "<unk>"),
    ("mask_token", "<mask>"),
    ("cls_token", "<s>"),
    ("sep_token", "</s>"),
];
const DEBERTA: &[(&str, &str)] = &[
    ("bos_token", "[CLS]"),
    ("eos_token", "[SEP]"),
    ("unk_token", "[UNK]"),
    ("pad_token", "[PAD]"),
    ("mask_token", "[MASK]"),
    ("cls_token", "[CLS]"),
    ("sep_token", "[SEP]"),
];
const GPT2: &[(&str, &str)] = &[
    ("bos_token", "<|endoftext|>"),
    ("eos_token", "<|endoftext|>"),
    ("unk_token", "<|endoftext|>"),
];
const CLIP: &[(&str, &str)] = &[
    ("bos_token", "<|startoftext|>"),
    ("eos_token", "<|endoftext|>"),
    ("unk_token", "<|endoftext|>"),
    ("pad_token", "<|endoftext|>"),
];

/// The words of CLIP.
const CLIP_WORDS: &str = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+";

fn parse_merges(merges: &str) -> Result<Vec<[&str; 2]>, Failure> {
    merges
        .lines()
        .filter(|line| !line.starts_with("#version") && !line.is_empty())
        .map(|line| {
            let (left, right) = line.split_once(' ').ok_or_else(|| {
                Failure::invalid(format!("merges.txt: the line \"{}\" is no pair", line))
            })?;
            Ok([left, right])
        })
        .collect()
}

fn processor(
    family: Family,
    prefix: bool,
    names: &[(&str, &str)],
    ids: &dyn Fn(&str) -> Option<usize>,
    config: &Config,
) -> Result<Value, Failure> {
    let name_of = |name: &str| {
        let default = names.iter().find(|(known, _)| *known == name).map_or("", |(_, token)| token);
        config.token(name, default)
    };
    let around = |first: &str, last: &str, trims: bool| -> Result<Value, Failure> {
        let (first, last) = (name_of(first), name_of(last));
        match (ids(&first), ids(&last)) {
            (Some(first_id), Some(last_id)) => Ok(json!({
                "type": "RobertaProcessing", "sep": [last, last_id], "cls": [first, first_id],
                "trim_offsets": trims, "add_prefix_space": prefix})),
            _ => Err(Failure::invalid(format!("vocab.json lacks {} or {}", first, last))),
        }
    };
    let asks = |name: &str| config.flag(name) == Some(true);
    match family {
        Family::Roberta => around("cls_token", "sep_token", true),
        Family::Clip => around("bos_token", "eos_token", false),
        Family::Deberta => {
            let (first, last) = (name_of("cls_token"), name_of("sep_token"));
            let single = format!("{} $A {}", first, last);
            let pair = format!("{} $A {} {} $B {}", first, last, last, last);
            template(&single, &pair, ids)
        }
        _ if asks("add_bos_token") || asks("add_eos_token") => {
            let (first, last) = (name_of("bos_token"), name_of("eos_token"));
            let first = asks("add_bos_token").then_some(first.as_str());
            let last = asks("add_eos_token").then_some(last.as_str());
            let (single, pair) = bos_and_eos(first, last);
            template(&single, &pair, ids)
        }
        _ => Ok(json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false,
                       "use_regex": true})),
    }
}

pub fn from_files(
    vocab: &[u8],
    merges: &str,
    family: Family,
    config: &Config,
) -> Result<Value, Failure> {
    let vocab: HashMap<String, usize> = serde_json::from_slice(vocab)
        .map_err(|error| Failure::invalid(format!("vocab.json: {}", error)))?;
    let merges = parse_merges(merges)?;
    let clip = family == Family::Clip;
    let prefix = config.flag("add_prefix_space").unwrap_or(false) && !clip;
    let names = match family {
        Family::Roberta => ROBERTA,
        Family::Deberta => DEBERTA,
        Family::Clip => CLIP,
        _ => GPT2,
    };
    let mut added: Vec<Value> = Vec::new();
    for (name, default) in names {
        let token = config.token(name, default);
        let Some(id) = vocab.get(&token) else { continue };
        if !added.iter().any(|one| one["id"].as_u64() == Some(*id as u64)) {
            added.push(special_token(*id, &token, *name == "mask_token"));
        }
    }
    added.sort_by_key(|token| token["id"].as_u64());
    let ids = |token: &str| vocab.get(token).copied();
    let processor = processor(family, prefix, names, &ids, config)?;
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true,
                       "use_regex": true});
    let (normalizer, pre_tokenizer) = if clip {
        (json!({"type": "Sequence", "normalizers": [
            {"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
            {"type": "Lowercase"}]}),
         json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": CLIP_WORDS}, "behavior": "Removed",
             "invert": true}, bytes]}))
    } else {
        (Value::Null, bytes)
    };
    let unknown = clip.then(|| config.token("unk_token", "<|endoftext|>"));
    let suffix = if clip { "</w>" } else { "" };
    Ok(json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": processor,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                    "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": unknown,
                  "continuing_subword_prefix": "", "end_of_word_suffix": suffix, "fuse_unk": false,
                  "byte_fallback": false, "vocab": vocab, "merges": merges},
    }))
}
