//! One text, or a pair of texts, as ids.
//!
//! This is `TokenizerImpl::encode` step by step, with three differences: a deadline and a limit of tokens
//! are looked at between words, a text that is too long is an error unless truncation was asked for,
//! and what is cut off is dropped rather than kept as overflowing encodings.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokenizers::{
    AddedVocabulary, Encoding, Model, OffsetType, PostProcessor, PreTokenizer, Tokenizer,
};

use crate::load::Loaded;
use crate::lower::Lowered;
use crate::{Failure, DEADLINE_EXCEEDED, INTERNAL, RESOURCE_EXHAUSTED};

pub const TRUNCATE_NONE: i32 = 0;
#[allow(dead_code)]
pub const TRUNCATE_RIGHT: i32 = 1;
pub const TRUNCATE_LEFT: i32 = 2;

pub const OFFSETS_NONE: i32 = 0;
pub const OFFSETS_BYTES: i32 = 1;
pub const OFFSETS_CHARS: i32 = 2;

/// Words between two looks at the clock: a word takes about a microsecond.
const WORDS_A_LOOK: usize = 64;

#[repr(C)]
pub struct EncodeOptions {
    pub add_special: i32,
    pub offsets: i32,
    pub truncate: i32,
    /// Tokens of the result, special ones included; 0: no limit.
    pub max_tokens: usize,
    /// Tokens of all texts together before truncation; 0: no limit.
    pub most_tokens: usize,
    /// Nanoseconds that are left; 0: no deadline.
    pub time_ns: u64,
}

/// Arrays of `count` elements; `offsets` has two for each, or is null.
#[repr(C)]
pub struct Encoded {
    pub count: usize,
    pub ids: *const u32,
    pub type_ids: *const u32,
    pub special: *const u32,
    pub offsets: *const usize,
    /// How many tokens there were before truncation, special ones included.
    pub full_count: usize,
    owner: *mut Kept,
}

struct Kept {
    encoding: Encoding,
    offsets: Vec<usize>,
}

struct Limits {
    deadline: Option<Instant>,
    most_tokens: usize,
    tokens: Cell<usize>,
    words: Cell<usize>,
}

impl Limits {
    fn count_word(&self, tokens: usize) -> Result<(), Failure> {
        self.tokens.set(self.tokens.get() + tokens);
        if self.most_tokens > 0 && self.tokens.get() > self.most_tokens {
            return Err(Failure::new(
                RESOURCE_EXHAUSTED,
                format!("a text has more than {} tokens", self.most_tokens),
            ));
        }
        self.words.set(self.words.get() + 1);
        if self.words.get() % WORDS_A_LOOK == 0 {
            self.look()?;
        }
        Ok(())
    }

    fn look(&self) -> Result<(), Failure> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Failure::new(
                DEADLINE_EXCEEDED,
                format!("the deadline passed after {} tokens of the text", self.tokens.get()),
            )),
            _ => Ok(()),
        }
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Errors of ours come back through the library as they are, others are the tokenizer's.
fn failure(error: AnyError) -> Failure {
    match error.downcast::<Failure>() {
        Ok(ours) => *ours,
        Err(other) => Failure::new(INTERNAL, format!("the tokenizer failed: {}", other)),
    }
}

fn offset_type(options: &EncodeOptions, pair: bool) -> OffsetType {
    match options.offsets {
        OFFSETS_CHARS => OffsetType::Char,
        OFFSETS_BYTES => OffsetType::Byte,
        // Without offsets the library forgets which text a token is of as well.
        _ if pair => OffsetType::Byte,
        _ => OffsetType::None,
    }
}

fn encode_one(
    tokenizer: &Tokenizer,
    text: &str,
    type_id: u32,
    offsets: OffsetType,
    limits: &Limits,
) -> Result<Encoding, Failure> {
    let added: &AddedVocabulary = tokenizer.get_added_vocabulary();
    let mut pieces = added.extract_and_normalize(tokenizer.get_normalizer(), text);
    limits.look()?;
    if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut pieces).map_err(failure)?;
        limits.look()?;
    }
    let model = tokenizer.get_model();
    pieces
        .tokenize(|normalized| {
            let tokens = model.tokenize(normalized.get())?;
            limits.count_word(tokens.len())?;
            Ok(tokens)
        })
        .map_err(failure)?;
    pieces.into_encoding(None, type_id, offsets).map_err(failure)
}

/// The first or the last `count` tokens.
fn cut(encoding: &Encoding, count: usize, left: bool) -> Encoding {
    let size = encoding.get_ids().len();
    if count >= size {
        return encoding.clone();
    }
    let range = if left { size - count..size } else { 0..count };
    Encoding::new(
        encoding.get_ids()[range.clone()].to_vec(),
        encoding.get_type_ids()[range.clone()].to_vec(),
        encoding.get_tokens()[range.clone()].to_vec(),
        encoding.get_word_ids()[range.clone()].to_vec(),
        encoding.get_offsets()[range.clone()].to_vec(),
        encoding.get_special_tokens_mask()[range.clone()].to_vec(),
        encoding.get_attention_mask()[range].to_vec(),
        vec![],
        Default::default(),
    )
}

