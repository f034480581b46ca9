//! Conversions between the types of FUSE and those of the file system.

use fuser::{Errno, FileAttr, FileType, INodeNo, RenameFlags, TimeOrNow};
use smrfs::{Attributes, Error, Rename, SetTime, Time};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The errno of an error.
pub fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}

/// A time as [`SystemTime`]; one that the host cannot represent becomes the beginning of 1970.
pub fn system_time(time: Time) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let start = match time.seconds < 0 {
        true => UNIX_EPOCH.checked_sub(whole),
        false => UNIX_EPOCH.checked_add(whole),
    };
    let nanos = Duration::from_nanos(time.nanos.into());
    start
        .and_then(|start| start.checked_add(nanos))
        .unwrap_or(UNIX_EPOCH)
}

/// A time from the kernel. For times before 1970, `fuser` subtracts the nanoseconds from the second to which they
/// should be added.
pub fn time(time: SystemTime) -> Time {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time {
            seconds: seconds(since),
            nanos: since.subsec_nanos(),
        },
        Err(before) => Time {
            seconds: -seconds(before.duration()),
            nanos: before.duration().subsec_nanos(),
        },
    }
}

/// A requested change of a time.
pub fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(moment) => SetTime::To(self::time(moment)),
    }
}

/// The file type of the kind bits in `mode`.
pub const fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

/// Attributes as `stat` returns them.
pub fn attributes(attributes: &Attributes, sectors: u64, block_size: u32) -> FileAttr {
    FileAttr {
        ino: INodeNo(attributes.ino),
        size: attributes.size,
        blocks: sectors,
        atime: system_time(attributes.atime),
        mtime: system_time(attributes.mtime),
        ctime: system_time(attributes.ctime),
        crtime: system_time(attributes.btime),
        kind: kind(attributes.mode),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: attributes.nlink,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: attributes.rdev,
        blksize: block_size,
        flags: 0,
    }
}

/// The behaviour that rename flags ask for; `None` if they are not supported.
pub fn rename(flags: RenameFlags) -> Option<Rename> {
    match flags {
        RenameFlags::RENAME_NOREPLACE => Some(Rename::NoReplace),
        RenameFlags::RENAME_EXCHANGE => Some(Rename::Exchange),
        none if none.is_empty() => Some(Rename::Replace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_before_1970_are_what_the_kernel_meant() {
        for (seconds, nanos) in [
            (0, 0),
            (-1, 999_999_999),
            (-5, 0),
            (1 << 33, 1),
            (-(1 << 31), 7),
        ] {
            let moment = Time { seconds, nanos };
            let of_fuser = match u64::try_from(seconds) {
                Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, nanos),
                Err(_) => UNIX_EPOCH - Duration::new(seconds.unsigned_abs(), nanos),
            };
            assert_eq!(time(of_fuser), moment);
        }
        let shown = system_time(Time {
            seconds: -10,
            nanos: 250_000_000,
        });
        assert_eq!(shown, UNIX_EPOCH - Duration::from_millis(9750));
    }
}
