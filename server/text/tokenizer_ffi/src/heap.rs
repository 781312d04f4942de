//! The heap of this library. What a call takes is counted, and a call that may not go on is ended.
//!
//! A failed allocation in Rust ends the process. Here it unwinds: `System` is asked, and where it has
//! nothing, or where the call that runs on the thread may take no more, the allocation fails, and the
//! hook of failed allocations starts an unwinding that `watched` catches. So no code of a tokenizer,
//! whatever a file or a text makes it do, takes more memory than it may, ends the process for want of
//! memory, or goes on for long after its caller wants it to end, as long as it allocates.
//!
//! The hook is not a stable interface of the standard library: the crate is built with
//! `RUSTC_BOOTSTRAP=reprise_tokenizer` (cmake/BuildTokenizer.cmake), which unlocks it for this crate alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Once;

use crate::{Failure, INTERNAL, INVALID_ARGUMENT, RESOURCE_EXHAUSTED};

/// What a call may take, and who says when it ends.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Watch {
    /// Bytes that live at once; 0: no limit.
    pub max_bytes: usize,
    /// Returns 0, or the code to end with. Null: the call runs to its end.
    pub ends: Option<unsafe extern "C" fn(*mut c_void) -> i32>,
    pub context: *mut c_void,
}

impl Watch {
    /// A call without limits.
    pub const NONE: Watch = Watch { max_bytes: 0, ends: None, context: std::ptr::null_mut() };
}

/// Work between two questions, in units of an allocation: some 100 us.
const WORK_A_LOOK: u32 = 2048;
/// Bytes that are copied or cleared in the time of an allocation.
const BYTES_A_UNIT: usize = 512;
/// Memory for the unwinding itself, where the system has none: its exception takes some 64 bytes.
const SPARE_BYTES: usize = 1024;

/// Why a call was ended.
#[derive(Clone, Copy)]
enum End {
    Asked(i32),
    TooMuch(usize),
    NoMemory(usize),
}

struct State {
    watch: Cell<Option<Watch>>,
    /// Counted bytes that live. Blocks that are older than the call may go, so it can be negative.
    bytes: Cell<isize>,
    left: Cell<u32>,
    end: Cell<Option<End>>,
    /// Addresses of the spare memory, and the first that is free.
    spare: Cell<(usize, usize)>,
    spare_free: Cell<usize>,
}

thread_local! {
    static STATE: State = const {
        State {
            watch: Cell::new(None),
            bytes: Cell::new(0),
            left: Cell::new(WORK_A_LOOK),
            end: Cell::new(None),
            spare: Cell::new((0, 0)),
            spare_free: Cell::new(0),
        }
    };
}

impl State {
    fn begin(&self, watch: Watch, spare: (usize, usize)) {
        self.bytes.set(0);
        self.left.set(WORK_A_LOOK);
        self.end.set(None);
        self.spare.set(spare);
        self.spare_free.set(spare.0);
        self.watch.set(Some(watch));
    }

    /// Returns why the call was ended, if it was.
    fn leave(&self) -> Option<End> {
        self.watch.set(None);
        self.spare.set((0, 0));
        self.end.take()
    }

    /// False where the call may not take `bytes` more, or is to end. Once it ends, everything is given
    /// that unwinding and destructors ask for.
    fn admits(&self, bytes: usize) -> bool {
        let Some(watch) = self.watch.get() else { return true };
        if self.end.get().is_some() {
            return true;
        }
        let held = self.bytes.get().saturating_add_unsigned(bytes);
        if watch.max_bytes > 0 && held > watch.max_bytes as isize {
            self.end.set(Some(End::TooMuch(held as usize)));
            return false;
        }
        self.look(1 + (bytes / BYTES_A_UNIT).min(WORK_A_LOOK as usize) as u32)
    }

    /// False where the call is to end.
    fn look(&self, work: u32) -> bool {
        let left = self.left.get().saturating_sub(work);
        self.left.set(left);
        if left > 0 {
            return true;
        }
        self.left.set(WORK_A_LOOK);
        let Some(Watch { ends: Some(ends), context, .. }) = self.watch.get() else { return true };
        match unsafe { ends(context) } {
            0 => true,
            code => {
                self.end.set(Some(End::Asked(code)));
                false
            }
        }
    }

    /// The system has no block of that size: while a call is being ended, one of the spare memory.
    fn without_memory(&self, layout: Layout) -> *mut u8 {
        if self.watch.get().is_none() {
            return std::ptr::null_mut();
        }
        if self.end.get().is_none() {
            self.end.set(Some(End::NoMemory(layout.size())));
            return std::ptr::null_mut();
        }
        let block = self.spare_free.get().next_multiple_of(layout.align());
        if layout.size() > self.spare.get().1.saturating_sub(block) {
            return std::ptr::null_mut();
        }
        self.spare_free.set(block + layout.size());
        block as *mut u8
    }

