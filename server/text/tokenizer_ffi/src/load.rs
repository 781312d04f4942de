//! The kinds of files that hold a tokenizer. Each other than tokenizer.json is written as one.

use std::sync::OnceLock;

use serde_json::{Map, Value};
use tokenizers::{ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer, TruncationDirection};

use crate::added::{self, Wanted};
use crate::classes::family;
use crate::token_bytes::TokenBytes;
use crate::wordpiece::LongWords;
use crate::{bpe_files, patterns, sentencepiece, utf8, wordpiece, Failure};

pub const TOKENIZER_JSON: i32 = 0;
pub const VOCAB_TXT: i32 = 1;
pub const SENTENCEPIECE: i32 = 2;
pub const VOCAB_AND_MERGES: i32 = 3;

/// A tokenizer, and how texts come to it and are cut.
pub struct Loaded {
    pub tokenizer: Tokenizer,
    /// Texts are lowered first.
    pub lower: bool,
    /// The files say that the front of a text is cut.
    pub truncates_left: bool,
    /// The token of what no other token has; empty where there is none.
    pub unknown: String,
    pub long_words: Option<LongWords>,
    /// A pattern for which texts have to be short.
    pub unbounded_pattern: Option<String>,
    /// Made at the first use.
    pub bytes: OnceLock<TokenBytes>,
}

impl Loaded {
    pub fn token_bytes(&self) -> &TokenBytes {
        self.bytes.get_or_init(|| TokenBytes::new(&self.tokenizer))
    }

    /// The bytes that a token stands for; none where there is no such token.
    pub fn bytes_of(&self, id: u32) -> Vec<u8> {
        let token = self.tokenizer.id_to_token(id).unwrap_or_default();
        if token.is_empty() {
            return Vec::new();
        }
        self.token_bytes().of(id, &token)
    }
}

/// The texts of the files; each but `data` may be empty.
pub struct Files<'a> {
    pub kind: i32,
    pub data: &'a [u8],
    pub merges: &'a [u8],
    pub tokenizer_config: &'a [u8],
    pub added_tokens: &'a [u8],
    pub special_tokens_map: &'a [u8],
    pub model_config: &'a [u8],
    pub lower: bool,
}

/// What tokenizer_config.json, special_tokens_map.json and config.json say.
pub struct Config {
    tokenizer: Value,
    model: Value,
    special: Map<String, Value>,
}

fn parsed(text: &[u8], name: &str) -> Result<Value, Failure> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::invalid(format!("{}: {}", name, error)))?;
    if value.is_object() {
        return Ok(value);
    }
    Err(Failure::invalid(format!("{} is not a JSON object", name)))
}

/// The names of special tokens that a class gives a meaning.
pub const NAMED_TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

impl Config {
    pub fn parse(files: &Files) -> Result<Self, Failure> {
        let tokenizer = parsed(files.tokenizer_config, "tokenizer_config.json")?;
        let model = parsed(files.model_config, "config.json")?;
        let mut special = tokenizer.as_object().cloned().unwrap_or_default();
        special.retain(|name, _| {
            NAMED_TOKENS.contains(&name.as_str()) || added::LISTS.contains(&name.as_str())
        });
        // As transformers reads it: the older file counts where the newer member is absent.
        let map = parsed(files.special_tokens_map, "special_tokens_map.json")?;
        if let (true, Value::Object(map)) = (tokenizer.get("added_tokens_decoder").is_none(), map) {
            special.extend(map);
        }
        special.retain(|_, value| !value.is_null());
        Ok(Config { tokenizer, model, special })
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.tokenizer.get(name)?.as_bool()
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.tokenizer.get(name).filter(|value| !value.is_null())
    }

    pub fn special(&self) -> &Map<String, Value> {
        &self.special
    }

    /// A special token that a file names.
    pub fn named(&self, name: &str) -> Option<String> {
        added::content(self.special.get(name)?).map(String::from)
    }

    pub fn token(&self, name: &str, default: &str) -> String {
        self.named(name).unwrap_or_else(|| default.to_string())
    }

    /// The class of the tokenizer, and the file that names it.
    pub fn class(&self) -> Option<(&str, &'static str)> {
        let of = |config: &'_ Value| config.get("tokenizer_class").and_then(Value::as_str).is_some();
        let (config, file) = if of(&self.tokenizer) {
            (&self.tokenizer, "tokenizer_config.json")
        } else {
            (&self.model, "config.json")
        };
        Some((config.get("tokenizer_class")?.as_str()?, file))
    }

    pub fn model_type(&self) -> Option<&str> {
        self.model.get("model_type")?.as_str()
    }

    /// Errors where a file renames a special token that the class has a fixed name for.
    pub fn want_fixed(&self, names: &[(&str, &str)]) -> Result<(), Failure> {
        for (name, fixed) in names {
            match self.named(name) {
                Some(said) if said != *fixed => {
                    return Err(Failure::unimplemented(format!(
                        "{} is \"{}\", and without tokenizer.json it can only be \"{}\" for this class",
                        name, said, fixed
                    )))
                }
                _ => {}
            }
        }
        Ok(())
    }
}

