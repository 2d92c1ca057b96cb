//! [`ScriptedServer`]: a log that is sent as a server sends it, and what goes wrong on the way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_binlog::client::DumpStart;
use holdfast_binlog::event::{ChecksumAlgorithm, EventData, EventType};
use holdfast_binlog::gtid::{GtidPos, GtidSet};
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::testkit::{LogBuilder, LogOptions, TestServer};
use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::ServerFacts;
use tokio::sync::Notify;

use super::TestStores;
use crate::config::Config;
use crate::engine::{Engine, EngineBuilder};
use crate::error::Error;

/// What goes wrong, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The connection ends before the event is sent. The engine connects again and goes on where it was.
    Disconnect,
    /// One bit of the event is another one when it comes. Its checksum says so, and the engine ends.
    Corrupt,
}

/// A made-up server: binlog files in memory, to which more may be written while they are read. Clones are the same server.
///
/// It has GTIDs when its log has some as an engine starts, and the tables that its log creates.
#[derive(Debug, Clone)]
pub struct ScriptedServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    written: Notify,
}

#[derive(Debug)]
struct State {
    /// Never empty; the last one is written to.
    files: Vec<LogBuilder>,
    complete: bool,
    /// By the number of the event, counted over all connections.
    faults: BTreeMap<u64, Fault>,
    /// Events of the files that were sent, over all connections.
    sent: u64,
    connections: u64,
    /// Whether the last connection has sent everything there is.
    all_sent: bool,
}

impl ScriptedServer {
    /// The time of the engine's clock, seconds since 1970: records say that they were processed then.
    pub const NOW: u32 = 1_700_000_000;

