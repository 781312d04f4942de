//! vocab.txt: a WordPiece vocabulary, a token a line, as BERT and MPNet have it.

use std::collections::HashMap;

use serde_json::{json, Value};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::{Model, Token};

use crate::classes::Family;
use crate::load::Config;
use crate::template::{special_token, template};
use crate::{heap, Failure};

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

/// Words of many letters, for a tokenizer whose limit of letters lets them through: the library looks up
/// every end of what is left of a word, so that a word takes the square of its letters, and more. No end
/// beyond the longest token can be found; the tokens are the same.
pub struct LongWords {
    longest_token: usize,
    /// Words of fewer bytes are left to the library.
    least: usize,
}

impl LongWords {
    pub fn of(model: &WordPiece) -> Self {
        let longest_token = model.get_vocab().keys().map(String::len).max().unwrap_or(0);
        LongWords { longest_token, least: (4 * longest_token).max(256) }
    }

    /// The tokens of a word; None: it is for the library.
    pub fn tokenize(&self, model: &WordPiece, word: &str) -> Option<Vec<Token>> {
        if word.len() < self.least || word.chars().count() > model.max_input_chars_per_word {
            return None;
        }
        let mut tokens = Vec::new();
        let mut start = 0;
        let mut piece = String::new();
        while start < word.len() {
            heap::look();
            let prefix = if start > 0 { model.continuing_subword_prefix.as_str() } else { "" };
            let most = self.longest_token.saturating_sub(prefix.len());
            piece.clear();
            piece.push_str(prefix);
            piece.push_str(&word[start..start + floor_char_boundary(&word[start..], most)]);
            let id = loop {
                if piece.len() <= prefix.len() {
                    return self.unknown(model, word);
                }
                if let Some(id) = model.token_to_id(&piece) {
                    break id;
                }
                piece.pop();
            };
            let end = start + piece.len() - prefix.len();
            tokens.push(Token { id, value: piece.clone(), offsets: (start, end) });
            start = end;
        }
        Some(tokens)
    }

    /// A word with a part that no token is, is the unknown one as a whole.
    fn unknown(&self, model: &WordPiece, word: &str) -> Option<Vec<Token>> {
        let id = model.token_to_id(&model.unk_token)?;
        Some(vec![Token { id, value: model.unk_token.clone(), offsets: (0, word.len()) }])
    }
}

/// The largest boundary of a character in `text` that is at most `at`.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
