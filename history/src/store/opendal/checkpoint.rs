//! The checkpoint beside the objects.

use std::io;

use async_trait::async_trait;
use opendal::{Buffer, ErrorKind};

use super::{OpendalHistoryStore, io_error};
use crate::error::Error;
use crate::store::file::replace;
use crate::store::lines::fingerprint;
use crate::store::{Checkpoints, Place, Visit};

/// Where it is. Not a `.dat`: RisingWave passes over it.
const CHECKPOINT: &str = "holdfast-checkpoint";

#[async_trait]
impl Checkpoints for OpendalHistoryStore {
    async fn load_checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = format!("{}{CHECKPOINT}", self.folder);
        match self.operator.read(&path).await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&path, "read")(io_error(error))),
        }
    }

    async fn save_checkpoint(&self, checkpoint: &[u8]) -> Result<(), Error> {
        if self.writer.is_none() {
            return Err(Error::ReadOnly { location: self.location.clone() });
        }
        let path = format!("{}{CHECKPOINT}", self.folder);
        let saved = match &self.local {
            Some(root) => replace(&root.join(&path), checkpoint),
            None => {
                let body = Buffer::from(checkpoint.to_vec());
                self.operator.write(&path, body).await.map(drop).map_err(io_error)
            }
        };
        saved.map_err(self.failed(&path, "keep a checkpoint of"))
    }

    /// The names and sizes of the objects before that of the place, and what that one has up to there.
    async fn fingerprint(&self, place: Place) -> Result<Option<String>, Error> {
        let objects = self.list().await?;
        let count = objects.partition_point(|object| object.number <= place.object);
        let before = objects.get(..count).unwrap_or_default();
        let Some((last, before)) = before.split_last() else { return Ok(None) };
        // Two objects of one number are an order that nobody has made.
        if last.number != place.object || before.last().is_some_and(|one| one.number == last.number)
        {
            return Ok(None);
        }
        let mut names = crc32fast::Hasher::new();
        for object in before {
            names.update(format!("{} {}\n", object.path, self.size(object)?).as_bytes());
        }
        let content = self.get(last).await?.to_bytes();
        let found = fingerprint(io::Cursor::new(&*content), place.end)
            .map_err(self.failed(&last.path, "read"))?;
        Ok(found.map(|found| format!("{count}-{:08x}-{found}", names.finalize())))
    }

    async fn read_after(&self, place: Place, visit: &mut Visit<'_>) -> Result<(), Error> {
        let objects = self.list().await?;
        let from = objects.partition_point(|object| object.number < place.object);
        self.read_objects(objects.get(from..).unwrap_or_default(), place, visit).await
    }
}
