//! A server that speaks S3's protocol, behind a proxy that counts requests and loses answers on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::{Context, Failure, Result, paths, wait};

/// The only bucket.
pub const BUCKET: &str = "holdfast";
/// Access key and secret: any will do.
pub const KEY: &str = "tests";

/// A running server. It ends when this is dropped, or the process ends.
#[derive(Debug)]
pub struct S3 {
    keeper: Child,
    stdin: Option<ChildStdin>,
    port: u16,
    /// What the proxy sees and does.
    pub proxy: Arc<Proxy>,
}

/// What the proxy saw, and what it is to do.
#[derive(Debug, Default)]
pub struct Proxy {
    /// Requests that came.
    pub requests: AtomicU64,
    /// Bytes of the bodies that came.
    pub bytes: AtomicU64,
    /// How many of the next PUTs are done, but get no answer.
    pub lose_answers: AtomicU32,
    /// Whether conditions of requests are taken away, as by a server that does not know them.
    pub forget_conditions: AtomicBool,
}

impl S3 {
    /// Installs and starts a server with an empty bucket.
    ///
    /// # Errors
    ///
    /// When it cannot be installed, or does not answer.
    pub fn start() -> Result<Self> {
        let install = Command::new(paths::tests("scripts/install-s3")).output()?;
        if !install.status.success() {
            return Err(Failure::new(String::from_utf8_lossy(&install.stderr).into_owned()));
        }
        let folder = paths::fresh("s3")?;
        let behind = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut keeper = Command::new(paths::tests("scripts/keep"))
            .arg(&folder)
            .arg(paths::cache().join("s3/bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", &behind.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context(|| "cannot start the S3 server".to_owned())?;
        let stdin = keeper.stdin.take();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let proxy = Arc::new(Proxy::default());
        let served = Arc::clone(&proxy);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(std::result::Result::ok) {
                let served = Arc::clone(&served);
                // A connection that breaks is the client's to notice.
                std::thread::spawn(move || served.serve(client, behind).ok());
            }
        });
        let server = Self { keeper, stdin, port, proxy };
        let made = wait::until(Duration::from_secs(60), || -> Result<Option<()>> {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", behind)) else { return Ok(None) };
            write!(
                stream,
                "PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer.contains(" 200 ").then_some(()))
        })?;
        made.ok_or_else(|| Failure::new("the S3 server did not come up"))?;
        Ok(server)
    }

    /// The URL of `path` in the bucket.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("s3://{BUCKET}/{path}?endpoint=http://127.0.0.1:{}&region=us-east-1", self.port)
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        // The script stops the server when its input ends.
        drop(self.stdin.take());
        self.keeper.wait().ok();
    }
}

impl Proxy {
    /// One request: the server closes its connection after each.
    fn serve(&self, client: TcpStream, behind: u16) -> std::io::Result<()> {
        let mut reader = BufReader::new(client.try_clone()?);
        let (mut head, mut length, mut is_put) = (Vec::new(), 0_usize, false);
        loop {
            let mut line = Vec::new();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&line).to_ascii_lowercase();
            is_put |= head.is_empty() && text.starts_with("put ");
            if let Some(value) = text.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            let is_condition = text.starts_with("if-match:") || text.starts_with("if-none-match:");
            if !(is_condition && self.forget_conditions.load(Ordering::Relaxed)) {
                head.extend_from_slice(&line);
            }
            if text.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(u64::try_from(length).unwrap_or(0), Ordering::Relaxed);
        let mut server = TcpStream::connect(("127.0.0.1", behind))?;
        server.write_all(&head)?;
        server.write_all(&body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        let lost = is_put
            && self
                .lose_answers
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok();
        if !lost {
            (&client).write_all(&answer)?;
        }
        client.shutdown(Shutdown::Both)
    }
}
