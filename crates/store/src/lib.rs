//! The object store on a zoned drive.

mod error;
mod transaction;
pub use error::{Error, Result};
pub use transaction::{Attributes, Condition, Transaction};
pub mod api_skeleton;
pub use api_skeleton::*;
