//! Simulations of what ZoneStore decides: no drive, no clock, and the same result for the same seed.

pub mod baseline;
pub mod cleaning;
pub mod closed_form;
pub mod placement;
pub mod placer;
pub mod policy;
pub mod sepbit;
mod zones;
