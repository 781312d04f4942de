//! Patterns whose matching is not linear in the text: those that look around over any distance.
//!
//! `(?=.*x)a` reads the rest of a text at each of its places, within one search that nothing can end. A
//! pattern that looks a fixed distance, as those of GPT-2 and its heirs (`\s+(?!\S)`), does not.

use serde::Serialize;
use serde_json::Value;

/// The longest text, in bytes, for a tokenizer with such a pattern: its square takes a second.
pub const LONGEST_TEXT: usize = 32 << 10;

/// The first such pattern in `part`, a normalizer or a pre-tokenizer.
pub fn unbounded_in(part: &impl Serialize) -> Option<String> {
    find(&serde_json::to_value(part).ok()?)
}

fn find(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => {
            let pattern = members.get("Regex").and_then(Value::as_str);
            let own = pattern.filter(|pattern| looks_without_bound(pattern)).map(str::to_string);
            own.or_else(|| members.values().find_map(find))
        }
        Value::Array(values) => values.iter().find_map(find),
        _ => None,
    }
}

/// Whether a look-around of `pattern` holds a repetition without an upper bound.
fn looks_without_bound(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let mut groups: Vec<bool> = Vec::new(); // the open ones; true: within a look-around
    let mut in_class = 0;
    let mut at = 0;
    while at < bytes.len() {
        let within = groups.last().copied().unwrap_or(false);
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => in_class += 1,
            b']' => in_class = usize::saturating_sub(in_class, 1),
            _ if in_class > 0 => {}
            b'(' => {
                let rest = &pattern[at..];
                let looks = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|form| rest.starts_with(form));
                groups.push(within || looks);
            }
            b')' => {
                groups.pop();
            }
            b'*' | b'+' if within => return true,
            b'{' if within => {
                let count = pattern[at..].split('}').next().unwrap_or("");
                if count.ends_with(',') {
                    return true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}
