//! CPU time of this process.

/// Clock ticks a second in the kernel's answers to programs, on all machines (`USER_HZ`).
const TICKS: f64 = 100.0;

/// CPU time of all threads in seconds, of the program and of the kernel for it; 0 where the kernel does not tell.
pub fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    parse(&stat).unwrap_or(0) as f64 / TICKS
}

/// Clock ticks: the sum of fields 14 and 15. Field 2 is a name in brackets that may contain any character.
fn parse(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 95 0 0 0 12 30 0 0 20 0 1 0 5 2 1";
        assert_eq!(parse(stat), Some(42));
        assert_eq!(parse("7 (a"), None);
    }
}
