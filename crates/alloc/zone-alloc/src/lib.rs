//! Decides who owns which zone, who may take the next one, and which zone to clean. Nothing here does I/O.
//!
//! BlueFS and the store share one [`ZonePool`]. Whether a zone may be taken follows from the drive's own report
//! (an empty zone has no owner) and from the zones that the owners have claimed, so no third record of it is
//! needed.

/// Serializes the type as the text that its `FromStr` reads, for records that other programs read.
macro_rules! written_as_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}
use written_as_text;

mod ahead;
mod cleaning;
mod filling;
mod hours;
mod ladder;
mod lifetime;
mod pace;
mod pool;
mod read_gate;
mod victims;
mod watermarks;

pub use ahead::{Allowance, Allowed, Supply};
pub use cleaning::{Candidate, CleaningPolicy, CostBenefit, Greedy, Pressure, ZoneView};
pub use filling::Filling;
pub use hours::{Hours, HoursError};
pub use ladder::{Ladder, Tenant};
pub use lifetime::{ByLifetime, Clock, History};
pub use pace::{Pace, PaceError, Pacer, Requests};
pub use pool::{ClaimError, KEPT_FOR_CLEANER, Owner, PoolCounts, Purpose, ZonePool};
pub use read_gate::{ReadGate, Reading};
pub use victims::{Ages, Victims};
pub use watermarks::{FreeZones, Watermarks, WatermarksError};
