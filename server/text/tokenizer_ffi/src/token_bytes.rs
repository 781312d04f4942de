//! The bytes that a token stands for, as grammars and log-probabilities need them: one token may hold a part
//! of a letter alone.

use std::collections::HashMap;

use serde_json::Value;
use tokenizers::Tokenizer;

/// How the decoder of a tokenizer writes bytes in the text of a token.
#[derive(Clone, Copy, PartialEq)]
enum Writing {
    /// Each byte is a letter of GPT-2's table.
    ByteLevel,
    /// Blanks are U+2581, and "<0x0A>" is a byte.
    Metaspace,
    /// "##" goes on with a word, others begin one.
    Pieces,
    Plain,
}

pub struct TokenBytes {
    writing: Writing,
    bytes: HashMap<char, u8>,
    /// Added tokens by id: their text, and whether they are special.
    added: HashMap<u32, (String, bool)>,
}

/// GPT-2's table: bytes that print stand for themselves, others for letters from U+0100 on.
fn byte_table() -> HashMap<char, u8> {
    let prints = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256u32;
    let mut table = HashMap::new();
    for byte in 0..=255u8 {
        let code = if prints(byte) { u32::from(byte) } else { next };
        if !prints(byte) {
            next += 1;
        }
        table.insert(char::from_u32(code).unwrap_or('\u{fffd}'), byte);
    }
    table
}

/// Whether `decoder`, as JSON, has a part of the type `name`.
fn has_part(decoder: &Value, name: &str) -> bool {
    decoder["type"] == name
        || decoder["decoders"].as_array().is_some_and(|parts| parts.iter().any(|one| has_part(one, name)))
}

/// Whether a part replaces U+2581.
fn replaces_blanks(decoder: &Value) -> bool {
    (decoder["type"] == "Replace" && decoder["pattern"]["String"] == "\u{2581}")
        || decoder["decoders"].as_array().is_some_and(|parts| parts.iter().any(replaces_blanks))
}

impl TokenBytes {
    pub fn new(tokenizer: &Tokenizer) -> Self {
        let decoder = tokenizer
            .get_decoder()
            .and_then(|decoder| serde_json::to_value(decoder).ok())
            .unwrap_or(Value::Null);
        let writing = if has_part(&decoder, "ByteLevel") {
            Writing::ByteLevel
        } else if has_part(&decoder, "ByteFallback") || has_part(&decoder, "Metaspace") || replaces_blanks(&decoder) {
            Writing::Metaspace
        } else if has_part(&decoder, "WordPiece") {
            Writing::Pieces
        } else {
            Writing::Plain
        };
        let added = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .map(|(id, token)| (id, (token.content, token.special)))
            .collect();
        TokenBytes { writing, bytes: byte_table(), added }
    }

    /// Whether `id` is special: it stands in no text.
    pub fn is_special(&self, id: u32) -> bool {
        self.added.get(&id).is_some_and(|(_, special)| *special)
    }

    /// The bytes of `id`, whose token is `token`.
    pub fn of(&self, id: u32, token: &str) -> Vec<u8> {
        if let Some((content, _)) = self.added.get(&id) {
            return content.as_bytes().to_vec();
        }
        match self.writing {
            Writing::ByteLevel => {
                let mut bytes = Vec::with_capacity(token.len());
                for letter in token.chars() {
                    match self.bytes.get(&letter) {
                        Some(byte) => bytes.push(*byte),
                        None => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                bytes
            }
            Writing::Metaspace => match byte_of(token) {
                Some(byte) => vec![byte],
                None => token.replace('\u{2581}', " ").into_bytes(),
            },
            Writing::Pieces => match token.strip_prefix("##") {
                Some(rest) => rest.as_bytes().to_vec(),
                None => format!(" {}", token).into_bytes(),
            },
            Writing::Plain => token.as_bytes().to_vec(),
        }
    }
}

/// The byte of "<0x0A>".
pub fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}
