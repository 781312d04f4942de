//! Tokenizers, chat templates and grammars with a small C interface; its contract is in
//! `server/text/tokenizer_ffi.h`.
//!
//! Nothing unwinds across it, and nothing ends the process: every entry runs its work in `guarded`, which
//! turns an error, a panic or the want of memory into a code and a message (`heap.rs`). Memory that is handed
//! out is freed by the function that the header names.

#![feature(alloc_error_hook)]

mod added;
mod bpe_files;
mod chat;
mod classes;
mod encode;
mod grammar;
mod heap;
mod load;
mod lower;
mod patterns;
mod python_text;
mod sentencepiece;
mod template;
mod token_bytes;
mod writing_ffi;
mod wordpiece;

use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

use encode::{EncodeOptions, Encoded, First};
use heap::{watched, Watch};
use load::Loaded;
use tokenizers::ModelWrapper;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

/// The codes are those of absl::StatusCode.
pub const INVALID_ARGUMENT: i32 = 3;
pub const RESOURCE_EXHAUSTED: i32 = 8;
pub const UNIMPLEMENTED: i32 = 12;
pub const INTERNAL: i32 = 13;

/// Why something failed: a code and a sentence.
#[derive(Debug)]
pub struct Failure {
    pub code: i32,
    pub message: String,
    /// The work needed more memory than it may take.
    pub too_large: bool,
}

impl Failure {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), too_large: false }
    }
    pub fn invalid(message: impl Into<String>) -> Self {
        Failure::new(INVALID_ARGUMENT, message)
    }
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Failure::new(UNIMPLEMENTED, message)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Bytes that this library owns until `reprise_text_free`.
#[repr(C)]
pub struct Text {
    pub data: *mut c_char,
    pub size: usize,
}

pub fn hand_out(text: String, out: *mut Text) {
    if out.is_null() {
        return;
    }
    let bytes = text.into_bytes().into_boxed_slice();
    let size = bytes.len();
    let data = Box::into_raw(bytes) as *mut c_char;
    unsafe { *out = Text { data, size } };
}

/// The text that a caller lends; empty where there is none.
pub unsafe fn lent<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    if data.is_null() || size == 0 {
        return &[];
    }
    std::slice::from_raw_parts(data as *const u8, size)
}

/// A lent text as UTF-8; the error says where it breaks.
pub fn utf8<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, Failure> {
    std::str::from_utf8(bytes).map_err(|error| {
        Failure::invalid(format!("{} is no UTF-8 at byte {}", name, error.valid_up_to()))
    })
}

/// Runs `work`, within `watch` where there is one; its error goes to `error`, and its code is returned.
pub unsafe fn guarded(
    watch: *const Watch,
    error: *mut Text,
    work: impl FnOnce() -> Result<(), Failure>,
) -> i32 {
    match watched(watch.as_ref().copied().unwrap_or(Watch::NONE), work) {
        Ok(()) => 0,
        Err(failure) => {
            hand_out(failure.message, error);
            failure.code
        }
    }
}

/// Bytes that a caller lends.
#[repr(C)]
pub struct Lent {
    data: *const c_char,
    size: usize,
}

impl Lent {
    unsafe fn bytes<'a>(&self) -> &'a [u8] {
        lent(self.data, self.size)
    }
}

#[repr(C)]
pub struct TokenizerFiles {
    kind: i32,
    lower: i32,
    data: Lent,
    merges: Lent,
    tokenizer_config: Lent,
    added_tokens: Lent,
    special_tokens_map: Lent,
    model_config: Lent,
}

/// # Safety
/// Every pointer is null or points to as many bytes as its size says; `files` and `out` are not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_load(
    files: *const TokenizerFiles,
    watch: *const Watch,
    out: *mut *mut Loaded,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let files = &*files;
        let loaded = load::load(&load::Files {
            kind: files.kind,
            data: files.data.bytes(),
            merges: files.merges.bytes(),
            tokenizer_config: files.tokenizer_config.bytes(),
            added_tokens: files.added_tokens.bytes(),
            special_tokens_map: files.special_tokens_map.bytes(),
            model_config: files.model_config.bytes(),
            lower: files.lower != 0,
        })?;
        *out = Box::into_raw(Box::new(loaded));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` came from `reprise_tokenizer_load` and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_free(tokenizer: *mut Loaded) {
    if !tokenizer.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(tokenizer))));
    }
}

/// # Safety
/// As the header says; `pair` is null where there is no second text.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_encode(
    tokenizer: *const Loaded,
    text: *const c_char,
    size: usize,
    pair: *const c_char,
    pair_size: usize,
    options: *const EncodeOptions,
    watch: *const Watch,
    out: *mut Encoded,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let text = utf8(lent(text, size), "the text")?;
        let pair = if pair.is_null() {
            None
        } else {
            Some(utf8(lent(pair, pair_size), "the second text")?)
        };
        *out = encode::encode(&*tokenizer, text, pair, &*options)?;
        Ok(())
    })
}

/// # Safety
/// As the header says; `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_first(
    tokenizer: *const Loaded,
    text: *const c_char,
    size: usize,
    options: *const EncodeOptions,
    watch: *const Watch,
    out: *mut *mut First,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let first = First::of(&*tokenizer, utf8(lent(text, size), "the text")?, &*options)?;
        *out = Box::into_raw(Box::new(first));
        Ok(())
    })
}

