//! The tests, each as a workload from the paper and, separate from it, the conclusions.

pub mod t01_drive_type;
pub(crate) mod t01_still;
pub mod t02_cache_place;
pub mod t03_cleaning_type;
pub mod t04_cleaning_order;
pub mod t06_cache_size;
pub mod t08_shared_bands;
pub mod t09_circular_log;
pub mod t11_band_size;
pub mod t11_band_time;
pub mod t11_few_writes;
pub mod t12_mapping;
pub mod t13_torn_writes;
pub mod t14_zone_structure;
pub mod t15_streaming;
