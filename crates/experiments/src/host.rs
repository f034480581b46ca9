//! What a host sees of completions: end and latencies. Drives for loads of another size.

use drive_model::layer::LayerShape;
use drive_model::{Completion, Lba, Random, Request, Span, Time};

/// When the last request completed; [`Time::START`] if there is none.
pub fn end(completions: &[Completion]) -> Time {
    let all = completions.iter().map(|c| c.at);
    all.max().unwrap_or(Time::START)
}

/// The time `millis` milliseconds after the last completion.
pub fn after(completions: &[Completion], millis: f64) -> Time {
    end(completions) + Span::from_millis(millis)
}

/// Latencies in milliseconds.
pub fn millis(completions: &[Completion]) -> Vec<f64> {
    completions.iter().map(|c| c.latency().millis()).collect()
}

/// Single-block writes at random places of a drive of `blocks` blocks.
pub fn random_writes(
    random: &mut Random,
    blocks: u64,
    count: u64,
) -> impl Iterator<Item = Request> + use<'_> {
    (0..count).map(move |_| Request::write(Lba(random.below(blocks)), 1))
}

/// Gives a drive the share `part` of its persistent cache: of each limit at which the layer cleans because it is full.
pub fn scale_cache(layer: &mut LayerShape, part: f64) {
    let scale = |count: &mut u32| *count = (f64::from(*count) * part) as u32;
    match layer {
        LayerShape::Seagate(layer) => {
            scale(&mut layer.cache_half_tracks);
            scale(&mut layer.cache_payload_blocks);
            scale(&mut layer.map_extents);
        }
        LayerShape::FullyAssociative(layer) => {
            scale(&mut layer.zone_cache_bands);
            layer.map_extents.iter_mut().for_each(scale);
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive_model::Profile;

    #[test]
    fn each_limit_of_a_cache_is_scaled() {
        let tenth = |name| {
            let mut layer = Profile::named(name).unwrap().layer;
            scale_cache(&mut layer, 0.1);
            layer
        };
        let LayerShape::Seagate(layer) = tenth("st8000as0002") else {
            panic!("another layer");
        };
        let limits = [
            layer.cache_half_tracks,
            layer.cache_payload_blocks,
            layer.map_extents,
        ];
        assert_eq!(limits, [14_250, 550_500, 22_780]);
        let LayerShape::FullyAssociative(layer) = tenth("wd40nmzw") else {
            panic!("another layer");
        };
        assert_eq!(
            (layer.zone_cache_bands, layer.map_extents),
            (38, Some(50_000))
        );
    }
}
