//! [`EventStream`]: bytes of events in, events out. No I/O.
//!
//! The stream holds what an event needs to be understood and does not carry itself: the format of the file, the file's
//! name, the position, and the table maps. It is fed one event at a time, in the order of the log, from a
//! [`BinlogFileReader`](crate::file::BinlogFileReader) or from a connection. After an error it can go on with the next
//! event, but whatever the failed event said is missing then: whether that may be is the caller's decision.
//!
//! # Positions
//!
//! An event's header tells where the next event begins, modulo 2^32; the stream keeps the upper bits. Three kinds of
//! events tell nothing and take their place from the stream: artificial ones (the sender made them up), heartbeats
//! (they tell how far the sender is), and those inside transactions of MariaDB 11.4 and later
//! (`binlog_legacy_event_pos=OFF`), where the position moves on by the event's size.

mod fragments;
mod table_maps;

use crate::error::{Error, EventContext};
use crate::event::mariadb::{Inflate, MariaDbGtidEvent, MariaDbGtidList, parse_checkpoint};
use crate::event::rows::{RowsEvent, RowsKind, RowsVersion};
use crate::event::table_map::TableIdWidth;
use crate::event::{
    CHECKSUM_SIZE, ChecksumAlgorithm, Event, EventData, EventHeader, EventType, Failure,
    FormatDescription, GtidEvent, Heartbeat, Incident, Query, RawEvent, Rotate, Span, SpilledEvent,
    TransactionPayload, XaPrepare, of_format_description, parse_xid, split_checksum,
};
use crate::wire::DecodeError;
use fragments::Fragments;
use table_maps::TableMaps;

/// Settings of an [`EventStream`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether checksums are compared. Without, a damaged event may decode to wrong values. Default: yes.
    pub verify_checksums: bool,
    /// For a connection: the algorithm that it asked for (`@master_binlog_checksum`), which the first event, an
    /// artificial rotate before any format description, already has. `None` for a file, the default.
    pub checksum: Option<ChecksumAlgorithm>,
    /// Most bytes that an event of MariaDB may have when decompressed, or joined from fragments. Default: 1 GiB, the most a
    /// server writes in one piece.
    pub max_event_size: u64,
    /// Most table maps that are kept. The one that was not used for longest goes first. A statement needs all its
    /// tables at once. Default: 4096.
    pub max_table_maps: usize,
    /// Most bytes of table map events that are kept, whatever their number. Default: 64 MiB.
    pub max_table_map_bytes: usize,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            verify_checksums: true,
            checksum: None,
            max_event_size: 1 << 30,
            max_table_maps: 4096,
            max_table_map_bytes: 64 << 20,
        }
    }
}

/// Decodes events, one after the other.
#[derive(Debug)]
pub struct EventStream {
    options: StreamOptions,
    file: String,
    /// Where the next event begins, bytes.
    position: u64,
    /// Set by a rotate; takes effect with the next event, so that the rotate itself still has its own file.
    next: Option<(String, u64)>,
    format: Option<FormatDescription>,
    tables: TableMaps,
    inflate: Inflate,
    fragments: Fragments,
    /// Of nothing: a new one looks at what the processor can do, which is more work than a short event is.
    checksum: crc32fast::Hasher,
}

impl EventStream {
    /// A stream that begins at the start of `file`, or anywhere in it once the format description was decoded.
    #[must_use]
    pub fn new(file: impl Into<String>, options: StreamOptions) -> Self {
        let tables = TableMaps::new(options.max_table_maps, options.max_table_map_bytes);
        Self {
            options,
            file: file.into(),
            position: FIRST_POSITION,
            next: None,
            format: None,
            tables,
            inflate: Inflate::new(),
            fragments: Fragments::default(),
            checksum: crc32fast::Hasher::new(),
        }
    }

    /// Decodes one event: all its bytes, from the common header to the checksum, in memory or in a file.
    ///
    /// # Errors
    ///
    /// Any [`Error`] that is about an event; it names file, position and type.
    pub fn decode<'s>(&'s mut self, event: impl Into<RawEvent<'s>>) -> Result<Event<'s>, Error> {
        if let Some((file, position)) = self.next.take() {
            self.file = file;
            self.position = position;
        }
        match event.into() {
            RawEvent::Memory(bytes) => self.decode_bytes(bytes),
            RawEvent::File(event) => self.decode_spilled(event),
        }
    }

