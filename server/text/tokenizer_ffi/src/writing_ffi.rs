//! The C interface of chat templates and grammars; its contract is in `server/text/tokenizer_ffi.h`.

use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::chat::ChatTemplate;
use crate::grammar::{Grammar, Grammars};
use crate::heap::{watched, Watch};
use crate::load::Loaded;
use crate::{guarded, hand_out, lent, utf8, Failure, Text};

unsafe fn release<T>(owned: *mut T) {
    if !owned.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(owned))));
    }
}

/// # Safety
/// `source` points to `size` bytes, `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_chat_load(
    source: *const c_char,
    size: usize,
    watch: *const Watch,
    out: *mut *mut ChatTemplate,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let source = utf8(lent(source, size), "the chat template")?;
        *out = Box::into_raw(Box::new(ChatTemplate::new(source)?));
        Ok(())
    })
}

/// # Safety
/// `chat` came from `reprise_chat_load` and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_chat_free(chat: *mut ChatTemplate) {
    release(chat)
}

/// # Safety
/// `context` points to `size` bytes, `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_chat_render(
    chat: *const ChatTemplate,
    context: *const c_char,
    size: usize,
    now: i64,
    watch: *const Watch,
    out: *mut Text,
    error: *mut Text,
) -> i32 {
    let context = watched(Watch::NONE, || utf8(lent(context, size), "the conversation"));
    let watch = watch.as_ref().copied().unwrap_or(Watch::NONE);
    match context.and_then(|context| (*chat).render(context, now, watch)) {
        Ok(text) => {
            hand_out(text, out);
            0
        }
        Err(failure) => {
            hand_out(failure.message, error);
            failure.code
        }
    }
}

/// The bytes of a token; empty where there is none.
///
/// # Safety
/// `tokenizer` came from `reprise_tokenizer_load`, `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_bytes(
    tokenizer: *const Loaded,
    id: u32,
    out: *mut Text,
    error: *mut Text,
) -> i32 {
    guarded(std::ptr::null(), error, || {
        // They need not be UTF-8: a token may hold a part of a letter.
        let boxed = (*tokenizer).bytes_of(id).into_boxed_slice();
        let size = boxed.len();
        *out = Text { data: Box::into_raw(boxed) as *mut c_char, size };
        Ok(())
    })
}

/// Whether a token is special: it stands in no text.
///
/// # Safety
/// `tokenizer` came from `reprise_tokenizer_load`.
#[no_mangle]
pub unsafe extern "C" fn reprise_tokenizer_is_special(tokenizer: *const Loaded, id: u32) -> i32 {
    let mut special = false;
    guarded(std::ptr::null(), std::ptr::null_mut(), || {
        special = (*tokenizer).token_bytes().is_special(id);
        Ok(())
    });
    i32::from(special)
}

/// # Safety
/// `tokenizer` came from `reprise_tokenizer_load`, `eos` points to `count` ids, `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammars_make(
    tokenizer: *const Loaded,
    eos: *const u32,
    count: usize,
    vocabulary: usize,
    watch: *const Watch,
    out: *mut *mut Grammars,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let eos = if count == 0 { &[] } else { std::slice::from_raw_parts(eos, count) };
        *out = Box::into_raw(Box::new(Grammars::new(&*tokenizer, eos, vocabulary)?));
        Ok(())
    })
}

/// # Safety
/// `grammars` came from `reprise_grammars_make` and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammars_free(grammars: *mut Grammars) {
    release(grammars)
}

/// # Safety
/// `text` points to `size` bytes, `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammar_compile(
    grammars: *const Grammars,
    kind: i32,
    text: *const c_char,
    size: usize,
    watch: *const Watch,
    out: *mut *mut Grammar,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        let text = utf8(lent(text, size), "the grammar")?;
        *out = Box::into_raw(Box::new((*grammars).compile(kind, text)?));
        Ok(())
    })
}

/// # Safety
/// `grammar` came from `reprise_grammar_compile` or `reprise_grammar_copy`, `out` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammar_copy(
    grammar: *const Grammar,
    watch: *const Watch,
    out: *mut *mut Grammar,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || {
        *out = Box::into_raw(Box::new((*grammar).copy()));
        Ok(())
    })
}

/// # Safety
/// `grammar` is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammar_free(grammar: *mut Grammar) {
    release(grammar)
}

/// # Safety
/// `bits` points to `words` numbers.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammar_mask(
    grammar: *mut Grammar,
    bits: *mut u32,
    words: usize,
    watch: *const Watch,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || (*grammar).mask(std::slice::from_raw_parts_mut(bits, words)))
}

/// # Safety
/// `complete` is not null.
#[no_mangle]
pub unsafe extern "C" fn reprise_grammar_take(
    grammar: *mut Grammar,
    id: u32,
    watch: *const Watch,
    complete: *mut i32,
    error: *mut Text,
) -> i32 {
    guarded(watch, error, || -> Result<(), Failure> {
        *complete = i32::from((*grammar).take(id)?);
        Ok(())
    })
}
