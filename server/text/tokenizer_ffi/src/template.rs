//! The parts of a tokenizer.json that several conversions write.

use serde_json::{json, Value};

use crate::Failure;

/// An added token that stands for itself.
pub fn special_token(id: usize, content: &str, lstrip: bool) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": lstrip, "rstrip": false,
           "normalized": false, "special": true})
}

/// The forms of one text and of two between the tokens that begin and end each.
pub fn bos_and_eos(bos: Option<&str>, eos: Option<&str>) -> (String, String) {
    let form = |text: &str, type_id: usize| {
        let words = [bos, Some(text), eos];
        let typed = words.into_iter().flatten().map(|word| format!("{}:{}", word, type_id));
        typed.collect::<Vec<_>>().join(" ")
    };
    let single = form("$A", 0);
    let pair = format!("{} {}", single, form("$B", 1));
    (single, pair)
}

/// A post-processor from forms like "[CLS] $A [SEP]": `$A` and `$B` are the texts, all else are special
/// tokens; `:1` behind one is its type. `ids` knows the id of each special token.
pub fn template(
    single: &str,
    pair: &str,
    ids: &dyn Fn(&str) -> Option<usize>,
) -> Result<Value, Failure> {
    let mut special = serde_json::Map::new();
    let mut form = |text: &str| -> Result<Vec<Value>, Failure> {
        text.split_whitespace()
            .map(|word| {
                let (name, type_id) = match word.rsplit_once(':') {
                    Some((name, digit)) if digit == "0" || digit == "1" => {
                        (name, usize::from(digit == "1"))
                    }
                    _ => (word, 0),
                };
                if let Some(sequence) = name.strip_prefix('$') {
                    return Ok(json!({"Sequence": {"id": sequence, "type_id": type_id}}));
                }
                let id = ids(name).ok_or_else(|| {
                    Failure::invalid(format!(
                        "the vocabulary has no {}, which the tokenizer's class puts around a text",
                        name
                    ))
                })?;
                special
                    .insert(name.into(), json!({"id": name, "ids": [id], "tokens": [name]}));
                Ok(json!({"SpecialToken": {"id": name, "type_id": type_id}}))
            })
            .collect()
    };
    let (single, pair) = (form(single)?, form(pair)?);
    Ok(json!({"type": "TemplateProcessing", "single": single, "pair": pair,
              "special_tokens": special}))
}
