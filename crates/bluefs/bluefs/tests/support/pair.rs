//! The file system and its model, which take the same steps.

use super::model::{File, Model, bytes};
use super::step::{NAMES, Step};
use super::{assert_clean, mount, read};
use bluefs::{BlueFs, Error, Lifetime, Writer};
use device::ZonedDevice;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The file system and its model, side by side.
pub struct Pair<D> {
    pub device: Arc<D>,
    pub fs: BlueFs,
    pub model: Model,
    writers: BTreeMap<usize, Writer>,
}

impl<D: ZonedDevice + 'static> Pair<D> {
    /// Mounts a formatted drive.
    pub fn new(device: Arc<D>) -> Result<Self, Error> {
        let fs = mount(device.clone())?;
        if !fs.exists("/d") {
            fs.create_directory("/d")?;
            fs.sync_metadata()?;
        }
        Ok(Self {
            device,
            fs,
            model: Model::new(),
            writers: BTreeMap::new(),
        })
    }

    fn writer(&mut self, file: usize, path: &str) -> Result<&mut Writer, Error> {
        if !self.writers.contains_key(&file) {
            let writer = self.fs.reopen(path)?;
            self.writers.insert(file, writer);
        }
        Ok(self.writers.get_mut(&file).unwrap())
    }

    /// Takes a step in both. If it fails, the model has it nevertheless, for it may have happened.
    pub fn step(&mut self, step: Step) -> Result<(), Error> {
        let at = self.model.names.len();
        let mut names = self.model.now().clone();
        let found =
            |index: usize, names: &BTreeMap<String, usize>| names.get(NAMES[index]).copied();
        match step {
            Step::Create(f) => {
                let stream = self.model.next_stream;
                self.model.next_stream += 1;
                self.model.files.push(File {
                    versions: vec![Vec::new()],
                    created_at: at,
                    stream,
                });
                let file = self.model.files.len() - 1;
                names.insert(NAMES[f].to_owned(), file);
                self.model.names.push(names);
                let mut writer = self.fs.create(NAMES[f])?;
                writer.set_lifetime([Lifetime::Unknown, Lifetime::Medium, Lifetime::Long][f % 3]);
                self.writers.insert(file, writer);
                return Ok(());
            }
            Step::Append(f, length) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                let mut content = self.model.content(file).clone();
                let run_id = self.model.next_stream << 20 | self.model.files[file].stream;
                self.model.next_stream += 1;
                let data = bytes(run_id, content.len(), length);
                content.extend_from_slice(&data);
                self.model.files[file].versions.push(content);
                self.writer(file, NAMES[f])?.append(&data)?;
            }
            Step::Sync(f) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                self.writer(file, NAMES[f])?.sync()?;
                let entry = &mut self.model.files[file];
                let last = entry.versions.len() - 1;
                entry.versions.drain(..last);
                self.model.barrier = self.model.barrier.max(entry.created_at);
            }
            Step::RangeSync(f) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                self.writer(file, NAMES[f])?.range_sync()?;
            }
            Step::Close(f) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                if let Some(mut writer) = self.writers.remove(&file) {
                    writer.close()?;
                }
            }
            Step::Delete(f) => {
                if names.remove(NAMES[f]).is_none() {
                    let missing = self.fs.delete(NAMES[f]);
                    assert!(
                        matches!(missing, Err(Error::NotFound { .. })),
                        "{missing:?}"
                    );
                    return Ok(());
                }
                self.model.names.push(names);
                return self.fs.delete(NAMES[f]);
            }
            Step::Rename(f, g) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                names.remove(NAMES[f]);
                names.insert(NAMES[g].to_owned(), file);
                self.model.names.push(names);
                return self.fs.rename(NAMES[f], NAMES[g]);
            }
            Step::Link(f, g) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                if found(g, &names).is_some() {
                    let taken = self.fs.link(NAMES[f], NAMES[g]);
                    assert!(matches!(taken, Err(Error::Exists { .. })), "{taken:?}");
                    return Ok(());
                }
                names.insert(NAMES[g].to_owned(), file);
                self.model.names.push(names);
                return self.fs.link(NAMES[f], NAMES[g]);
            }
            Step::Truncate(f, size) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                let mut content = self.model.content(file).clone();
                let size = size % (content.len() + 1);
                content.truncate(size);
                self.model.files[file].versions.push(content);
                self.writer(file, NAMES[f])?.truncate(size as u64)?;
            }
            Step::SyncNames => {
                self.fs.sync_metadata()?;
                self.model.barrier = self.model.names.len() - 1;
            }
            Step::Read(f, from) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                let content = self.model.content(file);
                let from = from % (content.len() + 2);
                let mut buffer = vec![0; 1 + from * 7 % 5000];
                let reader = self.fs.open(NAMES[f])?;
                let got = reader.read_at(from as u64, &mut buffer)?;
                let end = content.len().min(from + buffer.len());
                assert_eq!(
                    &buffer[..got],
                    content.get(from..end).unwrap_or(&[]),
                    "{step:?}"
                );
            }
            Step::Clean => {
                self.fs.clean_ahead()?;
            }
            Step::Remount => {
                for (_, mut writer) in std::mem::take(&mut self.writers) {
                    writer.sync()?;
                    writer.close()?;
                }
                self.fs.unmount()?;
                self.fs = mount(self.device.clone())?;
                for file in &mut self.model.files {
                    let last = file.versions.len() - 1;
                    file.versions.drain(..last);
                }
                self.model.barrier = self.model.names.len() - 1;
                self.verify();
                let (fs, model) = (&self.fs, &mut self.model);
                model.adopt(fs);
            }
            Step::Kill => {
                self.writers.clear();
                self.fs = mount(self.device.clone())?;
                self.verify();
                let (fs, model) = (&self.fs, &mut self.model);
                model.adopt(fs);
            }
        }
        Ok(())
    }

    /// Compares all names and contents with the model, and checks the file system.
    #[track_caller]
    pub fn verify(&self) {
        assert_eq!(self.model.contradiction(&self.fs), None);
        assert_clean(&self.fs);
    }

    /// Asserts that names and contents are exactly those of the model.
    #[track_caller]
    pub fn verify_exactly(&self) {
        for path in NAMES {
            match self.model.now().get(path) {
                Some(file) => {
                    let data = read(&self.fs, path).unwrap();
                    assert!(data == *self.model.content(*file), "{path}");
                }
                None => assert!(!self.fs.exists(path), "{path}"),
            }
        }
    }
}
