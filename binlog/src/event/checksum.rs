//! The checksum behind an event: CRC-32 (IEEE) of header and body, little-endian, in the last 4 bytes.
//!
//! Source: MySQL 8.4, `enum_binlog_checksum_alg` in `libs/mysql/binlog/event/binlog_event.h`.

/// How the events of a file are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChecksumAlgorithm {
    /// No checksum: events end with their body. `binlog_checksum=NONE`, and servers before MySQL 5.6 and MariaDB 5.3.
    #[default]
    None,
    /// 4 bytes of CRC-32 behind every event.
    Crc32,
}

impl ChecksumAlgorithm {
    /// The algorithm of a wire code: 0 or 1.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::None),
            1 => Some(Self::Crc32),
            _ => None,
        }
    }

    /// The wire code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Crc32 => 1,
        }
    }

    /// Bytes that the checksum takes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::None => 0,
            Self::Crc32 => CHECKSUM_SIZE,
        }
    }
}

/// Size of a checksum, bytes.
pub(crate) const CHECKSUM_SIZE: usize = 4;

/// Splits the checksum off an event: what it covers, and the stored value. Nothing when the event is too short.
pub(crate) fn split(event: &[u8]) -> Option<(&[u8], u32)> {
    let (covered, stored) = event.split_last_chunk::<CHECKSUM_SIZE>()?;
    Some((covered, u32::from_le_bytes(*stored)))
}

/// The checksum of a format description: the server writes it before it sets the in-use flag and never again, so the
/// flag counts as clear.
pub(crate) fn of_format_description(covered: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    match covered.split_at_checked(FLAGS_OFFSET) {
        Some((before, [flags, after @ ..])) => {
            hasher.update(before);
            hasher.update(&[flags & !1]);
            hasher.update(after);
        }
        Some((_, [])) | None => hasher.update(covered),
    }
    hasher.finalize()
}

/// Offset of the low flag byte in an event.
const FLAGS_OFFSET: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_in_use_flag_is_not_covered() {
        let closed = [7_u8; 40].map(|byte| byte & 6);
        let mut open = closed;
        open[FLAGS_OFFSET] |= 1;
        assert_eq!(of_format_description(&open), crc32fast::hash(&closed));
        let mut other = closed;
        other[FLAGS_OFFSET] |= 8;
        assert_ne!(of_format_description(&other), crc32fast::hash(&closed));
    }

    #[test]
    fn an_event_shorter_than_its_checksum_is_refused() {
        assert_eq!(split(&[1, 2, 3]), None);
        assert_eq!(split(&[9, 1, 0, 0, 0]), Some(([9].as_slice(), 1)));
    }
}