    fn is_spare(&self, block: *mut u8) -> bool {
        let (begin, end) = self.spare.get();
        (begin..end).contains(&(block as usize))
    }
}

pub struct Heap;

impl Heap {
    unsafe fn take(&self, layout: Layout, from: impl FnOnce() -> *mut u8) -> *mut u8 {
        STATE.with(|state| {
            if !state.admits(layout.size()) {
                return std::ptr::null_mut();
            }
            let block = from();
            if block.is_null() {
                return state.without_memory(layout);
            }
            state.bytes.set(state.bytes.get().wrapping_add_unsigned(layout.size()));
            block
        })
    }
}

unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout, || System.alloc(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = self.take(layout, || System.alloc_zeroed(layout));
        if STATE.with(|state| !block.is_null() && state.is_spare(block)) {
            block.write_bytes(0, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        STATE.with(|state| {
            if state.is_spare(block) {
                return;
            }
            state.bytes.set(state.bytes.get().wrapping_sub_unsigned(layout.size()));
            System.dealloc(block, layout)
        })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        STATE.with(|state| {
            if state.is_spare(block) {
                return std::ptr::null_mut();
            }
            if new_size > layout.size() && !state.admits(new_size - layout.size()) {
                return std::ptr::null_mut();
            }
            let moved = System.realloc(block, layout, new_size);
            if moved.is_null() {
                if state.watch.get().is_some() && state.end.get().is_none() {
                    state.end.set(Some(End::NoMemory(new_size)));
                }
                return moved;
            }
            let grown = (new_size as isize).wrapping_sub(layout.size() as isize);
            state.bytes.set(state.bytes.get().wrapping_add(grown));
            moved
        })
    }
}

/// The payload of an unwinding that ends a call.
struct Ended;

/// Unwinds where a call is watched; without one there is nothing to return to, and the process ends.
fn on_failed_allocation(layout: Layout) {
    let watched = STATE.with(|state| {
        let watched = state.watch.get().is_some();
        if watched && state.end.get().is_none() {
            // No allocator has refused it: a layout that nothing has room for.
            state.end.set(Some(End::NoMemory(layout.size())));
        }
        watched
    });
    if watched {
        resume_unwind(Box::new(Ended));
    }
}

/// Ends the call where its watch says so: for loops that do not allocate.
pub fn look() {
    let goes_on = STATE.with(|state| state.end.get().is_some() || state.look(1));
    if !goes_on {
        resume_unwind(Box::new(Ended));
    }
}

/// A sentence, or the empty one where there is no memory for it.
fn sentence(words: std::fmt::Arguments, most_bytes: usize) -> String {
    let mut text = String::new();
    if text.try_reserve(most_bytes).is_ok() {
        let _ = text.write_fmt(words);
    }
    text
}

fn failure_of(end: End, max_bytes: usize) -> Failure {
    let (code, message) = match end {
        End::Asked(code) => (code, sentence(format_args!("the work was ended"), 32)),
        End::TooMuch(bytes) => (
            INVALID_ARGUMENT,
            sentence(
                format_args!(
                    "the tokenizer needs more than {} bytes of memory for it, and may take {}",
                    bytes - 1,
                    max_bytes
                ),
                160,
            ),
        ),
        End::NoMemory(bytes) => (
            RESOURCE_EXHAUSTED,
            sentence(
                format_args!(
                    "the tokenizer needs {} bytes of memory at once, and the system has not so many left",
                    bytes
                ),
                160,
            ),
        ),
    };
    Failure { code, message, too_large: matches!(end, End::TooMuch(_)) }
}

/// Runs `work` under `watch`. An end by the watch, the want of memory, and a panic are its failure.
pub fn watched<T>(watch: Watch, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static HOOKS: Once = Once::new();
    HOOKS.call_once(|| {
        // A panic is told to the caller alone; the default hook would write it to the log's stream.
        std::panic::set_hook(Box::new(|_| {}));
        std::alloc::set_alloc_error_hook(on_failed_allocation);
    });
    let mut spare = MaybeUninit::<[u128; SPARE_BYTES / 16]>::uninit();
    let begin = spare.as_mut_ptr() as usize;
    STATE.with(|state| state.begin(watch, (begin, begin + SPARE_BYTES)));
    let result = catch_unwind(AssertUnwindSafe(work));
    let end = STATE.with(State::leave);
    match (result, end) {
        (Ok(Ok(made)), _) => Ok(made),
        // What a library says of an allocation that was refused is not the cause.
        (_, Some(end)) => Err(failure_of(end, watch.max_bytes)),
        (Ok(Err(failure)), None) => Err(failure),
        (Err(payload), None) => Err(panicked(&payload)),
    }
}

fn panicked(payload: &Box<dyn Any + Send>) -> Failure {
    let what = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let message = sentence(format_args!("the tokenizer failed: {}", what), what.len() + 32);
    Failure { code: INTERNAL, message, too_large: false }
}
