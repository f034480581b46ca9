//! Reused buffers. Fresh ones would cost a page fault for every 4 KiB, and zeroing of memory that is overwritten at
//! once.

use bytes::Bytes;
use parking_lot::Mutex;

/// Buffers of one size, kept for reuse.
pub struct Pool {
    size: usize,
    kept: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

/// Memory that is filled once, then shared as [`Bytes`].
pub struct Buffer {
    memory: Vec<u8>,
    filled: usize,
    pool: &'static Pool,
}

impl Pool {
    /// Keeps at most `kept` free buffers of `size` bytes.
    pub const fn new(size: usize, kept: usize) -> Self {
        let free = Mutex::new(Vec::new());
        Self { size, kept, free }
    }

    /// A buffer for `wanted` bytes, or for the pool's size if that is less. Less than a quarter of the pool's size is
    /// allocated exactly.
    pub fn buffer(&'static self, wanted: usize) -> Buffer {
        let memory = if wanted < self.size / 4 {
            vec![0; wanted]
        } else {
            let free = self.free.lock().pop();
            free.unwrap_or_else(|| vec![0; self.size])
        };
        Buffer {
            memory,
            filled: 0,
            pool: self,
        }
    }
}

impl Buffer {
    /// Copies as much of `data` as there is room for, and returns the number of bytes.
    pub fn push(&mut self, data: &[u8]) -> usize {
        let room = &mut self.memory[self.filled..];
        let taken = room.len().min(data.len());
        room[..taken].copy_from_slice(&data[..taken]);
        self.filled += taken;
        taken
    }

    /// Has `read` write into the room that is left, at most `most` bytes; it returns how many.
    pub fn read<E>(
        &mut self,
        most: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let room = &mut self.memory[self.filled..];
        let most = room.len().min(most);
        let came = read(&mut room[..most])?;
        self.filled += came;
        Ok(came)
    }

    /// Whether there is no room left.
    pub fn is_full(&self) -> bool {
        self.filled == self.memory.len()
    }

    /// Has `fill` overwrite at least the first `length` bytes, which are the buffer's content afterwards. Before, they are
    /// zeros or bytes of an earlier use.
    pub fn fill<E>(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        fill(&mut self.memory)?;
        self.filled = length;
        Ok(())
    }

    /// The content, shared without a copy; the memory returns to the pool when the last reference is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.filled]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.memory.len() == self.pool.size {
            let mut free = self.pool.free.lock();
            if free.len() < self.pool.kept {
                free.push(std::mem::take(&mut self.memory));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_used_again() {
        static POOL: Pool = Pool::new(64, 2);
        let mut buffer = POOL.buffer(1000);
        assert_eq!((buffer.push(&[1; 60]), buffer.push(&[2; 60])), (60, 4));
        let bytes = buffer.freeze();
        assert_eq!(bytes[..], [&[1; 60][..], &[2; 4]].concat());
        let (at, part) = (bytes.as_ptr(), bytes.slice(3..5));
        drop(bytes);
        // Somebody still looks at it.
        assert_ne!(POOL.buffer(64).as_ref().as_ptr(), at);
        drop(part);
        let mut again = POOL.buffer(16);
        assert_eq!((again.as_ref().as_ptr(), again.as_ref().len()), (at, 0));
        let failed: Result<(), ()> = again.fill(16, |_| Err(()));
        assert_eq!((failed, again.as_ref().len()), (Err(()), 0));
    }

    #[test]
    fn only_so_many_wait_and_small_ones_do_not() {
        static POOL: Pool = Pool::new(64, 2);
        let many: Vec<_> = (0..5).map(|_| POOL.buffer(64)).collect();
        let small = POOL.buffer(15);
        assert_eq!(small.memory.len(), 15);
        drop((many, small));
        assert_eq!(POOL.free.lock().len(), 2);
    }
}
