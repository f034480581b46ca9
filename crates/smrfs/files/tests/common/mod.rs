//! A model of the file system that keeps bytes in vectors, random operations, and what both look like.
#![allow(dead_code)]

use caveat::{Bits, CaveatDevice, CaveatShape};
use device::ZonedDevice;
use fastrand::Rng;
use smrfs::{Error, FileSystem, Medium, NewInode, ROOT, Rename, SetAttributes, SetXattr};
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

pub const KIB: u64 = 1 << 10;

/// Zones of 256 KiB, so that a few operations fill some.
pub fn geometry(zones: u32, conventional: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 256 * KIB,
        zone_capacity: if conventional > 0 {
            256 * KIB
        } else {
            192 * KIB
        },
        zone_count: zones,
        conventional_zones: conventional,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 8,
        max_active_zones: 10,
        max_append_bytes: 0,
    }
}

/// What a file system lies on.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A zoned drive with so many conventional zones.
    Bands(u32),
    /// A Caveat-Scriptor drive of these parameters, cleaned when it is full or not.
    Caveat {
        distance: u64,
        range: u64,
        cleaned: bool,
    },
}

impl Kind {
    pub fn geometry(self, zones: u32) -> Geometry {
        match self {
            Self::Bands(conventional) => geometry(zones, conventional),
            Self::Caveat { .. } => geometry(zones, zones),
        }
    }

    pub fn is_cleaned(self) -> bool {
        matches!(self, Self::Caveat { cleaned: true, .. })
    }

    /// On a drive; a Caveat-Scriptor drive has its bitmap in memory, and it was as `damaged` when the power went.
    pub fn medium(self, device: Arc<dyn ZonedDevice>, damaged: Option<Bits>) -> Medium {
        let Self::Caveat {
            distance, range, ..
        } = self
        else {
            return Medium::Bands(device);
        };
        let shape = CaveatShape {
            block_size: 4096,
            isolation_distance: distance,
            no_overlap_range: range,
            unshingled_bytes: 1 << 20,
        };
        Medium::Caveat(Arc::new(
            CaveatDevice::in_memory(device, &shape, damaged).unwrap(),
        ))
    }
}

/// What a Caveat-Scriptor drive says when the power goes.
pub fn damage(medium: &Medium) -> Option<Bits> {
    match medium {
        Medium::Caveat(drive) => Some(drive.damage_without_power()),
        Medium::Bands(_) => None,
    }
}

/// Seeds of a test: some, or as many as `SMRFS_SEEDS` says.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("SMRFS_SEEDS").ok();
    0..asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[derive(Clone, Debug)]
pub enum Operation {
    Create(u64, Vec<u8>, u32),
    Symlink(u64, Vec<u8>, Vec<u8>),
    Link(u64, u64, Vec<u8>),
    Unlink(u64, Vec<u8>),
    Rmdir(u64, Vec<u8>),
    Rename(u64, Vec<u8>, u64, Vec<u8>, Rename),
    Write(u64, u64, Vec<u8>),
    Truncate(u64, u64),
    Punch(u64, u64, u64),
    /// With or without the size.
    Preallocate(u64, u64, u64, bool),
    Zero(u64, u64, u64, bool),
    Mode(u64, u32),
    Xattr(u64, Vec<u8>, Vec<u8>, SetXattr),
    NoXattr(u64, Vec<u8>),
    Open(u64),
    Release(u64),
    Sync,
}

#[derive(Clone, Debug)]
enum Node {
    File(Vec<u8>),
    Directory(BTreeMap<Vec<u8>, u64>, u64),
    Link(Vec<u8>),
    Other,
}

#[derive(Clone, Debug)]
struct Inode {
    mode: u32,
    nlink: u32,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    node: Node,
}

#[derive(Clone, Debug)]
pub struct Model {
    inodes: BTreeMap<u64, Inode>,
    pub opens: BTreeMap<u64, u32>,
    /// Files lie in one place as a whole, so that no space can be set aside for them.
    pub is_whole: bool,
    next: u64,
}

type Answer = Result<(), i32>;

/// What anybody sees of a file system, line by line.
pub type Seen = BTreeMap<u64, String>;

fn line(mode: u32, nlink: u32, content: &str, xattrs: &BTreeMap<Vec<u8>, Vec<u8>>) -> String {
    format!("{mode:o} {nlink} {content} {xattrs:?}")
}

fn bytes_line(bytes: &[u8]) -> String {
    let sum = xxhash_rust::xxh3::xxh3_64(bytes);
    format!("{} bytes {sum:x}", bytes.len())
}

