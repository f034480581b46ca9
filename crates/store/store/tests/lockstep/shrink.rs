//! Shortens a failing list of steps as long as it still fails.

/// A shorter list that still fails: leaves out pieces, large ones first, until `work` elements have been tried.
pub fn shrink<T: Clone>(
    mut list: Vec<T>,
    work: usize,
    mut fails: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut left = work;
    let mut piece = list.len().div_ceil(2);
    while piece > 0 {
        let before = list.len();
        let mut at = 0;
        while at < list.len() && left > 0 {
            let end = (at + piece).min(list.len());
            let shorter = [&list[..at], &list[end..]].concat();
            left = left.saturating_sub(shorter.len());
            if fails(&shorter) {
                list = shorter;
            } else {
                at = end;
            }
        }
        // Repeats single elements as long as one can be left out.
        piece = if piece == 1 && list.len() < before {
            1
        } else {
            piece / 2
        };
        if left == 0 {
            break;
        }
    }
    list
}

#[test]
fn what_makes_a_list_fail_is_left() {
    let list: Vec<u32> = (0..1000).collect();
    let mut tries = 0;
    let left = shrink(list, 100_000, |list| {
        tries += 1;
        [3, 500, 998].iter().all(|wanted| list.contains(wanted))
    });
    assert_eq!(left, [3, 500, 998]);
    assert!(tries < 200, "{tries}");
}