    fn decode_bytes<'s>(&'s mut self, event: &'s [u8]) -> Result<Event<'s>, Error> {
        let header = match EventHeader::parse(event) {
            Ok(header) => header,
            Err(error) => return Err(self.fail(None, self.position, error.into())),
        };
        let span = match self.locate(&header) {
            Ok(span) => span,
            Err(error) => return Err(self.fail(Some(&header), self.position, error.into())),
        };
        let body = match self.check(&header, event) {
            Ok(body) => body,
            Err(failure) => return Err(self.fail(Some(&header), span.position, failure)),
        };
        let span = match sent_up_to(&header, body) {
            Ok(Some(position)) => Span { position, end: position },
            Ok(None) => span,
            Err(error) => return Err(self.fail(Some(&header), span.position, error.into())),
        };
        self.position = span.end;
        self.decode_body(header, span, body)
    }

    /// Decodes a compressed transaction in a file.
    fn decode_spilled<'s>(&'s mut self, event: &'s SpilledEvent) -> Result<Event<'s>, Error> {
        let header = match EventHeader::parse(event.head()) {
            Ok(header) => header,
            Err(error) => return Err(self.fail(None, self.position, error.into())),
        };
        let viewed = self.fragments.other(&header).and_then(|()| {
            let span = self.locate(&header)?;
            let payload = self.check_spilled(&header, event)?;
            Ok((span, EventData::TransactionPayload(payload)))
        });
        match viewed {
            Ok((Span { position, end }, data)) => {
                self.position = end;
                Ok(Event { header, file: &self.file, position, end, data })
            }
            Err(failure) => Err(self.fail(Some(&header), self.position, failure)),
        }
    }

