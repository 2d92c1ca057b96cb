//! A proxy in front of a server that harms connections as it is told.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::Result;

/// What becomes of the bytes from the server on one connection. Those to the server always pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They pass.
    None,
    /// The connection is closed as soon as it is made.
    Refuse,
    /// It is closed after so many bytes, wherever that is.
    Cut {
        /// Bytes that pass.
        after: u64,
    },
    /// It is closed in the middle of a packet.
    Truncate {
        /// Whole packets that pass before.
        packets: u64,
    },
    /// Every piece of at most `piece` bytes waits.
    Delay {
        /// Bytes that pass at once.
        piece: usize,
        /// How long the next ones wait, milliseconds.
        wait_ms: u64,
    },
    /// After so many bytes nothing comes any more, and the connection stays open.
    Silence {
        /// Bytes that pass.
        after: u64,
    },
}

/// Listens on a free port until the process ends.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    harmed: Arc<AtomicU64>,
}

impl FaultProxy {
    /// In front of `127.0.0.1:target`, harming nothing yet.
    ///
    /// # Errors
    ///
    /// When there is no port to listen on.
    pub fn start(target: u16) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let faults = Arc::new(Mutex::new(VecDeque::new()));
        let harmed = Arc::new(AtomicU64::new(0));
        let (plan, count) = (Arc::clone(&faults), Arc::clone(&harmed));
        thread::spawn(move || {
            for client in listener.incoming().map_while(std::result::Result::ok) {
                let fault = plan
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front()
                    .unwrap_or(Fault::None);
                let count = Arc::clone(&count);
                thread::spawn(move || serve(client, target, fault, &count));
            }
        });
        Ok(Self { port, faults, harmed })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The next connections get these, one each, and those after them none. What was planned before is forgotten.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults.into_iter().collect();
    }

    /// Connections whose fault has struck so far.
    #[must_use]
    pub fn harmed(&self) -> u64 {
        self.harmed.load(Ordering::Relaxed)
    }
}