impl Default for Model {
    fn default() -> Self {
        let root = Inode {
            mode: libc::S_IFDIR | 0o755,
            nlink: 2,
            xattrs: BTreeMap::new(),
            node: Node::Directory(BTreeMap::new(), ROOT),
        };
        Self {
            inodes: BTreeMap::from([(ROOT, root)]),
            opens: BTreeMap::new(),
            is_whole: false,
            next: 2,
        }
    }
}

impl Model {
    fn get(&self, ino: u64) -> Result<&Inode, i32> {
        self.inodes.get(&ino).ok_or(libc::ENOENT)
    }

    fn at(&mut self, ino: u64) -> &mut Inode {
        self.inodes.get_mut(&ino).unwrap()
    }

    fn entries(&self, ino: u64) -> Result<&BTreeMap<Vec<u8>, u64>, i32> {
        match &self.get(ino)?.node {
            Node::Directory(entries, _) => Ok(entries),
            _ => Err(libc::ENOTDIR),
        }
    }

    fn entries_mut(&mut self, ino: u64) -> &mut BTreeMap<Vec<u8>, u64> {
        match &mut self.at(ino).node {
            Node::Directory(entries, _) => entries,
            _ => unreachable!(),
        }
    }

    fn is_directory(&self, ino: u64) -> bool {
        matches!(self.inodes[&ino].node, Node::Directory(..))
    }

    fn file(&mut self, ino: u64) -> Result<&mut Vec<u8>, i32> {
        self.get(ino)?;
        match &mut self.at(ino).node {
            Node::File(bytes) => Ok(bytes),
            Node::Directory(..) => Err(libc::EISDIR),
            _ => Err(libc::EINVAL),
        }
    }

    fn check_new(&self, dir: u64, name: &[u8]) -> Answer {
        if self.entries(dir)?.contains_key(name) {
            return Err(libc::EEXIST);
        }
        (self.get(dir)?.nlink > 0).then_some(()).ok_or(libc::ENOENT)
    }

    fn find(&self, dir: u64, name: &[u8]) -> Result<u64, i32> {
        self.entries(dir)?.get(name).copied().ok_or(libc::ENOENT)
    }

    fn forget(&mut self, ino: u64) {
        if self.inodes[&ino].nlink == 0 && !self.opens.contains_key(&ino) {
            self.inodes.remove(&ino);
        }
    }

    fn enter(&mut self, dir: u64, name: &[u8], ino: u64) {
        self.entries_mut(dir).insert(name.to_vec(), ino);
        if let Node::Directory(_, parent) = &mut self.at(ino).node {
            *parent = dir;
        }
    }

    fn is_below(&self, mut ino: u64, dir: u64) -> bool {
        loop {
            if ino == dir {
                return true;
            }
            let Node::Directory(_, parent) = self.inodes[&ino].node else {
                return false;
            };
            if parent == ino {
                return false;
            }
            ino = parent;
        }
    }

