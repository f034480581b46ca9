//! Opens objects for reading.

use crate::address::Address;
use crate::drive::SwiftDrive;
use crate::error::{Error, Result};
use crate::record::METADATA;
use store::ObjectReader;
use swift_files::{Choice, FileName, Wanted, choose};

/// A consistent view of an object.
pub struct Opened {
    /// All files of the object.
    pub files: Vec<FileName>,
    /// Which of these files count.
    pub choice: Choice,
    /// Metadata of the files that count: data, later metadata, content type, tombstone.
    pub metadata: Metadata,
    /// Reader of the data, if the object has any; it stays valid when the object is replaced.
    pub reader: Option<ObjectReader>,
}

/// Metadata of files, as callers gave it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    /// Metadata of the data file.
    pub data: Option<Vec<u8>>,
    /// Metadata of the newest POST.
    pub meta: Option<Vec<u8>>,
    /// Metadata of the POST with the newest content type.
    pub content_type: Option<Vec<u8>>,
    /// Metadata of the tombstone.
    pub tombstone: Option<Vec<u8>>,
}

impl SwiftDrive {
    /// Opens an object, which may be deleted; `wanted` is the fragment to read.
    ///
    /// # Errors
    /// [`Error::InFile`] names the file that cannot be read.
    pub fn open(&self, address: Address, wanted: Wanted<'_>) -> Result<Opened> {
        let kind = self.kind(address.policy)?;
        loop {
            let files = self.files(address)?;
            if files.is_empty() {
                return Err(Error::NoObject);
            }
            let choice = choose(&files, kind.wanting(wanted));
            match self.opened(address, files, choice) {
                // A file was replaced between listing and reading.
                Err(Error::Store(store::Error::NoObject { .. })) => {}
                opened => return opened,
            }
        }
    }

    fn opened(&self, address: Address, files: Vec<FileName>, choice: Choice) -> Result<Opened> {
        let collection = Address::collection(address.policy);
        let reader = choice.data.map(|file| {
            let reader = self.store.open(&collection, address.file(file));
            reader.map_err(in_file(file))
        });
        let reader = reader.transpose()?;
        let metadata = |file: Option<FileName>| -> Result<Option<Vec<u8>>> {
            let Some(file) = file else {
                return Ok(None);
            };
            let name = address.file(file);
            let found = self.store.stat(&collection, &name);
            let found = found.map_err(in_file(file))?;
            let found = found.ok_or_else(|| store::Error::NoObject {
                collection: collection.clone(),
                object: name.as_str().into(),
            })?;
            Ok(Some(given(&found)))
        };
        Ok(Opened {
            metadata: Metadata {
                data: reader.as_ref().map(|reader| given(reader.info())),
                meta: metadata(choice.meta)?,
                content_type: metadata(choice.content_type)?,
                tombstone: metadata(choice.tombstone)?,
            },
            files,
            choice,
            reader,
        })
    }
}

/// Adds the name of a file to its error, unless the file is gone.
fn in_file(file: FileName) -> impl FnOnce(store::Error) -> Error {
    move |error| match error {
        store::Error::NoObject { .. } => error.into(),
        error => Error::InFile {
            file,
            source: Box::new(error),
        },
    }
}

fn given(found: &store::ObjectInfo) -> Vec<u8> {
    found.attributes.get(METADATA).cloned().unwrap_or_default()
}
