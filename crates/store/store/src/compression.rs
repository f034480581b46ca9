//! Compression of object data: when it is tried, and whether the result is kept. The modes are BlueStore's.

use object::Codec;
use std::str::FromStr;

/// Raw bytes that are compressed together; reading one of them reads all.
pub(crate) const UNIT: usize = 128 << 10;

/// When compression is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionMode {
    /// Never.
    #[default]
    None,
    /// If the writer says that the data is compressible.
    Passive,
    /// Unless the writer says that the data is not compressible.
    Aggressive,
    /// Always.
    Force,
}

/// When and how object data is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// When it is tried.
    pub mode: CompressionMode,
    /// The codec.
    pub codec: Codec,
    /// Compressed data is kept if it takes at most this percentage of the blocks that the raw data would.
    pub required_percent: u8,
}

impl Default for Compression {
    /// Off; with another mode, Zstandard and 87 %.
    fn default() -> Self {
        Self {
            mode: CompressionMode::None,
            codec: Codec::Zstd,
            required_percent: 87,
        }
    }
}

impl FromStr for Compression {
    type Err = &'static str;

    /// Reads a mode, optionally followed by a colon and a codec other than Zstandard: `aggressive:lz4`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mode, codec) = text.split_once(':').unwrap_or((text, "zstd"));
        let mode = match mode {
            "none" => CompressionMode::None,
            "passive" => CompressionMode::Passive,
            "aggressive" => CompressionMode::Aggressive,
            "force" => CompressionMode::Force,
            _ => return Err("none, passive, aggressive or force is meant, and :lz4 may follow"),
        };
        let codec = match codec {
            "zstd" => Codec::Zstd,
            "lz4" => Codec::Lz4,
            _ => return Err("the codec is zstd or lz4"),
        };
        Ok(Self {
            mode,
            codec,
            ..Self::default()
        })
    }
}

impl Compression {
    /// The codec to try, given the writer's hint whether the data is `compressible`.
    pub(crate) const fn codec_for(&self, compressible: Option<bool>) -> Codec {
        let tries = match self.mode {
            CompressionMode::None => false,
            CompressionMode::Passive => matches!(compressible, Some(true)),
            CompressionMode::Aggressive => !matches!(compressible, Some(false)),
            CompressionMode::Force => true,
        };
        if tries { self.codec } else { Codec::None }
    }

    /// Whether `packed` bytes in place of `raw` save enough blocks.
    pub(crate) fn is_worth(&self, raw: usize, packed: usize, block_size: usize) -> bool {
        let blocks = |bytes: usize| bytes.div_ceil(block_size);
        blocks(packed) * 100 <= blocks(raw) * usize::from(self.required_percent)
    }
}

/// Compresses `raw`; `None` if the codec fails or is [`Codec::None`].
pub(crate) fn compress(codec: Codec, raw: &[u8]) -> Option<Vec<u8>> {
    match codec {
        Codec::None => None,
        Codec::Zstd => zstd::bulk::compress(raw, zstd::DEFAULT_COMPRESSION_LEVEL).ok(),
        Codec::Lz4 => Some(lz4_flex::block::compress(raw)),
    }
}

/// The `raw` bytes that were compressed as `packed`; `None` if it does not decode to that many bytes.
pub(crate) fn decompress(codec: Codec, packed: &[u8], raw: usize) -> Option<Vec<u8>> {
    let found = match codec {
        Codec::None => packed.to_vec(),
        Codec::Zstd => zstd::bulk::decompress(packed, raw).ok()?,
        Codec::Lz4 => lz4_flex::block::decompress(packed, raw).ok()?,
    };
    (found.len() == raw).then_some(found)
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_there_again_and_nothing_else_is() {
        let raw: Vec<u8> = (0..100_000u32)
            .flat_map(|n| (n / 100).to_le_bytes())
            .collect();
        for codec in [Codec::Zstd, Codec::Lz4] {
            let packed = compress(codec, &raw).unwrap();
            assert!(packed.len() * 4 < raw.len());
            assert_eq!(decompress(codec, &packed, raw.len()).as_ref(), Some(&raw));
            for length in [0, 1, raw.len() - 1, raw.len() + 1] {
                assert_eq!(
                    decompress(codec, &packed, length),
                    None,
                    "{codec:?} {length}"
                );
            }
            for length in 0..packed.len().min(300) {
                assert_eq!(decompress(codec, &packed[..length], raw.len()), None);
            }
        }
        assert_eq!(compress(Codec::None, &raw), None);
    }

    #[test]
    fn what_is_meant_is_read() {
        let lz4: Compression = "aggressive:lz4".parse().unwrap();
        assert_eq!(
            (lz4.mode, lz4.codec),
            (CompressionMode::Aggressive, Codec::Lz4)
        );
        assert_eq!("none".parse(), Ok(Compression::default()));
        for wrong in ["", "on", "force:", "force:gzip", "Force"] {
            assert!(wrong.parse::<Compression>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn modes_ask_the_writer_as_bluestore_does() {
        use CompressionMode::*;
        let tried = |mode| {
            let compression = Compression {
                mode,
                ..Compression::default()
            };
            [Option::None, Some(false), Some(true)]
                .map(|hint| compression.codec_for(hint) != Codec::None)
        };
        assert_eq!(tried(CompressionMode::None), [false, false, false]);
        assert_eq!(tried(Passive), [false, false, true]);
        assert_eq!(tried(Aggressive), [true, false, true]);
        assert_eq!(tried(Force), [true, true, true]);
    }

    #[test]
    fn what_saves_too_few_blocks_is_left_as_it_is() {
        let compression = Compression::default();
        assert!(compression.is_worth(UNIT, UNIT * 87 / 100 - 4096, 4096));
        assert!(!compression.is_worth(UNIT, UNIT * 9 / 10, 4096));
        assert!(!compression.is_worth(5000, 4200, 4096));
        assert!(compression.is_worth(5000, 4096, 4096));
    }
}