/// # Safety
/// `first` came from `reprise_tokenizer_first`.
#[no_mangle]
pub unsafe extern "C" fn reprise_first_tokens(first: *const First) -> usize {
    (*first).kept_tokens()
}

/// # Safety
/// `first` came from `reprise_tokenizer_first` of the same tokenizer.
#[no_mangle]
pub unsafe extern "C" fn reprise_first_pair(
    tokenizer: *const Loaded,
    first: *const First,
    pair: *const c_char,
    pair_size: usize,
    watch: *const Watch,
    out: *mut Encoded,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let pair = utf8(lent(pair, pair_size), "the second text")?;
        *out = (*first).paired(&*tokenizer, pair)?;
        Ok(())
    })
}

/// # Safety
/// `first` came from `reprise_tokenizer_first` and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_first_free(first: *mut First) {
    if !first.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(first))));
    }
}

/// # Safety
/// `encoded` was filled by this library and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_encoded_free(encoded: *mut Encoded) {
    let _ = catch_unwind(AssertUnwindSafe(|| encode::release(&mut *encoded)));
}

/// # Safety
/// `ids` points to `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_decode(
    tokenizer: *const Loaded,
    ids: *const u32,
    count: usize,
    skip_special: i32,
    watch: *const Watch,
    out: *mut Text,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let ids = if count == 0 { &[] } else { std::slice::from_raw_parts(ids, count) };
        let text = (*tokenizer)
            .tokenizer
            .decode(ids, skip_special != 0)
            .map_err(|why| Failure::invalid(format!("the ids cannot be decoded: {}", why)))?;
        hand_out(text, out);
        Ok(())
    })
}

/// The token of an id, as the vocabulary writes it. Returns 0 and an empty text where there is none.
///
/// # Safety
/// `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_token(
    tokenizer: *const Loaded,
    id: u32,
    out: *mut Text,
    error: *mut Text,
) -> i32 {
    guarded(std::ptr::null(), error, || {
        hand_out((*tokenizer).tokenizer.id_to_token(id).unwrap_or_default(), out);
        Ok(())
    })
}

/// The id of a token, or -1.
///
/// # Safety
/// `token` points to `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_id(
    tokenizer: *const Loaded,
    token: *const c_char,
    size: usize,
) -> i64 {
    let mut id = -1;
    guarded(std::ptr::null(), std::ptr::null_mut(), || {
        let token = utf8(lent(token, size), "the token")?;
        id = (*tokenizer).tokenizer.token_to_id(token).map_or(-1, i64::from);
        Ok(())
    });
    id
}

/// How many ids there are, those of added tokens included.
///
/// # Safety
/// `tokenizer` came from `reprise_tokenizer_load`.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_size(tokenizer: *const Loaded) -> usize {
    let mut size = 0;
    guarded(std::ptr::null(), std::ptr::null_mut(), || {
        size = (*tokenizer).tokenizer.get_vocab_size(true);
        Ok(())
    });
    size
}

/// Whether the files say that the front of a text is cut.
///
/// # Safety
/// `tokenizer` came from `reprise_tokenizer_load`.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_truncates_left(tokenizer: *const Loaded) -> i32 {
    i32::from((*tokenizer).truncates_left)
}

/// The mark of tokens that go on with a word ("##"), and the token of what no other has; each is empty
/// where there is none.
///
/// # Safety
/// `prefix` and `unknown` are not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_marks(
    tokenizer: *const Loaded,
    prefix: *mut Text,
    unknown: *mut Text,
) -> i32 {
    guarded(std::ptr::null(), std::ptr::null_mut(), || {
        let loaded = &*tokenizer;
        let mark = match loaded.tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => Some(model.continuing_subword_prefix.clone()),
            ModelWrapper::BPE(model) => model.continuing_subword_prefix.clone(),
            _ => None,
        };
        hand_out(mark.unwrap_or_default(), prefix);
        hand_out(loaded.unknown.clone(), unknown);
        Ok(())
    })
}

/// # Safety
/// `text` was filled by this library and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_text_free(text: *mut Text) {
    let text = &mut *text;
    if !text.data.is_null() {
        let bytes = std::ptr::slice_from_raw_parts_mut(text.data as *mut u8, text.size);
        drop(Box::from_raw(bytes));
        text.data = std::ptr::null_mut();
        text.size = 0;
    }
}
