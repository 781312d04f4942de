//! Values as Python writes them: `str`, `repr` and `json.dumps`.

use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use crate::chat::is_list;

/// The arguments of `json.dumps`.
pub struct JsonStyle {
    pub ascii: bool,
    pub indent: Option<String>,
    pub item: String,
    pub key: String,
    pub sorted: bool,
}

/// The most depth of a value; Python ends near a thousand.
const MOST_DEPTH: usize = 200;

fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a value is nested more than {} deep", MOST_DEPTH))
}

/// A float as Python's repr has it: the shortest digits that read back, an exponent beyond 16 digits.
fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.into();
    }
    let scientific = format!("{:e}", number);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{}", number);
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{}{:02}", digits, sign, exponent.abs())
}

/// The number, where `value` is a float.
fn float_of(value: &Value) -> Option<f64> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    f64::try_from(value.clone()).ok()
}

/// `str(value)`; nothing of what is undefined.
pub fn print_text(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    if value.is_undefined() {
        return Ok(String::new());
    }
    let mut text = String::new();
    repr(value, 0, &mut text)?;
    Ok(text)
}

fn quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if letter == quote => {
                out.push('\\');
                out.push(letter);
            }
            _ if (letter as u32) < 0x20 || letter as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", letter as u32);
            }
            _ => out.push(letter),
        }
    }
    out.push(quote);
}

fn repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MOST_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Number => match float_of(value) {
            Some(number) => out.push_str(&float_text(number)),
            None => out.push_str(&value.to_string()),
        },
        ValueKind::Map => {
            out.push('{');
            for (place, key) in value.try_iter()?.enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        _ if is_list(value) => {
            out.push('[');
            for (place, one) in value.try_iter()?.enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                repr(&one, depth + 1, out)?;
            }
            out.push(']');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn json_quoted(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            _ if (letter as u32) < 0x20 || (ascii && letter as u32 > 0x7e) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{:04x}", unit);
                }
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

/// Begins a line at `depth`, where lines are asked for.
fn new_line(style: &JsonStyle, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => print_text(key),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "a key of a dict is no text")),
    }
}

/// Appends `json.dumps(value)`.
pub fn json_text(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MOST_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::String => json_quoted(value.as_str().unwrap_or_default(), style.ascii, out),
        ValueKind::Number => match float_of(value) {
            Some(number) if number.is_nan() => out.push_str("NaN"),
            Some(number) if number.is_infinite() => {
                out.push_str(if number < 0.0 { "-Infinity" } else { "Infinity" });
            }
            Some(number) => out.push_str(&float_text(number)),
            None => out.push_str(&value.to_string()),
        },
        ValueKind::Map => {
            let mut members = Vec::new();
            for key in value.try_iter()? {
                members.push((json_key(&key)?, value.get_item(&key)?));
            }
            if style.sorted {
                members.sort_by(|a, b| a.0.cmp(&b.0));
            }
            out.push('{');
            for (place, (key, member)) in members.iter().enumerate() {
                if place > 0 {
                    out.push_str(&style.item);
                }
                new_line(style, depth + 1, out);
                json_quoted(key, style.ascii, out);
                out.push_str(&style.key);
                json_text(member, style, depth + 1, out)?;
            }
            if !members.is_empty() {
                new_line(style, depth, out);
            }
            out.push('}');
        }
        _ if is_list(value) => {
            out.push('[');
            let mut any = false;
            for one in value.try_iter()? {
                if any {
                    out.push_str(&style.item);
                }
                any = true;
                new_line(style, depth + 1, out);
                json_text(&one, style, depth + 1, out)?;
            }
            if any {
                new_line(style, depth, out);
            }
            out.push(']');
        }
        kind => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("a value of the kind {} is not JSON serializable", kind),
            ));
        }
    }
    Ok(())
}
