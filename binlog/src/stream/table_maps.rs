//! The table maps that rows events may refer to.

use std::collections::BTreeMap;

use crate::event::table_map::{TableIdWidth, TableMap};
use crate::wire::{Cursor, DecodeError};

/// Table maps by id, bounded in number and bytes.
///
/// The server sends a map again in every statement, mostly with the same bytes. Then the old one, with its compiled
/// plan, stays.
#[derive(Debug)]
pub(super) struct TableMaps {
    maps: BTreeMap<u64, Entry>,
    max_maps: usize,
    max_bytes: usize,
    /// Bytes of the bodies of all maps.
    bytes: usize,
    /// Counts insertions, to tell which map was used last.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    map: TableMap,
    used: u64,
}

impl TableMaps {
    pub(super) fn new(max_maps: usize, max_bytes: usize) -> Self {
        Self { maps: BTreeMap::new(), max_maps, max_bytes, bytes: 0, clock: 0 }
    }

    /// Takes the body of a table map event.
    pub(super) fn insert(&mut self, body: &[u8], width: TableIdWidth) -> Result<(), DecodeError> {
        let id = Self::id(body, width)?;
        self.clock += 1;
        if let Some(entry) = self.maps.get_mut(&id) {
            entry.used = self.clock;
            if entry.map.same_as(body) {
                return Ok(());
            }
        }
        let map = TableMap::parse(body, width)?;
        self.bytes += map.body().len();
        if let Some(old) = self.maps.insert(id, Entry { map, used: self.clock }) {
            self.bytes -= old.map.body().len();
        }
        while self.maps.len() > 1
            && (self.maps.len() > self.max_maps || self.bytes > self.max_bytes)
        {
            self.drop_oldest();
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.maps.clear();
        self.bytes = 0;
    }

    pub(super) fn find(&self, id: u64) -> Option<&TableMap> {
        self.maps.get(&id).map(|entry| &entry.map)
    }

    /// The table id at the start of the body.
    pub(super) fn id(body: &[u8], width: TableIdWidth) -> Result<u64, DecodeError> {
        width.read(&mut Cursor::new(body))
    }

    fn drop_oldest(&mut self) {
        let oldest = self.maps.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| *id);
        if let Some(old) = oldest.and_then(|id| self.maps.remove(&id)) {
            self.bytes -= old.map.body().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(id: u8, table: &str) -> Vec<u8> {
        let mut body = vec![id, 0, 0, 0, 0, 0, 1, 0, 2, b'd', b'b', 0];
        body.push(u8::try_from(table.len()).unwrap());
        body.extend(table.as_bytes());
        body.extend([0, 1, 3, 0, 0]);
        body
    }

    #[test]
    fn the_map_that_was_sent_longest_ago_goes_first() {
        let mut maps = TableMaps::new(2, 1_000);
        for id in [1, 2, 1, 3] {
            maps.insert(&map(id, "t"), TableIdWidth::Six).unwrap();
        }
        assert!(maps.find(1).is_some() && maps.find(2).is_none() && maps.find(3).is_some());
    }

    #[test]
    fn bytes_are_bounded_and_counted_exactly() {
        let size = map(1, "t").len();
        let mut maps = TableMaps::new(100, 2 * size);
        for id in [1, 1, 2, 3, 4] {
            maps.insert(&map(id, "t"), TableIdWidth::Six).unwrap();
        }
        assert_eq!((maps.bytes, maps.maps.len()), (2 * size, 2));
        maps.insert(&map(4, "longer"), TableIdWidth::Six).unwrap();
        assert_eq!((maps.bytes, maps.maps.len()), (size + 5, 1), "the new one stays");
        maps.clear();
        assert_eq!((maps.bytes, maps.find(4).is_none()), (0, true));
    }

    #[test]
    fn another_map_under_the_same_id_replaces_the_first() {
        let mut maps = TableMaps::new(2, 1_000);
        for table in ["a", "b"] {
            maps.insert(&map(1, table), TableIdWidth::Six).unwrap();
            assert_eq!(maps.find(1).unwrap().table(), table);
        }
    }
}