    /// A server whose log so far is `log`, one file.
    #[must_use]
    pub fn new(log: LogBuilder) -> Self {
        let state = State {
            files: vec![log],
            complete: false,
            faults: BTreeMap::new(),
            sent: 0,
            connections: 0,
            all_sent: false,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), written: Notify::new() }) }
    }

    /// An engine on this server's log, with its offset and its history in `stores`.
    ///
    /// # Errors
    ///
    /// [`Error::History`] while another engine has the stores: see [`Engine::abandon`].
    pub fn engine(&self, config: Config, stores: &TestStores) -> Result<EngineBuilder, Error> {
        let history = stores.open_history()?;
        let offsets = Arc::new(stores.clone());
        Ok(Engine::builder(config).scripted(self.clone()).history(history).offsets(offsets))
    }

    /// Writes on: what `write` adds to the log is sent to whoever reads it.
    pub fn write(&self, write: impl FnOnce(LogBuilder) -> LogBuilder) {
        if let Some(last) = self.state().files.last_mut() {
            *last = write(last.clone());
        }
        self.shared.written.notify_waiters();
    }

    /// Goes on in another file.
    pub fn rotate(&self, file: &str) {
        {
            let mut state = self.state();
            if let Some(last) = state.files.last_mut() {
                *last = last.clone().rotate(file);
                let next = last.next_file(file);
                state.files.push(next);
            }
        }
        self.shared.written.notify_waiters();
    }

    /// Nothing more will be written: an engine ends when it has read everything, as after a stop.
    pub fn complete(&self) {
        self.state().complete = true;
        self.shared.written.notify_waiters();
    }

    /// Lets `fault` happen when `events` more events were sent, over however many connections. Of several at one event
    /// the last one happens.
    pub fn fault_after(&self, events: u64, fault: Fault) {
        let mut state = self.state();
        let number = state.sent + events;
        state.faults.insert(number, fault);
    }

    /// Where the log ends, bytes from the start of its last file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.state().files.last().map_or(0, LogBuilder::position)
    }

    /// Connections that were made so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.state().connections
    }

    /// Events that were sent so far, over all connections; those that a server makes up at the begin of each are not
    /// counted.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.state().sent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self) -> LogOptions {
        self.state().files.first().map(|file| file.options().clone()).unwrap_or_default()
    }

    pub(crate) fn checksum(&self) -> ChecksumAlgorithm {
        self.options().checksum
    }

    /// Whether the last connection has sent everything, and nothing more will be written.
    pub(crate) fn all_sent(&self) -> bool {
        let state = self.state();
        state.complete && state.all_sent
    }

    /// Where the log begins.
    pub(crate) fn start(&self) -> SourceOffset {
        let file = self.state().files.first().map(|file| file.file().to_owned());
        SourceOffset { file: file.unwrap_or_default(), pos: 4, ..SourceOffset::default() }
    }

    /// What the server says of itself.
    pub(crate) fn facts(&self) -> ServerFacts {
        let is_gtid = |event: &[u8]| {
            let gtids = [EventType::Gtid, EventType::GtidTagged].map(EventType::code);
            event.get(4).is_some_and(|code| gtids.contains(code))
        };
        let has_gtids = self.state().files.iter().any(|file| file.events().any(is_gtid));
        let options = self.options();
        let version = match options.server {
            TestServer::MySql => "8.4.6",
            TestServer::MariaDb => "11.8.3-MariaDB-log",
        };
        let variables = [
            ("version", version),
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("binlog_row_image", "FULL"),
            ("gtid_mode", if has_gtids { "ON" } else { "OFF" }),
            ("lower_case_table_names", "0"),
            ("server_uuid", "00000000-0000-0000-0000-000000000001"),
            ("server_id", "1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ServerFacts::new(version, variables.into())
    }

    /// Begins to send.
    pub(crate) fn dump(&self, start: &DumpStart) -> Result<ScriptedDump, Error> {
        let lost = |detail: String| Error::PositionLost {
            what: "the restart position is not on the made-up server".to_owned(),
            detail,
        };
        let mut state = self.state();
        state.connections += 1;
        state.all_sent = false;
        let skip = match start {
            DumpStart::Gtids(set) => Skip::MySql(set.clone()),
            DumpStart::MariaDbGtids(pos) => Skip::MariaDb(pos.clone()),
            DumpStart::First | DumpStart::Position(_) | _ => Skip::Nothing,
        };
        let (index, position) = match start {
            DumpStart::Position(at) => {
                let is_there = |file: &LogBuilder| {
                    file.file().parse::<BinlogFile>().is_ok_and(|f| f == at.file)
                };
                let index = state.files.iter().position(is_there);
                (index.ok_or_else(|| lost(format!("there is no {}", at.file)))?, at.position.max(4))
            }
            DumpStart::First | DumpStart::Gtids(_) | DumpStart::MariaDbGtids(_) | _ => (0, 4),
        };
        let file = state.files.get(index).ok_or(Error::Bug("a made-up server without a file"))?;
        let mut next = 0;
        let mut at = 4;
        while at < position
            && let Some(event) = file.nth_event(next)
        {
            at += event.len() as u64;
            next += 1;
        }
        if at != position {
            return Err(lost(format!("{}:{position} is not between two events", file.file())));
        }
        let made_up = LogBuilder::with_options(file.file(), file.options().clone());
        let rotate = made_up.artificial_rotate(file.file(), position);
        let mut ahead: VecDeque<Vec<u8>> = rotate.events().skip(1).map(<[u8]>::to_vec).collect();
        if next > 0 {
            ahead.push_back(file.format_without_place());
        }
        let stream = EventStream::new(
            file.file(),
            StreamOptions { checksum: Some(file.options().checksum), ..StreamOptions::default() },
        );
        drop(state);
        let server = self.clone();
        Ok(ScriptedDump {
            server,
            index,
            next,
            found: None,
            ahead,
            skip,
            skipping: false,
            stream,
            bytes: Vec::new(),
        })
    }
}

/// The transactions that a dump leaves out.
#[derive(Debug)]
enum Skip {
    Nothing,
    MySql(GtidSet),
    MariaDb(GtidPos),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct ScriptedDump {
    server: ScriptedServer,
    /// Index of the file that is sent.
    index: usize,
    /// Index of its next event.
    next: usize,
    /// File and index of the event that `bytes` holds, when it is to be sent.
    found: Option<(usize, usize)>,
    /// Events that a server makes up, sent first.
    ahead: VecDeque<Vec<u8>>,
    skip: Skip,
    /// Whether the open transaction is left out.
    skipping: bool,
    /// Reads the GTIDs of what is sent.
    stream: EventStream,
    bytes: Vec<u8>,
}

/// What comes next.
enum Next {
    Event,
    /// The connection ends.
    End,
    Wait,
}

impl ScriptedDump {
    /// The next event; `None` when the connection ends.
    pub(crate) async fn next_event(&mut self) -> Option<&[u8]> {
        let shared = Arc::clone(&self.server.shared);
        loop {
            let written = shared.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            match self.take() {
                Next::Event => return Some(&self.bytes),
                Next::End => return None,
                Next::Wait => written.await,
            }
        }
    }

    /// Whether the next event is there.
    pub(crate) fn has_buffered(&mut self) -> bool {
        let shared = Arc::clone(&self.server.shared);
        let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        !self.ahead.is_empty() || self.find_event(&state)
    }

    /// Goes to the next event that is to be sent, and copies it; false when there is none yet.
    fn find_event(&mut self, state: &State) -> bool {
        loop {
            let file = state.files.get(self.index);
            if let Some(event) = file.and_then(|file| file.nth_event(self.next)) {
                if self.found == Some((self.index, self.next)) {
                    return true;
                }
                self.bytes.clear();
                self.bytes.extend_from_slice(event);
                if !self.leaves_out() {
                    self.found = Some((self.index, self.next));
                    return true;
                }
                self.next += 1;
            } else if self.index + 1 < state.files.len() {
                self.index += 1;
                self.next = 0;
            } else {
                return false;
            }
        }
    }

    fn take(&mut self) -> Next {
        if let Some(event) = self.ahead.pop_front() {
            self.bytes = event;
            return Next::Event;
        }
        let shared = Arc::clone(&self.server.shared);
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.find_event(&state) {
            state.all_sent = true;
            return if state.complete { Next::End } else { Next::Wait };
        }
        let number = state.sent;
        match state.faults.remove(&number) {
            Some(Fault::Disconnect) => return Next::End,
            Some(Fault::Corrupt) => {
                if let Some(byte) = self.bytes.last_mut() {
                    *byte ^= 1;
                }
            }
            None => {}
        }
        state.sent += 1;
        self.next += 1;
        Next::Event
    }

    /// Whether the event is of a transaction that is not asked for.
    fn leaves_out(&mut self) -> bool {
        if matches!(self.skip, Skip::Nothing) {
            return false;
        }
        let Ok(event) = self.stream.decode(&self.bytes) else { return false };
        match (&event.data, &self.skip) {
            (EventData::Gtid(gtid), Skip::MySql(set)) => {
                self.skipping = gtid.gtid.is_some_and(|gtid| set.contains(gtid));
            }
            (EventData::MariaDbGtid(gtid), Skip::MariaDb(pos)) => {
                self.skipping = pos.contains(gtid.gtid);
            }
            (EventData::Rotate(_) | EventData::FormatDescription(_), _) => self.skipping = false,
            (_, _) => {}
        }
        self.skipping
    }
}
