//! The lock of a database that is open for writing.

use crate::answer::answer;
use bluefs::BlueFs;
use kv::Result;

/// Keeps the database from being opened for writing again within this mount of BlueFS.
pub(crate) struct Lock {
    fs: BlueFs,
    path: String,
}

impl Lock {
    pub fn take(fs: &BlueFs, directory: &str) -> Result<Self> {
        let path = format!("{directory}/LOCK");
        fs.lock(&path).map_err(answer)?;
        Ok(Self {
            fs: fs.clone(),
            path,
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.fs.unlock(&self.path);
    }
}
