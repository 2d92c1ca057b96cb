//! Setting the offset by hand: what is on the server only, unless forced, and with a word on what it replays or skips.

use std::time::Duration;

use holdfast_binlog::client::{BinlogClient, DumpStart};
use holdfast_binlog::event::{ChecksumAlgorithm, EventData};
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::txn::Gtids;
use holdfast_history::offset::{ClosedEpoch, ClosedEpochs, HoldfastMembers, SourceOffset};
use holdfast_snapshot::ServerFacts;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use crate::available::{check_available, counted, parse_set, tracks_gtids};
use crate::config::{Config, StoreKind};
use crate::error::Error;
use crate::offset::gtids_of;
use crate::offset_store::{OffsetKey, open_offsets};
use crate::source::{client_options, server_options};
use crate::stores::open_history_read_only;

/// How long the server may take to find the place of a GTID set.
const LOCATE_LIMIT: Duration = Duration::from_secs(30);

/// The new offset, as the operator gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewOffset {
    /// The start of a transaction or statement, or the end of the log.
    Position {
        /// Binlog file.
        file: String,
        /// Bytes from its start.
        pos: u64,
    },
    /// The transactions that are done: a GTID set (MariaDB: a GTID position).
    Gtids(String),
    /// A whole offset.
    Offset(Box<SourceOffset>),
}

/// How to set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetOptions {
    /// The log is another one than that of the stored offset: the epoch is raised.
    pub new_lineage: bool,
    /// Store it even when a check says no.
    pub force: bool,
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetReport {
    /// The offset that is stored now.
    pub offset: SourceOffset,
    /// What it replays or skips against the offset before.
    pub effect: String,
    /// What the operator has to know.
    pub warnings: Vec<String>,
}

/// Checks a new offset on the server and stores it. No engine may run on the same offset meanwhile.
///
/// # Errors
///
/// [`Error::PositionLost`] when the place is not on the server or no place to start from, [`Error::Start`] when the
/// input is no offset or belongs to another log; the stored offset is unchanged then. Errors of the connection and of the
/// stores.
pub async fn set_offset(
    config: &Config,
    new: NewOffset,
    options: SetOptions,
) -> Result<SetReport, Error> {
    let store = open_offsets(config)?;
    let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
    let _claim = store.claim(&key).await?;
    let stored = store.load(&key).await?;
    let mut conn = holdfast_snapshot::connect(&server_options(config)).await?;
    let facts = holdfast_snapshot::facts(&mut conn).await?;
    let mut warnings = Vec::new();
    let server = config.source_id.clone().unwrap_or_else(|| facts.identity().to_owned());
    let mut offset = match new {
        NewOffset::Position { file, pos } => {
            if tracks_gtids(config, &facts) {
                warnings.push(
                    "the offset has no GTIDs: it can't be followed to another server; --gtids can"
                        .to_owned(),
                );
            }
            SourceOffset { file, pos, ..SourceOffset::default() }
        }
        NewOffset::Gtids(gtids) => {
            if !tracks_gtids(config, &facts) {
                return Err(Error::Start(
                    "the server has no GTIDs, or gtid.ignore.on.recovery is set: give --file and --pos"
                        .to_owned(),
                ));
            }
            SourceOffset { gtids: Some(gtids), ..SourceOffset::default() }
        }
        NewOffset::Offset(offset) => *offset,
    };
    if let Err(error) = check(config, &mut conn, &facts, &mut offset).await {
        if !options.force || !matches!(error, Error::PositionLost { .. }) {
            return Err(error);
        }
        warnings.push(format!("forced, although {error}"));
    }
    let effect = effect(config, stored.as_ref(), &offset, &server, options)?;
    add_lineage(&mut offset, stored.as_ref(), &server, options, &mut warnings);
    if !history_exists(config).await? {
        warnings.push(
            "there is no schema history: it must hold the definitions of all captured tables as of this offset before \
             streaming can start"
                .to_owned(),
        );
    }
    store.store(&key, &offset).await?;
    Ok(SetReport { offset, effect, warnings })
}

