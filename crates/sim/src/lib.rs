//! Simulations of ZoneStore's decisions, with the same result for the same seed: cleaning policies on counted blocks,
//! without a clock, and clusters of drives in virtual time.

pub mod baseline;
pub mod cleaning;
pub mod closed_form;
pub mod cluster;
pub mod placement;
pub mod placer;
pub mod policy;
pub mod sepbit;
mod zones;
