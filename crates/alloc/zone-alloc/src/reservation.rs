//! How many zones are reserved for the file system: a pure function, so that capacity moves seldom and
//! in small steps while metadata comes and goes.

/// The next reservation for the file system, in zones.
///
/// It does with `owned` zones and must always find `headroom` more. The reservation stays as it is as long as
/// that holds and no more than a whole headroom lies idle above it, so that what compaction takes
/// and gives back moves nothing; it changes by steps of half a headroom.
pub fn reserved_zones(previous: u32, owned: u32, headroom: u32) -> u32 {
    let step = (headroom / 2).max(1);
    let needed = (owned + headroom).next_multiple_of(step);
    if previous < needed || previous > needed + headroom {
        needed
    } else {
        previous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compaction_takes_and_gives_back_moves_nothing() {
        let mut reservation = reserved_zones(0, 13, 6);
        assert_eq!(reservation, 21);
        for owned in [14, 15, 12, 10, 15, 13] {
            reservation = reserved_zones(reservation, owned, 6);
            assert_eq!(reservation, 21);
        }
        reservation = reserved_zones(reservation, 16, 6);
        assert_eq!(reservation, 24);
        assert_eq!(reserved_zones(reservation, 11, 6), 24);
        assert_eq!(reserved_zones(reservation, 9, 6), 15);
        assert_eq!(reserved_zones(reservation, 2, 6), 9);
    }
}
