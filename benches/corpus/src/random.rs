//! Made-up numbers that are the same on every run and machine.

/// `SplitMix64` (Steele, Lea and Flood, 2014): small, fast, and good enough for test data.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// A number from -`limit` to `limit`, which is below 2^62.
    pub const fn around(&mut self, limit: u64) -> i64 {
        self.below(2 * limit + 1).cast_signed() - limit.cast_signed()
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend(self.bits().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// Words of lower-case letters, `len` bytes of them.
    pub fn text(&mut self, len: usize) -> Vec<u8> {
        let letter = |byte: u8| if byte < 40 { b' ' } else { b'a' + byte % 26 };
        self.bytes(len).into_iter().map(letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_fixed() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }
}
