//! Tokens that files add to a vocabulary: `added_tokens_decoder` of tokenizer_config.json, else
//! added_tokens.json; special tokens that are named; lists of further ones.

use std::collections::{BTreeMap, HashMap};

use serde_json::{json, Value};
use tokenizers::{AddedToken, Tokenizer};

use crate::load::{Config, NAMED_TOKENS};
use crate::Failure;

/// Members that list special tokens without a meaning of their own.
pub const LISTS: [&str; 3] =
    ["additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens"];

/// A token that a file wants.
pub struct Wanted {
    content: String,
    /// None: the next one that is free.
    id: Option<u32>,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
    /// The file names attributes of the token, not its text alone.
    detailed: bool,
    from: &'static str,
}

/// A token is a text, or an object with the text as its `content`.
pub fn content(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

fn from_value(value: &Value, special: bool, from: &'static str) -> Result<Wanted, Failure> {
    let text = content(value).ok_or_else(|| {
        Failure::invalid(format!("{}: {} is no token: it has no text", from, value))
    })?;
    let flag = |name: &str| value.get(name).and_then(Value::as_bool);
    let special = flag("special").unwrap_or(special);
    Ok(Wanted {
        content: text.to_string(),
        id: None,
        single_word: flag("single_word").unwrap_or(false),
        lstrip: flag("lstrip").unwrap_or(false),
        rstrip: flag("rstrip").unwrap_or(false),
        normalized: flag("normalized").unwrap_or(!special),
        special,
        detailed: value.is_object(),
        from,
    })
}

fn decoder_entries(decoder: &Value, wanted: &mut Vec<Wanted>) -> Result<(), Failure> {
    const FROM: &str = "tokenizer_config.json: added_tokens_decoder";
    let entries = decoder
        .as_object()
        .ok_or_else(|| Failure::invalid(format!("{} is no object", FROM)))?;
    let mut by_id = BTreeMap::new();
    for (key, value) in entries {
        let id: u32 = key
            .parse()
            .map_err(|_| Failure::invalid(format!("{}: \"{}\" is no id", FROM, key)))?;
        by_id.insert(id, value);
    }
    for (id, value) in by_id {
        wanted.push(Wanted { id: Some(id), ..from_value(value, false, FROM)? });
    }
    Ok(())
}

fn file_entries(file: &Value, specials: &[&str], wanted: &mut Vec<Wanted>) -> Result<(), Failure> {
    const FROM: &str = "added_tokens.json";
    let Some(entries) = file.as_object() else { return Ok(()) };
    let mut by_id = BTreeMap::new();
    for (token, id) in entries {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            Failure::invalid(format!("{}: the token \"{}\" has the id {}", FROM, token, id))
        })?;
        if let Some(other) = by_id.insert(id, token) {
            return Err(Failure::invalid(format!(
                "{}: the tokens \"{}\" and \"{}\" have the same id {}",
                FROM, other, token, id
            )));
        }
    }
    for (id, token) in by_id {
        let special = specials.contains(&token.as_str());
        wanted.push(Wanted {
            id: Some(id),
            ..from_value(&Value::String(token.clone()), special, FROM)?
        });
    }
    Ok(())
}

/// The tokens that the files name, those with an id first, in its order.
pub fn wanted(config: &Config, file: &Value) -> Result<Vec<Wanted>, Failure> {
    let mut listed: Vec<&Value> = Vec::new();
    for name in LISTS {
        match config.special().get(name) {
            Some(Value::Array(list)) => listed.extend(list),
            Some(Value::Object(members)) => listed.extend(members.values()),
            Some(other) => {
                return Err(Failure::invalid(format!("{} is {}, it may be a list", name, other)))
            }
            None => {}
        }
    }
    let named: Vec<&Value> =
        NAMED_TOKENS.iter().filter_map(|name| config.special().get(*name)).collect();
    let specials: Vec<&str> =
        named.iter().chain(&listed).filter_map(|value| content(value)).collect();
    let mut wanted = Vec::new();
    match config.value("added_tokens_decoder") {
        Some(decoder) => decoder_entries(decoder, &mut wanted)?,
        None => file_entries(file, &specials, &mut wanted)?,
    }
    for value in named.into_iter().chain(listed) {
        // An empty name means that the model has no such token.
        if content(value) == Some("") {
            continue;
        }
        let token = from_value(value, true, "special tokens")?;
        match wanted.iter_mut().find(|other: &&mut Wanted| other.content == token.content) {
            Some(other) => other.special = true,
            None => wanted.push(Wanted { special: true, normalized: false, ..token }),
        }
    }
    Ok(wanted)
}

/// The vocabulary of a tokenizer.json's model.
fn vocabulary(json: &Value) -> HashMap<String, u64> {
    match &json["model"]["vocab"] {
        Value::Object(ids) => {
            ids.iter().filter_map(|(token, id)| Some((token.clone(), id.as_u64()?))).collect()
        }
        Value::Array(pieces) => pieces
            .iter()
            .enumerate()
            .filter_map(|(id, piece)| Some((piece.get(0)?.as_str()?.to_string(), id as u64)))
            .collect(),
        _ => HashMap::new(),
    }
}

/// Writes the tokens into `added_tokens` of a tokenizer.json that was made of other files.
pub fn overlay(json: &mut Value, wanted: &[Wanted]) {
    let ids = vocabulary(json);
    let mut added: BTreeMap<u64, Value> = BTreeMap::new();
    if let Some(list) = json["added_tokens"].as_array() {
        added.extend(list.iter().filter_map(|token| Some((token["id"].as_u64()?, token.clone()))));
    }
    let mut next = ids.len() as u64;
    for token in wanted {
        let same = added.iter().find(|(_, known)| known["content"] == token.content.as_str());
        let id = same.map(|(id, _)| *id).or_else(|| ids.get(&token.content).copied());
        if same.is_some() && !token.detailed {
            continue;
        }
        let id = id.unwrap_or(next);
        if id >= next {
            next = id + 1;
        }
        added.insert(
            id,
            json!({"id": id, "content": token.content, "single_word": token.single_word,
                   "lstrip": token.lstrip, "rstrip": token.rstrip,
                   "normalized": token.normalized, "special": token.special}),
        );
    }
    json["added_tokens"] = added.into_values().collect();
}

/// Adds the tokens that tokenizer.json lacks.
pub fn add_missing(tokenizer: &mut Tokenizer, wanted: &[Wanted]) {
    let known = tokenizer.get_added_vocabulary().get_vocab().clone();
    for token in wanted.iter().filter(|token| !known.contains_key(&token.content)) {
        let made = AddedToken::from(token.content.clone(), token.special)
            .single_word(token.single_word)
            .lstrip(token.lstrip)
            .rstrip(token.rstrip)
            .normalized(token.normalized);
        if token.special {
            tokenizer.add_special_tokens(&[made]);
        } else {
            tokenizer.add_tokens(&[made]);
        }
    }
}

/// Errors where a token has another id than a file says.
pub fn check(tokenizer: &Tokenizer, wanted: &[Wanted]) -> Result<(), Failure> {
    for token in wanted {
        let Some(id) = token.id else { continue };
        let real = tokenizer.token_to_id(&token.content);
        if real != Some(id) {
            return Err(Failure::invalid(format!(
                "{}: the token \"{}\" has the id {}, and the vocabulary gives it {}",
                token.from,
                token.content,
                id,
                real.map_or("none".to_string(), |real| real.to_string())
            )));
        }
    }
    Ok(())
}
