//! Text that stands in JSON as it is: nearly all of it.

/// One in each byte of a word.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Whether text is ASCII without quotes, backslashes and control characters.
#[inline]
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let mut found = 0;
    for word in words {
        found |= special(u64::from_le_bytes(*word));
    }
    // The rest again with bytes before it, or put together.
    found |= match (rest, text.last_chunk::<8>()) {
        ([], _) => 0,
        (_, Some(last)) => special(u64::from_le_bytes(*last)),
        (_, None) => match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            (Some(first), Some(last)) => special(
                u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)),
            ),
            _ => text.iter().fold(0, |found, byte| found | special(EACH * u64::from(*byte))),
        },
    };
    found & (EACH * 0x80) == 0
}

/// Appends text if it is plain; else appends nothing and gives `false`.
///
/// Short text, which most is, is looked at and appended in one or two words, the second of which may overlap the first.
#[inline]
pub fn write_plain(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) if text.len() <= 16 => {
            let found = special(u64::from_le_bytes(*first)) | special(u64::from_le_bytes(*last));
            if found & (EACH * 0x80) != 0 {
                return false;
            }
            out.extend_from_slice(first);
            out.truncate(start + text.len() - 8);
            out.extend_from_slice(last);
            true
        }
        (Some(_), _) => {
            let is_plain = is_plain(text);
            if is_plain {
                out.extend_from_slice(text);
            }
            is_plain
        }
        (None, _) => {
            let Some(word) = short_word(text) else { return true };
            if special(word) & (EACH * 0x80) != 0 {
                return false;
            }
            out.extend_from_slice(&word.to_le_bytes());
            out.truncate(start + text.len());
            true
        }
    }
}

/// Less than 8 bytes in a word, filled up with blanks; none for no byte.
#[inline]
fn short_word(text: &[u8]) -> Option<u64> {
    let len = text.len() & 7;
    let blanks = (EACH * 0x20) << (8 * len);
    let word = match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            u64::from(first) | u64::from(last) << (8 * (len - 4))
        }
        _ => {
            let (first, last) = (u64::from(*text.first()?), u64::from(*text.last()?));
            let middle = u64::from(*text.get(len / 2)?);
            first | middle << (8 * (len / 2)) | last << (8 * (len - 1))
        }
    };
    Some(word | blanks)
}

/// Sets the high bit of a byte of the word that is a quote, a backslash, below 0x20, or above 0x7f; other bits mean nothing.
///
/// With its second bit flipped, a quote is 0x20, and only it and control characters are below 0x21. (A borrow reaches a
/// byte only from one that is found.)
#[inline]
const fn special(word: u64) -> u64 {
    let controls = (word ^ (EACH * 2)).wrapping_sub(EACH * 0x21);
    let backslashes = (word ^ (EACH * b'\\' as u64)).wrapping_sub(EACH);
    controls | backslashes | word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_appended_in_its_order() {
        for len in 0..40 {
            let text = (b'a'..).take(len).map(|byte| byte.min(b'z')).collect::<Vec<_>>();
            let mut out = Vec::new();
            assert!(write_plain(&text, &mut out));
            assert_eq!(out, text);
        }
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_is() {
        for len in 0..40 {
            for filling in *b"a !#[]~" {
                let plain = vec![filling; len];
                assert!(is_plain(&plain), "{len}");
                for at in 0..len {
                    for byte in 0..=255_u8 {
                        let mut text = plain.clone();
                        text[at] = byte;
                        let expected = matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=0x7f);
                        assert_eq!(is_plain(&text), expected, "{byte} at {at} of {len}");
                        let mut out = b"kept".to_vec();
                        assert_eq!(write_plain(&text, &mut out), expected);
                        let appended = out.strip_prefix(b"kept").unwrap();
                        assert_eq!(appended, if expected { text.as_slice() } else { b"" });
                    }
                }
            }
        }
    }
}
