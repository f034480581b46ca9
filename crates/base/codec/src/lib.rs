//! Decodes fields from untrusted bytes and encodes them: little-endian for every on-disk format, big-endian
//! (`_be`) for protocols. Input that ends too soon yields `None`, never a panic.

/// Whether these are zeros and nothing else. Compares them with themselves, one further on, which the C library does fast.
pub fn is_zero(bytes: &[u8]) -> bool {
    let Some((first, others)) = bytes.split_first() else {
        return true;
    };
    *first == 0 && *others == bytes[..others.len()]
}

/// Reads fields from the front of a slice; every read returns `None` if too few bytes are left.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    /// The next 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.array()?))
    }

    /// The next 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    /// The next 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.array()?))
    }

    /// The next 2 bytes, big-endian.
    pub fn u16_be(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.array()?))
    }

    /// The next 4 bytes, big-endian.
    pub fn u32_be(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.array()?))
    }

    /// The next 8 bytes, big-endian.
    pub fn u64_be(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.array()?))
    }

    /// A UTF-8 string that follows its length in bytes (u16).
    pub fn string(&mut self) -> Option<String> {
        let length = self.u16()?;
        let bytes = self.take(usize::from(length))?;
        Some(std::str::from_utf8(bytes).ok()?.to_owned())
    }

    /// `Some` only if all bytes have been read.
    pub fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Appends little-endian fields.
pub trait Put {
    /// 2 bytes.
    fn put_u16(&mut self, value: u16);
    /// 4 bytes.
    fn put_u32(&mut self, value: u32);
    /// 8 bytes.
    fn put_u64(&mut self, value: u64);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }
}