    pub fn apply(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::Create(dir, name, mode) => {
                self.check_new(*dir, name)?;
                let (ino, kind) = (self.next, mode & libc::S_IFMT);
                self.next += 1;
                // A directory with this bit hands it on.
                let is_set = kind == libc::S_IFDIR && self.get(*dir)?.mode & libc::S_ISGID != 0;
                let mode = mode | if is_set { libc::S_ISGID } else { 0 };
                let (node, nlink) = match kind {
                    libc::S_IFDIR => (Node::Directory(BTreeMap::new(), *dir), 2),
                    libc::S_IFREG => (Node::File(Vec::new()), 1),
                    _ => (Node::Other, 1),
                };
                self.inodes.insert(
                    ino,
                    Inode {
                        mode,
                        nlink,
                        xattrs: BTreeMap::new(),
                        node,
                    },
                );
                self.enter(*dir, name, ino);
                if kind == libc::S_IFDIR {
                    self.at(*dir).nlink += 1;
                }
            }
            Operation::Symlink(dir, name, target) => {
                self.check_new(*dir, name)?;
                let ino = self.next;
                self.next += 1;
                self.inodes.insert(
                    ino,
                    Inode {
                        mode: libc::S_IFLNK | 0o777,
                        nlink: 1,
                        xattrs: BTreeMap::new(),
                        node: Node::Link(target.clone()),
                    },
                );
                self.enter(*dir, name, ino);
            }
            Operation::Link(ino, dir, name) => {
                self.get(*ino)?;
                if self.is_directory(*ino) {
                    return Err(libc::EPERM);
                }
                self.check_new(*dir, name)?;
                if self.inodes[ino].nlink == 0 {
                    return Err(libc::ENOENT);
                }
                self.enter(*dir, name, *ino);
                self.at(*ino).nlink += 1;
            }
            Operation::Unlink(dir, name) => {
                let ino = self.find(*dir, name)?;
                if self.is_directory(ino) {
                    return Err(libc::EISDIR);
                }
                self.entries_mut(*dir).remove(name);
                self.at(ino).nlink -= 1;
                self.forget(ino);
            }
            Operation::Rmdir(dir, name) => {
                let ino = self.find(*dir, name)?;
                if !self.entries(ino)?.is_empty() {
                    return Err(libc::ENOTEMPTY);
                }
                self.entries_mut(*dir).remove(name);
                self.at(*dir).nlink -= 1;
                self.at(ino).nlink = 0;
                self.forget(ino);
            }
            Operation::Rename(dir, name, to, new, how) => {
                return self.rename((*dir, name), (*to, new), *how);
            }
            Operation::Write(ino, offset, data) => {
                let bytes = self.file(*ino)?;
                let (from, end) = (*offset as usize, *offset as usize + data.len());
                if !data.is_empty() {
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[from..end].copy_from_slice(data);
                }
            }
            Operation::Truncate(ino, size) => self.file(*ino)?.resize(*size as usize, 0),
            Operation::Punch(ino, offset, length) => {
                let bytes = self.file(*ino)?;
                if *length == 0 {
                    return Err(libc::EINVAL);
                }
                let end = ((offset + length) as usize).min(bytes.len());
                if let Some(part) = bytes.get_mut(*offset as usize..end) {
                    part.fill(0);
                }
            }
            Operation::Preallocate(ino, offset, length, keeps)
            | Operation::Zero(ino, offset, length, keeps) => {
                let is_whole = self.is_whole;
                let bytes = self.file(*ino)?;
                if is_whole {
                    return Err(libc::EOPNOTSUPP);
                }
                if *length == 0 {
                    return Err(libc::EINVAL);
                }
                let end = (offset + length) as usize;
                if !keeps {
                    bytes.resize(bytes.len().max(end), 0);
                }
                let end = end.min(bytes.len());
                if let (Operation::Zero(..), Some(part)) =
                    (operation, bytes.get_mut(*offset as usize..end))
                {
                    part.fill(0);
                }
            }
            Operation::Mode(ino, mode) => {
                let inode = self.get(*ino)?;
                self.at(*ino).mode = inode.mode & libc::S_IFMT | mode;
            }
            Operation::Xattr(ino, name, value, how) => {
                let is_there = self.get(*ino)?.xattrs.contains_key(name);
                match how {
                    SetXattr::Create if is_there => return Err(libc::EEXIST),
                    SetXattr::Replace if !is_there => return Err(libc::ENODATA),
                    _ => {}
                }
                self.at(*ino).xattrs.insert(name.clone(), value.clone());
            }
            Operation::NoXattr(ino, name) => {
                self.get(*ino)?;
                self.at(*ino).xattrs.remove(name).ok_or(libc::ENODATA)?;
            }
            Operation::Open(ino) => {
                self.get(*ino)?;
                *self.opens.entry(*ino).or_default() += 1;
            }
            Operation::Release(ino) => {
                if let Some(opens) = self.opens.get_mut(ino) {
                    *opens -= 1;
                    if *opens == 0 {
                        self.opens.remove(ino);
                        self.forget(*ino);
                    }
                }
            }
            Operation::Sync => {}
        }
        Ok(())
    }

    fn rename(&mut self, from: (u64, &Vec<u8>), to: (u64, &Vec<u8>), how: Rename) -> Answer {
        let source = self.find(from.0, from.1)?;
        let target = self.entries(to.0)?.get(to.1).copied();
        if self.get(to.0)?.nlink == 0 {
            return Err(libc::ENOENT);
        }
        match (how, target) {
            (Rename::NoReplace, Some(_)) => return Err(libc::EEXIST),
            (Rename::Exchange, None) => return Err(libc::ENOENT),
            _ => {}
        }
        if target == Some(source) {
            return Ok(());
        }
        let moves = self.is_directory(source);
        if moves && self.is_below(to.0, source) {
            return Err(libc::EINVAL);
        }
        if let (Rename::Exchange, Some(target)) = (how, target) {
            if self.is_directory(target) && self.is_below(from.0, target) {
                return Err(libc::EINVAL);
            }
            let replaces = self.is_directory(target);
            self.enter(from.0, from.1, target);
            self.enter(to.0, to.1, source);
            self.at(from.0).nlink += u32::from(replaces);
            self.at(from.0).nlink -= u32::from(moves);
            self.at(to.0).nlink += u32::from(moves);
            self.at(to.0).nlink -= u32::from(replaces);
            return Ok(());
        }
        if let Some(target) = target {
            match (moves, self.is_directory(target)) {
                (true, false) => return Err(libc::ENOTDIR),
                (false, true) => return Err(libc::EISDIR),
                (true, true) if !self.entries(target)?.is_empty() => return Err(libc::ENOTEMPTY),
                (true, true) => {
                    self.at(target).nlink = 0;
                    self.at(to.0).nlink -= 1;
                }
                (false, false) => self.at(target).nlink -= 1,
            }
        }
        self.entries_mut(from.0).remove(from.1);
        self.enter(to.0, to.1, source);
        self.at(from.0).nlink -= u32::from(moves);
        self.at(to.0).nlink += u32::from(moves);
        if let Some(target) = target {
            self.forget(target);
        }
        Ok(())
    }

    /// What a mount finds: inodes without names are gone.
    pub fn remount(&mut self) {
        self.opens.clear();
        self.inodes.retain(|_, inode| inode.nlink > 0);
    }

    pub fn seen(&self) -> Seen {
        let line = |inode: &Inode| {
            let content = match &inode.node {
                Node::File(bytes) => bytes_line(bytes),
                Node::Directory(entries, parent) => format!("{entries:?} in {parent}"),
                Node::Link(target) => format!("{target:?}"),
                Node::Other => String::new(),
            };
            line(inode.mode, inode.nlink, &content, &inode.xattrs)
        };
        self.inodes
            .iter()
            .map(|(ino, inode)| (*ino, line(inode)))
            .collect()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> usize {
        let bytes = |inode: &Inode| match &inode.node {
            Node::File(bytes) => bytes.len(),
            _ => 0,
        };
        self.inodes.values().map(bytes).sum()
    }

    /// An operation that may or may not be possible.
    pub fn random(&self, random: &mut Rng) -> Operation {
        let all: Vec<u64> = self.inodes.keys().copied().collect();
        let of = |wanted: fn(&Node) -> bool| -> Vec<u64> {
            let some = self.inodes.iter().filter(|(_, inode)| wanted(&inode.node));
            some.map(|(ino, _)| *ino).collect()
        };
        let directories = of(|node| matches!(node, Node::Directory(..)));
        let files = of(|node| matches!(node, Node::File(_)));
        let any = all[random.usize(0..all.len())];
        let mut dir = || match random.u8(0..20) {
            0 => any,
            _ => directories[random.usize(0..directories.len())],
        };
        let (dir, other) = (dir(), dir());
        let file = match files.is_empty() {
            true => any,
            false => files[random.usize(0..files.len())],
        };
        let name = |random: &mut Rng| vec![b'a' + random.u8(0..5)];
        let (first, second) = (name(random), name(random));
        let offset = match random.u8(0..3) {
            0 => random.u64(0..40) * 4096,
            _ => random.u64(0..160 * KIB),
        };
        match random.u8(0..43) {
            40 | 41 => {
                let length = random.u64(0..40_000);
                Operation::Preallocate(file, offset, length, random.bool())
            }
            42 => Operation::Zero(file, offset, random.u64(0..40_000), random.bool()),
            0..4 => Operation::Create(dir, first, libc::S_IFREG | 0o644),
            4..6 => Operation::Create(dir, first, libc::S_IFDIR | 0o755),
            6 => Operation::Create(dir, first, libc::S_IFIFO | 0o600),
            7 => Operation::Symlink(dir, first, vec![b'x'; random.usize(1..100)]),
            8..10 => Operation::Link(any, dir, first),
            10..13 => Operation::Unlink(dir, first),
            13 => Operation::Rmdir(dir, first),
            14..18 => {
                let how = [Rename::Replace, Rename::NoReplace, Rename::Exchange];
                let how = how[random.usize(0..3)];
                Operation::Rename(dir, first, other, second, how)
            }
            18..27 => {
                let mut data = vec![0; random.usize(0..24_000)];
                random.fill(&mut data);
                Operation::Write(file, offset, data)
            }
            27..29 => Operation::Truncate(file, offset),
            29 => Operation::Punch(file, offset / 4096 * 4096, random.u64(0..10) * 4096),
            30 => Operation::Mode(any, random.u32(0..0o7777)),
            31..33 => {
                let how = [SetXattr::Any, SetXattr::Create, SetXattr::Replace];
                let value = vec![7; random.usize(0..300)];
                Operation::Xattr(any, first, value, how[random.usize(0..3)])
            }
            33 => Operation::NoXattr(any, first),
            34 => Operation::Open(any),
            35..37 => {
                let open: Vec<u64> = self.opens.keys().copied().collect();
                match open.is_empty() {
                    true => Operation::Sync,
                    false => Operation::Release(open[random.usize(0..open.len())]),
                }
            }
            _ => Operation::Sync,
        }
    }
}

