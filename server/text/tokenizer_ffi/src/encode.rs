//! One text, or a pair of texts, as ids.
//!
//! This is `TokenizerImpl::encode` step by step, with these differences: a text that is too long is an
//! error unless truncation was asked for, what is cut off is dropped rather than kept as overflowing
//! encodings, and words whose tokens would be cut off are not tokenized.

use std::cell::Cell;

use tokenizers::{
    AddedVocabulary, Encoding, Model, ModelWrapper, NormalizedString, OffsetType, PostProcessor,
    PreTokenizer, Token,
};

use crate::load::Loaded;
use crate::lower::Lowered;
use crate::patterns::LONGEST_TEXT;
use crate::{Failure, INTERNAL};

pub const TRUNCATE_NONE: i32 = 0;
pub const TRUNCATE_RIGHT: i32 = 1;
pub const TRUNCATE_LEFT: i32 = 2;

pub const OFFSETS_NONE: i32 = 0;
pub const OFFSETS_CHARS: i32 = 2;

/// A text that is too long and may not be cut is counted up to this many times what the model takes.
const CONTEXTS_COUNTED: usize = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct EncodeOptions {
    pub add_special: i32,
    pub offsets: i32,
    pub truncate: i32,
    /// Tokens of the result, special ones included; 0: no limit.
    pub max_tokens: usize,
    /// Tokens of all texts together before truncation; 0: no limit.
    pub most_tokens: usize,
}

/// Arrays of `count` elements; `offsets` has two for each, or is null.
#[repr(C)]
pub struct Encoded {
    pub count: usize,
    pub ids: *const u32,
    pub type_ids: *const u32,
    pub special: *const u32,
    pub offsets: *const usize,
    /// How many tokens there were before truncation, special ones included; of words that were not
    /// tokenized none are counted.
    pub full_count: usize,
    owner: *mut Kept,
}

struct Kept {
    encoding: Encoding,
    offsets: Option<Vec<usize>>,
}

/// The tokens of one text that are made.
struct Count {
    tokens: Cell<usize>,
    /// Once there are so many, no more are needed: the words that follow are left out.
    enough: usize,
    /// More are an error; 0: no limit.
    most: usize,
}

impl Count {
    fn is_enough(&self) -> bool {
        self.tokens.get() >= self.enough
    }

    fn add(&self, tokens: usize) -> Result<(), Failure> {
        self.tokens.set(self.tokens.get() + tokens);
        if self.most > 0 && self.tokens.get() > self.most {
            return Err(Failure::invalid(format!(
                "the text has more than {} tokens, {} are the most that are read",
                self.most, self.most
            )));
        }
        Ok(())
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
        // Without offsets the library forgets which text a token is of as well.
        OFFSETS_NONE if !pair => OffsetType::None,
        // In characters: see `in_characters`.
        _ => OffsetType::Byte,
    }
}

fn tokens_of(loaded: &Loaded, word: &NormalizedString) -> tokenizers::Result<Vec<Token>> {
    let model = loaded.tokenizer.get_model();
    if let (Some(long_words), ModelWrapper::WordPiece(pieces)) = (&loaded.long_words, model) {
        if let Some(tokens) = long_words.tokenize(pieces, word.get()) {
            return Ok(tokens);
        }
    }
    model.tokenize(word.get())
}

fn encode_one(
    loaded: &Loaded,
    text: &str,
    type_id: u32,
    offsets: OffsetType,
    count: &Count,
) -> Result<Encoding, Failure> {
    if let (Some(pattern), true) = (&loaded.unbounded_pattern, text.len() > LONGEST_TEXT) {
        return Err(Failure::invalid(format!(
            "a text has {} bytes, the limit is {}: the tokenizer's pattern {} looks around without bound",
            text.len(),
            LONGEST_TEXT,
            pattern
        )));
    }
    let tokenizer = &loaded.tokenizer;
    let added: &AddedVocabulary = tokenizer.get_added_vocabulary();
    let mut pieces = added.extract_and_normalize(tokenizer.get_normalizer(), text);
    if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut pieces).map_err(failure)?;
    }
    pieces
        .tokenize(|word| {
            if count.is_enough() {
                return Ok(vec![]);
            }
            let tokens = tokens_of(loaded, word)?;
            count.add(tokens.len())?;
            Ok(tokens)
        })
        .map_err(failure)?;
    pieces.into_encoding(None, type_id, offsets).map_err(failure)
}

