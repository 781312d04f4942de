//! Texts in lower case, as Python's str.lower makes them: the whole mapping of Unicode, where a sigma at
//! the end of a word differs from others and one character may become two.

/// A lowered text, and where its characters come from.
pub struct Lowered {
    pub text: String,
    /// A row for each character of `text` and one for its end; empty where the places are the same.
    places: Vec<Place>,
}

#[derive(Clone, Copy, PartialEq)]
struct Place {
    /// In `text`, in bytes.
    lowered: usize,
    /// In the text as it was sent.
    chars: usize,
    bytes: usize,
}

impl Lowered {
    pub fn of(sent: &str) -> Self {
        let text = sent.to_lowercase();
        let sizes = |text: &str| text.chars().map(char::len_utf8).collect::<Vec<_>>();
        let mut places = Vec::new();
        if text.len() != sent.len() || sizes(&text) != sizes(sent) {
            let mut begins = text.char_indices().map(|(at, _)| at);
            let (mut chars, mut bytes) = (0, 0);
            for character in sent.chars() {
                // All characters that one becomes begin and end where it does.
                for lowered in begins.by_ref().take(character.to_lowercase().count()) {
                    places.push(Place { lowered, chars, bytes });
                }
                chars += 1;
                bytes += character.len_utf8();
            }
            places.push(Place { lowered: text.len(), chars, bytes });
        }
        Lowered { text, places }
    }

    /// The range of the sent text that `[begin, end)` of the lowered one comes from, in bytes or in
    /// characters.
    pub fn range(&self, begin: usize, end: usize, in_bytes: bool) -> (usize, usize) {
        if self.places.is_empty() {
            return (begin, end);
        }
        let row = |offset: usize| {
            let row = match in_bytes {
                true => self.places.partition_point(|place| place.lowered < offset),
                false => offset,
            };
            row.min(self.places.len() - 1)
        };
        let (first, mut last) = (row(begin), row(end));
        // What ends within the characters that one became ends where that one does.
        while last > first
            && last + 1 < self.places.len()
            && self.places[last].chars == self.places[last - 1].chars
        {
            last += 1;
        }
        let (first, last) = (self.places[first], self.places[last]);
        if in_bytes {
            (first.bytes, last.bytes)
        } else {
            (first.chars, last.chars)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lowered;

    #[test]
    fn all_scripts_are_lowered_as_python_does() {
        for (sent, lowered) in [
            ("ÉA", "éa"),
            ("ΟΔΟΣ ΣΑΣ", "οδος σας"),
            ("İSTANBUL", "i\u{307}stanbul"),
            ("ДОМ ԱԲ ႠႡ", "дом աբ ⴀⴁ"),
            ("ẞ Ⅷ Ａ 𐐀", "ß ⅷ ａ 𐐨"),
        ] {
            assert_eq!(Lowered::of(sent).text, lowered);
        }
    }

    #[test]
    fn offsets_are_those_of_the_text_as_it_was_sent() {
        let lowered = Lowered::of("aİb");
        assert_eq!(lowered.text, "ai\u{307}b");
        assert_eq!(lowered.range(1, 2, false), (1, 2));
        assert_eq!(lowered.range(1, 3, false), (1, 2));
        assert_eq!(lowered.range(3, 4, false), (2, 3));
        assert_eq!(lowered.range(4, 5, true), (3, 4));
        assert_eq!(Lowered::of("ÉB").range(1, 2, false), (1, 2));
    }
}
