//! [`LogBuilder`]: events in a row, with their headers, positions and checksums.

use std::collections::BTreeMap;
use std::ops::Range;

use super::row::{TestColumn, TestValue};
use crate::event::{ChecksumAlgorithm, EventHeader, EventType, XaId};
use crate::file::MAGIC;
use crate::gtid::{Gtid, MariaDbGtid};

/// Settings of a [`LogBuilder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Who writes the log. Default: MySQL.
    pub server: TestServer,
    /// Checksum behind every event. Default: CRC-32.
    pub checksum: ChecksumAlgorithm,
    /// `server_id` of every event. Default: 1.
    pub server_id: u32,
    /// Time of the events, seconds since 1970-01-01 UTC, until [`LogBuilder::timestamp`] sets another. Default:
    /// 1700000000.
    pub timestamp: u32,
    /// MariaDB 11.4 and later: events inside transactions have no position in their header. Default: they have.
    pub zero_end_positions: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            server: TestServer::MySql,
            checksum: ChecksumAlgorithm::Crc32,
            server_id: 1,
            timestamp: 1_700_000_000,
            zero_end_positions: false,
        }
    }
}

/// Who writes a made-up log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestServer {
    /// MySQL 8.4: rows events of version 2.
    MySql,
    /// MariaDB 11.8: rows events of version 1.
    MariaDb,
}

/// Builds a log, event by event.
///
/// Positions in the events are right for the file that [`Self::into_bytes`] gives.
#[derive(Debug, Clone)]
#[must_use]
pub struct LogBuilder {
    options: LogOptions,
    bytes: Vec<u8>,
    /// Where each event is in `bytes`.
    events: Vec<Range<usize>>,
    /// Offset of the next event in the file.
    position: u64,
    /// Inside a transaction, after its GTID.
    in_transaction: bool,
    /// Columns by table id.
    tables: BTreeMap<u64, Vec<TestColumn>>,
    file: String,
    /// The rows events that follow do not end their statement.
    statement_goes_on: bool,
}

impl LogBuilder {
    /// A MySQL log with checksums: magic number and format description.
    pub fn new(file: &str) -> Self {
        Self::with_options(file, LogOptions::default())
    }

    /// A log with other settings: magic number and format description.
    pub fn with_options(file: &str, options: LogOptions) -> Self {
        let mut this = Self::bare(file, options);
        this.bytes.extend(MAGIC);
        this.position = MAGIC.len() as u64;
        this.format_description()
    }

    fn bare(file: &str, options: LogOptions) -> Self {
        Self {
            options,
            bytes: Vec::new(),
            events: Vec::new(),
            position: 0,
            in_transaction: false,
            tables: BTreeMap::new(),
            file: file.to_owned(),
            statement_goes_on: false,
        }
    }

    fn format_description(mut self) -> Self {
        use EventType as T;

        let (version, types) = match self.options.server {
            TestServer::MySql => ("8.4.6", 42_usize),
            TestServer::MariaDb => ("11.8.3-MariaDB-log", 171),
        };
        let mut lengths = vec![0_u8; types];
        let known = [
            (T::Query, 13),
            (T::Rotate, 8),
            (T::FormatDescription, 57 + types),
            (T::TableMap, 8),
            (T::WriteRowsV1, 8),
            (T::UpdateRowsV1, 8),
            (T::DeleteRowsV1, 8),
            (T::WriteRows, 10),
            (T::UpdateRows, 10),
            (T::DeleteRows, 10),
            (T::Gtid, 42),
            (T::AnonymousGtid, 42),
            (T::PartialUpdateRows, 10),
            (T::MariaDbGtid, 19),
        ];
        for (kind, length) in known {
            if let Some(slot) = lengths.get_mut(usize::from(kind.code()) - 1) {
                *slot = u8::try_from(length).unwrap_or(u8::MAX);
            }
        }
        let mut body = vec![4, 0];
        body.extend(version.as_bytes());
        body.resize(52, 0);
        body.extend([0; 4]);
        body.push(19);
        body.extend(lengths);
        body.push(self.options.checksum.code());
        // This one has a checksum in any case.
        let checksum = std::mem::replace(&mut self.options.checksum, ChecksumAlgorithm::Crc32);
        self = self.event(T::FormatDescription, 0, &body);
        self.options.checksum = checksum;
        self
    }

    /// Time of the events that follow, seconds since 1970-01-01 UTC.
    pub const fn timestamp(mut self, seconds: u32) -> Self {
        self.options.timestamp = seconds;
        self
    }

