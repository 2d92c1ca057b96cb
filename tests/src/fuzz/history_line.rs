//! A line of a history.

use holdfast_history::codec::{RecordLine, read_record, write_record};

/// A line that can be read is the same record after it was written and read again.
///
/// # Panics
///
/// When it is not.
pub fn history_line(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(line) = RecordLine::parse(text) {
        let _ = line.table_ids();
    }
    let Ok((record, group)) = read_record(text) else { return };
    let mut bytes = Vec::new();
    write_record(&record, group, &mut bytes);
    let written = std::str::from_utf8(&bytes).expect("a record that was written is UTF-8");
    let again = read_record(written).expect("a record that was written can be read");
    assert_eq!(again, (record, group));
}
