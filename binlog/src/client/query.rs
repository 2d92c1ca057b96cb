//! A connection for queries whose rows are looked at where they were received.

use super::command::{self, Answer};
use super::error::ClientError;
#[cfg(any(test, feature = "testkit"))]
use super::packet::Pipe;
use super::packet::{PacketStream, Transport};
use super::{ClientOptions, Endpoint, end_of_list, execute, log_in, open, unexpected};
use crate::error::Error;

/// What reading a table is called in messages.
const READING: &str = "read rows";

/// A connection for queries.
///
/// ```text
/// connect ── execute, query ──▶ rows: next_row, next_row, … ── None
/// ```
///
/// Rows come in the text protocol: one length-encoded text per column, `fb` for NULL. They are views of one reused
/// buffer; the server sends on as they are taken.
#[derive(Debug)]
pub struct QueryClient {
    packets: PacketStream,
    rows: Rows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// No query is open.
    None,
    Open,
    /// An error came; what the connection would give next is not known.
    Failed,
}

impl QueryClient {
    /// Connects and logs in. The session is as the server makes it.
    ///
    /// # Errors
    ///
    /// As [`super::BinlogClient::connect`].
    pub async fn connect(options: &ClientOptions) -> Result<Self, Error> {
        open(options, async |transport, endpoint| Self::set_up(transport, options, endpoint).await)
            .await
    }

    /// As [`Self::connect`], over a stream that takes the place of the connection: no time-out, and no TLS.
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    #[cfg(any(test, feature = "testkit"))]
    pub async fn connect_over(
        pipe: impl Pipe + 'static,
        options: &ClientOptions,
    ) -> Result<Self, Error> {
        options.check()?;
        Ok(Self::set_up(Transport::Pipe(Box::new(pipe)), options, &options.endpoint()).await?)
    }

    async fn set_up(
        transport: Transport,
        options: &ClientOptions,
        endpoint: &Endpoint,
    ) -> Result<Self, ClientError> {
        let (mut packets, _) = log_in(transport, options, endpoint).await?;
        packets.accept_up_to(options.max_event_bytes);
        Ok(Self { packets, rows: Rows::None })
    }

