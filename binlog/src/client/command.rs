//! Commands we send, and the packets that answer them. Pure.

use super::error::{ClientError, ServerError};
use crate::gtid::GtidSet;
use crate::wire::{Cursor, DecodeError};

/// Do not wait at the end of the log: end the dump.
pub(super) const FLAG_NON_BLOCK: u16 = 0x01;
/// MariaDB: send the statement texts that precede row events (`BINLOG_SEND_ANNOTATE_ROWS_EVENT`).
pub(super) const FLAG_ANNOTATE_ROWS: u16 = 0x02;
/// MySQL: the position is a GTID set (`BINLOG_THROUGH_GTID`).
pub(super) const FLAG_THROUGH_GTID: u16 = 0x04;
/// MySQL: the position is a file and an offset in it (`BINLOG_THROUGH_POSITION`).
pub(super) const FLAG_THROUGH_POSITION: u16 = 0x02;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;

/// Longest error message kept, bytes.
const MESSAGE: usize = 1 << 10;

pub(super) const fn quit() -> [u8; 1] {
    [COM_QUIT]
}

pub(super) fn query(sql: &str) -> Vec<u8> {
    [&[COM_QUERY], sql.as_bytes()].concat()
}

/// Makes the server list us under `SHOW REPLICAS`: server id, host, user and password as length-prefixed texts, port,
/// recovery rank, id of the source (unused).
pub(super) fn register_replica(server_id: u32) -> Vec<u8> {
    let mut packet = vec![COM_REGISTER_SLAVE];
    packet.extend_from_slice(&server_id.to_le_bytes());
    packet.extend_from_slice(b"\x08holdfast\0\0");
    packet.extend_from_slice(&[0; 2 + 4 + 4]);
    packet
}

/// Asks for the log from a position: position, flags, server id, file name to the end of the packet.
pub(super) fn dump(file: &str, position: u32, flags: u16, server_id: u32) -> Vec<u8> {
    let mut packet = vec![COM_BINLOG_DUMP];
    packet.extend_from_slice(&position.to_le_bytes());
    packet.extend_from_slice(&flags.to_le_bytes());
    packet.extend_from_slice(&server_id.to_le_bytes());
    packet.extend_from_slice(file.as_bytes());
    packet
}

/// Asks for the log without the transactions of a set (MySQL): flags, server id, length and bytes of the file name,
/// 64-bit position, length and bytes of the set.
///
/// `None` when the set or the name has no 32-bit length.
pub(super) fn dump_gtid(
    file: &str,
    position: u64,
    set: &GtidSet,
    flags: u16,
    server_id: u32,
) -> Option<Vec<u8>> {
    let set = set.encode();
    let mut packet = vec![COM_BINLOG_DUMP_GTID];
    packet.extend_from_slice(&flags.to_le_bytes());
    packet.extend_from_slice(&server_id.to_le_bytes());
    packet.extend_from_slice(&u32::try_from(file.len()).ok()?.to_le_bytes());
    packet.extend_from_slice(file.as_bytes());
    packet.extend_from_slice(&position.to_le_bytes());
    packet.extend_from_slice(&u32::try_from(set.len()).ok()?.to_le_bytes());
    packet.extend_from_slice(&set);
    Some(packet)
}

/// Parses an error packet: `ff`, code, `#` and SQL state (not during the greeting), message.
pub(super) fn server_error(
    packet: &[u8],
    during: &'static str,
) -> Result<ServerError, ClientError> {
    let malformed = |source| ClientError::Protocol { during, source };
    let mut cursor = Cursor::new(packet);
    cursor.u8("error_marker").map_err(malformed)?;
    let code = cursor.u16_le("error_code").map_err(malformed)?;
    let mut sql_state = *b"HY000";
    if let Some((b"#", rest)) = cursor.peek().split_at_checked(1)
        && let Some((state, message)) = rest.split_first_chunk()
    {
        sql_state = *state;
        cursor = Cursor::new(message);
    }
    let message = cursor.rest();
    let message = message.get(..MESSAGE).unwrap_or(message);
    Ok(ServerError { code, sql_state, message: String::from_utf8_lossy(message).into_owned() })
}

