//! How many zones the file system is promised: a pure function, so that capacity moves seldom and
//! in small steps while metadata comes and goes.

/// The next promise to the file system, in zones.
///
/// It has `owned` zones and must always find `headroom` more. The promise stays as it is as long as
/// that holds and no more than a whole headroom lies idle above it, so that what compaction takes
/// and gives back moves nothing; it changes by steps of half a headroom; it is never below two
/// headrooms, and never above `ceiling`, which is what live data leaves.
pub fn promised_zones(previous: u32, owned: u32, headroom: u32, ceiling: u32) -> u32 {
    let step = (headroom / 2).max(1);
    let needed = (owned + headroom).next_multiple_of(step);
    let next = if previous < needed || previous > needed + headroom {
        needed
    } else {
        previous
    };
    next.max(2 * headroom).min(ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compaction_takes_and_gives_back_moves_nothing() {
        let mut promise = promised_zones(0, 13, 6, 100);
        assert_eq!(promise, 21);
        for owned in [14, 15, 12, 10, 15, 13] {
            promise = promised_zones(promise, owned, 6, 100);
            assert_eq!(promise, 21);
        }
        promise = promised_zones(promise, 16, 6, 100);
        assert_eq!(promise, 24);
        assert_eq!(promised_zones(promise, 11, 6, 100), 24);
        assert_eq!(promised_zones(promise, 9, 6, 100), 15);
        assert_eq!(promised_zones(promise, 2, 6, 100), 12);
    }

    #[test]
    fn live_data_is_never_promised_away() {
        assert_eq!(promised_zones(21, 40, 6, 30), 30);
        assert_eq!(promised_zones(0, 0, 6, 3), 3);
    }
}
