//! `FORMAT_DESCRIPTION_EVENT`: who wrote the file, and how its events are laid out.
//!
//! ```text
//! binlog_version        u16le      4
//! server_version        50 bytes   text, filled up with NUL
//! created               u32le      when the server started, if this is its first file since then; else 0
//! common_header_length  u8         19
//! post_header_lengths   rest       one byte per event type, from code 1 on
//! checksum_algorithm    u8         only servers that know checksums: MySQL 5.6.1, MariaDB 5.3 and later
//! ```
//!
//! Source: MySQL 8.4, `Format_description_event` in `libs/mysql/binlog/event/control_events.h`.

use crate::event::checksum::ChecksumAlgorithm;
use crate::event::{EventHeader, EventType};
use crate::wire::{Cursor, DecodeError};

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// Version of the server that wrote the file, as it prints it, such as `8.4.6-log` or `11.8.3-MariaDB-log`.
    pub server_version: String,
    /// When that server was started, seconds since 1970-01-01 UTC, if this is its first file since; else 0.
    pub created: u32,
    /// The checksum behind the events that follow.
    pub checksum: ChecksumAlgorithm,
    /// Length of the fixed part of each event type's body, bytes; the first is that of code 1.
    post_header_lengths: Vec<u8>,
}

impl FormatDescription {
    /// Parses a body. `body` ends before the checksum, if [`Self::knows_checksums`] says that there is one.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside the fixed part, [`DecodeError::Unsupported`] for the formats of MySQL 3.23
    /// to 4.1, [`DecodeError::Invalid`] for a header length other than 19, for an unknown checksum algorithm, and for
    /// more event types than the version of the server has.
    pub fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let version = cursor.u16_le("binlog_version")?;
        if version != 4 {
            return Err(match version {
                1..=3 => DecodeError::Unsupported { what: "a binlog of MySQL 3.23 to 4.1" },
                _ => DecodeError::Invalid { field: "binlog_version", value: version.into() },
            });
        }
        let text = cursor.take(SERVER_VERSION_SIZE, "server_version")?;
        let server_version = version_text(text)?;
        let created = cursor.u32_le("created")?;
        let header_length = cursor.u8("common_header_length")?;
        if usize::from(header_length) != EventHeader::SIZE {
            return Err(DecodeError::Invalid {
                field: "common_header_length",
                value: header_length.into(),
            });
        }
        let (lengths, checksum) = if has_checksums(server_version) {
            let (code, lengths) = cursor
                .rest()
                .split_last()
                .ok_or(DecodeError::Empty { field: "checksum_algorithm" })?;
            let checksum = ChecksumAlgorithm::from_code(*code).ok_or_else(|| {
                DecodeError::Invalid { field: "checksum_algorithm", value: (*code).into() }
            })?;
            (lengths, checksum)
        } else {
            let lengths = cursor.rest();
            // A newer server has more types: its version text is damaged, or this is not what it seems.
            if lengths.len() > MOST_TYPES_WITHOUT_CHECKSUMS {
                return Err(DecodeError::Invalid {
                    field: "number of event types",
                    value: lengths.len() as u64,
                });
            }
            (lengths, ChecksumAlgorithm::None)
        };
        Ok(Self {
            server_version: server_version.to_owned(),
            created,
            checksum,
            post_header_lengths: lengths.to_vec(),
        })
    }

    /// Whether the server that wrote this body knows checksums. If so, the format description itself always carries
    /// one, also when the other events don't.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside the server version, [`DecodeError::Invalid`] when it is no text.
    pub fn knows_checksums(body: &[u8]) -> Result<bool, DecodeError> {
        let mut cursor = Cursor::new(body);
        cursor.u16_le("binlog_version")?;
        Ok(has_checksums(version_text(cursor.take(SERVER_VERSION_SIZE, "server_version")?)?))
    }

    /// Length of the fixed part of the bodies of a type, bytes; nothing for a type that the server doesn't know.
    #[must_use]
    pub fn post_header_length(&self, event_type: EventType) -> Option<u8> {
        let index = usize::from(event_type.code()).checked_sub(1)?;
        self.post_header_lengths.get(index).copied()
    }

    /// Whether a MariaDB server wrote the file.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        is_mariadb(&self.server_version)
    }
}

