//! Where pieces of the log are printed: on this thread and on others, and how they come together again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::Scope;

use holdfast_binlog::event::Event;
use holdfast_binlog::event::rows::RowsEvent;

use super::json::Shared;
use super::rows::{Piece, RowPrinter};
use super::tables::LogTable;
use super::{DecodeError, Format};

/// Bytes of the log, and of text, in a piece. Rows events that are larger are printed on their own.
const PIECE: usize = 256 << 10;
/// Bytes of a rows event that are printed where they are.
const LARGE: usize = 1 << 20;
/// Bytes of output that are gathered before they are written.
pub(super) const OUTPUT_BUFFER: usize = 256 << 10;
/// Pieces that wait for a thread.
const WAITING: usize = 2;

/// A piece that was printed, to its error if there was one.
type Printed = (Piece, Result<(), DecodeError>);

/// Threads that print pieces.
#[derive(Debug, Default)]
pub(super) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    pieces: SyncSender<Piece>,
    printed: Receiver<Printed>,
}

impl Workers {
    /// Starts `count` threads, which end when this is dropped.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        count: usize,
        format: Format,
    ) -> Self {
        Self((0..count).map(|_| Worker::start(scope, format)).collect())
    }
}

impl Worker {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>, format: Format) -> Self {
        let (pieces, received) = sync_channel::<Piece>(WAITING);
        let (sender, printed) = channel();
        scope.spawn(move || {
            let mut printer = RowPrinter::new(format);
            for mut piece in received {
                let result = printer.print(&mut piece);
                if sender.send((piece, result)).is_err() {
                    return;
                }
            }
        });
        Self { pieces, printed }
    }
}

/// A piece whose text is not written yet.
#[derive(Debug)]
enum Pending {
    /// One of the threads has it.
    With(usize),
    Printed(Box<Printed>),
}

/// Gathers pieces, has them printed, and writes them in order.
#[derive(Debug)]
pub(super) struct Printing<W> {
    piece: Piece,
    printer: RowPrinter,
    workers: Workers,
    /// In the order of the log.
    pending: VecDeque<Pending>,
    spare: Vec<Piece>,
    writer: W,
}

impl<W: Write> Printing<W> {
    pub(super) fn new(format: Format, writer: W, workers: Workers) -> Self {
        Self {
            piece: Piece::default(),
            printer: RowPrinter::new(format),
            workers,
            pending: VecDeque::new(),
            spare: Vec::new(),
            writer,
        }
    }

    /// Where text is appended to.
    pub(super) const fn text(&mut self) -> &mut Vec<u8> {
        self.piece.text()
    }

    /// Adds the rows of an event. `shared` is the end of the text.
    pub(super) fn rows(
        &mut self,
        event: &Event<'_>,
        file: &Arc<str>,
        rows: &RowsEvent<'_>,
        table: &Arc<LogTable>,
        shared: Option<Shared>,
    ) -> Result<(), DecodeError> {
        if rows.rows_bytes().len() < LARGE {
            self.piece.add_rows(event, file, rows, table, shared);
            return Ok(());
        }
        // What its rows share stays with it, and is no text.
        let start = match shared {
            Some(shared) => shared.start(),
            None => self.piece.text().len(),
        };
        let own = self.piece.text().split_off(start);
        self.print()?;
        self.write_pending(0)?;
        let shared = shared.map(|shared| shared.moved(start).parts(&own)).unwrap_or_default();
        let (writer, out) = (&mut self.writer, &mut self.piece.out);
        let printed = self.printer.print_rows(event, rows, table, shared, out, |out| {
            if out.len() < OUTPUT_BUFFER { Ok(()) } else { write(writer, out) }
        });
        write(&mut self.writer, &mut self.piece.out)?;
        self.piece.clear();
        printed
    }

    /// Has the piece printed if it is large enough.
    pub(super) fn print_if_full(&mut self) -> Result<(), DecodeError> {
        if self.piece.size() < PIECE { Ok(()) } else { self.print() }
    }

    /// Has the piece printed by a thread that has room, or by this one.
    fn print(&mut self) -> Result<(), DecodeError> {
        let next = self.spare.pop().unwrap_or_default();
        let mut piece = std::mem::replace(&mut self.piece, next);
        for (index, worker) in self.workers.0.iter().enumerate() {
            match worker.pieces.try_send(piece) {
                Ok(()) => {
                    self.pending.push_back(Pending::With(index));
                    return self.write_pending(self.most_pending());
                }
                Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => piece = back,
            }
        }
        let result = self.printer.print(&mut piece);
        self.pending.push_back(Pending::Printed(Box::new((piece, result))));
        self.write_pending(self.most_pending())
    }

    /// Pieces that may be printed and not written, or in work.
    fn most_pending(&self) -> usize {
        self.workers.0.len() * (WAITING + 2)
    }

    /// Writes what is printed, in order, and waits until no more than `most` pieces are left.
    fn write_pending(&mut self, most: usize) -> Result<(), DecodeError> {
        while let Some(first) = self.pending.pop_front() {
            let (mut piece, result) = match first {
                Pending::Printed(printed) => *printed,
                Pending::With(index) => {
                    let wait = self.pending.len() + 1 > most;
                    match self.receive(index, wait)? {
                        Some(printed) => printed,
                        None => {
                            self.pending.push_front(Pending::With(index));
                            return Ok(());
                        }
                    }
                }
            };
            write(&mut self.writer, &mut piece.out)?;
            piece.clear();
            self.spare.push(piece);
            if result.is_err() {
                // The log ends here: what the threads have is dropped with them.
                self.workers.0.clear();
                self.pending.clear();
                self.piece.clear();
                return result;
            }
        }
        Ok(())
    }

    fn receive(&self, index: usize, wait: bool) -> Result<Option<Printed>, DecodeError> {
        let gone = || DecodeError::Output(io::Error::other("a thread that prints has ended"));
        let worker = self.workers.0.get(index).ok_or_else(gone)?;
        if wait {
            return worker.printed.recv().map(Some).map_err(|_| gone());
        }
        match worker.printed.try_recv() {
            Ok(printed) => Ok(Some(printed)),
            Err(std::sync::mpsc::TryRecvError::Empty) => Ok(None),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(gone()),
        }
    }

    /// Prints and writes what is left.
    pub(super) fn end(&mut self) -> Result<(), DecodeError> {
        self.print()?;
        self.write_pending(0)?;
        self.writer.flush().map_err(DecodeError::Output)
    }
}

/// Writes a buffer and empties it.
fn write(writer: &mut impl Write, buffer: &mut Vec<u8>) -> Result<(), DecodeError> {
    let result = writer.write_all(buffer);
    buffer.clear();
    result.map_err(DecodeError::Output)
}