    /// `server_id` of the events that follow.
    pub const fn server_id(mut self, server_id: u32) -> Self {
        self.options.server_id = server_id;
        self
    }

    /// Goes on at another position, as in a file with a gap of that size. The bytes have no gap: such a log is for
    /// [`Self::events`].
    pub const fn at(mut self, position: u64) -> Self {
        self.position = position;
        self
    }

    /// Any event: a header, `body` and a checksum.
    pub fn event(self, kind: EventType, flags: u16, body: &[u8]) -> Self {
        let size = EventHeader::SIZE + body.len() + self.options.checksum.size();
        let is_hidden = self.options.zero_end_positions
            && self.in_transaction
            && !matches!(kind, EventType::Xid | EventType::MariaDbGtid);
        #[expect(clippy::cast_possible_truncation, reason = "the wire has the lower 32 bits")]
        let end = if is_hidden { 0 } else { (self.position + size as u64) as u32 };
        let timestamp = self.options.timestamp;
        let mut this = self.append(kind, flags, timestamp, end, body);
        this.position += size as u64;
        this
    }

    fn append(
        mut self,
        kind: EventType,
        flags: u16,
        timestamp: u32,
        end_position: u32,
        body: &[u8],
    ) -> Self {
        let start = self.bytes.len();
        let size = EventHeader::SIZE + body.len() + self.options.checksum.size();
        let size = u32::try_from(size).expect("an event has less than 4 GiB");
        self.bytes.extend(timestamp.to_le_bytes());
        self.bytes.push(kind.code());
        self.bytes.extend(self.options.server_id.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(end_position.to_le_bytes());
        self.bytes.extend(flags.to_le_bytes());
        self.bytes.extend(body);
        if self.options.checksum == ChecksumAlgorithm::Crc32 {
            let covered = self.bytes.get(start..).unwrap_or_default();
            let checksum = crc32fast::hash(covered);
            self.bytes.extend(checksum.to_le_bytes());
        }
        self.events.push(start..self.bytes.len());
        self
    }

    /// `GTID`, or `GTID_TAGGED` for a GTID with a tag.
    pub fn gtid(mut self, gtid: Gtid) -> Self {
        let micros = u64::from(self.options.timestamp) * 1_000_000;
        self.in_transaction = true;
        if gtid.tag.is_none() {
            return self.plain_gtid(EventType::Gtid, *gtid.source.as_bytes(), gtid.number);
        }
        let tag = gtid.tag.as_str().as_bytes();
        let mut fields = Vec::new();
        varint(1, &mut fields);
        for byte in gtid.source.as_bytes() {
            varint((*byte).into(), &mut fields);
        }
        varint(2, &mut fields);
        varint(gtid.number * 2, &mut fields);
        varint(3, &mut fields);
        varint(tag.len() as u64, &mut fields);
        fields.extend(tag);
        varint(6, &mut fields);
        varint(micros, &mut fields);
        let mut body = Vec::new();
        varint(1, &mut body);
        varint(fields.len() as u64 + 3, &mut body);
        varint(0, &mut body);
        body.extend(fields);
        self.event(EventType::GtidTagged, 0, &body)
    }

    /// `ANONYMOUS_GTID`.
    pub fn anonymous_gtid(mut self) -> Self {
        self.in_transaction = true;
        self.plain_gtid(EventType::AnonymousGtid, [0; 16], 0)
    }

    fn plain_gtid(self, kind: EventType, uuid: [u8; 16], number: u64) -> Self {
        let micros = u64::from(self.options.timestamp) * 1_000_000;
        let mut body = vec![0];
        body.extend(uuid);
        body.extend(number.to_le_bytes());
        body.push(2);
        body.extend([0; 16]);
        body.extend(micros.to_le_bytes().iter().take(7));
        self.event(kind, 0, &body)
    }

    /// MariaDB's `GTID`; `flags` as in [`MariaDbGtidEvent`](crate::event::mariadb::MariaDbGtidEvent). The server id of
    /// the GTID becomes that of the events that follow.
    pub fn mariadb_gtid(mut self, gtid: MariaDbGtid, flags: u8) -> Self {
        self.options.server_id = gtid.server;
        self.in_transaction = true;
        let mut body = gtid.sequence.to_le_bytes().to_vec();
        body.extend(gtid.domain.to_le_bytes());
        body.push(flags);
        body.extend([0; 6]);
        self.event(EventType::MariaDbGtid, 0, &body)
    }

    /// `BEGIN`. MariaDB has none: its GTID event begins the transaction.
    pub fn begin(mut self) -> Self {
        self.in_transaction = true;
        self.query("", "BEGIN")
    }

    /// `QUERY`: a statement under default database `database`, by connection 8, in utf8mb4.
    pub fn query(self, database: &str, sql: &str) -> Self {
        let length = u8::try_from(database.len()).expect("a database name has at most 255 bytes");
        let status = [1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 255, 0, 255, 0, 255, 0];
        let mut body = vec![8, 0, 0, 0, 0, 0, 0, 0, length, 0, 0, 16, 0];
        body.extend(status);
        body.extend(database.as_bytes());
        body.push(0);
        body.extend(sql.as_bytes());
        self.event(EventType::Query, 0, &body)
    }

    /// `ROWS_QUERY`, or MariaDB's `ANNOTATE_ROWS`.
    pub fn rows_query(self, sql: &str) -> Self {
        match self.options.server {
            TestServer::MySql => {
                let mut body = vec![u8::try_from(sql.len()).unwrap_or(u8::MAX)];
                body.extend(sql.as_bytes());
                self.event(EventType::RowsQuery, EventHeader::IGNORABLE, &body)
            }
            TestServer::MariaDb => self.event(EventType::MariaDbAnnotateRows, 0, sql.as_bytes()),
        }
    }

    /// `TABLE_MAP`, without optional metadata.
    pub fn table_map(self, id: u64, database: &str, table: &str, columns: &[TestColumn]) -> Self {
        self.table_map_with(id, database, table, columns, &[])
    }

    /// `TABLE_MAP` with optional metadata: the bytes of its (type, length, data) fields.
    pub fn table_map_with(
        mut self,
        id: u64,
        database: &str,
        table: &str,
        columns: &[TestColumn],
        optional: &[u8],
    ) -> Self {
        let mut body = table_id(id).to_vec();
        body.extend([1, 0]);
        for name in [database, table] {
            body.push(u8::try_from(name.len()).expect("a name has at most 255 bytes"));
            body.extend(name.as_bytes());
            body.push(0);
        }
        lenenc(columns.len(), &mut body);
        body.extend(columns.iter().map(|column| column.code));
        let metadata = columns.iter().flat_map(|column| &column.metadata).copied();
        let metadata = metadata.collect::<Vec<u8>>();
        lenenc(metadata.len(), &mut body);
        body.extend(metadata);
        body.extend(bitmap(columns.iter().map(|column| column.nullable)));
        body.extend(optional);
        self.tables.insert(id, columns.to_vec());
        self.event(EventType::TableMap, 0, &body)
    }

    /// Whether the statement goes on after each of the rows events that follow. A statement may have many, all but the
    /// last of which say so. Default: each ends its statement.
    pub const fn statement_goes_on(mut self, goes_on: bool) -> Self {
        self.statement_goes_on = goes_on;
        self
    }

    /// `WRITE_ROWS` with full images, the end of its statement.
    ///
    /// # Panics
    ///
    /// Without a table map of `id`, and when the values do not fit its columns.
    pub fn write_rows(self, id: u64, rows: &[&[TestValue]]) -> Self {
        let kind = self.rows_kind(EventType::WriteRows, EventType::WriteRowsV1);
        let images = rows.iter().map(|row| self.image(id, row)).collect::<Vec<_>>();
        self.rows_event(kind, id, 1, &images.concat())
    }

    /// `UPDATE_ROWS` with full images, before and after; the end of its statement.
    ///
    /// # Panics
    ///
    /// Without a table map of `id`, and when the values do not fit its columns.
    pub fn update_rows(self, id: u64, rows: &[(&[TestValue], &[TestValue])]) -> Self {
        let kind = self.rows_kind(EventType::UpdateRows, EventType::UpdateRowsV1);
        let images = rows
            .iter()
            .flat_map(|(before, after)| [self.image(id, before), self.image(id, after)])
            .collect::<Vec<_>>();
        self.rows_event(kind, id, 2, &images.concat())
    }

    /// `DELETE_ROWS` with full images, the end of its statement.
    ///
    /// # Panics
    ///
    /// Without a table map of `id`, and when the values do not fit its columns.
    pub fn delete_rows(self, id: u64, rows: &[&[TestValue]]) -> Self {
        let kind = self.rows_kind(EventType::DeleteRows, EventType::DeleteRowsV1);
        let images = rows.iter().map(|row| self.image(id, row)).collect::<Vec<_>>();
        self.rows_event(kind, id, 1, &images.concat())
    }

    const fn rows_kind(&self, v2: EventType, v1: EventType) -> EventType {
        match self.options.server {
            TestServer::MySql => v2,
            TestServer::MariaDb => v1,
        }
    }

    fn columns(&self, id: u64) -> &[TestColumn] {
        self.tables.get(&id).expect("rows follow a table map of their table id")
    }

    fn image(&self, id: u64, row: &[TestValue]) -> Vec<u8> {
        let columns = self.columns(id);
        assert_eq!(row.len(), columns.len(), "a row has one value per column");
        let mut image = bitmap(row.iter().map(|value| *value == TestValue::Null));
        for (index, value) in row.iter().enumerate() {
            let column = columns.get(index).expect("the lengths are equal");
            value.write(column, &mut image);
        }
        image
    }

    fn rows_event(self, kind: EventType, id: u64, bitmaps: usize, images: &[u8]) -> Self {
        let count = self.columns(id).len();
        let mut body = table_id(id).to_vec();
        body.extend([u8::from(!self.statement_goes_on), 0]);
        if self.options.server == TestServer::MySql {
            body.extend([2, 0]);
        }
        lenenc(count, &mut body);
        for _ in 0..bitmaps {
            body.extend(bitmap(std::iter::repeat_n(true, count)));
        }
        body.extend(images);
        self.event(kind, 0, &body)
    }

    /// `XID`: the commit of transaction `xid`.
    pub fn xid(mut self, xid: u64) -> Self {
        self = self.event(EventType::Xid, 0, &xid.to_le_bytes());
        self.in_transaction = false;
        self
    }

    /// `TRANSACTION_PAYLOAD`: the events that `build` adds, compressed.
    ///
    /// # Panics
    ///
    /// When the compressor has no memory.
    pub fn compressed(mut self, build: impl FnOnce(Self) -> Self) -> Self {
        let options = LogOptions { checksum: ChecksumAlgorithm::None, ..self.options.clone() };
        let inner = build(Self::bare(&self.file, options));
        let payload = zstd::encode_all(inner.bytes.as_slice(), 3).expect("memory is compressed");
        let mut body = Vec::new();
        for (kind, value) in [(2, 0), (3, inner.bytes.len()), (1, payload.len())] {
            let mut data = Vec::new();
            lenenc(value, &mut data);
            lenenc(kind, &mut body);
            lenenc(data.len(), &mut body);
            body.extend(data);
        }
        body.push(0);
        body.extend(payload);
        self.tables.extend(inner.tables);
        self.in_transaction = false;
        self.event(EventType::TransactionPayload, 0, &body)
    }

    /// MariaDB 12.3 and later, `PARTIAL_ROW_DATA`: each rows event that `build` adds, in fragments. `sizes` are the bytes of the
    /// rows event, its header included, in the first fragment, the second and so on; the last has what is left. An event that
    /// the first fragment has room for is written as it is.
    ///
    /// # Panics
    ///
    /// When a size is 0.
    pub fn in_fragments(mut self, sizes: &[usize], build: impl FnOnce(Self) -> Self) -> Self {
        let options = LogOptions { checksum: ChecksumAlgorithm::None, ..self.options.clone() };
        let mut inner = Self::bare(&self.file, options);
        inner.tables.clone_from(&self.tables);
        inner.statement_goes_on = self.statement_goes_on;
        inner = build(inner);
        self.tables.clone_from(&inner.tables);
        self.statement_goes_on = inner.statement_goes_on;
        self.options.timestamp = inner.options.timestamp;
        for event in inner.events() {
            let header = EventHeader::parse(event).expect("the event was made here");
            self = if header.event_type.is_rows() {
                self.fragments(&header, event, sizes)
            } else {
                let body = event.get(EventHeader::SIZE..).unwrap_or_default();
                self.event(header.event_type, header.flags, body)
            };
        }
        self
    }

    fn fragments(mut self, header: &EventHeader, event: &[u8], sizes: &[usize]) -> Self {
        let mut pieces = Vec::new();
        let mut rest = event;
        for size in sizes {
            assert!(*size > 0, "a fragment has content");
            let Some((piece, left)) = rest.split_at_checked(*size) else { break };
            if left.is_empty() {
                break;
            }
            pieces.push(piece);
            rest = left;
        }
        pieces.push(rest);
        if pieces.len() == 1 {
            let body = event.get(EventHeader::SIZE..).unwrap_or_default();
            return self.event(header.event_type, header.flags, body);
        }
        let count = u32::try_from(pieces.len()).expect("an event has less than 4 GiB");
        for (number, piece) in (1..=count).zip(pieces) {
            let mut body = [count.to_le_bytes(), number.to_le_bytes()].concat();
            body.push(u8::from(number == 1));
            if number == 1 {
                body.extend((event.len() as u64).to_le_bytes());
            }
            body.extend(piece);
            self = self.event(EventType::MariaDbPartialRowData, 0, &body);
        }
        self
    }

    /// `ROTATE`, the end of the file: the log goes on in `file` at 4.
    pub fn rotate(self, file: &str) -> Self {
        let mut body = 4_u64.to_le_bytes().to_vec();
        body.extend(file.as_bytes());
        self.event(EventType::Rotate, 0, &body)
    }

    /// The `ROTATE` that a server sends first, which is in no file: the stream begins in `file` at `position`.
    pub fn artificial_rotate(self, file: &str, position: u64) -> Self {
        let mut body = position.to_le_bytes().to_vec();
        body.extend(file.as_bytes());
        self.append(EventType::Rotate, EventHeader::ARTIFICIAL, 0, 0, &body)
    }

    /// A `HEARTBEAT` that a server sends, which is in no file.
    pub fn heartbeat(self) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the wire has the lower 32 bits")]
        let end = self.position as u32;
        let file = self.file.clone();
        self.append(EventType::Heartbeat, 0, 0, end, file.as_bytes())
    }