/// Bytes of the server version.
const SERVER_VERSION_SIZE: usize = 50;

/// MySQL 5.5 and MariaDB 5.2 end with `HEARTBEAT`, 27; the release candidates of 5.6 before checksums knew at most
/// three more.
const MOST_TYPES_WITHOUT_CHECKSUMS: usize = 32;

fn version_text(bytes: &[u8]) -> Result<&str, DecodeError> {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) if text.starts_with(|first: char| first.is_ascii_digit()) => Ok(text),
        Ok(_) | Err(_) => {
            Err(DecodeError::Unsupported { what: "a server version that is no version number" })
        }
    }
}

fn is_mariadb(version: &str) -> bool {
    version.contains("MariaDB")
}

/// Checksums came with MySQL 5.6.1 and MariaDB 5.3.
fn has_checksums(version: &str) -> bool {
    let mut parts =
        version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0_u32));
    let mut next = || parts.next().unwrap_or(0);
    let parts = (next(), next(), next());
    if is_mariadb(version) { parts >= (5, 3, 0) } else { parts >= (5, 6, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(version: &str, types: usize, checksum: Option<u8>) -> Vec<u8> {
        let mut body = vec![4, 0];
        let mut text = version.as_bytes().to_vec();
        text.resize(SERVER_VERSION_SIZE, 0);
        body.extend(text);
        body.extend([1, 2, 3, 4, 19]);
        body.extend((1..=types).map(|code| u8::try_from(code).unwrap()));
        body.extend(checksum);
        body
    }

    #[test]
    fn the_checksum_byte_is_read_where_the_server_writes_one() {
        let table = [
            ("5.1.73-log", 27, None, ChecksumAlgorithm::None),
            ("5.5.62", 27, None, ChecksumAlgorithm::None),
            ("5.6.1", 35, Some(1), ChecksumAlgorithm::Crc32),
            ("8.4.6", 42, Some(0), ChecksumAlgorithm::None),
            ("9.7.0-debug", 42, Some(1), ChecksumAlgorithm::Crc32),
            ("5.2.14-MariaDB", 27, None, ChecksumAlgorithm::None),
            ("5.3.12-MariaDB", 163, Some(1), ChecksumAlgorithm::Crc32),
            ("11.8.3-MariaDB-log", 171, Some(1), ChecksumAlgorithm::Crc32),
        ];
        for (version, types, code, checksum) in table {
            let parsed = FormatDescription::parse(&body(version, types, code)).unwrap();
            assert_eq!(parsed.checksum, checksum, "{version}");
            assert_eq!(parsed.server_version, version);
            assert_eq!(parsed.is_mariadb(), version.contains("Maria"));
            assert_eq!(parsed.created, 0x0403_0201);
            assert_eq!(parsed.post_header_length(EventType::TableMap), Some(19));
            assert_eq!(parsed.post_header_length(EventType::Other(200)), None);
        }
    }

    #[test]
    fn a_version_that_does_not_fit_the_number_of_types_is_refused() {
        let error = FormatDescription::parse(&body("0.4.6", 42, Some(1))).unwrap_err();
        assert_eq!(error, DecodeError::Invalid { field: "number of event types", value: 43 });
    }

    #[test]
    fn older_formats_and_damaged_fields_are_named() {
        let mut old = body("4.1.22", 14, None);
        old[0] = 3;
        assert!(matches!(FormatDescription::parse(&old), Err(DecodeError::Unsupported { .. })));
        let mut header = body("8.4.6", 42, Some(1));
        header[56] = 27;
        assert_eq!(
            FormatDescription::parse(&header),
            Err(DecodeError::Invalid { field: "common_header_length", value: 27 })
        );
        assert_eq!(
            FormatDescription::parse(&body("8.4.6", 42, Some(2))),
            Err(DecodeError::Invalid { field: "checksum_algorithm", value: 2 })
        );
        let whole = body("8.4.6", 42, Some(1));
        for len in 0..57 {
            assert!(FormatDescription::parse(&whole[..len]).is_err(), "{len}");
        }
    }
}
