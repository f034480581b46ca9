//! How many zones are reserved for the file system: a pure function, so that capacity moves seldom and
//! in small steps while metadata comes and goes.

/// The next reservation for the file system, in zones.
///
/// What it stores fills `owned` zones, and it is to find `headroom` more. The reservation stays as it is as long as
/// three quarters of the headroom are left and no whole step lies idle above it; a step is half a headroom.
pub fn reserved_zones(previous: u32, owned: u32, headroom: u32) -> u32 {
    let step = (headroom / 2).max(1);
    let needed = (owned + headroom).next_multiple_of(step);
    let least = owned + headroom - headroom / 4;
    if previous < least || previous > needed {
        needed
    } else {
        previous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_more_or_less_moves_nothing() {
        let mut reservation = reserved_zones(0, 13, 8);
        assert_eq!(reservation, 24);
        for owned in [14, 18, 13, 16] {
            reservation = reserved_zones(reservation, owned, 8);
            assert_eq!(reservation, 24);
        }
        reservation = reserved_zones(reservation, 19, 8);
        assert_eq!(reservation, 28);
        assert_eq!(reserved_zones(reservation, 17, 8), 28);
        assert_eq!(reserved_zones(reservation, 16, 8), 24);
        assert_eq!(reserved_zones(reservation, 2, 8), 12);
    }
}