    /// `STOP`, the end of the file at a shutdown.
    pub fn stop(self) -> Self {
        self.event(EventType::Stop, 0, &[])
    }

    /// `XA_PREPARE`: the end of the part of an XA transaction that is logged before its outcome; or its commit in one phase.
    pub fn xa_prepare(mut self, xid: XaId<'_>, one_phase: bool) -> Self {
        let length = |part: &[u8]| u32::try_from(part.len()).expect("a part of an XID is short");
        let mut body = vec![u8::from(one_phase)];
        body.extend(xid.format_id.to_le_bytes());
        body.extend(length(xid.gtrid).to_le_bytes());
        body.extend(length(xid.bqual).to_le_bytes());
        body.extend(xid.gtrid);
        body.extend(xid.bqual);
        self = self.event(EventType::XaPrepare, 0, &body);
        self.in_transaction = false;
        self
    }

    /// The log that goes on in `file` with the same settings; [`Self::rotate`] is what leads there.
    pub fn next_file(&self, file: &str) -> Self {
        Self::with_options(file, self.options.clone())
    }

    /// The file's name.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The settings.
    #[must_use]
    pub const fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Offset of the next event in the file, bytes.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The event of that number, from 0; `None` behind the last.
    #[must_use]
    pub fn nth_event(&self, number: usize) -> Option<&[u8]> {
        self.bytes.get(self.events.get(number)?.clone())
    }

