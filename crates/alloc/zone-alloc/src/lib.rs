//! Who owns which zone, who may take the next one, and which zone to clean: decisions only.
//!
//! Nothing here does I/O. BlueFS and the store share one [`ZonePool`]; whether a zone may be taken
//! follows from the drive's own report (an empty zone is nobody's) and from what the owners have
//! claimed, so that no third place has to remember it.

mod ahead;
mod cleaning;
mod ladder;
mod lifetime;
mod pool;
mod read_gate;
mod reservation;
mod victims;

pub use ahead::{Allowance, Allowed, FreeZones, Supply, Watermarks};
pub use cleaning::{Candidate, CleaningPolicy, CostBenefit, Greedy, Pressure, ZoneView};
pub use ladder::{Ladder, Tenant};
pub use lifetime::{ByLifetime, Clock, History};
pub use pool::{ClaimError, Owner, PoolCounts, Purpose, ZonePool};
pub use read_gate::{ReadGate, Reading};
pub use reservation::reserved_zones;
pub use victims::{Ages, Victims};
