//! Runs a load of the Caveat-Scriptor thesis on a directory of any file system, each part with a cold cache. Marks in
//! a file, the kernel's `trace_marker`, when a part begins, when its work is done, and when all is written.
//!
//!     record_files LOAD DIRECTORY MARKER SEED
//!
//! `scripts/record-files` runs it, as root.

use experiments::file_loads::{Files, Load, Name};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

struct Directory {
    path: PathBuf,
    marker: PathBuf,
    /// The last file stays open, because the kernel reads ahead only within an open file.
    open: Option<(Name, File)>,
    buffer: Vec<u8>,
}

impl Directory {
    fn path(&self, name: Name) -> PathBuf {
        let dir = name.dir.map(|dir| format!("d{dir}")).unwrap_or_default();
        self.path.join(dir).join(name.file.to_string())
    }

    fn open(&mut self, name: Name) -> io::Result<File> {
        match self.open.take() {
            Some((of, file)) if of == name => Ok(file),
            _ => OpenOptions::new()
                .read(true)
                .write(true)
                .open(self.path(name)),
        }
    }

    fn mark(&self, words: &str) -> io::Result<()> {
        let mut marker = OpenOptions::new().append(true).open(&self.marker)?;
        marker.write_all(format!("{words}\n").as_bytes())
    }
}

impl Files for Directory {
    type Error = io::Error;

    fn begin(&mut self, part: &'static str) -> io::Result<()> {
        self.sync()?;
        // The first time frees what keeps checkpointed buffers in memory, the second time those buffers.
        for _ in 0..2 {
            fs::write("/proc/sys/vm/drop_caches", "3")?;
        }
        self.mark(&format!("part {part}"))
    }

    fn end(&mut self) -> io::Result<()> {
        self.mark("done")?;
        self.sync()?;
        self.mark("end")
    }

    fn make_dir(&mut self, dir: u64) -> io::Result<()> {
        fs::create_dir(self.path.join(format!("d{dir}")))
    }

    fn create(&mut self, name: Name) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true);
        self.open = Some((name, options.open(self.path(name))?));
        Ok(())
    }

    fn write(&mut self, name: Name, at: u64, data: &[u8]) -> io::Result<()> {
        let file = self.open(name)?;
        file.write_all_at(data, at)?;
        self.open = Some((name, file));
        Ok(())
    }

    fn append(&mut self, name: Name, data: &[u8]) -> io::Result<()> {
        let at = fs::metadata(self.path(name))?.len();
        self.write(name, at, data)
    }

    fn read(&mut self, name: Name, at: u64, most: usize) -> io::Result<usize> {
        let file = self.open(name)?;
        self.buffer.resize(most, 0);
        let length = file.read_at(&mut self.buffer, at)?;
        self.open = Some((name, file));
        Ok(length)
    }

    fn remove(&mut self, name: Name) -> io::Result<()> {
        self.open = None;
        fs::remove_file(self.path(name))
    }

    fn sync(&mut self) -> io::Result<()> {
        let root = File::open(&self.path)?;
        // SAFETY: the descriptor is open.
        match unsafe { libc::syncfs(root.as_raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [load, path, marker, seed] = &arguments[..] else {
        return Err("usage: record_files LOAD DIRECTORY MARKER SEED".into());
    };
    let named = |known: &Load| known.name() == load;
    let load = Load::ALL.into_iter().find(named).ok_or("no such load")?;
    let mut directory = Directory {
        path: Path::new(path).to_owned(),
        marker: marker.into(),
        open: None,
        buffer: Vec::new(),
    };
    Ok(load.run(&mut directory, seed.parse()?)?)
}
