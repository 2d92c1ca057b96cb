//! Base64, three bytes and four characters at a time.

/// The characters of an alphabet by their number.
pub type Alphabet = [u8; 64];

/// The standard alphabet.
pub const STANDARD: &Alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The alphabet for URLs and file names.
pub const URL_SAFE: &Alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The characters of the lower 24 bits.
#[inline]
#[must_use]
pub fn four(alphabet: &Alphabet, bits: u64) -> [u8; 4] {
    [18, 12, 6, 0].map(|shift| {
        let place = (bits >> shift & 63) as usize;
        alphabet.get(place).copied().unwrap_or_default()
    })
}

/// The same where only the first `count` of the three bytes are there, 1 to 3; the rest is padding.
#[inline]
#[must_use]
pub fn last_four(alphabet: &Alphabet, bits: u64, count: usize) -> [u8; 4] {
    let [a, b, c, d] = four(alphabet, bits);
    [a, b, if count > 1 { c } else { b'=' }, if count > 2 { d } else { b'=' }]
}
