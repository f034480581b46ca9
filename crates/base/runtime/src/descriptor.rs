//! The host's names for files that this process has open.

use std::fs;
use std::path::Path;

/// Descriptor of the open file of this process that the path names, as `/dev/stdout`, `/dev/fd/1` and `/proc/self/fd/1`
/// name standard output. Opened by such a name, a file is written over from its start. `None` for other paths, also of a
/// file that is open.
pub fn descriptor(path: &Path) -> Option<u32> {
    let own = fs::canonicalize("/proc/self").ok()?;
    let mut at = path.to_owned();
    // As many links as the kernel follows.
    for _ in 0..40 {
        let folder = at.parent().filter(|folder| *folder != Path::new(""));
        let within = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        if within.starts_with(&own) && within.ends_with("fd") {
            return at.file_name()?.to_str()?.parse().ok();
        }
        at = within.join(fs::read_link(&at).ok()?);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_output_is_known_by_all_its_names() {
        for name in [
            "/dev/stdout",
            "/dev/fd/1",
            "/proc/self/fd/1",
            "/proc/thread-self/fd/1",
        ] {
            assert_eq!(descriptor(Path::new(name)), Some(1), "{name}");
        }
        assert_eq!(descriptor(Path::new("/dev/stderr")), Some(2));
        for name in ["/dev/null", "/proc/self/fd", "1", "-", ""] {
            assert_eq!(descriptor(Path::new(name)), None, "{name}");
        }
    }
}
