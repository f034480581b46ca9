//! Drives around drives. Each changes one thing and passes everything else on, so they compose.

pub mod changed;
pub mod divided;
pub mod faults;
pub mod kept;
pub mod part;
pub mod power_cut;
pub mod stats;
pub mod trace;
pub mod watch;
pub mod zone_damage;
