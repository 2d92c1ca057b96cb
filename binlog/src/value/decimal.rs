//! DECIMAL: the packed digits of the wire, or the text of a query.

/// A DECIMAL value with its declared precision and scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decimal<'a> {
    /// The packed big-endian form of rows events, 9 digits in 4 bytes, sign in the top bit.
    Packed {
        /// The packed bytes, of the length that precision and scale give.
        bytes: &'a [u8],
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// Decimal text as a query prints it: an optional minus, digits, an optional point and digits.
    Text(&'a [u8]),
}