/// Whether a packet ends a list of columns or rows: `fe`, warnings, status. (A row may begin with `fe` too, but is
/// longer.)
pub(super) fn is_eof(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

/// First packet of the answer to a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Done, no rows.
    Ok,
    /// So many columns follow.
    Columns(u64),
}

pub(super) fn answer(packet: &[u8], during: &'static str) -> Result<Answer, ClientError> {
    match packet.first() {
        Some(0x00) => Ok(Answer::Ok),
        Some(0xff) => Err(ClientError::server(during, server_error(packet, during)?)),
        _ => match Cursor::new(packet).lenenc("column_count") {
            Ok(count) => Ok(Answer::Columns(count)),
            Err(source) => Err(ClientError::Protocol { during, source }),
        },
    }
}

/// Parses a row of the text protocol: one length-encoded string per column, `fb` for NULL.
pub(super) fn row(packet: &[u8]) -> Result<Vec<Option<String>>, DecodeError> {
    let mut cursor = Cursor::new(packet);
    let mut values = Vec::new();
    while !cursor.is_empty() {
        if cursor.peek().first() == Some(&0xfb) {
            cursor.u8("column_value")?;
            values.push(None);
        } else {
            let text = cursor.lenenc_bytes("column_value")?;
            values.push(Some(String::from_utf8_lossy(text).into_owned()));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_documented_bytes() {
        assert_eq!(
            dump("b.000001", 0x0102_0304, 3, 9),
            b"\x12\x04\x03\x02\x01\x03\0\x09\0\0\0b.000001"
        );
        let by_gtid = dump_gtid("", 4, &GtidSet::new(), FLAG_THROUGH_GTID, 9).unwrap();
        assert_eq!(
            by_gtid,
            b"\x1e\x04\0\x09\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0"
        );
        let far = dump_gtid("b.1", 1 << 32, &GtidSet::new(), FLAG_THROUGH_POSITION, 9).unwrap();
        assert_eq!(far[7..22], *b"\x03\0\0\0b.1\0\0\0\0\x01\0\0\0");
        assert_eq!(register_replica(9), b"\x15\x09\0\0\0\x08holdfast\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(query("SET x"), b"\x03SET x");
    }

    #[test]
    fn error_packets_come_with_and_without_a_state() {
        let table: [(&[u8], u16, &[u8; 5], &str); 4] = [
            (b"\xff\x15\x04#28000denied", 1045, b"28000", "denied"),
            (b"\xff\x10\x04Too many", 1040, b"HY000", "Too many"),
            (b"\xff\xd4\x04#HY00", 1236, b"HY000", "#HY00"),
            (b"\xff\xd4\x04", 1236, b"HY000", ""),
        ];
        for (packet, code, state, message) in table {
            let error = server_error(packet, "test").unwrap();
            assert_eq!(
                (error.code, &error.sql_state, error.message.as_str()),
                (code, state, message)
            );
        }
        assert!(server_error(b"\xff\x10", "test").is_err());
        let long = [b"\xff\x10\x04".as_slice(), &[b'x'; 5000]].concat();
        assert_eq!(server_error(&long, "test").unwrap().message.len(), MESSAGE);
    }

    #[test]
    fn answers_and_rows_are_read() {
        assert_eq!(answer(b"\0\0\0\x02\0\0\0", "test").unwrap(), Answer::Ok);
        assert_eq!(answer(b"\x02", "test").unwrap(), Answer::Columns(2));
        for packet in [&b""[..], b"\xfb", b"\xfc\x01", b"\xff"] {
            assert!(
                matches!(answer(packet, "test"), Err(ClientError::Protocol { .. })),
                "{packet:?}"
            );
        }
        let values = row(b"\x05CRC32\xfb\0").unwrap();
        assert_eq!(values, [Some("CRC32".to_owned()), None, Some(String::new())]);
        assert!(row(b"\x05CRC3").is_err());
        assert!(is_eof(b"\xfe\0\0\x02\0") && !is_eof(b"\xfe\0\0\0\x01\0\0\0\0abc") && !is_eof(b""));
    }
}
