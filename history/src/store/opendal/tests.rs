use std::sync::Arc;

use opendal::EntryMode;
use opendal::services::{Fs, Memory};
use tempfile::TempDir;

use super::objects::digits;
use super::*;
use crate::error::ErrorClass;
use crate::store::conformance::{self, Place, record};

/// A folder of an operator, and what has to live as long.
struct Folder {
    operator: Operator,
    folder: String,
    _kept: Option<TempDir>,
}

impl Folder {
    fn memory() -> Self {
        let operator = Operator::new(Memory::default()).unwrap();
        Self { operator, folder: "data/rw-cdc-schema-history/source-16".to_owned(), _kept: None }
    }

    fn files() -> Self {
        let kept = TempDir::new().unwrap();
        let root = kept.path().to_str().unwrap().to_owned();
        let operator = Operator::new(Fs::default().root(&root)).unwrap();
        Self { operator, folder: "made/source-16".to_owned(), _kept: Some(kept) }
    }

    async fn store(&self) -> OpendalHistoryStore {
        OpendalHistoryStore::open(self.operator.clone(), &self.folder).await.unwrap()
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    async fn put(&self, name: &str, text: impl Into<Buffer>) {
        self.operator.write(&self.path(name), text).await.unwrap();
    }

    async fn names(&self) -> Vec<String> {
        let entries = self.operator.list(&format!("{}/", self.folder)).await.unwrap();
        let names = entries.iter().filter(|entry| entry.metadata().mode() != EntryMode::DIR);
        let mut names: Vec<String> = names.map(|entry| entry.name().to_owned()).collect();
        names.sort();
        names
    }
}

#[async_trait]
impl Place for Folder {
    async fn open(&self) -> Result<Box<dyn HistoryStore>, Error> {
        let store = OpendalHistoryStore::open(self.operator.clone(), &self.folder).await?;
        Ok(Box::new(store))
    }

    async fn crash_in_append(&self, _: &[HistoryRecord], _: usize) -> Option<usize> {
        None
    }

