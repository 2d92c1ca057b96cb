//! Schema history and offsets in tables of a MySQL or MariaDB, in the layout of Debezium's JDBC stores.
//!
//! ```text
//! debezium_database_history                        debezium_offset_storage
//! id                 VARCHAR(36)  one per record   id                 VARCHAR(36)  one per offset
//! history_data       text         part of the JSON offset_key         text         ["<engine>",{"server":"<prefix>"}]
//! history_data_seq   INTEGER      part, from 0     offset_val         text         the offset, JSON
//! record_insert_ts   TIMESTAMP    when             record_insert_ts   TIMESTAMP    when
//! record_insert_seq  INTEGER      order in a run   record_insert_seq  INTEGER      order in a run
//! PRIMARY KEY (id, history_data_seq)               PRIMARY KEY (id)
//! ```
//!
//! Source: Debezium 3.6.3.Final, `JdbcSchemaHistory`, `JdbcOffsetBackingStore` and their `…Config` classes. Records are
//! read in the order of `record_insert_ts, record_insert_seq, id, history_data_seq`, which is Debezium's as well.
//!
//! Where we differ, Debezium can read it all the same. Tables that we create have unbounded text columns: the
//! `VARCHAR(65000)` of Debezium's statement is refused by servers whose text is UTF-8, and its `VARCHAR(1255)` is too
//! short for many GTID sets. `record_insert_seq` goes on from the largest there is, and the time never goes back,
//! so that a clock that is set back does not reorder a history. The records of one append are one transaction. Offsets of
//! other keys are left alone.

mod history;
mod link;
mod location;
mod offsets;

pub use history::TableHistoryStore;
pub use location::{LocationError, TableLocation};
pub use offsets::TableOffsetStore;
