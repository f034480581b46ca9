//! The memory that this process may use, from `/proc` and control groups.

use std::fs;
use std::path::Path;

/// Bytes of memory that this process may use: the host's memory, or the limit of its control group or of its
/// address space (`ulimit -v`) if that is less. 0 if the host does not tell.
pub fn memory_bytes() -> u64 {
    memory_below(Path::new("/"))
}

/// As [`memory_bytes`], for a host whose root directory is `root`.
fn memory_below(root: &Path) -> u64 {
    let read = |path: &str| fs::read_to_string(root.join(path.trim_start_matches('/'))).ok();
    let total = read("proc/meminfo").and_then(|text| total(&text));
    let groups = read("proc/self/cgroup").unwrap_or_default();
    // One group in each line: NUMBER:CONTROLLERS:PATH, and `0::PATH` in version 2. A group's limit also holds for those
    // below it. In a container the paths may be the host's, and the container's own group is the root.
    let limits = read("proc/self/limits").unwrap_or_default();
    let mut least = total.unwrap_or(u64::MAX).min(address_space(&limits));
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for group in Path::new(path).ancestors() {
            let file = format!("{mount}{}/{file}", group.display());
            let limit = read(&file).and_then(|text| text.trim().parse().ok());
            least = least.min(limit.unwrap_or(u64::MAX));
        }
    }
    if least == u64::MAX { 0 } else { least }
}

/// Bytes of memory in the text of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The soft limit of the address space in the text of `/proc/self/limits`.
fn address_space(limits: &str) -> u64 {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    soft.and_then(|soft| soft.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_below(root.path())
    }

    const HOST: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:        2000 kB\nMemFree:          900 kB\n",
    );
    const SELF: &str = "proc/self/cgroup";

    #[test]
    fn the_host_or_the_lowest_limit_of_a_group_decides() {
        assert_eq!(of(&[HOST]), 2000 << 10);
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[("proc/meminfo", "MemTotal: many")]), 0);
        let limit = |soft: &str| {
            let line =
                format!("Max address space         {soft}            unlimited            bytes\n");
            of(&[HOST, ("proc/self/limits", &line)])
        };
        assert_eq!((limit("524288"), limit("unlimited")), (524_288, 2000 << 10));
        let group = |path, limit| of(&[HOST, (SELF, "0::/a/b\n"), (path, limit)]);
        assert_eq!(group("sys/fs/cgroup/a/b/memory.max", "700000\n"), 700_000);
        assert_eq!(group("sys/fs/cgroup/a/memory.max", "700000\n"), 700_000);
        assert_eq!(group("sys/fs/cgroup/memory.max", "700000\n"), 700_000);
        assert_eq!(group("sys/fs/cgroup/c/memory.max", "700000\n"), 2000 << 10);
        assert_eq!(group("sys/fs/cgroup/a/memory.max", "max\n"), 2000 << 10);
        let first = of(&[
            HOST,
            (SELF, "7:cpu:/x\n4:memory:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000"),
        ]);
        assert_eq!(first, 5000);
    }

    #[test]
    fn this_host_says() {
        assert!(memory_bytes() > 16 << 20);
    }
}