/// How many tokens of each of two texts stay where `most` do in all: the longer one gives first.
fn longest_first(first: usize, second: usize, most: usize) -> (usize, usize) {
    if first + second <= most {
        return (first, second);
    }
    let (shorter, longer) = (first.min(second), first.max(second));
    let kept_longer = if shorter > most { shorter } else { shorter.max(most - shorter) };
    let (shorter, longer) = if shorter + kept_longer > most {
        (most / 2, most / 2 + most % 2)
    } else {
        (shorter, kept_longer.min(longer))
    };
    if first > second {
        (longer, shorter)
    } else {
        (shorter, longer)
    }
}

fn too_long(full: usize, most: usize) -> Failure {
    Failure::invalid(format!(
        "the text has {} tokens, the model takes {}; ask for truncation or send less",
        full, most
    ))
}

pub fn encode(
    loaded: &Loaded,
    text: &str,
    pair: Option<&str>,
    options: &EncodeOptions,
) -> Result<Encoded, Failure> {
    if !loaded.lower {
        let encoding = encoded(&loaded.tokenizer, text, pair, options)?;
        return Ok(hand_out(encoding, options, None));
    }
    let (text, pair) = (Lowered::of(text), pair.map(Lowered::of));
    let second = pair.as_ref().map(|pair| pair.text.as_str());
    let encoding = encoded(&loaded.tokenizer, &text.text, second, options)?;
    Ok(hand_out(encoding, options, Some((&text, pair.as_ref()))))
}

/// The tokens, and how many there were before truncation.
fn encoded(
    tokenizer: &Tokenizer,
    text: &str,
    pair: Option<&str>,
    options: &EncodeOptions,
) -> Result<(Encoding, usize), Failure> {
    let limits = Limits {
        deadline: (options.time_ns > 0)
            .then(|| Instant::now().checked_add(Duration::from_nanos(options.time_ns)))
            .flatten(),
        most_tokens: options.most_tokens,
        tokens: Cell::new(0),
        words: Cell::new(0),
    };
    let offsets = offset_type(options, pair.is_some());
    let mut first = encode_one(tokenizer, text, 0, offsets, &limits)?;
    let mut second =
        pair.map(|text| encode_one(tokenizer, text, 1, offsets, &limits)).transpose()?;
    let add_special = options.add_special != 0;
    let special = match (add_special, tokenizer.get_post_processor()) {
        (true, Some(processor)) => processor.added_tokens(second.is_some()),
        _ => 0,
    };
    let second_count = second.as_ref().map_or(0, |encoding| encoding.get_ids().len());
    let full_count = first.get_ids().len() + second_count + special;
    if options.max_tokens > 0 && full_count > options.max_tokens {
        if options.truncate == TRUNCATE_NONE || special >= options.max_tokens {
            return Err(too_long(full_count, options.max_tokens));
        }
        let left = options.truncate == TRUNCATE_LEFT;
        let most = options.max_tokens - special;
        let (keep, keep_second) = longest_first(first.get_ids().len(), second_count, most);
        first = cut(&first, keep, left);
        second = second.map(|encoding| cut(&encoding, keep_second, left));
    }
    let encoding = tokenizer.post_process(first, second, add_special).map_err(failure)?;
    Ok((encoding, full_count))
}

/// `lowered`: the texts, where they were lowered before they became tokens.
fn hand_out(
    (encoding, full_count): (Encoding, usize),
    options: &EncodeOptions,
    lowered: Option<(&Lowered, Option<&Lowered>)>,
) -> Encoded {
    let with_offsets = options.offsets != OFFSETS_NONE;
    let in_bytes = options.offsets == OFFSETS_BYTES;
    let mut offsets = Vec::new();
    if with_offsets {
        offsets.reserve(2 * encoding.get_offsets().len());
        for (token, (start, end)) in encoding.get_offsets().iter().enumerate() {
            let text = lowered.and_then(|(first, second)| match encoding.token_to_sequence(token)? {
                0 => Some(first),
                _ => second,
            });
            let (start, end) =
                text.map_or((*start, *end), |text| text.range(*start, *end, in_bytes));
            offsets.extend([start, end]);
        }
    }
    let kept = Box::new(Kept { encoding, offsets });
    let encoded = Encoded {
        count: kept.encoding.get_ids().len(),
        ids: kept.encoding.get_ids().as_ptr(),
        type_ids: kept.encoding.get_type_ids().as_ptr(),
        special: kept.encoding.get_special_tokens_mask().as_ptr(),
        offsets: if with_offsets { kept.offsets.as_ptr() } else { std::ptr::null() },
        full_count,
        owner: std::ptr::null_mut(),
    };
    Encoded { owner: Box::into_raw(kept), ..encoded }
}

/// # Safety
/// `encoded` came from `encode`.
pub unsafe fn release(encoded: &mut Encoded) {
    if !encoded.owner.is_null() {
        drop(Box::from_raw(encoded.owner));
        encoded.owner = std::ptr::null_mut();
        encoded.count = 0;
    }
}