/// Whether the offset is on the server, and where: an offset of GTIDs alone gets its file and position.
async fn check(
    config: &Config,
    conn: &mut Conn,
    facts: &ServerFacts,
    offset: &mut SourceOffset,
) -> Result<(), Error> {
    if !offset.file.is_empty() {
        let file: BinlogFile = offset.file.parse().map_err(|error| {
            Error::Start(format!("{:?} is no binlog file name: {error}", offset.file))
        })?;
        check_available(config, conn, facts, offset).await?;
        let by_gtids = offset.gtids.is_some() && tracks_gtids(config, facts);
        return if by_gtids { Ok(()) } else { check_start(conn, &file, offset.pos).await };
    }
    let gtids = gtids_of(offset, config.is_mariadb())?;
    if gtids.as_ref().is_none_or(Gtids::is_empty) {
        return Err(Error::Start("the GTID set is empty: give --file and --pos".to_owned()));
    }
    // Without a file only the GTIDs can be looked at; on MariaDB the dump itself says whether they are there.
    if !config.is_mariadb() {
        check_available(config, conn, facts, offset).await?;
    }
    let place = locate(config, conn, facts, gtids).await?;
    (offset.file, offset.pos) = place;
    check_available(config, conn, facts, offset).await
}

/// A place to start from is the beginning of an event that begins a transaction, or the end of the log.
async fn check_start(conn: &mut Conn, file: &BinlogFile, pos: u64) -> Result<(), Error> {
    let name = file.to_string().replace('\\', "\\\\").replace('\'', "''");
    let lost = |detail: String| Error::PositionLost {
        what: format!("{file} at {pos} is no place to start from"),
        detail,
    };
    let statement = format!("SHOW BINLOG EVENTS IN '{name}' FROM {} LIMIT 1", pos.max(4));
    let rows: Vec<Row> = match conn.query(statement).await {
        Ok(rows) => rows,
        Err(mysql_async::Error::Server(error)) => {
            return Err(lost(format!("no event begins there ({})", error.message)));
        }
        Err(error) => return Err(lost(format!("the server could not be asked: {error}"))),
    };
    let kind = rows.first().and_then(|row| row.get_opt::<String, usize>(2)).and_then(Result::ok);
    match kind {
        Some(kind) if is_inside(&kind) => {
            Err(lost(format!("a {kind} event begins there, in the middle of a transaction")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether events of this name, as SHOW BINLOG EVENTS gives it, come only inside a transaction.
fn is_inside(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    kind.contains("_rows") || ["table_map", "xid", "rows_query"].contains(&kind.as_str())
}

/// Where the first transaction that is not in the set begins; the end of the log when there is none.
async fn locate(
    config: &Config,
    conn: &mut Conn,
    facts: &ServerFacts,
    gtids: Option<Gtids>,
) -> Result<(String, u64), Error> {
    let head = holdfast_snapshot::log_position(conn, facts.flavor).await?;
    let executed = head.gtids.unwrap_or_default();
    let start = match gtids {
        Some(Gtids::MySql(done)) => {
            let executed = parse_set(Some(&executed))?;
            if counted(config, &executed).is_subset_of(&done) {
                return Ok((head.file, head.pos));
            }
            let purged = holdfast_snapshot::purged_gtids(conn, facts).await?;
            let mut start = parse_set(purged.as_deref())?;
            start.overlay(&counted(config, &done));
            DumpStart::Gtids(start)
        }
        Some(Gtids::MariaDb(done)) => {
            if executed.parse().is_ok_and(|executed: holdfast_binlog::GtidPos| executed == done) {
                return Ok((head.file, head.pos));
            }
            DumpStart::MariaDbGtids(done)
        }
        None => return Ok((head.file, head.pos)),
    };
    let found = tokio::time::timeout(LOCATE_LIMIT, first_transaction(config, start)).await;
    found.unwrap_or_else(|_| {
        Err(Error::PositionLost {
            what: "the place of the GTIDs was not found".to_owned(),
            detail: format!(
                "the server sent no transaction after them within {} seconds; give --json with file, pos and gtids",
                LOCATE_LIMIT.as_secs()
            ),
        })
    })
}

async fn first_transaction(config: &Config, start: DumpStart) -> Result<(String, u64), Error> {
    let client = BinlogClient::connect(&client_options(config)).await?;
    let checksum =
        if client.server().checksum { ChecksumAlgorithm::Crc32 } else { ChecksumAlgorithm::None };
    let mut dump = client.dump(start).await?;
    let options = StreamOptions { checksum: Some(checksum), ..StreamOptions::default() };
    let mut stream = EventStream::new(String::new(), options);
    while let Some(bytes) = dump.next_event().await? {
        let event = stream.decode(bytes)?;
        if matches!(event.data, EventData::Gtid(_) | EventData::MariaDbGtid(_)) {
            return Ok((event.file.to_owned(), event.span().position));
        }
    }
    Err(Error::DumpEnded)
}

/// What the new offset does against the stored one.
fn effect(
    config: &Config,
    stored: Option<&SourceOffset>,
    new: &SourceOffset,
    server: &str,
    options: SetOptions,
) -> Result<String, Error> {
    let Some(stored) = stored else {
        return Ok("no offset was stored before".to_owned());
    };
    let mariadb = config.is_mariadb();
    match (gtids_of(stored, mariadb)?, gtids_of(new, mariadb)?) {
        (Some(Gtids::MySql(old)), Some(Gtids::MySql(new))) => {
            let (replayed, skipped) = (old.subtract(&new), new.subtract(&old));
            return Ok(match (replayed.is_empty(), skipped.is_empty()) {
                (true, true) => "the same transactions are done as before".to_owned(),
                (false, true) => format!("replays {replayed}"),
                (true, false) => format!("skips {skipped}"),
                (false, false) => format!("replays {replayed} and skips {skipped}"),
            });
        }
        (Some(Gtids::MariaDb(old)), Some(Gtids::MariaDb(new))) => {
            return Ok(match (old.at_or_before(&new), new.at_or_before(&old)) {
                (true, true) => "the same transactions are done as before".to_owned(),
                (true, false) => format!("skips the transactions from {old} to {new}"),
                (false, true) => format!("replays the transactions from {new} to {old}"),
                (false, false) => format!("replays some and skips others, from {old} to {new}"),
            });
        }
        (_, _) => {}
    }
    if options.new_lineage {
        return Ok(format!(
            "another log than that of the stored offset, {} at {}",
            stored.file, stored.pos
        ));
    }
    if let Some(known) = stored.lineage().filter(|&known| known != server)
        && !options.force
    {
        return Err(Error::Start(format!(
            "the stored offset is of the log of {known} and the server is {server}, so positions can't be compared; add \
             --new-lineage if the new offset is right for this server"
        )));
    }
    let files = (stored.file.parse::<BinlogFile>(), new.file.parse::<BinlogFile>());
    let order = match &files {
        (Ok(old), Ok(to)) => old.partial_cmp(to).map(|order| order.then(stored.pos.cmp(&new.pos))),
        (_, _) => None,
    };
    let (old, to) =
        (format!("{} at {}", stored.file, stored.pos), format!("{} at {}", new.file, new.pos));
    Ok(match order {
        Some(std::cmp::Ordering::Equal) => "the place is that of the stored offset".to_owned(),
        Some(std::cmp::Ordering::Less) => format!("skips what is between {old} and {to}"),
        Some(std::cmp::Ordering::Greater) => format!("replays what is between {to} and {old}"),
        None => format!("can't be compared with the stored offset, {old}"),
    })
}

/// Names the log that the offset belongs to.
fn add_lineage(
    offset: &mut SourceOffset,
    stored: Option<&SourceOffset>,
    server: &str,
    options: SetOptions,
    warnings: &mut Vec<String>,
) {
    let partly_done = offset.event != 0 || offset.row != 0;
    if offset.holdfast.is_none() && partly_done {
        if !options.new_lineage {
            // Debezium's counts are used as long as none of our members is there; the first commit adds them.
            return;
        }
        warnings.push("the open transaction is replayed from its start".to_owned());
        (offset.event, offset.row) = (0, 0);
    }
    let before = stored.and_then(|stored| Some((stored, stored.holdfast.as_ref()?)));
    let epoch = before.map_or(1, |(_, ours)| ours.epoch.max(1));
    let mut closed = before.and_then(|(_, ours)| ours.closed.clone());
    if options.new_lineage
        && let Some(stored) = stored
    {
        let mut epochs = closed.as_deref().and_then(ClosedEpochs::parse).unwrap_or_default();
        epochs.0.push(ClosedEpoch { epoch, file: stored.file.clone(), pos: stored.pos });
        closed = Some(epochs.to_string());
    }
    let ours = offset.holdfast.take().unwrap_or_default();
    offset.holdfast = Some(HoldfastMembers {
        lineage: Some(server.to_owned()),
        epoch: if options.new_lineage { epoch.saturating_add(1) } else { epoch },
        closed,
        ..ours
    });
}

async fn history_exists(config: &Config) -> Result<bool, Error> {
    match &config.history.store {
        StoreKind::File { .. } | StoreKind::Table(_) | StoreKind::Objects(_) => {
            Ok(open_history_read_only(config)?.exists().await?)
        }
        StoreKind::Memory => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(json: &str) -> SourceOffset {
        SourceOffset::from_json(json).unwrap()
    }

    #[test]
    fn a_new_lineage_closes_the_old_one_at_the_stored_offset() {
        let stored = offset(
            r#"{"file":"b.000003","pos":9,"holdfast_v":1,"holdfast_lineage":"old","holdfast_epoch":2,"holdfast_closed":"1:a.000001:4"}"#,
        );
        let mut warnings = Vec::new();
        for (new_lineage, expected) in [
            (
                false,
                r#"{"file":"c.000001","pos":4,"holdfast_v":1,"holdfast_lineage":"new","holdfast_epoch":2,"holdfast_closed":"1:a.000001:4"}"#,
            ),
            (
                true,
                r#"{"file":"c.000001","pos":4,"holdfast_v":1,"holdfast_lineage":"new","holdfast_epoch":3,"holdfast_closed":"1:a.000001:4,2:b.000003:9"}"#,
            ),
        ] {
            let mut new = offset(r#"{"file":"c.000001","pos":4}"#);
            let options = SetOptions { new_lineage, force: false };
            add_lineage(&mut new, Some(&stored), "new", options, &mut warnings);
            assert_eq!(new.to_json(), expected);
        }
    }

    #[test]
    fn counts_of_debezium_are_kept_without_our_members() {
        let json = r#"{"file":"c.000001","pos":4,"row":2,"event":3}"#;
        let mut new = offset(json);
        add_lineage(&mut new, None, "new", SetOptions::default(), &mut Vec::new());
        assert_eq!(new.to_json(), json);
    }

    #[test]
    fn events_inside_a_transaction_are_no_start() {
        for kind in [
            "Table_map",
            "Write_rows",
            "Update_rows_v1",
            "Xid",
            "Rows_query",
            "Annotate_rows",
            "Write_rows_compressed_v1",
        ] {
            assert!(is_inside(kind), "{kind}");
        }
        for kind in [
            "Gtid",
            "Anonymous_Gtid",
            "Query",
            "Format_desc",
            "Rotate",
            "Stop",
            "Transaction_payload",
            "Gtid_list",
        ] {
            assert!(!is_inside(kind), "{kind}");
        }
    }
}
