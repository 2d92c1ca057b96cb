//! What one round of a campaign does: how the engine runs and ends, and what happens to it and to the server.

use holdfast_tests::faults::Fault;
use holdfast_tests::random::Random;

use super::model::Acknowledged;

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// SIGKILL after so many milliseconds.
    KillAfter(u64),
    /// SIGKILL once there are so many records, or a while later if there are not.
    KillAt(u64),
    /// SIGTERM after so many milliseconds.
    StopAfter(u64),
    /// SIGTERM when all that was written has come; then the tables are compared.
    Settle,
}

/// What is done to the server while the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upheaval {
    Nothing,
    Restart,
    Kill,
}

/// One round, decided before it begins.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) end: End,
    pub(super) acknowledged: Acknowledged,
    pub(super) batch: usize,
    pub(super) flush_interval_ms: u64,
    pub(super) tls: bool,
    pub(super) faults: Vec<Fault>,
    pub(super) server: Upheaval,
    pub(super) purge: bool,
    /// The statements are run before the engine starts.
    pub(super) backlog: bool,
    /// The time runs from the first record, else from the start of the process.
    pub(super) from_record: bool,
}

impl Plan {
    /// A round without faults at whose end everything is acknowledged and the tables are compared.
    pub(super) fn settle() -> Self {
        Self {
            end: End::Settle,
            acknowledged: Acknowledged::Soon,
            batch: 2048,
            flush_interval_ms: 0,
            tls: false,
            faults: Vec::new(),
            server: Upheaval::Nothing,
            purge: false,
            backlog: false,
            from_record: false,
        }
    }

    /// Whether the engine may end by itself, or give nothing.
    pub(super) fn is_harmed(&self) -> bool {
        !self.faults.is_empty() || self.server != Upheaval::Nothing
    }

    /// As [`settle`](Self::settle), over connections that break while there is much to read.
    pub(super) fn settle_over_breaks(random: &mut Random) -> Self {
        // Questions to the server pass, and the log begins to.
        let begun = Fault::Cut { after: 1_500 + random.below(20_000) };
        let breaks = (0..8).map(|_| match random.below(3) {
            0 => Fault::None,
            1 => Fault::Cut { after: 400 + random.below(8_000) },
            _ => Fault::Truncate { packets: 8 + random.below(80) },
        });
        // What is purged is asked on a third connection, when the second is there.
        let faults = [Fault::None, begun, Fault::None].into_iter().chain(breaks).collect();
        let batch = random.pick(2048, &[1, 16]);
        Self { faults, batch, backlog: true, ..Self::settle() }
    }

    pub(super) fn draw(random: &mut Random) -> Self {
        let server = match random.below(50) {
            0 => Upheaval::Restart,
            1 => Upheaval::Kill,
            _ => Upheaval::Nothing,
        };
        let acknowledged = match random.below(3) {
            0 => Acknowledged::Soon,
            1 => Acknowledged::First(random.below(80)),
            _ => Acknowledged::First(u64::MAX),
        };
        let faults = if random.one_in(2) { draw_faults(random) } else { Vec::new() };
        let time = if random.one_in(30) { 2500 } else { random.below(300) };
        let end = match random.below(8) {
            0 if faults.is_empty() => End::StopAfter(time),
            1 | 2 => End::KillAt(1 + random.below(200)),
            _ => End::KillAfter(time),
        };
        Self {
            end,
            acknowledged,
            batch: random.pick(1, &[3, 16, 64, 2048]),
            flush_interval_ms: random.pick(0, &[0, 100, 60_000]),
            tls: random.one_in(10),
            faults,
            server,
            purge: random.one_in(6),
            backlog: random.one_in(2),
            from_record: !random.one_in(4),
        }
    }
}

/// Faults for the first connections: the engine asks the server some things before it gets the log.
fn draw_faults(random: &mut Random) -> Vec<Fault> {
    let spared = random.below(4);
    let mut faults: Vec<Fault> = (0..spared).map(|_| Fault::None).collect();
    for _ in 0..=random.below(6) {
        faults.push(match random.below(10) {
            0 => Fault::Refuse,
            1 => Fault::Cut { after: random.below(1_000) },
            2 => Fault::Cut { after: random.below(5_000) },
            3 => Fault::Cut { after: random.below(60_000) },
            4..=6 => Fault::Truncate { packets: random.below(120) },
            7 => Fault::Silence { after: random.below(5_000) },
            8 => Fault::Delay {
                piece: usize::try_from(1 + random.below(600)).unwrap(),
                wait_ms: 1 + random.below(8),
            },
            _ => Fault::None,
        });
    }
    faults
}