    fn check_spilled<'e>(
        &self,
        header: &EventHeader,
        event: &'e SpilledEvent,
    ) -> Result<TransactionPayload<'e>, Failure> {
        if u64::from(header.event_size) != event.size() {
            return Err(wrong_size(header).into());
        }
        if header.event_type != EventType::TransactionPayload {
            return Err(Failure::Unsupported("this event in a file"));
        }
        if self.checksum_of(header.event_type)? == ChecksumAlgorithm::None {
            return Ok(TransactionPayload::parse_spilled(event, 0)?);
        }
        if self.options.verify_checksums {
            let (stored, computed) =
                event.checksums().map_err(Failure::Spill)?.ok_or(SHORT_CHECKSUM)?;
            compare(stored, computed)?;
        }
        Ok(TransactionPayload::parse_spilled(event, CHECKSUM_SIZE)?)
    }

    /// Decodes one event from inside a compressed transaction, as [`PayloadReader`](crate::event::PayloadReader) gives
    /// it; `payload` is the place of the payload event, which becomes the place of this one.
    ///
    /// # Errors
    ///
    /// Any [`Error`] that is about an event; it names file, position and type.
    pub fn decode_nested<'s>(
        &'s mut self,
        event: &'s [u8],
        payload: Span,
    ) -> Result<Event<'s>, Error> {
        let header = match EventHeader::parse(event) {
            Ok(header) => header,
            Err(error) => return Err(self.fail(None, payload.position, error.into())),
        };
        let forbidden = matches!(
            header.event_type,
            EventType::FormatDescription
                | EventType::Rotate
                | EventType::TransactionPayload
                | EventType::MariaDbPartialRowData
        );
        let body = match checked_size(&header, event) {
            Ok(()) if forbidden => Err(Failure::Unsupported("this event in a transaction")),
            Ok(()) => Ok(event.get(EventHeader::SIZE..).unwrap_or_default()),
            Err(error) => Err(error.into()),
        };
        match body {
            Ok(body) => self.decode_body(header, payload, body),
            Err(failure) => Err(self.fail(Some(&header), payload.position, failure)),
        }
    }

    /// Goes to another position of the same file: the next event begins there. Needed where the reader jumps by more
    /// than 2 GiB; shorter ways are told by the events.
    pub const fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Name of the file that the next event is in.
    #[must_use]
    pub fn file(&self) -> &str {
        self.next.as_ref().map_or(&self.file, |(file, _)| file)
    }

    /// Where the next event begins, bytes from the start of [`Self::file`].
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next.as_ref().map_or(self.position, |(_, position)| *position)
    }

    /// What the current file says about itself.
    #[must_use]
    pub const fn format(&self) -> Option<&FormatDescription> {
        self.format.as_ref()
    }

    /// Finds the place of an event. The header of a damaged event may tell anything, so nothing is kept here.
    fn locate(&self, header: &EventHeader) -> Result<Span, DecodeError> {
        use EventType as T;

        let here = self.position;
        let size = u64::from(header.event_size);
        let kind = header.event_type;
        // A format description that is sent because reading begins elsewhere has no place either.
        let is_made_up = header.is_artificial()
            || header.end_position == 0
                && matches!(
                    kind,
                    T::Rotate
                        | T::FormatDescription
                        | T::HeartbeatV2
                        | T::Heartbeat
                        | T::MariaDbStartEncryption
                );
        if is_made_up {
            return Ok(Span { position: here, end: here });
        }
        if kind == T::Heartbeat {
            let position = nearest(here, header.end_position);
            return Ok(Span { position, end: position });
        }
        if header.end_position == 0
            && self.format.as_ref().is_some_and(FormatDescription::is_mariadb)
        {
            return Ok(Span { position: here, end: here.saturating_add(size) });
        }
        let end = nearest(here.saturating_add(size), header.end_position);
        match end.checked_sub(size) {
            Some(position) => Ok(Span { position, end }),
            None => Err(DecodeError::Invalid {
                field: "end_position",
                value: header.end_position.into(),
            }),
        }
    }

    /// Checks size and checksum, and cuts out the body.
    fn check<'e>(&self, header: &EventHeader, event: &'e [u8]) -> Result<&'e [u8], Failure> {
        checked_size(header, event)?;
        let kind = header.event_type;
        if kind == EventType::FormatDescription {
            return self.check_format_description(event);
        }
        if kind == EventType::StartV3 {
            return Err(Failure::Unsupported("a binlog of MySQL 3.23 to 4.1"));
        }
        if self.checksum_of(kind)? == ChecksumAlgorithm::None {
            return Ok(event.get(EventHeader::SIZE..).unwrap_or_default());
        }
        let (covered, stored) = split_checksum(event).ok_or(SHORT_CHECKSUM)?;
        let body = covered.get(EventHeader::SIZE..).ok_or(SHORT_CHECKSUM)?;
        if self.options.verify_checksums {
            let mut checksum = self.checksum.clone();
            checksum.update(covered);
            compare(stored, checksum.finalize())?;
        }
        Ok(body)
    }

    /// The checksum that events of a type have, but for format descriptions.
    fn checksum_of(&self, kind: EventType) -> Result<ChecksumAlgorithm, Failure> {
        let comes_first =
            matches!(kind, EventType::Rotate | EventType::Heartbeat | EventType::HeartbeatV2);
        match (&self.format, self.options.checksum) {
            (Some(format), _) => Ok(format.checksum),
            // What a connection sends before the format description.
            (None, Some(algorithm)) if comes_first => Ok(algorithm),
            (None, _) => Err(Failure::NoFormat),
        }
    }

    /// The checksum of a format description is there even if the other events of the file have none.
    fn check_format_description<'e>(&self, event: &'e [u8]) -> Result<&'e [u8], Failure> {
        let body = event.get(EventHeader::SIZE..).unwrap_or_default();
        if !FormatDescription::knows_checksums(body)? {
            return Ok(body);
        }
        let (covered, stored) = split_checksum(event).ok_or(SHORT_CHECKSUM)?;
        let body = covered.get(EventHeader::SIZE..).ok_or(SHORT_CHECKSUM)?;
        // A server that sends the event changed, to a connection without checksums, may leave a stale one.
        let may_be_stale =
            body.last() == Some(&ChecksumAlgorithm::None.code()) && self.options.checksum.is_some();
        if self.options.verify_checksums && !may_be_stale {
            compare(stored, of_format_description(covered))?;
        }
        Ok(body)
    }

    fn decode_body<'s>(
        &'s mut self,
        header: EventHeader,
        span: Span,
        body: &'s [u8],
    ) -> Result<Event<'s>, Error> {
        if header.event_type == EventType::MariaDbPartialRowData {
            return self.decode_fragment(header, span, body);
        }
        let learned = self.fragments.other(&header).and_then(|()| self.learn(&header, body));
        if let Err(failure) = learned {
            return Err(self.fail_body(&header, span, failure));
        }
        self.finish(header, span, body)
    }

    fn finish<'s>(
        &'s self,
        header: EventHeader,
        span: Span,
        body: &'s [u8],
    ) -> Result<Event<'s>, Error> {
        match self.view(&header, span, body) {
            Ok(data) => {
                let Span { position, end } = span;
                Ok(Event { header, file: &self.file, position, end, data })
            }
            Err(failure) => Err(self.fail_body(&header, span, failure)),
        }
    }

    /// Decodes a fragment of a rows event; the last one as the rows event.
    fn decode_fragment<'s>(
        &'s mut self,
        header: EventHeader,
        span: Span,
        body: &'s [u8],
    ) -> Result<Event<'s>, Error> {
        let whole = match self.fragments.take(body, span, self.options.max_event_size) {
            Ok((_, Some(whole))) => whole,
            Ok((fragment, None)) => {
                let Span { position, end } = span;
                let data = EventData::RowsFragment(fragment);
                return Ok(Event { header, file: &self.file, position, end, data });
            }
            Err(failure) => return Err(self.fail_body(&header, span, failure)),
        };
        let header = EventHeader { event_type: whole.kind, ..header };
        let span = Span { position: whole.position, end: span.end };
        let limit = self.options.max_event_size;
        if whole.size > limit {
            let what = "a rows event in fragments";
            let failure = Failure::TooLarge { what, size: whole.size, limit };
            return Err(self.fail_body(&header, span, failure));
        }
        if is_compressed(whole.kind) {
            let width = self.table_id_width(whole.kind);
            let expanded = self.inflate.expand(whole.kind, self.fragments.body(), width, limit);
            if let Err(failure) = expanded {
                return Err(self.fail_body(&header, span, failure));
            }
        }
        self.finish(header, span, self.fragments.body())
    }

    /// Takes what later events, or the view of this one, depend on.
    fn learn(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), Failure> {
        let kind = header.event_type;
        if kind == EventType::FormatDescription {
            self.format = Some(FormatDescription::parse(body)?);
            self.tables.clear();
        } else if kind == EventType::Rotate {
            let rotate = Rotate::parse(body)?;
            self.next = Some((rotate.file.to_owned(), rotate.position));
            if !header.is_artificial() && header.end_position != 0 {
                self.tables.clear();
            }
        } else if kind == EventType::TableMap {
            self.tables.insert(body, self.table_id_width(kind))?;
        } else if is_compressed(kind) {
            let width = self.table_id_width(kind);
            self.inflate.expand(kind, body, width, self.options.max_event_size)?;
        }
        Ok(())
    }

    /// Parses the body. Every type is listed, so that a new one has to be thought about.
    fn view<'s>(
        &'s self,
        header: &EventHeader,
        span: Span,
        body: &'s [u8],
    ) -> Result<EventData<'s>, Failure> {
        use EventType as T;

        let v1 = RowsVersion::V1;
        let v2 = RowsVersion::V2;
        let kind = header.event_type;
        Ok(match kind {
            T::FormatDescription => match &self.format {
                Some(format) => EventData::FormatDescription(format),
                None => return Err(Failure::NoFormat),
            },
            T::Rotate => EventData::Rotate(Rotate::parse(body)?),
            T::Stop => EventData::Stop,
            T::Gtid => EventData::Gtid(GtidEvent::parse(body, false)?),
            T::AnonymousGtid => EventData::Gtid(GtidEvent::parse(body, true)?),
            T::GtidTagged => EventData::Gtid(GtidEvent::parse_tagged(body)?),
            T::PreviousGtids => EventData::PreviousGtids(body),
            T::Query => EventData::Query(Query::parse(body)?),
            T::MariaDbQueryCompressed => EventData::Query(Query::parse(self.inflate.body())?),
            T::TableMap => {
                let id = TableMaps::id(body, self.table_id_width(kind))?;
                match self.tables.find(id) {
                    Some(table) => EventData::TableMap(table),
                    None => return Err(Failure::UnknownTable(id)),
                }
            }
            T::WriteRowsV1 => self.rows(kind, RowsKind::Write, v1, body)?,
            T::UpdateRowsV1 => self.rows(kind, RowsKind::Update, v1, body)?,
            T::DeleteRowsV1 => self.rows(kind, RowsKind::Delete, v1, body)?,
            T::WriteRows => self.rows(kind, RowsKind::Write, v2, body)?,
            T::UpdateRows => self.rows(kind, RowsKind::Update, v2, body)?,
            T::DeleteRows => self.rows(kind, RowsKind::Delete, v2, body)?,
            T::PartialUpdateRows => self.rows(kind, RowsKind::PartialUpdate, v2, body)?,
            T::MariaDbWriteRowsCompressedV1 => {
                self.rows(kind, RowsKind::Write, v1, self.inflate.body())?
            }
            T::MariaDbUpdateRowsCompressedV1 => {
                self.rows(kind, RowsKind::Update, v1, self.inflate.body())?
            }
            T::MariaDbDeleteRowsCompressedV1 => {
                self.rows(kind, RowsKind::Delete, v1, self.inflate.body())?
            }
            T::MariaDbWriteRowsCompressed => {
                self.rows(kind, RowsKind::Write, v2, self.inflate.body())?
            }
            T::MariaDbUpdateRowsCompressed => {
                self.rows(kind, RowsKind::Update, v2, self.inflate.body())?
            }
            T::MariaDbDeleteRowsCompressed => {
                self.rows(kind, RowsKind::Delete, v2, self.inflate.body())?
            }
            T::Xid => EventData::Xid(parse_xid(body)?),
            T::XaPrepare => EventData::XaPrepare(XaPrepare::parse(body)?),
            // The first byte is the length, cut to 8 bits; the text is what is left.
            T::RowsQuery => EventData::RowsQuery(
                body.split_first().ok_or(DecodeError::Empty { field: "rows query" })?.1,
            ),
            T::MariaDbAnnotateRows => EventData::RowsQuery(body),
            T::Heartbeat => {
                let heartbeat = Heartbeat::parse_v1(body);
                let position = if header.end_position == 0 { None } else { Some(span.end) };
                EventData::Heartbeat(Heartbeat { position, ..heartbeat })
            }
            T::HeartbeatV2 => EventData::Heartbeat(Heartbeat::parse_v2(body)?),
            T::TransactionPayload => {
                EventData::TransactionPayload(TransactionPayload::parse(body)?)
            }
            T::Incident => EventData::Incident(Incident::parse(body)?),
            T::Intvar
            | T::Rand
            | T::UserVar
            | T::Load
            | T::CreateFile
            | T::AppendBlock
            | T::ExecLoad
            | T::DeleteFile
            | T::NewLoad
            | T::BeginLoadQuery
            | T::ExecuteLoadQuery => EventData::StatementContext,
            T::MariaDbGtid => {
                EventData::MariaDbGtid(MariaDbGtidEvent::parse(body, header.server_id)?)
            }
            T::MariaDbGtidList => EventData::MariaDbGtidList(MariaDbGtidList::parse(body)?),
            T::MariaDbBinlogCheckpoint => {
                EventData::MariaDbBinlogCheckpoint(parse_checkpoint(body)?)
            }
            T::Slave | T::Ignorable | T::TransactionContext | T::ViewChange => EventData::Ignored,
            // A connection gets the events decrypted, so that the announcement is of no interest there.
            T::MariaDbStartEncryption if self.options.checksum.is_some() => EventData::Ignored,
            T::MariaDbStartEncryption => {
                return Err(Failure::Unsupported(
                    "an encrypted file (a server sends it decrypted, or use mariadb-binlog)",
                ));
            }
            T::StartV3 => return Err(Failure::Unsupported("a binlog of MySQL 3.23 to 4.1")),
            T::PreGaWriteRows | T::PreGaUpdateRows | T::PreGaDeleteRows => {
                return Err(Failure::Unsupported("a rows event of MySQL 5.1 before its release"));
            }
            // Joined before.
            T::MariaDbPartialRowData => return Err(Failure::UnknownEvent),
            T::Unknown | T::Other(_) if header.is_ignorable() => EventData::Ignored,
            T::Unknown | T::Other(_) => return Err(Failure::UnknownEvent),
        })
    }

    fn rows<'s>(
        &'s self,
        kind: EventType,
        rows_kind: RowsKind,
        version: RowsVersion,
        body: &'s [u8],
    ) -> Result<EventData<'s>, Failure> {
        let rows = RowsEvent::parse(rows_kind, version, self.table_id_width(kind), body)?;
        match self.tables.find(rows.table_id()) {
            Some(table) => Ok(EventData::Rows { rows, table }),
            // The end of a statement whose last table is not logged: no table, no rows.
            None if NO_TABLE.contains(&rows.table_id()) && rows.rows_bytes().is_empty() => {
                Ok(EventData::Ignored)
            }
            None => Err(Failure::UnknownTable(rows.table_id())),
        }
    }

    fn table_id_width(&self, kind: EventType) -> TableIdWidth {
        let length = self.format.as_ref().and_then(|format| format.post_header_length(kind));
        length.map_or(TableIdWidth::Six, TableIdWidth::from_post_header_len)
    }

    /// The error for an event of which nothing is sure.
    fn fail(&self, header: Option<&EventHeader>, position: u64, failure: Failure) -> Error {
        failure.at(EventContext {
            file: self.file.clone(),
            position,
            event_type: header.map(|header| header.event_type),
            server_id: header.map_or(0, |header| header.server_id),
            end: None,
        })
    }

    /// The error for an event whose content alone is wrong.
    fn fail_body(&self, header: &EventHeader, span: Span, failure: Failure) -> Error {
        failure.at(EventContext {
            file: self.file.clone(),
            position: span.position,
            event_type: Some(header.event_type),
            server_id: header.server_id,
            end: Some(span.end),
        })
    }
}

