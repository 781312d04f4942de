//! Grammars: which tokens may follow, by `llguidance`. Limits keep a grammar that is too large, and one whose
//! masks take too long, from being compiled or used.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{json, Value};
use toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};

use crate::load::Loaded;
use crate::Failure;

/// Other kinds are JSON schemas.
pub const REGEX: i32 = 1;
pub const LARK: i32 = 2;
pub const CHOICE: i32 = 3;

/// The most bytes of a grammar's text.
const MOST_BYTES: usize = 1 << 20;
/// Blanks between two parts of JSON: without a bound a model may write them for ever.
const BLANKS: &str = r"[\x20\x0A\x0D\x09]{1,16}";

/// What all grammars of a tokenizer share.
pub struct Grammars {
    factory: ParserFactory,
    eos: Vec<u32>,
}

/// One text as a grammar reads it. A copy is another answer from the beginning.
pub struct Grammar {
    matcher: Matcher,
    eos: Arc<Vec<u32>>,
}

fn too_hard(why: impl std::fmt::Display) -> Failure {
    // A sentence is enough: the library appends the state of its parser.
    let text = why.to_string();
    let line = text.lines().next().unwrap_or("").trim();
    let cut: String = line.chars().take(300).collect();
    Failure::invalid(cut)
}

impl Grammars {
    pub fn new(loaded: &Loaded, eos: &[u32], vocabulary: usize) -> Result<Self, Failure> {
        let bytes = loaded.token_bytes();
        let mut words = Vec::with_capacity(vocabulary);
        for id in 0..vocabulary as u32 {
            let mut word = loaded.bytes_of(id);
            if bytes.is_special(id) || eos.contains(&id) {
                word.insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
            }
            words.push(word);
        }
        let mut eos: Vec<u32> = eos.iter().copied().filter(|id| (*id as usize) < vocabulary).collect();
        if eos.is_empty() {
            // The library wants one; it is never drawn, as the grammar's end ends the answer.
            eos.push(vocabulary as u32);
            words.push(b"\xFF<|end of grammar|>".to_vec());
        }
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, eos[0]), &words);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
            .map_err(|why| Failure::invalid(format!("the vocabulary allows no grammars: {}", why)))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Grammars { factory, eos })
    }

    pub fn compile(&self, kind: i32, text: &str) -> Result<Grammar, Failure> {
        if text.len() > MOST_BYTES {
            return Err(Failure::invalid(format!(
                "the grammar has {} bytes, the limit is {}",
                text.len(),
                MOST_BYTES
            )));
        }
        let grammar = match kind {
            REGEX => TopLevelGrammar::from_regex(text),
            LARK => TopLevelGrammar::from_lark(text.to_string()),
            CHOICE => TopLevelGrammar::from_lark(choices(text)?),
            _ => TopLevelGrammar::from_json_schema(schema(text)?),
        };
        let parser = self.factory.create_parser(grammar).map_err(too_hard)?;
        let mut matcher = Matcher::new(Ok(parser));
        if matcher.is_error() {
            return Err(too_hard(matcher.get_error().unwrap_or_default()));
        }
        // What cannot be begun is told before a token is made.
        matcher.compute_mask_or_eos().map_err(too_hard)?;
        Ok(Grammar { matcher, eos: Arc::new(self.eos.clone()) })
    }
}

/// A schema, with bounded blanks unless it says which.
fn schema(text: &str) -> Result<Value, Failure> {
    let mut schema: Value =
        serde_json::from_str(text).map_err(|why| Failure::invalid(format!("the schema is not JSON: {}", why)))?;
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    let Some(members) = schema.as_object_mut() else {
        return Err(Failure::invalid("the schema must be a JSON object"));
    };
    members.entry("x-guidance").or_insert(json!({"whitespace_pattern": BLANKS, "coerce_one_of": true}));
    Ok(schema)
}

/// A grammar of one of the texts in a JSON list.
fn choices(text: &str) -> Result<String, Failure> {
    let list: Vec<String> =
        serde_json::from_str(text).map_err(|_| Failure::invalid("the choices are no list of texts"))?;
    if list.is_empty() || list.iter().any(String::is_empty) {
        return Err(Failure::invalid("the choices are an empty list, or one of them is empty"));
    }
    let words: Vec<String> = list.iter().map(|one| Value::from(one.as_str()).to_string()).collect();
    Ok(format!("start: {}", words.join(" | ")))
}

impl Grammar {
    pub fn copy(&self) -> Self {
        Grammar { matcher: self.matcher.deep_clone(), eos: self.eos.clone() }
    }

    /// Sets bit i of `bits` where token i may follow. Those that end answers are all or none.
    pub fn mask(&mut self, bits: &mut [u32]) -> Result<(), Failure> {
        let mask = self.matcher.compute_mask_or_eos().map_err(too_hard)?;
        let words = mask.as_slice();
        for (i, word) in bits.iter_mut().enumerate() {
            *word = words.get(i).copied().unwrap_or(0);
        }
        if mask.get(self.eos[0] as usize) {
            for id in self.eos.iter() {
                if let Some(word) = bits.get_mut(*id as usize / 32) {
                    *word |= 1 << (id % 32);
                }
            }
        }
        Ok(())
    }

    /// `id` was drawn. Returns whether the text is complete: nothing may follow.
    pub fn take(&mut self, id: u32) -> Result<bool, Failure> {
        let id = if self.eos.contains(&id) { self.eos[0] } else { id };
        self.matcher.consume_token(id).map_err(too_hard)?;
        Ok(self.matcher.is_stopped())
    }
}
