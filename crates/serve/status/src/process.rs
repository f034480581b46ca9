//! Memory and file descriptors of this process, from `/proc`.

use std::fs;

/// Resources of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub(crate) struct Process {
    /// Bytes of resident memory.
    pub resident_memory_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
}

impl Process {
    /// Values not in `/proc` are `None`.
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status");
        let fds = fs::read_dir("/proc/self/fd").map(|fds| fds.count() as u64);
        Self {
            resident_memory_bytes: status.ok().and_then(|text| resident(&text)),
            open_fds: fds.ok(),
        }
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t  2048 kB\n"), Some(2 << 20));
        assert_eq!(resident("VmRSS:\tmuch\n"), None);
        assert!(Process::now().resident_memory_bytes.is_some());
    }
}
