//! The kinds of files that hold a tokenizer. Each other than tokenizer.json is written as one.

use serde_json::Value;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::{bpe_files, sentencepiece, utf8, wordpiece, Failure};

pub const TOKENIZER_JSON: i32 = 0;
pub const VOCAB_TXT: i32 = 1;
pub const SENTENCEPIECE: i32 = 2;
pub const VOCAB_AND_MERGES: i32 = 3;

/// The fields of tokenizer_config.json that a conversion reads.
pub struct Config(Value);

impl Config {
    fn parse(text: &[u8]) -> Result<Self, Failure> {
        if text.is_empty() {
            return Ok(Config(Value::Null));
        }
        serde_json::from_slice(text)
            .map(Config)
            .map_err(|error| Failure::invalid(format!("tokenizer_config.json: {}", error)))
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A special token: a text, or an object with the text as its `content`.
    pub fn token(&self, name: &str, default: &str) -> String {
        let value = self.0.get(name);
        let text = value.and_then(|value| value.as_str().or_else(|| value.get("content")?.as_str()));
        text.unwrap_or(default).to_string()
    }

    /// The class without its suffix `Fast` or `Tokenizer`: "XLMRoberta".
    pub fn class(&self) -> &str {
        let class = self.text("tokenizer_class").unwrap_or("");
        let class = class.strip_suffix("Fast").unwrap_or(class);
        class.strip_suffix("Tokenizer").unwrap_or(class)
    }
}

pub fn load(kind: i32, data: &[u8], merges: &[u8], config: &[u8]) -> Result<Tokenizer, Failure> {
    let config = Config::parse(config)?;
    let mut tokenizer = match kind {
        TOKENIZER_JSON => Tokenizer::from_bytes(data)
            .map_err(|error| Failure::invalid(format!("tokenizer.json: {}", error)))?,
        VOCAB_TXT => built(wordpiece::from_vocab(utf8(data, "vocab.txt")?, &config)?)?,
        SENTENCEPIECE => built(sentencepiece::convert(data, &config)?)?,
        VOCAB_AND_MERGES => built(bpe_files::from_files(data, utf8(merges, "merges.txt")?, &config)?)?,
        _ => return Err(Failure::invalid(format!("there is no kind {} of tokenizers", kind))),
    };
    // The caller says how long a text may be, and pads nothing.
    tokenizer
        .with_truncation(None)
        .map_err(|error| Failure::invalid(format!("tokenizer.json: {}", error)))?;
    tokenizer.with_padding(None);
    // Dropout is for training: one text has one answer.
    if let ModelWrapper::BPE(model) = tokenizer.get_model() {
        if model.dropout.is_some() {
            let mut model = model.clone();
            model.dropout = None;
            tokenizer.with_model(ModelWrapper::BPE(model));
        }
    }
    Ok(tokenizer)
}

fn built(json: Value) -> Result<Tokenizer, Failure> {
    serde_json::from_value(json)
        .map_err(|error| Failure::invalid(format!("the tokenizer cannot be built: {}", error)))
}
