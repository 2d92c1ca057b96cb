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
                    }
                }
            }
        }
    }
}