pub fn load(files: &Files) -> Result<Loaded, Failure> {
    let config = Config::parse(files)?;
    let wanted = added::wanted(&config, &parsed(files.added_tokens, "added_tokens.json")?)?;
    let mut tokenizer = if files.kind == TOKENIZER_JSON {
        let mut tokenizer = Tokenizer::from_bytes(files.data)
            .map_err(|error| Failure::invalid(format!("tokenizer.json: {}", error)))?;
        added::add_missing(&mut tokenizer, &wanted);
        adapt(&mut tokenizer, &config)?;
        tokenizer
    } else {
        convert(files, &config, &wanted)?
    };
    added::check(&tokenizer, &wanted)?;
    let truncates_left = truncates_left(&tokenizer, &config)?;
    if config.flag("split_special_tokens") == Some(true) {
        tokenizer.set_encode_special_tokens(true);
    }
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
    let unknown = config.named("unk_token").unwrap_or_else(|| unknown_of(tokenizer.get_model()));
    let long_words = match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => Some(LongWords::of(model)),
        _ => None,
    };
    let unbounded_pattern = tokenizer
        .get_normalizer()
        .and_then(patterns::unbounded_in)
        .or_else(|| tokenizer.get_pre_tokenizer().and_then(patterns::unbounded_in));
    let lower = files.lower;
    Ok(Loaded { tokenizer, lower, truncates_left, unknown, long_words, unbounded_pattern, bytes: OnceLock::new() })
}

fn unknown_of(model: &ModelWrapper) -> String {
    match model {
        ModelWrapper::WordPiece(model) => model.unk_token.clone(),
        ModelWrapper::WordLevel(model) => model.unk_token.clone(),
        ModelWrapper::BPE(model) => model.unk_token.clone().unwrap_or_default(),
        // The library keeps its id to itself, and sentencepiece names it so.
        ModelWrapper::Unigram(_) => "<unk>".to_string(),
    }
}

fn convert(files: &Files, config: &Config, wanted: &[Wanted]) -> Result<Tokenizer, Failure> {
    let mut json = match files.kind {
        VOCAB_TXT => {
            let family = family(VOCAB_TXT, config)?;
            wordpiece::from_vocab(utf8(files.data, "vocab.txt")?, family, config)?
        }
        SENTENCEPIECE => sentencepiece::convert(files.data, family(SENTENCEPIECE, config)?, config)?,
        VOCAB_AND_MERGES => {
            let family = family(VOCAB_AND_MERGES, config)?;
            bpe_files::from_files(files.data, utf8(files.merges, "merges.txt")?, family, config)?
        }
        kind => return Err(Failure::invalid(format!("there is no kind {} of tokenizers", kind))),
    };
    added::overlay(&mut json, wanted);
    serde_json::from_value(json)
        .map_err(|error| Failure::invalid(format!("the tokenizer cannot be built: {}", error)))
}

fn truncates_left(tokenizer: &Tokenizer, config: &Config) -> Result<bool, Failure> {
    match config.value("truncation_side").map(|side| side.as_str()) {
        Some(Some("left")) => Ok(true),
        Some(Some("right")) => Ok(false),
        Some(_) => Err(Failure::invalid(format!(
            "tokenizer_config.json: truncation_side is {}, it may be \"left\" or \"right\"",
            config.value("truncation_side").unwrap_or(&Value::Null)
        ))),
        None => Ok(matches!(
            tokenizer.get_truncation().map(|truncation| truncation.direction),
            Some(TruncationDirection::Left)
        )),
    }
}

/// What tokenizer_config.json says besides tokenizer.json, where transformers lets it count.
fn adapt(tokenizer: &mut Tokenizer, config: &Config) -> Result<(), Failure> {
    if let Some(NormalizerWrapper::BertNormalizer(bert)) = tokenizer.get_normalizer() {
        let mut bert = *bert;
        bert.lowercase = config.flag("do_lower_case").unwrap_or(bert.lowercase);
        bert.strip_accents = config.flag("strip_accents").or(bert.strip_accents);
        bert.handle_chinese_chars =
            config.flag("tokenize_chinese_chars").unwrap_or(bert.handle_chinese_chars);
        tokenizer.with_normalizer(Some(bert));
    }
    if let (Some(PreTokenizerWrapper::ByteLevel(bytes)), Some(prefix)) =
        (tokenizer.get_pre_tokenizer(), config.flag("add_prefix_space"))
    {
        let mut bytes = *bytes;
        bytes.add_prefix_space = prefix;
        tokenizer.with_pre_tokenizer(Some(bytes));
    }
    check_ends(tokenizer, config)
}

/// `add_bos_token` and `add_eos_token` of the classes that read them must agree with tokenizer.json: which
/// of them counts differs between versions of transformers. For other classes tokenizer.json counts.
fn check_ends(tokenizer: &Tokenizer, config: &Config) -> Result<(), Failure> {
    let class = config.class().map_or("", |(class, _)| class);
    if !["Llama", "CodeLlama", "Gemma"].iter().any(|name| class.starts_with(name)) {
        return Ok(());
    }
    let encoded = tokenizer
        .encode("a", true)
        .map_err(|error| Failure::invalid(format!("tokenizer.json: {}", error)))?;
    for (name, token, default, end) in [
        ("add_bos_token", "bos_token", "<s>", encoded.get_ids().first()),
        ("add_eos_token", "eos_token", "</s>", encoded.get_ids().last()),
    ] {
        let Some(asked) = config.flag(name) else { continue };
        let token = config.token(token, default);
        let has = end.is_some() && end.copied() == tokenizer.token_to_id(&token);
        if asked != has {
            return Err(Failure::unimplemented(format!(
                "tokenizer_config.json: {} is {}, and tokenizer.json {} {}",
                name,
                asked,
                if has { "adds" } else { "does not add" },
                token
            )));
        }
    }
    Ok(())
}