/// How many tokens of the text are needed, where `most` are kept of it and of `first` tokens before it.
fn enough(options: &EncodeOptions, most: usize, first: Option<usize>) -> usize {
    if options.max_tokens == 0 || options.most_tokens > 0 {
        return usize::MAX;
    }
    match (options.truncate, first) {
        (TRUNCATE_NONE, _) => options.max_tokens.saturating_mul(CONTEXTS_COUNTED),
        // Which of two texts is longer decides how much stays of each.
        (TRUNCATE_RIGHT, first) => most.max(first.unwrap_or(0)).saturating_add(1),
        _ => usize::MAX,
    }
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

fn too_long(full: usize, counted_all: bool, most: usize) -> Failure {
    Failure::invalid(format!(
        "the text has {}{} tokens, the model takes {}; ask for truncation or send less",
        if counted_all { "" } else { "more than " },
        full,
        most
    ))
}

pub fn encode(
    loaded: &Loaded,
    text: &str,
    pair: Option<&str>,
    options: &EncodeOptions,
) -> Result<Encoded, Failure> {
    if !loaded.lower {
        let (encoding, full_count) = encoded(loaded, text, pair, options)?;
        let offsets = offsets_of(&encoding, options, text, pair);
        return Ok(hand_out(encoding, offsets, full_count));
    }
    let (first, second) = (Lowered::of(text), pair.map(Lowered::of));
    let pair = second.as_ref().map(|pair| pair.text.as_str());
    let (encoding, full_count) = encoded(loaded, &first.text, pair, options)?;
    let mut offsets = offsets_of(&encoding, options, &first.text, pair);
    if let Some(offsets) = &mut offsets {
        for (token, range) in offsets.chunks_exact_mut(2).enumerate() {
            let lowered = match encoding.token_to_sequence(token) {
                Some(0) => Some(&first),
                Some(_) => second.as_ref(),
                None => None,
            };
            if let Some(lowered) = lowered {
                let in_bytes = options.offsets != OFFSETS_CHARS;
                (range[0], range[1]) = lowered.range(range[0], range[1], in_bytes);
            }
        }
    }
    Ok(hand_out(encoding, offsets, full_count))
}

/// The special tokens that the result has.
fn special_of(loaded: &Loaded, options: &EncodeOptions, pair: bool) -> usize {
    match (options.add_special != 0, loaded.tokenizer.get_post_processor()) {
        (true, Some(processor)) => processor.added_tokens(pair),
        _ => 0,
    }
}

/// The tokens, and how many there were before truncation.
fn encoded(
    loaded: &Loaded,
    text: &str,
    pair: Option<&str>,
    options: &EncodeOptions,
) -> Result<(Encoding, usize), Failure> {
    if let Some(pair) = pair {
        return First::tokenized(loaded, text, options)?.followed_by(loaded, pair);
    }
    let special = special_of(loaded, options, false);
    let most = options.max_tokens.saturating_sub(special);
    let count = Count {
        tokens: Cell::new(0),
        enough: enough(options, most, None),
        most: options.most_tokens,
    };
    let mut encoding = encode_one(loaded, text, 0, offset_type(options, false), &count)?;
    let full_count = encoding.get_ids().len() + special;
    if options.max_tokens > 0 && full_count > options.max_tokens {
        if options.truncate == TRUNCATE_NONE || special >= options.max_tokens {
            return Err(too_long(full_count, !count.is_enough(), options.max_tokens));
        }
        encoding = cut(&encoding, most, options.truncate == TRUNCATE_LEFT);
    }
    let add_special = options.add_special != 0;
    let encoding = loaded.tokenizer.post_process(encoding, None, add_special).map_err(failure)?;
    Ok((encoding, full_count))
}

/// The first text of pairs, tokenized once for all of them.
pub struct First {
    /// The tokens that a pair may keep, whatever its second text.
    kept: Encoding,
    /// The tokens of the whole text.
    full_count: usize,
    /// Of the result of each pair.
    special: usize,
    options: EncodeOptions,
}

impl First {
    /// Pairs have no offsets.
    pub fn of(loaded: &Loaded, text: &str, options: &EncodeOptions) -> Result<Self, Failure> {
        let options = EncodeOptions { offsets: OFFSETS_NONE, ..*options };
        if loaded.lower {
            return Self::tokenized(loaded, &Lowered::of(text).text, &options);
        }
        Self::tokenized(loaded, text, &options)
    }

    fn tokenized(loaded: &Loaded, text: &str, options: &EncodeOptions) -> Result<Self, Failure> {
        // It is needed whole: see `enough`.
        let count =
            Count { tokens: Cell::new(0), enough: usize::MAX, most: options.most_tokens };
        let encoding = encode_one(loaded, text, 0, offset_type(options, true), &count)?;
        let full_count = encoding.get_ids().len();
        let special = special_of(loaded, options, true);
        let most = match options.max_tokens {
            0 => full_count,
            most => most.saturating_sub(special),
        };
        let kept = if full_count > most {
            cut(&encoding, most, options.truncate == TRUNCATE_LEFT)
        } else {
            encoding
        };
        Ok(First { kept, full_count, special, options: *options })
    }

    /// How many tokens are kept of it.
    pub fn kept_tokens(&self) -> usize {
        self.kept.get_ids().len()
    }

    /// The tokens of the pair, lowered where the tokenizer lowers.
    pub fn paired(&self, loaded: &Loaded, pair: &str) -> Result<Encoded, Failure> {
        let (encoding, full_count) = if loaded.lower {
            self.followed_by(loaded, &Lowered::of(pair).text)?
        } else {
            self.followed_by(loaded, pair)?
        };
        Ok(hand_out(encoding, None, full_count))
    }

    fn followed_by(&self, loaded: &Loaded, pair: &str) -> Result<(Encoding, usize), Failure> {
        let options = &self.options;
        let most = options.max_tokens.saturating_sub(self.special);
        let count = Count {
            tokens: Cell::new(if options.most_tokens > 0 { self.full_count } else { 0 }),
            enough: enough(options, most, Some(self.full_count)),
            most: options.most_tokens,
        };
        let mut second = encode_one(loaded, pair, 1, offset_type(options, true), &count)?;
        let second_count = second.get_ids().len();
        let full_count = self.full_count + second_count + self.special;
        let mut keep = self.full_count;
        if options.max_tokens > 0 && full_count > options.max_tokens {
            if options.truncate == TRUNCATE_NONE || self.special >= options.max_tokens {
                return Err(too_long(full_count, !count.is_enough(), options.max_tokens));
            }
            let left = options.truncate == TRUNCATE_LEFT;
            let (first_keeps, second_keeps) = longest_first(self.full_count, second_count, most);
            keep = first_keeps;
            second = cut(&second, second_keeps, left);
        }
        let first = cut(&self.kept, keep, options.truncate == TRUNCATE_LEFT);
        let add_special = options.add_special != 0;
        let encoding =
            loaded.tokenizer.post_process(first, Some(second), add_special).map_err(failure)?;
        Ok((encoding, full_count))
    }
}

/// The offsets that are asked for, of the texts as the tokenizer got them.
fn offsets_of(
    encoding: &Encoding,
    options: &EncodeOptions,
    text: &str,
    pair: Option<&str>,
) -> Option<Vec<usize>> {
    match options.offsets {
        OFFSETS_NONE => None,
        OFFSETS_CHARS => Some(in_characters(encoding, text, pair.unwrap_or(""))),
        _ => Some(encoding.get_offsets().iter().flat_map(|(start, end)| [*start, *end]).collect()),
    }
}

/// The offsets of `encoding`, which are bytes of the two texts, in characters.
fn in_characters(encoding: &Encoding, first: &str, second: &str) -> Vec<usize> {
    let texts = [Characters::of(first), Characters::of(second)];
    let ids = encoding.get_sequence_ids();
    encoding
        .get_offsets()
        .iter()
        .zip(ids)
        .flat_map(|((start, end), id)| match id {
            Some(id) => [texts[id.min(1)].of_byte(*start), texts[id.min(1)].of_byte(*end)],
            None => [*start, *end],
        })
        .collect()
}

/// Counts the characters of a text in front of a byte.
struct Characters<'a> {
    text: &'a [u8],
    /// Characters that begin in front of each block of bytes; empty: every byte is one.
    blocks: Vec<u32>,
}

