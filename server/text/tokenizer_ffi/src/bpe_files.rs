//! vocab.json and merges.txt: byte-level BPE, as GPT-2 and RoBERTa have it.

use std::collections::HashMap;

use serde_json::{json, Value};

use crate::load::Config;
use crate::template::special_token;
use crate::Failure;

pub fn from_files(vocab: &[u8], merges: &str, config: &Config) -> Result<Value, Failure> {
    let vocab: HashMap<String, usize> = serde_json::from_slice(vocab)
        .map_err(|error| Failure::invalid(format!("vocab.json: {}", error)))?;
    let merges: Vec<[&str; 2]> = merges
        .lines()
        .filter(|line| !line.starts_with("#version") && !line.is_empty())
        .map(|line| {
            let (left, right) = line.split_once(' ').ok_or_else(|| {
                Failure::invalid(format!("merges.txt: the line \"{}\" is no pair", line))
            })?;
            Ok([left, right])
        })
        .collect::<Result<_, Failure>>()?;
    let roberta = matches!(config.class(), "Roberta" | "Longformer" | "Bart" | "MPNet");
    let prefix = config.flag("add_prefix_space").unwrap_or(false);
    let names: &[(&str, &str)] = if roberta {
        &[("bos_token", "<s>"), ("pad_token", "<pad>"), ("eos_token", "</s>"),
          ("unk_token", "<unk>"), ("mask_token", "<mask>")]
    } else {
        &[("bos_token", "<|endoftext|>"), ("eos_token", "<|endoftext|>"),
          ("unk_token", "<|endoftext|>")]
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
    let processor = if roberta {
        let bos = config.token("bos_token", "<s>");
        let eos = config.token("eos_token", "</s>");
        match (vocab.get(&bos), vocab.get(&eos)) {
            (Some(bos_id), Some(eos_id)) => json!({
                "type": "RobertaProcessing", "sep": [eos, eos_id], "cls": [bos, bos_id],
                "trim_offsets": true, "add_prefix_space": prefix}),
            _ => return Err(Failure::invalid(format!("vocab.json lacks {} or {}", bos, eos))),
        }
    } else {
        json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false,
               "use_regex": true})
    };
    let unknown: Value = Value::Null;
    Ok(json!({
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true,
                          "use_regex": true},
        "post_processor": processor,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                    "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": unknown,
                  "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false,
                  "byte_fallback": false, "vocab": vocab, "merges": merges},
    }))
}
