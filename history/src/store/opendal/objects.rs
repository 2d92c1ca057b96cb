//! The objects of a history, listed and read.

use std::fs;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use opendal::{Buffer, EntryMode};

use super::{OpendalHistoryStore, io_error};
use crate::error::Error;
use crate::store::lines::visit_lines;
use crate::store::{Place, Visit};

/// How many objects are asked for at the same time, and how many bytes of them are held.
const READ_AHEAD: (usize, u64) = (16, 32 << 20);
/// No object of a history is larger.
const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// One object of the history.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) number: u64,
    pub(super) path: String,
    /// As the listing has it; 0 where it has none.
    bytes: u64,
}

impl OpendalHistoryStore {
    /// The objects of the history, in their order.
    pub(super) async fn list(&self) -> Result<Vec<Object>, Error> {
        let failed =
            |source| Error::Read { location: self.location.clone(), action: "list", source };
        if let Some(root) = &self.local {
            // OpenDAL lists what is no folder as an empty one.
            match fs::metadata(root.join(&self.folder)) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(failed(io::Error::from(io::ErrorKind::NotADirectory))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(failed(error)),
            }
        }
        let entries = self.operator.list(&self.folder).await.map_err(io_error).map_err(failed)?;
        let mut objects = Vec::new();
        for entry in entries {
            let (path, metadata) = entry.into_parts();
            let name = path.strip_prefix(&self.folder).filter(|name| !name.contains('/'));
            let Some(name) = name.filter(|_| metadata.mode() != EntryMode::DIR) else { continue };
            let Some(digits) = digits(name) else { continue };
            let number = digits.parse().map_err(|_| {
                let what = format!("the number of {name} is too large");
                failed(io::Error::new(io::ErrorKind::InvalidData, what))
            })?;
            objects.push(Object { number, path, bytes: metadata.content_length() });
        }
        objects.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
        Ok(objects)
    }

    /// The first of `.damaged-1`, `.damaged-2` and so on that no object's name ends in.
    pub(super) async fn free_suffix(&self) -> Result<String, Error> {
        let failed =
            |source| Error::Read { location: self.location.clone(), action: "list", source };
        let entries = self.operator.list(&self.folder).await.map_err(io_error).map_err(failed)?;
        let mut number = 1_u32;
        loop {
            let suffix = format!(".damaged-{number}");
            if !entries.iter().any(|entry| entry.path().ends_with(&suffix)) {
                return Ok(suffix);
            }
            number = number.saturating_add(1);
        }
    }

    pub(super) fn size(&self, object: &Object) -> Result<u64, Error> {
        let Some(root) = &self.local else { return Ok(object.bytes) };
        let metadata = fs::metadata(root.join(&object.path));
        Ok(metadata.map_err(self.failed(&object.path, "look at"))?.len())
    }

    pub(super) async fn get(&self, object: &Object) -> Result<Buffer, Error> {
        let failed = || self.failed(&object.path, "read");
        let bytes = self.size(object)?;
        if bytes > MAX_OBJECT_BYTES {
            let what = format!("it has {bytes} bytes, which is no object of a history");
            return Err(failed()(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        self.operator.read(&object.path).await.map_err(io_error).map_err(failed())
    }

    /// Reads objects in their order; of the one that `start` is in, what follows it.
    pub(super) async fn read_objects(
        &self,
        objects: &[Object],
        start: Place,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let mut rest = objects;
        while !rest.is_empty() {
            let (ahead, later) = rest.split_at(ahead(rest));
            rest = later;
            let contents = join(ahead.iter().map(|object| self.get(object)).collect()).await;
            for (object, content) in pairs(ahead, contents) {
                let location = self.location_of(&object.path);
                let begin = Place { object: object.number, ..Place::default() };
                let begin = if object.number == start.object { start } else { begin };
                let bytes = content?.to_bytes();
                let at = usize::try_from(begin.end).unwrap_or(usize::MAX);
                visit_lines(bytes.get(at..).unwrap_or_default(), begin, &location, visit)?;
            }
        }
        Ok(())
    }
}

/// The number in the name of an object of a history: it ends in `.dat`, and holds `schema_history_<digits>.dat`.
pub(super) fn digits(name: &str) -> Option<&str> {
    const START: &str = "schema_history_";
    if !name.ends_with(".dat") {
        return None;
    }
    name.match_indices(START).find_map(|(at, _)| {
        let rest = name.get(at + START.len()..)?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, rest) = rest.split_at_checked(end)?;
        (!digits.is_empty() && rest.starts_with(".dat")).then_some(digits)
    })
}

/// How many of the next objects to ask for at once, 1 and more.
fn ahead(objects: &[Object]) -> usize {
    let (most, bytes) = READ_AHEAD;
    let mut sum = 0_u64;
    let fit = objects.iter().take(most).take_while(|object| {
        sum = sum.saturating_add(object.bytes);
        sum <= bytes
    });
    fit.count().clamp(1, objects.len().max(1))
}

/// Objects and what was got for each, in order.
fn pairs<T>(objects: &[Object], got: Vec<T>) -> impl Iterator<Item = (&Object, T)> {
    debug_assert_eq!(objects.len(), got.len());
    let mut objects = objects.iter();
    got.into_iter().map_while(move |got| Some((objects.next()?, got)))
}

/// Runs futures at the same time, and gives their results in their order.
async fn join<F: Future + Send>(futures: Vec<F>) -> Vec<F::Output>
where
    F::Output: Send,
{
    enum Slot<F: Future> {
        Running(Pin<Box<F>>),
        Done(F::Output),
    }
    // The results are moved out at the end, and are never looked at through a pin.
    impl<F: Future> Unpin for Slot<F> {}
    let mut slots: Vec<Slot<F>> =
        futures.into_iter().map(|future| Slot::Running(Box::pin(future))).collect();
    poll_fn(move |context| {
        let mut running = false;
        for slot in &mut slots {
            if let Slot::Running(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *slot = Slot::Done(done),
                    Poll::Pending => running = true,
                }
            }
        }
        if running {
            return Poll::Pending;
        }
        let done = std::mem::take(&mut slots).into_iter().filter_map(|slot| match slot {
            Slot::Done(done) => Some(done),
            Slot::Running(_) => None,
        });
        Poll::Ready(done.collect())
    })
    .await
}
