//! The list of all experiments, and the lookup by id.

use crate::experiment::Experiment;
use crate::{
    block_interface_tax, cache_place, caveat_tables, cleaning_policies, cleaning_time, cliff,
    cluster, drive_type, ext4_lazy, ext4_postmark, object_creation, persistent_cache, reliability,
    skylight_tables, smrfs_cleaning, smrfs_figures, store_capacity, store_cleaning, store_latency,
    translation_layers, zea, zea_leveldb, zn540, zone_structure,
};
use serde::Serialize;

/// An experiment in a list.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Name on the command line.
    pub id: &'static str,
    /// The result that it shows, in a sentence.
    pub title: &'static str,
    /// Where it is printed: paper and section.
    pub source: &'static str,
    /// The quantities that are measured again.
    pub numbers: Vec<String>,
}

/// All experiments for a list.
pub fn listed() -> Vec<Listed> {
    let listed = |experiment: &Experiment| Listed {
        id: experiment.id,
        title: experiment.title,
        source: experiment.source,
        numbers: (experiment.expected)()
            .into_iter()
            .map(|row| row.what.to_string())
            .collect(),
    };
    ALL.iter().map(listed).collect()
}

/// All experiments: those of the thesis CMU-CS-20-130 in its order, then the others by subject.
pub const ALL: &[Experiment] = &[
    skylight_tables::TABLE_2_1,
    drive_type::FIGURE_2_4,
    drive_type::FIGURE_2_6,
    drive_type::FIGURE_2_7,
    cache_place::FIGURE_2_8,
    cleaning_time::FIGURE_2_10,
    persistent_cache::TABLE_2_2,
    persistent_cache::FIGURE_2_16,
    cleaning_time::SECTION_2_4_9,
    reliability::TORN_WRITES,
    reliability::STREAMING,
    zone_structure::FIGURE_2_25,
    skylight_tables::TABLE_2_3,
    skylight_tables::WD40NMZW,
    skylight_tables::KINDS,
    cliff::FIGURE_3_1,
    object_creation::FIGURE_4_3,
    block_interface_tax::FIGURE_5_11,
    block_interface_tax::FIGURE_5_12,
    cluster::FIGURE_5_13_A,
    cluster::FIGURE_5_13_B,
    cluster::FIGURE_5_14,
    translation_layers::CLOSED_FORMS,
    cleaning_policies::UNIFORM,
    cleaning_policies::SEPARATED,
    cleaning_policies::INFERRED_LIFETIMES,
    store_capacity::CAPACITY,
    store_cleaning::STORE,
    store_latency::LATENCY,
    zea::FIGURE_2A,
    zea::FIGURE_2BC,
    zea_leveldb::FIGURE_4,
    zn540::FINISH,
    zn540::RESET,
    zn540::RATES,
    ext4_lazy::TABLE_3_2,
    ext4_lazy::FIGURE_3_5,
    ext4_lazy::FIGURE_3_7,
    ext4_lazy::FIGURE_3_11,
    ext4_postmark::TABLE_3_3,
    ext4_postmark::FIGURE_3_13,
    ext4_lazy::SECTION_3_4_4,
    caveat_tables::TABLE_5_1,
    caveat_tables::TABLE_5_2,
    smrfs_figures::LARGE_FILES,
    smrfs_figures::SMALL_FILES,
    smrfs_cleaning::CLEANING,
];

/// The experiment of this id.
pub fn find(id: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.id == id)
}

/// No experiment has this id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The unknown id.
    pub id: String,
    /// A known id that is similar, if there is one.
    pub meant: Option<&'static str>,
}

/// The experiments of these ids; all if `ids` is empty.
///
/// # Errors
/// An id is unknown.
pub fn chosen(ids: &[String]) -> Result<Vec<&'static Experiment>, Unknown> {
    if ids.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let known = |id: &String| {
        find(id).ok_or_else(|| Unknown {
            id: id.clone(),
            meant: nearest(id),
        })
    };
    ids.iter().map(known).collect()
}

/// The known id that is most similar to `id`, if it is similar enough.
fn nearest(id: &str) -> Option<&'static str> {
    let like = |e: &Experiment| strsim::jaro_winkler(e.id, id);
    let nearest = ALL.iter().max_by(|a, b| like(a).total_cmp(&like(b)));
    nearest.filter(|e| like(e) > 0.8).map(|e| e.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_id_and_expects_something() {
        for (n, experiment) in ALL.iter().enumerate() {
            let place = ALL.iter().position(|other| other.id == experiment.id);
            assert_eq!(place, Some(n), "{} is there twice", experiment.id);
            let rows = (experiment.expected)();
            assert!(!rows.is_empty(), "{}", experiment.id);
            assert!(
                rows.iter().all(|row| row.low <= row.high),
                "{}",
                experiment.id
            );
        }
        assert!(find("table-9.9").is_none());
        assert_eq!(nearest("tabel-2.1"), Some("table-2.1"));
        assert_eq!(nearest("zz"), None);
    }
}