    /// Runs a statement that returns no rows. Rows of a query before it that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Client`]: what the server says, [`ClientError::Failed`] after an error, or what a broken connection gives.
    pub async fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.end_rows().await?;
        let result = execute(&mut self.packets, sql, "run a statement").await;
        self.note(result)
    }

    /// Runs a query; the number of its columns. Rows of a query before it that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`].
    pub async fn query(&mut self, sql: &str) -> Result<u64, Error> {
        self.end_rows().await?;
        let result = self.begin(sql).await;
        self.note(result)
    }

    async fn begin(&mut self, sql: &str) -> Result<u64, ClientError> {
        self.packets.command(&command::query(sql)).await?;
        let columns = match command::answer(self.packets.next().await?, READING)? {
            Answer::Columns(count) => count,
            Answer::Ok => return Err(unexpected("column_count", 0, READING)),
        };
        for _ in 0..columns {
            self.packets.next().await?;
        }
        end_of_list(self.packets.next().await?, READING)?;
        self.rows = Rows::Open;
        Ok(columns)
    }

    /// The next row of the query, as the server sent it; `None` after the last.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`].
    pub async fn next_row(&mut self) -> Result<Option<&[u8]>, Error> {
        match self.rows {
            Rows::None => return Ok(None),
            Rows::Failed => return Err(ClientError::Failed.into()),
            Rows::Open => {}
        }
        // A dropped call leaves the connection as it is: the packet comes with the next.
        let packet = match self.packets.next().await {
            Ok(packet) => packet,
            Err(error) => {
                self.rows = Rows::Failed;
                return Err(error.into());
            }
        };
        if command::is_eof(packet) {
            self.rows = Rows::None;
            return Ok(None);
        }
        if packet.first() == Some(&0xff) {
            self.rows = Rows::Failed;
            let error = command::server_error(packet, READING)?;
            return Err(ClientError::server(READING, error).into());
        }
        Ok(Some(packet))
    }

    /// Whether the next row is here already, so that [`Self::next_row`] will not wait.
    #[must_use]
    pub fn has_buffered(&self) -> bool {
        self.packets.has_buffered()
    }

    /// All rows of a query that gives few, as texts.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`], and [`ClientError::Protocol`] for a malformed row.
    pub async fn select(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.query(sql).await?;
        let mut rows = Vec::new();
        while let Some(row) = self.next_row().await? {
            let row = command::row(row)
                .map_err(|source| ClientError::Protocol { during: READING, source })?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Says good-bye and closes the connection. Dropping the client closes it too, without a word.
    ///
    /// # Errors
    ///
    /// [`Error::Client`] with [`ClientError::Io`] when the connection is broken already.
    pub async fn close(mut self) -> Result<(), Error> {
        self.packets.command(&command::quit()).await?;
        self.packets.shutdown().await?;
        Ok(())
    }

    async fn end_rows(&mut self) -> Result<(), Error> {
        while self.next_row().await?.is_some() {}
        Ok(())
    }

    /// A refused statement leaves the connection usable; anything else does not.
    fn note<T>(&mut self, result: Result<T, ClientError>) -> Result<T, Error> {
        if let Err(error) = &result
            && error.server_error().is_none()
        {
            self.rows = Rows::Failed;
        }
        Ok(result?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    fn pair() -> (QueryClient, DuplexStream) {
        let (transport, server) = tokio::io::duplex(64 << 10);
        let packets = PacketStream::new(Transport::Pipe(Box::new(transport)), 1 << 20);
        (QueryClient { packets, rows: Rows::None }, server)
    }

    fn packets(bodies: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, body) in bodies.iter().enumerate() {
            let [len, ..] = body.len().to_le_bytes();
            let [number, ..] = (number + 1).to_le_bytes();
            bytes.extend_from_slice(&[len, 0, 0, number]);
            bytes.extend_from_slice(body);
        }
        bytes
    }

    const EOF: &[u8] = &[0xfe, 0, 0, 0, 0];

    async fn takes(server: &mut DuplexStream, sql: &str) {
        let mut command = vec![0; sql.len() + 5];
        server.read_exact(&mut command).await.unwrap();
        assert_eq!(&command[5..], sql.as_bytes());
    }

    #[tokio::test]
    async fn rows_are_handed_out_as_they_were_sent_and_the_rest_is_dropped_by_the_next_query() {
        let (mut client, mut server) = pair();
        let one = packets(&[b"\x02", b"a", b"b", EOF, b"\x011\xfb", b"\x012\x00", EOF]);
        server.write_all(&one).await.unwrap();
        assert_eq!(client.query("one").await.unwrap(), 2);
        assert_eq!(client.next_row().await.unwrap(), Some(&b"\x011\xfb"[..]));
        takes(&mut server, "one").await;
        server.write_all(&packets(&[b"\x01", b"a", EOF, b"\x03two", EOF])).await.unwrap();
        assert_eq!(client.select("two").await.unwrap(), [[Some("two".to_owned())]]);
        assert_eq!(client.next_row().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_refused_query_is_over_and_an_error_among_rows_ends_the_connection() {
        let (mut client, mut server) = pair();
        let refusal = b"\xff\x7a\x04#42S02no such table";
        server.write_all(&packets(&[refusal])).await.unwrap();
        let error = client.query("none").await.unwrap_err();
        assert!(
            matches!(&error, Error::Client(ClientError::Server { source, .. }) if source.code == 1146)
        );
        let rows = packets(&[b"\x01", b"a", EOF, b"\x011", refusal]);
        server.write_all(&rows).await.unwrap();
        client.query("some").await.unwrap();
        assert!(client.next_row().await.unwrap().is_some());
        assert!(client.next_row().await.is_err());
        assert!(matches!(client.next_row().await, Err(Error::Client(ClientError::Failed))));
    }

    #[tokio::test]
    async fn a_statement_that_gives_rows_or_a_query_that_gives_none_is_no_answer() {
        let (mut client, mut server) = pair();
        server.write_all(&packets(&[b"\0\0\0\x02\0\0\0"])).await.unwrap();
        assert!(matches!(
            client.query("x").await,
            Err(Error::Client(ClientError::Protocol { .. }))
        ));
        assert!(matches!(client.execute("x").await, Err(Error::Client(ClientError::Failed))));
    }
}
