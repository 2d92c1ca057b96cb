//! Rows events that come in fragments, joined.

use crate::event::mariadb::RowsFragment;
use crate::event::{EventHeader, EventType, Failure, Span};
use crate::wire::DecodeError;

/// Joins the fragments of one rows event at a time.
///
/// ```text
/// empty ── first fragment ──▶ open ── last fragment ──▶ whole ── any other event ──▶ empty
///                             │ ▲                        another event inside, or a fragment that is not the next: an
///                             └─┘ the next fragment      error, and empty
/// ```
///
/// Memory is what has come of the event, and never more than a limit; a declared size is not believed. Of an event above the
/// limit nothing is kept but its header, so that who can do without its rows learns where it ends.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    open: Option<Open>,
    bytes: Vec<u8>,
}

/// A rows event of which fragments are to come.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Where the first fragment begins.
    position: u64,
    count: u32,
    /// Number of the last fragment that came.
    number: u32,
    /// Size of the rows event, bytes.
    size: u64,
    /// Bytes of it that have come.
    come: u64,
}

/// A rows event of which all has come: its type, and where its first fragment begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub(super) kind: EventType,
    pub(super) position: u64,
    /// Its size, bytes.
    pub(super) size: u64,
}

impl Fragments {
    /// Takes the next fragment. With the last one the rows event is whole, and [`Self::body`] is its body if its size is not
    /// above the limit.
    pub(super) fn take<'a>(
        &mut self,
        body: &'a [u8],
        span: Span,
        limit: u64,
    ) -> Result<(RowsFragment<'a>, Option<Whole>), Failure> {
        let taken = self.join(body, span, limit);
        if taken.is_err() {
            self.clear();
        }
        taken
    }

    fn join<'a>(
        &mut self,
        body: &'a [u8],
        span: Span,
        limit: u64,
    ) -> Result<(RowsFragment<'a>, Option<Whole>), Failure> {
        let fragment = RowsFragment::parse(body)?;
        let open = match (self.open, fragment.size) {
            (None, Some(size)) => {
                self.clear();
                Open { position: span.position, count: fragment.count, number: 1, size, come: 0 }
            }
            (Some(open), _) => {
                expect("fragment count", fragment.count, open.count)?;
                let next = open.number + 1;
                expect("fragment number", fragment.number, next)?;
                Open { number: next, ..open }
            }
            // Reading began inside, or the first one is lost.
            (None, None) => {
                expect("fragment number", fragment.number, 1)?;
                return Err(DecodeError::Empty { field: "size of the rows event" }.into());
            }
        };
        let open = Open { come: open.come + fragment.content.len() as u64, ..open };
        let is_last = open.number == open.count;
        if open.come > open.size || is_last && open.come != open.size {
            let mismatch = DecodeError::Mismatch {
                field: "size of the rows event",
                found: open.come,
                expected: open.size,
            };
            return Err(mismatch.into());
        }
        self.bytes.extend_from_slice(fragment.content);
        if open.size > limit {
            self.bytes.truncate(EventHeader::SIZE);
        }
        if !is_last {
            self.open = Some(open);
            return Ok((fragment, None));
        }
        self.open = None;
        let kind = EventHeader::parse(&self.bytes)?.event_type;
        let is_mariadb_rows = kind.is_rows()
            && !matches!(
                kind,
                EventType::PreGaWriteRows
                    | EventType::PreGaUpdateRows
                    | EventType::PreGaDeleteRows
                    | EventType::PartialUpdateRows
            );
        if !is_mariadb_rows {
            let value = kind.code().into();
            return Err(
                DecodeError::Invalid { field: "event_type of the rows event", value }.into()
            );
        }
        Ok((fragment, Some(Whole { kind, position: open.position, size: open.size })))
    }

    /// The body of the rows event that became whole last.
    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(EventHeader::SIZE..).unwrap_or_default()
    }

    /// Takes note of another event: none but a sign of life comes between fragments.
    pub(super) fn other(&mut self, header: &EventHeader) -> Result<(), Failure> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let is_alive = matches!(header.event_type, EventType::Heartbeat | EventType::HeartbeatV2);
        match self.open {
            Some(_) if is_alive => Ok(()),
            Some(open) if !begins_anew(header) => {
                self.clear();
                Err(DecodeError::Interrupted {
                    what: "a rows event",
                    number: open.number,
                    count: open.count,
                }
                .into())
            }
            Some(_) | None => {
                self.clear();
                Ok(())
            }
        }
    }

    /// Forgets what has come. What one huge event needed is not kept for ever.
    fn clear(&mut self) {
        self.open = None;
        self.bytes.clear();
        self.bytes.shrink_to(KEEP);
    }
}

/// Most bytes that the buffer keeps from one event to the next.
const KEEP: usize = 1 << 20;

/// Whether the sender begins elsewhere, or a server begins a file: after a crash, what the file before it ends with was
/// not committed.
fn begins_anew(header: &EventHeader) -> bool {
    header.event_type == EventType::FormatDescription
        || header.event_type == EventType::Rotate && header.is_artificial()
}

fn expect(field: &'static str, found: u32, expected: u32) -> Result<(), DecodeError> {
    if found == expected {
        Ok(())
    } else {
        Err(DecodeError::Mismatch { field, found: found.into(), expected: expected.into() })
    }
}

#[cfg(test)]
mod tests;
