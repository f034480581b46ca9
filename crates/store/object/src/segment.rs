//! An object's segments: which maps it shows, and how writing and truncating change that.
//!
//! Most objects have one segment; an object assembled of parts has one for each. A map belongs to one segment of one
//! object, and holds nothing beyond that segment's end.

/// `length` bytes of a map from its offset `start` on, as a part of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The map's number.
    pub map: u64,
    /// First byte shown.
    pub start: u64,
    /// Bytes shown; at least one.
    pub length: u64,
}

/// The bytes `from..to` of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The map's number.
    pub map: u64,
    /// First byte.
    pub from: u64,
    /// End: the offset after the last byte.
    pub to: u64,
}

/// Size in bytes of an object with these segments.
pub fn size(segments: &[Segment]) -> u64 {
    segments.iter().map(|s| s.length).sum()
}

/// The spans of maps with the object's bytes `from..to`, in order.
pub fn spans(segments: &[Segment], from: u64, to: u64) -> Vec<Span> {
    let mut begins = 0;
    let mut found = Vec::new();
    for segment in segments {
        let ends = begins + segment.length;
        let (low, high) = (from.max(begins), to.min(ends));
        if low < high {
            let at = |offset| segment.start + (offset - begins);
            let (map, from, to) = (segment.map, at(low), at(high));
            found.push(Span { map, from, to });
        }
        begins = ends;
    }
    found
}

/// Makes room for new bytes at `from..to`, which begin inside the object and may reach beyond its end.
///
/// Returns the span for them, in one map: the map of the first segment that they touch grows, and later segments
/// shrink. The bytes that they replace ([`spans`] of the old segments) have to be cut from their maps first.
pub fn overwrite(segments: &mut Vec<Segment>, from: u64, to: u64) -> Option<Span> {
    let mut begins = 0;
    let mut target: Option<Span> = None;
    for segment in segments.iter_mut() {
        let ends = begins + segment.length;
        if from < ends && begins < to {
            match target {
                None => {
                    let at = segment.start + (from - begins);
                    let end = at + (to - from);
                    segment.length = segment.length.max(end - segment.start);
                    let map = segment.map;
                    target = Some(Span {
                        map,
                        from: at,
                        to: end,
                    });
                }
                Some(_) => {
                    let gone = to.min(ends) - begins;
                    segment.start += gone;
                    segment.length -= gone;
                }
            }
        }
        begins = ends;
    }
    segments.retain(|s| s.length > 0);
    target
}

/// Shortens an object to `new_size` bytes, at most its size. Returns the segments that are removed as a whole, and the
/// span that has to be cut from the map of the last one that stays.
pub fn shorten(segments: &mut Vec<Segment>, new_size: u64) -> (Vec<Segment>, Option<Span>) {
    let mut left = new_size;
    let kept = segments.iter().take_while(|s| {
        let stays = left > 0;
        left = left.saturating_sub(s.length);
        stays
    });
    let kept = kept.count();
    let gone = segments.split_off(kept);
    let surplus = size(segments) - new_size;
    let cut = segments.last_mut().filter(|_| surplus > 0).map(|last| {
        let to = last.start + last.length;
        last.length -= surplus;
        let (map, from) = (last.map, to - surplus);
        Span { map, from, to }
    });
    (gone, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn segment(map: u64, start: u64, length: u64) -> Segment {
        Segment { map, start, length }
    }

    const fn span(map: u64, from: u64, to: u64) -> Span {
        Span { map, from, to }
    }

    #[test]
    fn an_overwrite_stays_in_the_map_that_it_begins_in() {
        let old = vec![segment(1, 0, 10), segment(2, 5, 10), segment(3, 0, 10)];
        assert_eq!(
            spans(&old, 8, 22),
            [span(1, 8, 10), span(2, 5, 15), span(3, 0, 2)]
        );
        let mut new = old.clone();
        assert_eq!(overwrite(&mut new, 8, 22), Some(span(1, 8, 22)));
        assert_eq!(new, [segment(1, 0, 22), segment(3, 2, 8)]);
        let mut new = old.clone();
        assert_eq!(overwrite(&mut new, 25, 40), Some(span(3, 5, 20)));
        assert_eq!(size(&new), 40);
    }

    #[test]
    fn shortening_cuts_one_map_and_drops_the_rest() {
        let old = vec![segment(1, 0, 10), segment(2, 5, 10), segment(3, 0, 10)];
        let mut new = old.clone();
        let (gone, cut) = shorten(&mut new, 13);
        assert_eq!((gone, cut), (vec![old[2]], Some(span(2, 8, 15))));
        assert_eq!(new, [old[0], segment(2, 5, 3)]);
        let mut new = old.clone();
        assert_eq!(shorten(&mut new, 20), (vec![old[2]], None));
        let mut new = old.clone();
        assert_eq!(shorten(&mut new, 0), (old, None));
        assert!(new.is_empty());
    }
}