impl<'a> Characters<'a> {
    const BLOCK: usize = 64;

    fn begins(bytes: &[u8]) -> usize {
        bytes.iter().filter(|byte| (**byte & 0xc0) != 0x80).count()
    }

    fn of(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut blocks = Vec::new();
        if !text.is_ascii() {
            let mut before = 0;
            for block in bytes.chunks(Self::BLOCK) {
                blocks.push(before as u32);
                before += Self::begins(block);
            }
            blocks.push(before as u32);
        }
        Characters { text: bytes, blocks }
    }

    /// Characters that begin in front of byte `at`.
    fn begun(&self, at: usize) -> usize {
        if self.blocks.is_empty() || at > self.text.len() {
            return at;
        }
        let block = at / Self::BLOCK;
        self.blocks[block] as usize + Self::begins(&self.text[block * Self::BLOCK..at])
    }

    /// The character that byte `at` is of; at the end how many there are.
    fn of_byte(&self, at: usize) -> usize {
        if at >= self.text.len() { self.begun(at) } else { self.begun(at + 1) - 1 }
    }
}

fn hand_out(encoding: Encoding, offsets: Option<Vec<usize>>, full_count: usize) -> Encoded {
    let kept = Box::new(Kept { encoding, offsets });
    let encoded = Encoded {
        count: kept.encoding.get_ids().len(),
        ids: kept.encoding.get_ids().as_ptr(),
        type_ids: kept.encoding.get_type_ids().as_ptr(),
        special: kept.encoding.get_special_tokens_mask().as_ptr(),
        offsets: kept.offsets.as_ref().map_or(std::ptr::null(), |offsets| offsets.as_ptr()),
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
