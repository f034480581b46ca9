//! The locks of `zone_alloc`, which shuttle can stand in for.

pub(crate) use zone_alloc::sync::{Condvar, Mutex, MutexGuard, RwLock, atomic};
