//! Wrappers around drives. Each changes one aspect and passes all other commands on, so they compose.

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
