//! Opens objects.

use crate::address::Address;
use crate::drive::SwiftDrive;
use crate::error::{Error, Result};
use crate::record::METADATA;
use store::ObjectReader;
use swift_files::{Choice, FileName, Wanted, choose};

/// An object as it is at some moment.
pub struct Opened {
    /// All its files.
    pub files: Vec<FileName>,
    /// Which of them count.
    pub choice: Choice,
    /// Of the files that count: data, later metadata, content type, tombstone.
    pub metadata: Metadata,
    /// The data, if there is some: it can be read even when the object is replaced meanwhile.
    pub reader: Option<ObjectReader>,
}

/// What callers gave with the files, as they gave it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    /// Of the data.
    pub data: Option<Vec<u8>>,
    /// Of the newest POST.
    pub meta: Option<Vec<u8>>,
    /// Of the POST with the newest content type.
    pub content_type: Option<Vec<u8>>,
    /// Of the tombstone.
    pub tombstone: Option<Vec<u8>>,
}

impl SwiftDrive {
    /// Opens an object, deleted ones too.
    pub fn open(&self, address: Address, wanted: Wanted<'_>) -> Result<Opened> {
        let kind = self.kind(address.policy)?;
        loop {
            let files = self.files(address)?;
            if files.is_empty() {
                return Err(Error::NoObject);
            }
            let choice = choose(&files, kind.wanting(wanted));
            match self.opened(address, files, choice) {
                // Replaced meanwhile.
                Err(Error::Store(store::Error::NoObject { .. })) => {}
                opened => return opened,
            }
        }
    }

    fn opened(&self, address: Address, files: Vec<FileName>, choice: Choice) -> Result<Opened> {
        let collection = Address::collection(address.policy);
        let reader = choice
            .data
            .map(|file| self.store.open(&collection, address.file(file)));
        let reader = reader.transpose()?;
        let metadata = |file: Option<FileName>| -> Result<Option<Vec<u8>>> {
            let Some(file) = file else {
                return Ok(None);
            };
            let name = address.file(file);
            let found = self.store.stat(&collection, &name)?;
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

fn given(found: &store::ObjectInfo) -> Vec<u8> {
    found.attributes.get(METADATA).cloned().unwrap_or_default()
}
