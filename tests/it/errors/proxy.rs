//! A TCP port in front of a server, or instead of one.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many connections came.
pub(super) struct Connections(Arc<AtomicUsize>);

impl Connections {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Listens on a free port until the process ends; each connection is served on a thread of its own, with its number
/// from 1.
pub(super) fn front(
    serve: impl Fn(usize, TcpStream) + Send + Sync + 'static,
) -> (u16, Connections) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(number, client));
        }
    });
    (port, Connections(count))
}

/// Carries bytes both ways until one side closes.
pub(super) fn forward(client: TcpStream, port: u16) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let carry = |mut from: TcpStream, mut to: TcpStream| {
        // A connection that breaks is the end of both directions, as a closed one is.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    };
    let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = thread::spawn(move || carry(back_from, back_to));
    carry(client, server);
    let _ = back.join();
}
