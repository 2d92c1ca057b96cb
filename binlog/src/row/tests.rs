//! Rows of hand-made events.

use super::*;
use crate::Value;
use crate::event::rows::{RowsEvent, RowsKind, RowsVersion};
use crate::event::table_map::{TableIdWidth, TableMap};

/// A table map body for table 7, `d.t`, with nullable columns of these types.
pub(super) fn table(types: &[u8], metadata: &[u8]) -> TableMap {
    TableMap::parse(&table_body(types, metadata), TableIdWidth::Six).unwrap()
}

pub(super) fn table_body(types: &[u8], metadata: &[u8]) -> Vec<u8> {
    let mut body = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0".to_vec();
    body.push(types.len().try_into().unwrap());
    body.extend(types);
    body.push(metadata.len().try_into().unwrap());
    body.extend(metadata);
    body.resize(body.len() + types.len().div_ceil(8), 0xff);
    body
}

/// A v2 rows event body for table 7 of eight columns at most.
pub(super) fn rows_body(columns: u8, present: &[u8], rows: &[u8]) -> Vec<u8> {
    let mut body = b"\x07\0\0\0\0\0\x01\0\x02\0".to_vec();
    body.push(columns);
    body.extend(present);
    body.extend(rows);
    body
}

pub(super) fn read_all<'a>(
    kind: RowsKind,
    table: &TableMap,
    body: &'a [u8],
) -> Result<Vec<Row<'a>>, RowError> {
    let event = RowsEvent::parse(kind, RowsVersion::V2, TableIdWidth::Six, body).unwrap();
    let mut reader = event.rows(table).unwrap();
    let mut rows = Vec::new();
    let mut row = Row::new();
    while reader.read(&mut row)? {
        rows.push(row.clone());
    }
    Ok(rows)
}

#[test]
fn an_update_gives_both_images() {
    let table = table(&[3, 15], &[100, 0]);
    let body = rows_body(2, &[3, 3], b"\0\x01\0\0\0\x01a\x02\x02\0\0\0");
    let rows = read_all(RowsKind::Update, &table, &body).unwrap();
    assert_eq!(rows.len(), 1);
    let values = |image: &RowImage<'_>| format!("{:?}", image.iter().collect::<Vec<_>>());
    assert_eq!(values(&rows[0].before), "[(0, Int32(1)), (1, Bytes([97]))]");
    assert_eq!(values(&rows[0].after), "[(0, Int32(2)), (1, Null)]");
    assert_eq!(rows[0].after.get(0), Some(Value::Int32(2)));
}
