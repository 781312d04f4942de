//! Chat templates: a conversation as one text, as transformers renders it by jinja2.
//!
//! A template comes with a model, so nothing that it does is trusted: each of its steps takes fuel, its
//! memory and time are those of the call (`heap.rs`), and its errors name the line.

use std::ops::ControlFlow;
use std::time::Duration;

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior};

use crate::heap::{watched, Watch};
use crate::python_text::{json_text, print_text, JsonStyle};
use crate::Failure;

/// Steps of a rendering: a conversation of ten thousand messages takes some three million.
const FUEL: u64 = 20_000_000;
const NAME: &str = "chat template";
/// The search for the line of a rendering that was too large ends after this CPU time, near the line.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);

pub struct ChatTemplate {
    environment: Environment<'static>,
}

fn failure_of(error: &Error) -> Failure {
    let line = error.line().map(|line| format!(", line {}", line)).unwrap_or_default();
    let why = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => format!("it takes more than {} steps", FUEL),
        (_, Some(detail)) => detail.to_string(),
        (kind, None) => kind.to_string(),
    };
    Failure::invalid(format!("the chat template{}: {}", line, why))
}

/// Blocks `{% generation %}` mark what an assistant said, for training; here they are a scope.
fn without_generation_blocks(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(begin) = rest.find("{%") {
        let (before, block) = rest.split_at(begin);
        text.push_str(before);
        let Some(end) = block.find("%}") else {
            text.push_str(block);
            return text;
        };
        let (block, after) = block.split_at(end + 2);
        match block[2..end].trim_matches(['-', '+']).trim() {
            "generation" => text.push_str(&block.replacen("generation", "with", 1)),
            "endgeneration" => text.push_str(&block.replacen("endgeneration", "endwith", 1)),
            _ => text.push_str(block),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// `tojson` as transformers has it: nothing is escaped for HTML, and ASCII is not forced.
fn to_json(value: &Value, rest: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let given = |place: usize, name: &str| -> Result<Option<Value>, Error> {
        let value: Option<Value> = named.get(name)?;
        Ok(value.or_else(|| rest.get(place).cloned()).filter(|one| !one.is_none() && !one.is_undefined()))
    };
    let ascii = given(0, "ensure_ascii")?.is_some_and(|one| one.is_true());
    let indent = given(1, "indent")?;
    let separators = given(2, "separators")?;
    let sorted = given(3, "sort_keys")?.is_some_and(|one| one.is_true());
    named.assert_all_used()?;
    let indent = match indent {
        None => None,
        Some(one) => Some(match one.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(usize::try_from(one).map(|width: usize| width.min(64))?),
        }),
    };
    let (mut item, mut key) = (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string());
    if let Some(pair) = separators {
        item = pair.get_item_by_index(0)?.to_string();
        key = pair.get_item_by_index(1)?.to_string();
    }
    let style = JsonStyle { ascii, indent, item, key, sorted };
    let mut text = String::new();
    json_text(value, &style, 0, &mut text)?;
    Ok(Value::from(text))
}

/// The lines of a text, as Python's splitlines: more than "\n" ends one.
fn python_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut begin = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((place, letter)) = letters.next() {
        if !matches!(letter, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}') {
            continue;
        }
        lines.push(&text[begin..place]);
        begin = place + letter.len_utf8();
        if letter == '\r' && letters.next_if(|(_, next)| *next == '\n').is_some() {
            begin += 1;
        }
    }
    if begin < text.len() {
        lines.push(&text[begin..]);
    }
    lines
}

/// `indent` as jinja2 has it.
fn indent(text: &str, rest: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let given = |place: usize, name: &str| -> Result<Option<Value>, Error> {
        let value: Option<Value> = named.get(name)?;
        Ok(value.or_else(|| rest.get(place).cloned()))
    };
    let width = given(0, "width")?;
    let first = given(1, "first")?.is_some_and(|one| one.is_true());
    let blank = given(2, "blank")?.is_some_and(|one| one.is_true());
    named.assert_all_used()?;
    let front = match &width {
        None => "    ".to_string(),
        Some(one) => match one.as_str() {
            Some(letters) => letters.to_string(),
            None => " ".repeat(usize::try_from(one.clone()).map(|width: usize| width.min(256))?),
        },
    };
    let mut made = String::new();
    for (place, line) in python_lines(&format!("{}\n", text)).into_iter().enumerate() {
        if place > 0 {
            made.push('\n');
        }
        if (place > 0 || first) && (blank || !line.is_empty() || (place == 0 && first)) {
            made.push_str(&front);
        }
        made.push_str(line);
    }
    Ok(made)
}

/// The time as `format` has it, in the zone of the server, as Python's datetime.now().strftime.
fn strftime(now: i64, format: &str) -> Result<String, Error> {
    let seconds = now as libc::time_t;
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    let format = std::ffi::CString::new(format)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "the format of a time has a zero byte"))?;
    let mut buffer = vec![0u8; 1024];
    let size = unsafe {
        libc::localtime_r(&seconds, &mut parts);
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), &parts)
    };
    buffer.truncate(size);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

