//! The parts of a tokenizer.json that several conversions write.

use serde_json::{json, Value};

/// An added token that stands for itself.
pub fn special_token(id: usize, content: &str, lstrip: bool) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": lstrip, "rstrip": false,
           "normalized": false, "special": true})
}

/// A post-processor from forms like "[CLS] $A [SEP]": `$A` and `$B` are the texts, all else are special
/// tokens; `:1` behind one is its type. `ids` knows the id of each special token.
pub fn template(single: &str, pair: &str, ids: &dyn Fn(&str) -> Option<usize>) -> Value {
    let mut special = serde_json::Map::new();
    let mut form = |text: &str| -> Vec<Value> {
        text.split_whitespace()
            .filter_map(|word| {
                let (name, type_id) = match word.rsplit_once(':') {
                    Some((name, digit)) if digit == "0" || digit == "1" => {
                        (name, usize::from(digit == "1"))
                    }
                    _ => (word, 0),
                };
                if let Some(sequence) = name.strip_prefix('$') {
                    return Some(json!({"Sequence": {"id": sequence, "type_id": type_id}}));
                }
                let id = ids(name)?;
                special
                    .insert(name.into(), json!({"id": name, "ids": [id], "tokens": [name]}));
                Some(json!({"SpecialToken": {"id": name, "type_id": type_id}}))
            })
            .collect()
    };
    let (single, pair) = (form(single), form(pair));
    json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special})
}
