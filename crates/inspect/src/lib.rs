//! What the zones of a drive are used for at one moment: owners, live and dead bytes, the limit that binds.
//! Nobody is kept from the drive by that; what only its owner knows, a [`Server`] is asked for.

mod content;
mod map;
mod occupant;
mod owner;
mod snapshot;
mod source;
mod totals;
mod user;
mod zone_view;

pub use content::Content;
pub use map::{Cell, cells};
pub use occupant::drive_at;
pub use owner::Owner;
pub use snapshot::{Look, Share, Snapshot};
pub use source::{LookError, Nobody, Server, Source};
pub use totals::{Limit, Totals};
pub use user::User;
pub use zone_view::{ZoneView, advanced};