    async fn damage(&self, number: u64) {
        // Each of the suite's appends there has one record.
        self.put(&format!("schema_history_{number}.dat"), "{\n").await;
    }
}

fn line(number: u64) -> String {
    let mut bytes = Vec::new();
    encode_alone(&[record(number)], &mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn places() -> [Folder; 2] {
    [Folder::memory(), Folder::files()]
}

#[tokio::test]
async fn objects_in_memory_keep_the_contract() {
    conformance::run(&|| Box::new(Folder::memory())).await;
}

#[tokio::test]
async fn objects_in_a_file_system_keep_the_contract() {
    conformance::run(&|| Box::new(Folder::files())).await;
}

#[tokio::test]
async fn an_append_is_one_new_object_in_risingwaves_framing() {
    for place in places() {
        let store = place.store().await;
        store.append(&[record(1)]).await.unwrap();
        store.append(&[record(2), record(3)]).await.unwrap();
        let names = ["holdfast-probe", "schema_history_1.dat", "schema_history_2.dat"];
        assert_eq!(place.names().await, names);
        let second = place.operator.read(&place.path("schema_history_2.dat")).await.unwrap();
        assert_eq!(second.to_vec(), format!("{}{}", line(2), line(3)).into_bytes());
        assert!(!line(2).contains("holdfast_group"));
    }
}

#[tokio::test]
async fn what_risingwave_wrote_is_read_by_number_in_both_framings() {
    for place in places() {
        place.put("schema_history_10.dat", format!("\n{}\n{}", line(6), line(7).trim_end())).await;
        place.put("schema_history_9.dat", line(5)).await;
        place.put("schema_history_002.dat", format!("{}{}", line(3), line(4))).await;
        place.put("schema_history_1.dat", format!("{}\r\n{}", line(1).trim_end(), line(2))).await;
        for other in
            ["schema_history_3.dat.tmp", "schema_history_.dat", "notes.dat", "schema_history_4"]
        {
            place.put(other, "not ours").await;
        }
        let expected: Vec<HistoryRecord> = (1..=7).map(record).collect();
        let store = place.store().await;
        assert_eq!(store.load().await.unwrap(), expected);
        store.append(&[record(8)]).await.unwrap();
        assert!(place.names().await.contains(&"schema_history_11.dat".to_owned()));
    }
}

#[tokio::test]
async fn gaps_are_never_filled() {
    for place in places() {
        for number in [1, 2, 5] {
            place.put(&format!("schema_history_{number}.dat"), line(number)).await;
        }
        let store = place.store().await;
        store.append(&[record(6)]).await.unwrap();
        let names = place.names().await;
        assert_eq!(names.last().unwrap(), "schema_history_6.dat");
        assert!(!names.contains(&"schema_history_3.dat".to_owned()));
    }
}

#[tokio::test]
async fn a_source_does_not_see_another_whose_number_begins_with_its_own() {
    for place in places() {
        let longer = Folder {
            folder: format!("{}0", place.folder),
            operator: place.operator.clone(),
            _kept: None,
        };
        for number in 1..=3 {
            longer.put(&format!("schema_history_{number}.dat"), line(number)).await;
        }
        longer.put("deeper/schema_history_9.dat", line(9)).await;
        let store = place.store().await;
        assert!(!store.exists().await.unwrap());
        assert_eq!(store.load().await.unwrap(), []);
        store.append(&[record(4)]).await.unwrap();
        assert_eq!(place.names().await, ["holdfast-probe", "schema_history_1.dat"]);
        assert_eq!(longer.store().await.load().await.unwrap(), [1, 2, 3].map(record));
    }
}

#[tokio::test]
async fn many_objects_are_read_in_their_order() {
    let place = Folder::memory();
    let store = place.store().await;
    for number in 0..70 {
        store.append(&[record(number)]).await.unwrap();
    }
    assert_eq!(store.load().await.unwrap(), (0..70).map(record).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_bad_line_is_named_by_object_and_line() {
    for place in places() {
        place.put("schema_history_1.dat", line(1)).await;
        place.put("schema_history_2.dat", format!("{}\n{{\n{}", line(2), line(3))).await;
        place.put("schema_history_3.dat", line(4)).await;
        let store = place.store().await;
        let error = store.load().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}schema_history_2.dat, line 3: history record cannot be read",
                store.location()
            )
        );
    }
}

#[tokio::test]
async fn equal_bytes_are_an_append_whose_answer_was_lost_and_others_fence() {
    for place in places() {
        let store = place.store().await;
        place.put("schema_history_1.dat", line(1)).await;
        store.append(&[record(1)]).await.unwrap();
        place.put("schema_history_2.dat", line(9)).await;
        for _ in 0..2 {
            let error = store.append(&[record(2)]).await.unwrap_err();
            assert!(matches!(error, Error::Fenced { .. }), "{error}");
            assert!(error.to_string().contains("source-16/schema_history_2.dat"), "{error}");
        }
        assert_eq!(store.load().await.unwrap(), [record(1), record(9)]);
        assert!(!place.names().await.contains(&"schema_history_3.dat".to_owned()));
    }
}

#[tokio::test]
async fn a_crash_before_the_link_leaves_nothing_that_is_seen() {
    let place = Folder::files();
    let store = place.store().await;
    store.append(&[record(1)]).await.unwrap();
    let whole = line(2);
    for kept in 0..=whole.len() {
        place.put("schema_history_2.dat.77-0.tmp", whole.as_bytes()[..kept].to_vec()).await;
        assert_eq!(store.load().await.unwrap(), [record(1)]);
    }
    store.append(&[record(2)]).await.unwrap();
    assert_eq!(place.store().await.load().await.unwrap(), [record(1), record(2)]);
}

#[tokio::test]
async fn threads_that_append_at_once_write_one_object_each_or_are_fenced() {
    let place = Arc::new(Folder::files());
    let stores = [place.store().await, place.store().await, place.store().await];
    let results: Vec<_> = (0..)
        .zip(stores)
        .map(|(number, store)| {
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(store.append(&[record(number)]))
            })
        })
        .collect();
    let results: Vec<_> = results.into_iter().map(|thread| thread.join().unwrap()).collect();
    let refused = results.iter().filter(|result| matches!(result, Err(Error::Fenced { .. })));
    assert_eq!((results.iter().filter(|result| result.is_ok()).count(), refused.count()), (1, 2));
    assert_eq!(place.store().await.load().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_place_that_cannot_be_listed_is_not_an_empty_history() {
    let place = Folder::files();
    place.operator.write("made", "a file in the place of a folder").await.unwrap();
    let store = OpendalHistoryStore::open_read_only(place.operator.clone(), &place.folder);
    for error in [store.load().await.unwrap_err(), store.exists().await.unwrap_err()] {
        assert!(matches!(error, Error::Read { .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Config, "{error}");
    }
}

#[tokio::test]
async fn a_number_beyond_all_numbers_is_an_error() {
    let place = Folder::memory();
    place.put("schema_history_99999999999999999999.dat", line(1)).await;
    let error = OpendalHistoryStore::open(place.operator.clone(), &place.folder).await.unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

#[tokio::test]
async fn a_service_that_cannot_refuse_is_refused() {
    // The flag is what OpenDAL says of such a service.
    let place = Folder::memory();
    let layer = opendal::layers::CapabilityOverrideLayer::new(|mut capability| {
        capability.write_with_if_not_exists = false;
        capability
    });
    let operator = place.operator.clone().layer(layer);
    let error = OpendalHistoryStore::open(operator, &place.folder).await.unwrap_err();
    assert!(matches!(error, Error::NoFence { .. }), "{error}");
    assert_eq!(place.names().await, [""; 0]);
}

#[tokio::test]
async fn reading_creates_nothing() {
    for place in places() {
        let store = OpendalHistoryStore::open_read_only(place.operator.clone(), &place.folder);
        assert!(!store.exists().await.unwrap());
        assert!(matches!(store.append(&[record(1)]).await, Err(Error::ReadOnly { .. })));
        assert_eq!(place.names().await, [""; 0]);
    }
}

#[test]
fn names_of_history_objects_hold_a_number() {
    let cases = [
        ("schema_history_1.dat", Some("1")),
        ("schema_history_007.dat", Some("007")),
        ("old_schema_history_12.dat", Some("12")),
        ("schema_history_x_schema_history_3.dat", Some("3")),
        ("schema_history_1.dat.dat", Some("1")),
        ("schema_history_.dat", None),
        ("schema_history_1dat", None),
        ("schema_history_1.dat.tmp", None),
        ("schema_history_", None),
        ("schema_history_1٣.dat", None),
        ("holdfast-probe", None),
    ];
    for (name, expected) in cases {
        assert_eq!(digits(name), expected, "{name}");
    }
}