/// Methods of Python's texts, lists and dicts that the library does not know.
fn method(state: &State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        match (name, args) {
            ("removeprefix", [part]) if part.as_str().is_some() => {
                let part = part.as_str().unwrap_or_default();
                return Ok(Value::from(text.strip_prefix(part).unwrap_or(text)));
            }
            ("removesuffix", [part]) if part.as_str().is_some() => {
                let part = part.as_str().unwrap_or_default();
                return Ok(Value::from(text.strip_suffix(part).unwrap_or(text)));
            }
            _ => {}
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

impl ChatTemplate {
    pub fn new(source: &str) -> Result<Self, Failure> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(method);
        environment.set_formatter(|out, _state, value| {
            let text = print_text(value)?;
            out.write_str(&text).map_err(Error::from)
        });
        environment.add_filter("tojson", to_json);
        environment.add_filter("indent", indent);
        environment.add_test("iterable", |value: &Value| {
            is_list(value) || value.as_str().is_some() || value.kind() == ValueKind::Map || value.is_undefined()
        });
        environment.add_filter("string", |value: &Value| print_text(value));
        environment.add_function("raise_exception", raise_exception);
        // Which time it is, the context says.
        environment.add_function("strftime_now", |state: &State, format: String| {
            let now = state.lookup("__now").and_then(|now| i64::try_from(now).ok()).unwrap_or(0);
            strftime(now, &format)
        });
        let source = without_generation_blocks(source);
        environment.add_template_owned(NAME, source).map_err(|error| failure_of(&error))?;
        Ok(ChatTemplate { environment })
    }

    /// `context`: a JSON object of what the template may ask for. A failure for want of memory names
    /// the line as any other does.
    pub fn render(&self, context: &str, now: i64, watch: Watch) -> Result<String, Failure> {
        // A boxed text has no room that is given back outside of the watch.
        let once = || self.render_once(context, now).map(String::into_boxed_str);
        let failure = match watched(watch, once) {
            Err(failure) if failure.too_large => failure,
            other => return other.map(str::into_string),
        };
        let Some(line) = self.line_of_end(context, now, watch) else { return Err(failure) };
        // The sentence itself takes memory.
        watched(watch, || {
            Err(Failure::invalid(format!(
                "the chat template, line {}: it needs more than {} bytes of memory, which is all that it may take",
                line, watch.max_bytes
            )))
        })
    }

    /// Returns the line that a rendering under `watch` comes to before it takes too much memory: the
    /// last one at which another ends that has less fuel. None where the conversation is too large by
    /// itself.
    fn line_of_end(&self, context: &str, now: i64, watch: Watch) -> Option<usize> {
        let begin = cpu_time();
        let (mut low, mut high, mut line) = (0, FUEL, None);
        let mut environment = self.environment.clone();
        let mut look = |fuel: u64| {
            environment.set_fuel(Some(fuel));
            let mut end = None;
            // How it fails is known; a caller who wants no more is asked in each of them.
            let ended = watched(watch, || {
                let context = values_of(context, now)?;
                let template = environment.get_template(NAME).map_err(|error| failure_of(&error))?;
                if let Err(error) = template.render(context) {
                    end = error.line().filter(|_| error.kind() == ErrorKind::OutOfFuel);
                }
                Ok(())
            });
            match ended {
                Err(failure) if !failure.too_large => ControlFlow::Break(()),
                _ => ControlFlow::Continue(end),
            }
        };
        let mut fuel = 64;
        while low + 1 < high && (line.is_none() || cpu_time() - begin < LONGEST_SEARCH) {
            match look(fuel) {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(None) => high = fuel,
                ControlFlow::Continue(end) => (low, line) = (fuel, end),
            }
            fuel = if high == FUEL { (fuel * 8).min(FUEL - 1) } else { low + (high - low) / 2 };
        }
        line
    }

    fn render_once(&self, context: &str, now: i64) -> Result<String, Failure> {
        let mut context = parsed(context)?;
        let go_on = context["continue_final_message"] == true;
        let last = last_content(&context);
        context["__now"] = now.into();
        let template = self.environment.get_template(NAME).map_err(|error| failure_of(&error))?;
        let text = template.render(Value::from_serialize(&context)).map_err(|error| failure_of(&error))?;
        if go_on {
            continued(text, last)
        } else {
            Ok(text)
        }
    }
}

fn parsed(context: &str) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(context)
        .map_err(|why| Failure::invalid(format!("the conversation is not JSON: {}", why)))
}

/// CPU time of this thread, whatever else the machine does.
fn cpu_time() -> Duration {
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What a template finds of `context`.
fn values_of(context: &str, now: i64) -> Result<Value, Failure> {
    let mut context = parsed(context)?;
    context["__now"] = now.into();
    Ok(Value::from_serialize(&context))
}

/// The content of the last message, where it is a text.
fn last_content(context: &serde_json::Value) -> Option<String> {
    let message = context["messages"].as_array()?.last()?;
    message["content"].as_str().map(str::to_string)
}

/// The text up to the end of the last message's content, so that the answer goes on with it.
fn continued(mut text: String, last: Option<String>) -> Result<String, Failure> {
    let last = last.ok_or_else(|| {
        Failure::invalid("continue_final_message: the last message has no content to continue")
    })?;
    let place = text.rfind(last.trim()).ok_or_else(|| {
        Failure::invalid("continue_final_message: the chat template leaves the last message's content out")
    })?;
    let whole = last.trim_start();
    let size = if text[place..].starts_with(whole) { whole.len() } else { last.trim().len() };
    text.truncate(place + size);
    Ok(text)
}

/// Whether `value` is one of the kinds that print as Python's lists do.
pub fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}
