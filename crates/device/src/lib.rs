//! Zoned drives behind one narrow trait.

mod zoned_device;
pub use zoned_device::ZonedDevice;
