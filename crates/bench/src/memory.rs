//! Peak memory of this process.

/// The peak of the resident set in bytes, as the kernel counts it; `None` where it does not say.
pub fn peak_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_found_in_the_kernels_words() {
        assert_eq!(parse("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(parse("Name:\tx\n"), None);
        assert!(peak_bytes().is_some_and(|bytes| bytes > 0));
    }
}
