//! What readers and writers keep of a file system.

use crate::inner::Inner;
use runtime::sync::Mutex;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Shared {
    pub inner: Mutex<Inner>,
    /// Bytes of a file that wait in memory.
    pub write_buffer: usize,
}
