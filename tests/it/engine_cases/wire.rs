//! A port in front of a server, which can fall silent, be cut, and lead to another server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_tests::server::Server;

/// A port that carries bytes to a server.
pub(super) struct Wire {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: AtomicU16,
    /// What is connected stays open and mute.
    silent: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Wire {
    pub(super) fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            target: AtomicU16::new(server.port()),
            silent: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A new connection speaks.
                all.silent.store(false, Ordering::SeqCst);
                let target = all.target.load(Ordering::SeqCst);
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                all.open.lock().unwrap().push(client.try_clone().unwrap());
                let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || carry(client, server, None));
                let all = Arc::clone(&all);
                std::thread::spawn(move || carry(from, to, Some(&all.silent)));
            }
        });
        Self { port, shared }
    }

    /// Nothing comes through the connections that there are any more.
    pub(super) fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::SeqCst);
    }

    /// New connections lead to another server, and those that there are end.
    pub(super) fn lead_to(&self, server: &Server) {
        self.lead_to_port(server.port());
    }

    /// Connections end, and new ones lead nowhere.
    pub(super) fn lead_nowhere(&self) {
        self.lead_to_port(1);
    }

    fn lead_to_port(&self, port: u16) {
        self.shared.target.store(port, Ordering::SeqCst);
        for open in self.shared.open.lock().unwrap().drain(..) {
            let _ = open.shutdown(Shutdown::Both);
        }
    }
}

/// Carries bytes until one side closes; once `silent` is set nothing comes through any more.
fn carry(mut from: TcpStream, mut to: TcpStream, silent: Option<&AtomicBool>) {
    let mut buffer = [0; 4096];
    let mut mute = false;
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        mute |= silent.is_some_and(|silent| silent.load(Ordering::SeqCst));
        if !mute && to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    if !mute {
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
