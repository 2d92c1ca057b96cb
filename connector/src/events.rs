//! Events of a log, those inside compressed transactions included.

use holdfast_binlog::Error;
use holdfast_binlog::event::{Event, EventData, PayloadReader, RawEvent, Span};
use holdfast_binlog::stream::EventStream;

/// Decodes the events of a log, and opens compressed transactions.
///
/// ```text
/// decode ── an event
///        └─ a compressed transaction ── inner, inner, … ── None
/// ```
#[derive(Debug)]
pub(crate) struct Events {
    stream: EventStream,
    payload: PayloadReader,
    /// The place of the compressed transaction that is open.
    open: Option<Span>,
}

impl Events {
    pub(crate) fn new(stream: EventStream) -> Self {
        Self { stream, payload: PayloadReader::default(), open: None }
    }

    /// Decodes the next event of the log. After a compressed transaction [`Self::inner`] gives what is in it.
    pub(crate) fn decode<'s>(
        &'s mut self,
        bytes: impl Into<RawEvent<'s>>,
    ) -> Result<Event<'s>, Error> {
        self.open = None;
        let event = self.stream.decode(bytes)?;
        if let EventData::TransactionPayload(transaction) = &event.data {
            self.payload.open(&event, transaction)?;
            self.open = Some(event.span());
        }
        Ok(event)
    }

    /// The next event of the compressed transaction that came last; `None` behind its last one, and without one.
    pub(crate) fn inner(&mut self) -> Option<Result<Event<'_>, Error>> {
        let span = self.open?;
        match self.payload.next_event() {
            Ok(Some(bytes)) => Some(self.stream.decode_nested(bytes, span)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