/// Carries an operation out.
pub fn carry_out(fs: &FileSystem, operation: &Operation) -> Result<(), Error> {
    let new = |mode| NewInode {
        mode,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    match operation {
        Operation::Create(dir, name, mode) => fs.create(*dir, name, new(*mode)).map(drop),
        Operation::Symlink(dir, name, target) => fs.symlink(*dir, name, target, (0, 0)).map(drop),
        Operation::Link(ino, dir, name) => fs.link(*ino, *dir, name).map(drop),
        Operation::Unlink(dir, name) => fs.unlink(*dir, name),
        Operation::Rmdir(dir, name) => fs.rmdir(*dir, name),
        Operation::Rename(dir, name, to, new, how) => fs.rename((*dir, name), (*to, new), *how),
        Operation::Write(ino, offset, data) => fs.write(*ino, *offset, data),
        Operation::Truncate(ino, size) => fs.truncate(*ino, *size),
        Operation::Punch(ino, offset, length) => fs.punch(*ino, *offset, *length),
        Operation::Preallocate(ino, offset, length, keeps) => {
            fs.preallocate(*ino, *offset, *length, *keeps)
        }
        Operation::Zero(ino, offset, length, keeps) => fs.zero(*ino, *offset, *length, *keeps),
        Operation::Mode(ino, mode) => {
            let set = SetAttributes {
                mode: Some(*mode),
                ..SetAttributes::default()
            };
            fs.set_attributes(*ino, set).map(drop)
        }
        Operation::Xattr(ino, name, value, how) => fs.set_xattr(*ino, name, value, *how),
        Operation::NoXattr(ino, name) => fs.remove_xattr(*ino, name),
        Operation::Open(ino) => fs.open(*ino),
        Operation::Release(ino) => {
            fs.release(*ino);
            Ok(())
        }
        Operation::Sync => fs.sync(),
    }
}

/// All of a file.
pub fn contents(fs: &FileSystem, ino: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; fs.attributes(ino)?.size as usize + 10];
    let length = fs.read(ino, 0, &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// What is seen of a file system, also of inodes that only `extra` knows of: those without names.
pub fn seen(fs: &FileSystem, extra: impl IntoIterator<Item = u64>) -> Result<Seen, Error> {
    let mut seen = Seen::new();
    let mut todo = vec![ROOT];
    todo.extend(extra);
    while let Some(ino) = todo.pop() {
        let Ok(attributes) = fs.attributes(ino) else {
            continue;
        };
        let content = match attributes.kind() {
            libc::S_IFREG => {
                let bytes = contents(fs, ino)?;
                assert_eq!(bytes.len() as u64, attributes.size);
                bytes_line(&bytes)
            }
            libc::S_IFDIR => {
                let mut entries = BTreeMap::new();
                let (mut cookie, mut parent) = (0, 0);
                loop {
                    let some = fs.list(ino, cookie, 3)?;
                    let Some(last) = some.last() else { break };
                    cookie = last.cookie;
                    for entry in some {
                        match &*entry.name {
                            b"." => assert_eq!(entry.ino, ino),
                            b".." => parent = entry.ino,
                            _ => {
                                let old = entries.insert(entry.name.to_vec(), entry.ino);
                                assert_eq!(old, None);
                                if !seen.contains_key(&entry.ino) {
                                    todo.push(entry.ino);
                                }
                            }
                        }
                    }
                }
                format!("{entries:?} in {parent}")
            }
            libc::S_IFLNK => format!("{:?}", fs.read_link(ino)?.to_vec()),
            _ => String::new(),
        };
        let mut xattrs = BTreeMap::new();
        for name in fs.xattrs(ino)? {
            xattrs.insert(name.to_vec(), fs.xattr(ino, &name)?.to_vec());
        }
        let line = line(attributes.mode, attributes.nlink, &content, &xattrs);
        seen.insert(ino, line);
    }
    Ok(seen)
}

/// A check of everything finds nothing.
pub fn assert_clean(fs: &FileSystem) {
    let findings = fs.check(true);
    assert!(findings.errors.is_empty(), "{:?}", findings.details);
}
