//! Compares findings with the properties of a drive, and counts over many drives how often they are right.

use super::Hidden;
use skylight::Findings;
use skylight::finding::{DriveType, Finding, Size};

/// A property that was found, or not.
#[derive(Debug)]
pub struct Said {
    pub what: &'static str,
    /// `None` if it was not found.
    pub right: Option<bool>,
    /// Confidence of the finding, if it has one.
    pub confidence: Option<f64>,
    /// Relative error of a size.
    pub off: f64,
}

/// Judges a finding. If the drive does not have the property, nothing should be found: then the answer is `None`.
fn said<T: PartialEq>(
    what: &'static str,
    said: Option<Finding<T>>,
    is: &Option<T>,
) -> Option<Said> {
    let confidence = said.as_ref().map(|said| said.confidence);
    let right = said.map(|said| Some(said.value) == *is);
    (is.is_some() || right.is_some()).then_some(Said {
        what,
        right,
        confidence,
        off: 0.0,
    })
}

/// The same for a property that is known of some drives only; `None` for the others.
fn known<T: PartialEq>(
    what: &'static str,
    found: Option<Finding<T>>,
    is: &Option<T>,
) -> Option<Said> {
    is.as_ref().and(said(what, found, is))
}

fn size(what: &'static str, found: Option<f64>, is: f64, most: f64) -> Said {
    let off = found.map(|found| (found / is - 1.0).abs());
    Said {
        what,
        right: off.map(|off| off < most),
        confidence: None,
        off: off.unwrap_or(0.0),
    }
}