fn serve(client: TcpStream, target: u16, fault: Fault, harmed: &AtomicU64) {
    if fault == Fault::Refuse {
        harmed.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { return };
    let (Ok(to_server), Ok(from_client)) = (server.try_clone(), client.try_clone()) else { return };
    let requests = thread::spawn(move || {
        carry(from_client, to_server, &mut Harm::new(Fault::None));
    });
    let mut harm = Harm::new(fault);
    carry(server, client, &mut harm);
    harmed.fetch_add(u64::from(harm.struck), Ordering::Relaxed);
    // Both directions end with the first, so this one does too.
    let _ = requests.join();
}

/// Carries bytes one way until a side closes or the harm says so, then closes both.
fn carry(mut from: TcpStream, mut to: TcpStream, harm: &mut Harm) {
    let mut buffer = vec![0; 16 << 10];
    // A connection that breaks is the end of it, as a closed one is.
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut rest = buffer.get(..length).unwrap_or_default();
        let mut open = true;
        while open && !rest.is_empty() {
            let (pass, then) = harm.next(rest);
            let (now, later) = rest.split_at_checked(pass).unwrap_or((rest, &[]));
            rest = later;
            open = to.write_all(now).is_ok();
            match then {
                Then::GoOn => {}
                Then::Close => open = false,
                Then::Wait(time) => pause(time),
                Then::Drop => rest = &[],
            }
        }
        if !open {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, which has to be slow")]
fn pause(time: Duration) {
    thread::sleep(time);
}

/// What follows after some bytes have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Close,
    Wait(Duration),
    /// What came with them is not passed on.
    Drop,
}

/// How far a connection is on the way to its fault.
#[derive(Debug)]
struct Harm {
    fault: Fault,
    /// Bytes that passed.
    passed: u64,
    /// Whole packets that passed.
    packets: u64,
    /// Bytes of the packet's header that passed, and its length as far as they say it.
    header: (u8, usize),
    /// Bytes left of the packet whose header passed.
    left: usize,
    struck: bool,
}

impl Harm {
    const fn new(fault: Fault) -> Self {
        Self { fault, passed: 0, packets: 0, header: (0, 0), left: 0, struck: false }
    }

    /// How many of these bytes pass, at least one unless the connection closes or is silent, and what follows.
    fn next(&mut self, bytes: &[u8]) -> (usize, Then) {
        let (pass, then) = match self.fault {
            Fault::None | Fault::Refuse => (bytes.len(), Then::GoOn),
            Fault::Cut { after } => self.up_to(bytes, after, Then::Close),
            Fault::Silence { after } => self.up_to(bytes, after, Then::Drop),
            Fault::Delay { piece, wait_ms } => {
                self.struck = true;
                (bytes.len().min(piece.max(1)), Then::Wait(Duration::from_millis(wait_ms)))
            }
            Fault::Truncate { packets } => self.packets(bytes, packets),
        };
        self.passed += pass as u64;
        (pass, then)
    }

    fn up_to(&mut self, bytes: &[u8], after: u64, then: Then) -> (usize, Then) {
        let left = usize::try_from(after.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        if left > bytes.len() {
            return (bytes.len(), Then::GoOn);
        }
        self.struck = true;
        (left, then)
    }

    /// Follows the packets: three bytes of length, one number, the body.
    fn packets(&mut self, bytes: &[u8], limit: u64) -> (usize, Then) {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.left == 0 {
                let (count, length) = self.header;
                at += 1;
                if count < 3 {
                    self.header = (count + 1, length | usize::from(*byte) << (8 * count));
                    continue;
                }
                self.header = (0, 0);
                self.left = length;
                if self.packets == limit && length > 1 {
                    let after = self.passed + (at + length / 2) as u64;
                    self.fault = Fault::Cut { after };
                    return self.up_to(bytes, after, Then::Close);
                }
                self.packets += u64::from(length == 0);
            } else {
                let part = self.left.min(bytes.len() - at);
                at += part;
                self.left -= part;
                self.packets += u64::from(self.left == 0);
            }
        }
        (bytes.len(), Then::GoOn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `pieces` to a client through a proxy with this fault, and gives what the client got before the end.
    fn through(fault: Fault, pieces: &[&[u8]]) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = FaultProxy::start(listener.local_addr().unwrap().port()).unwrap();
        proxy.plan([fault]);
        thread::scope(|scope| {
            scope.spawn(|| {
                if fault == Fault::Refuse {
                    return;
                }
                let (mut server, _) = listener.accept().unwrap();
                for piece in pieces {
                    // A proxy that has closed the connection takes nothing more.
                    let _ = server.write_all(piece);
                }
            });
            let mut got = Vec::new();
            let _ = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap().read_to_end(&mut got);
            got
        })
    }

    #[test]
    fn bytes_pass_up_to_the_fault() {
        // Packets of 2, 4, 0 and 6 bytes.
        let bytes = b"\x02\0\0\0ab\x04\0\0\x01cdef\0\0\0\x02\x06\0\0\x03ghijkl";
        let pieces: Vec<&[u8]> = bytes.chunks(5).collect();
        for (fault, length) in [
            (Fault::None, bytes.len()),
            (Fault::Refuse, 0),
            (Fault::Cut { after: 0 }, 0),
            (Fault::Cut { after: 7 }, 7),
            (Fault::Cut { after: 1000 }, bytes.len()),
            (Fault::Truncate { packets: 0 }, 5),
            (Fault::Truncate { packets: 1 }, 6 + 4 + 2),
            (Fault::Truncate { packets: 9 }, bytes.len()),
            (Fault::Delay { piece: 3, wait_ms: 1 }, bytes.len()),
            (Fault::Silence { after: 8 }, 8),
        ] {
            assert_eq!(through(fault, &pieces), bytes[..length], "{fault:?}");
        }
    }

    #[test]
    fn a_packet_over_several_reads_is_cut_in_its_middle() {
        for read in 1..20 {
            let mut harm = Harm::new(Fault::Truncate { packets: 1 });
            let bytes = b"\x01\0\0\0a\x06\0\0\x01bcdefg";
            let mut passed = 0;
            for piece in bytes.chunks(read) {
                let (pass, then) = harm.next(piece);
                passed += pass;
                if then == Then::Close {
                    break;
                }
            }
            assert!(harm.struck);
            assert_eq!(passed, 12, "the header and half of the body, in reads of {read}");
        }
    }
}
