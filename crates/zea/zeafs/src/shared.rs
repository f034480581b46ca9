//! The state that readers and writers of a mounted file system share.

use crate::inner::Inner;
use runtime::sync::Mutex;

/// The state that readers and writers of a mounted file system share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub inner: Mutex<Inner>,
    /// Most bytes of a file that are buffered in memory.
    pub write_buffer: usize,
}
