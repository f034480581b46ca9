//! Strokes of gigabytes on one surface, which become smaller inwards: of the geometry that profiles make, without a
//! request.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use drive_model::mechanics::Geometry;
use drive_model::{Profile, ProfileError};

/// A drive, and its largest and smallest stroke in GiB.
const DRIVES: [(&str, f64, f64); 2] = [("st5000as0011", 20.0, 4.0), ("st8000as0002", 40.0, 5.0)];

pub const FIGURE_2_25: Experiment = Experiment {
    id: "figure-2.25",
    title: "Strokes of the profiles' geometry become smaller inwards and run as printed",
    source: "CMU-CS-20-130, section 2.4.12 and table 2.3; of the profiles, without a request (table-2.3 has what test 14 finds)",
    expected: || {
        let mut all = Vec::new();
        for (name, outermost, innermost) in DRIVES {
            all.extend([
                Expected::value(format!("{name}: largest stroke"), "GiB", outermost).by(0.5),
                Expected::value(format!("{name}: smallest stroke"), "GiB", innermost).by(0.5),
            ]);
            let rows = [
                Expected::yes(format!("{name}: strokes of a zone are on one surface")),
                Expected::yes(format!("{name}: mean strokes shrink from zone to zone")),
                Expected::yes(format!("{name}: all run inwards at the outer diameter")),
                Expected::no(format!("{name}: one runs inwards at the inner diameter")),
                Expected::yes(format!("{name}: to and fro in the middle")),
            ];
            // The figure is of the drive with a window in its lid alone.
            let of_figure = name == DRIVES[0].0;
            all.extend(rows.map(|row| if of_figure { row } else { row.ours() }));
        }
        // «18–20 GiB».
        let zoom = "st5000as0011: strokes of the first two zones";
        all.extend([
            Expected::range(format!("{zoom}, least"), "GiB", 18.0, 20.0).by(0.5),
            Expected::range(format!("{zoom}, most"), "GiB", 18.0, 20.0).by(0.5),
        ]);
        all
    },
    measure,
};

/// The strokes of one recording zone.
struct Zone {
    /// Size of each stroke in GiB.
    sizes: Vec<f64>,
    /// For each stroke, whether it runs from the rim to the hub.
    inwards: Vec<bool>,
    is_in_the_middle: bool,
    /// Whether no stroke changes the surface.
    is_one_surface_each: bool,
}

fn zones(name: &str) -> Result<Vec<Zone>, Stopped> {
    let shape = Profile::named(name)?.shape;
    let geometry = Geometry::new(&shape).map_err(ProfileError::from)?;
    let mut zones = Vec::new();
    for zone in geometry.recording_zones() {
        let mut first = zone.first;
        let mut found = Zone {
            sizes: Vec::new(),
            inwards: Vec::new(),
            is_in_the_middle: false,
            is_one_surface_each: true,
        };
        for stroke in 0..shape.heads {
            let begin = geometry.place(first).track;
            let blocks = u64::from(begin.blocks * zone.cylinders);
            let end = geometry.place(first.plus(blocks - 1)).track;
            found.is_one_surface_each &= begin.head == end.head;
            found.sizes.push(blocks as f64 / 262_144.0);
            found.inwards.push(begin.cylinder < end.cylinder);
            if stroke == 0 {
                let both = (begin.cylinder.min(end.cylinder))..=(begin.cylinder.max(end.cylinder));
                found.is_in_the_middle = both.contains(&(shape.cylinders / 2));
            }
            first = first.plus(blocks);
        }
        found.is_one_surface_each &= first.0 == zone.first.0 + zone.blocks;
        zones.push(found);
    }
    Ok(zones)
}

fn measure(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let least = |sizes: &[f64]| sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |sizes: &[f64]| sizes.iter().copied().fold(0.0, f64::max);
    let mut measured = Vec::new();
    let mut zoom = Vec::new();
    for (name, ..) in DRIVES {
        run.next(name)?;
        let zones = zones(name)?;
        let sizes: Vec<f64> = zones.iter().flat_map(|zone| zone.sizes.clone()).collect();
        let sums: Vec<f64> = zones.iter().map(|zone| zone.sizes.iter().sum()).collect();
        let all = |zone: Option<&Zone>| zone.is_some_and(|zone| zone.inwards.iter().all(|i| *i));
        let any = |zone: Option<&Zone>| zone.is_some_and(|zone| zone.inwards.contains(&true));
        let middle = zones.iter().find(|zone| zone.is_in_the_middle);
        let turns = |zone: &Zone| zone.inwards.windows(2).all(|pair| pair[0] != pair[1]);
        measured.extend([most(&sizes), least(&sizes)]);
        measured.extend(
            [
                zones.iter().all(|zone| zone.is_one_surface_each),
                sums.windows(2).all(|pair| pair[1] < pair[0]),
                all(zones.first()),
                any(zones.last()),
                middle.is_some_and(turns),
            ]
            .map(f64::from),
        );
        if zoom.is_empty() {
            zoom = zones.iter().take(2).flat_map(|z| z.sizes.clone()).collect();
        }
    }
    measured.extend([least(&zoom), most(&zoom)]);
    Ok(measured.into())
}