    /// The format description as a server sends it when reading begins elsewhere in the file: without a place of its own.
    #[must_use]
    pub fn format_without_place(&self) -> Vec<u8> {
        let mut event = self.nth_event(0).unwrap_or_default().to_vec();
        if let Some(end_position) = event.get_mut(13..17) {
            end_position.fill(0);
        }
        let covered = event.len().saturating_sub(4);
        event.truncate(covered);
        let checksum = crc32fast::hash(&event);
        event.extend(checksum.to_le_bytes());
        event
    }

    /// The events so far, in order, each from its common header to its checksum: what a connection would get.
    pub fn events(&self) -> impl Iterator<Item = &[u8]> {
        self.events.iter().filter_map(|range| self.bytes.get(range.clone()))
    }

    /// The file: magic number and events.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn table_id(id: u64) -> [u8; 6] {
    let [a, b, c, d, e, f, _, _] = id.to_le_bytes();
    [a, b, c, d, e, f]
}

/// Bit i of byte i/8, from the least significant.
fn bitmap(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let bits = bits.collect::<Vec<bool>>();
    bits.chunks(8)
        .map(|chunk| chunk.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
        .collect()
}

fn lenenc(number: usize, out: &mut Vec<u8>) {
    let bytes = (number as u64).to_le_bytes();
    let (prefix, length) = match number {
        0..=250 => (None, 1),
        251..=0xffff => (Some(0xfc), 2),
        0x1_0000..=0xff_ffff => (Some(0xfd), 3),
        _ => (Some(0xfe), 8),
    };
    out.extend(prefix);
    out.extend(bytes.iter().take(length));
}

/// MySQL's serialisation of an unsigned number: as many 1-bits at the low end of the first byte as bytes follow.
fn varint(number: u64, out: &mut Vec<u8>) {
    let more = (1..=8).find(|more| number >> (7 * more) == 0).map_or(8, |length| length - 1);
    if more == 8 {
        out.push(0xff);
        out.extend(number.to_le_bytes());
        return;
    }
    let marked = number << (more + 1) | ((1 << more) - 1);
    out.extend(marked.to_le_bytes().iter().take(more + 1));
}