/// Where the first event of a file begins: behind the magic number.
const FIRST_POSITION: u64 = 4;

/// Table ids that stand for no table: MySQL 5.1 and later, `Table_id` and `Rows_log_event` in `sql/log_event.cc`.
const NO_TABLE: [u64; 3] = [0x00ff_ffff, 0xffff_ffff, 0xffff_ffff_ffff];

const SHORT_CHECKSUM: DecodeError =
    DecodeError::Truncated { field: "checksum", needed: CHECKSUM_SIZE as u64, left: 0 };

fn checked_size(header: &EventHeader, event: &[u8]) -> Result<(), DecodeError> {
    if u64::from(header.event_size) == event.len() as u64 {
        Ok(())
    } else {
        Err(wrong_size(header))
    }
}

const fn wrong_size(header: &EventHeader) -> DecodeError {
    DecodeError::Invalid { field: "event_size", value: header.event_size as u64 }
}

/// The position that a heartbeat of the second form tells.
fn sent_up_to(header: &EventHeader, body: &[u8]) -> Result<Option<u64>, DecodeError> {
    if header.event_type == EventType::HeartbeatV2 {
        Heartbeat::parse_v2(body).map(|heartbeat| heartbeat.position)
    } else {
        Ok(None)
    }
}

const fn compare(stored: u32, computed: u32) -> Result<(), Failure> {
    if stored == computed { Ok(()) } else { Err(Failure::Checksum { stored, computed }) }
}

const fn is_compressed(kind: EventType) -> bool {
    use EventType as T;

    matches!(
        kind,
        T::MariaDbQueryCompressed
            | T::MariaDbWriteRowsCompressedV1
            | T::MariaDbUpdateRowsCompressedV1
            | T::MariaDbDeleteRowsCompressedV1
            | T::MariaDbWriteRowsCompressed
            | T::MariaDbUpdateRowsCompressed
            | T::MariaDbDeleteRowsCompressed
    )
}

/// The offset with the lower 32 bits `low` that fits `expected` best: up to 1 GiB back, else forward. A log goes
/// forward, by more than it says when the server skips what the reader has.
fn nearest(expected: u64, low: u32) -> u64 {
    const WRAP: u64 = 1 << 32;
    const BACK: u64 = 1 << 30;
    let forward = u64::from(low).wrapping_sub(expected) % WRAP;
    let ahead = expected.saturating_add(forward);
    if WRAP - forward <= BACK { ahead.checked_sub(WRAP).unwrap_or(ahead) } else { ahead }
}

#[cfg(test)]
mod tests;
