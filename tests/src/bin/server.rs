//! A private server for people and scripts: `server mysql|mariadb|mariadb-11 [--no-gtid] [server arguments...]`.
//!
//! Starts it, prints how to connect, and keeps it until stdin ends or Enter is pressed. With `--sql FILE` it runs the
//! file first.

use std::io::BufRead;

use holdfast_tests::server::{Options, Server};
use holdfast_tests::{Context, Failure, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut options = match args.next().as_deref() {
        Some("mysql") => Options::mysql(),
        Some("mariadb") => Options::mariadb(),
        Some("mariadb-11") => Options::mariadb_11(),
        _ => {
            return Err(Failure::new(
                "usage: server mysql|mariadb|mariadb-11 [--no-gtid] [--sql FILE] [server arguments...]",
            ));
        }
    };
    let mut script = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--no-gtid" => options = options.without_gtids(),
            "--sql" => script = args.next(),
            _ => options = options.arg(arg),
        }
    }
    let server = Server::start(options)?;
    if let Some(path) = script {
        let text = std::fs::read_to_string(&path).context(|| path)?;
        server.sql(&text)?;
    }
    println!("mysql://{}@{}:{}", server.user(), server.host(), server.port());
    println!("{:?}", server.client_command());
    println!("Enter stops it.");
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}
