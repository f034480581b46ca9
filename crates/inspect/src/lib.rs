//! A snapshot of the use of a drive's zones: owners, live and dead bytes, the limit that is nearest.
//!
//! The drive is observed without a lock, so no other process is kept from it. Facts that only the process with
//! the drive open knows are requested from it ([`Server`]).

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