/// Judges a size that was found, or a lower limit, which must not be too large.
fn limit(names: [&'static str; 2], found: Option<Size>, unit: u64, is: u64) -> Said {
    let value = found.map(|size| (size.value / unit) as f64);
    if found.is_some_and(|size| size.at_least.is_some()) {
        return size(
            names[1],
            value.map(|value| value.max(is as f64)),
            is as f64,
            0.01,
        );
    }
    size(names[0], value, is as f64, 0.01)
}

/// Judges all findings on a drive.
pub fn judge(found: &Findings, hidden: &Hidden) -> Vec<Said> {
    let mut all: Vec<Option<Said>> = vec![
        said("drive type", found.drive_type, &Some(hidden.kind)),
        said("cache type", found.cache_type, &hidden.cache),
        said("cleaning", found.cleaning, &hidden.cleaning),
        said("mapping", found.mapping, &hidden.mapping),
        said("cache place", found.cache_place, &hidden.place),
        said("surfaces", found.surfaces, &Some(hidden.heads)),
    ];
    if hidden.kind == DriveType::DriveManaged {
        all.extend(managed(found, hidden));
    }
    all.into_iter().flatten().collect()
}

fn managed(found: &Findings, hidden: &Hidden) -> Vec<Option<Said>> {
    let serpentine = found.serpentine_middle;
    let mut all = vec![
        known("order of cleaning", found.fifo, &hidden.fifo),
        said("torn writes", found.torn_writes, &Some(hidden.torn)),
        known("strokes at the MD", serpentine, &hidden.serpentine),
        // Where strokes run to and fro everywhere, there is no direction.
        said("direction", found.shingling, &hidden.shingling),
    ];
    if let Some(entries) = hidden.map_entries {
        all.push(said("circular log", found.circular_log, &Some(true)));
        let names = ["size of the map", "size of the map, at least"];
        all.push(Some(limit(names, found.map_entries, 1, entries)));
    }
    let names = ["size of the cache", "size of the cache, at least"];
    all.push(Some(limit(
        names,
        found.cache_bytes,
        4096,
        hidden.cache_blocks,
    )));
    let bands: Vec<f64> = (found.band_bytes.iter().zip(&hidden.bands))
        .filter_map(|(bytes, band)| Some((*bytes)? as f64 / 4096.0 / *band as f64))
        .collect();
    if !hidden.bands.is_empty() {
        let farthest = bands.iter().copied();
        let farthest = farthest.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
        all.push(Some(size(
            "size of a band",
            farthest.filter(|_| bands.len() == 3),
            1.0,
            0.01,
        )));
    }
    if let Some(ms) = hidden.band_ms {
        // Bands further in take up to twice as long, and only those that are cleaned first are timed.
        all.push(Some(size(
            "time of a band",
            found.band_cleaning_ms,
            ms,
            0.3,
        )));
        let one = found.band_cleaning_ms;
        let times = one.zip(found.band_cleaning_many_ms);
        all.push(Some(Said {
            what: "more of a band takes longer",
            right: times.map(|(one, many)| many > 0.8 * one),
            confidence: None,
            off: times.map_or(0.0, |(one, many)| 1.0 - many / one),
        }));
    }
    all
}

/// The judged findings on many drives.
#[derive(Default)]
pub struct Record {
    said: Vec<Said>,
    wrong: Vec<String>,
}

impl Record {
    /// Adds the findings on the drive of this seed.
    pub fn add(&mut self, seed: u64, found: &Findings, hidden: &Hidden) {
        for said in judge(found, hidden) {
            if said.right == Some(false) {
                println!("seed {seed}: {said:?}\n    {hidden:?}\n    {found:?}");
            }
            self.push(seed, said);
        }
    }

    /// Adds one finding on a drive.
    pub fn add_one<T: PartialEq>(
        &mut self,
        seed: u64,
        what: &'static str,
        found: Option<Finding<T>>,
        is: &Option<T>,
    ) {
        if let Some(said) = said(what, found, is) {
            self.push(seed, said);
        }
    }

    fn push(&mut self, seed: u64, said: Said) {
        let Said {
            what,
            right,
            confidence,
            off,
        } = &said;
        println!("= {seed}|{what}|{right:?}|{confidence:?}|{off:.4}");
        if said.right == Some(false) {
            self.wrong.push(format!("seed {seed}: {said:?}"));
        }
        self.said.push(said);
    }

    /// On how many drives the property was found, and how many drives have it.
    pub fn said(&self, what: &str) -> (usize, usize) {
        let of = |said: &&Said| said.what == what || said.what.starts_with(&format!("{what}, "));
        let all = self.said.iter().filter(of);
        let said = self
            .said
            .iter()
            .filter(|said| said.what == what && said.right.is_some());
        (said.count(), all.count())
    }

    /// Prints how often each property was found, and how often rightly. Returns what is wrong: wrong findings, and
    /// properties of which fewer are right than their confidences add up to, by more than two standard deviations.
    pub fn verdict(&self) -> Vec<String> {
        let mut names: Vec<&str> = self.said.iter().map(|said| said.what).collect();
        names.sort_unstable();
        names.dedup();
        let mut wrong = self.wrong.clone();
        for what in names {
            let all: Vec<&Said> = self.said.iter().filter(|said| said.what == what).collect();
            for (from, to) in [(0.0, 0.8), (0.8, 0.95), (0.95, 1.0), (1.0, 2.0)] {
                let said = all
                    .iter()
                    .filter_map(|said| Some((said.confidence?, said.right?)));
                let said = said.filter(|(p, _)| (from..to).contains(p));
                let said: Vec<(f64, bool)> = said.collect();
                let sum: f64 = said.iter().map(|(p, _)| p).sum();
                let chance: f64 = said.iter().map(|(p, _)| p * (1.0 - p)).sum();
                let right = said.iter().filter(|(_, right)| *right).count();
                if !said.is_empty() {
                    println!("with {from} to {to}|{what}|{}|{sum:.2}|{right}", said.len());
                }
                if sum > right as f64 + 2.0 * chance.max(0.0).sqrt() + 1e-9 {
                    wrong.push(format!("{what}: {right} right of {said:?}"));
                }
            }
            let right = all.iter().filter(|said| said.right == Some(true)).count();
            let said = all.iter().filter(|said| said.right.is_some()).count();
            let off = all.iter().map(|said| said.off).fold(0.0, f64::max);
            println!(
                "said|{what}|{}|{said}|{right}|{:.2} % off",
                all.len(),
                off * 100.0
            );
        }
        wrong
    }
}
