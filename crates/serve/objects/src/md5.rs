//! MD5 (RFC 1321), of several streams at a time.
//!
//! Each step of MD5 waits for the step before, so one stream uses a fraction of what a processor could do in
//! that time. [`compress`] takes as many steps of several streams side by side: four take 1.3 times as long as
//! one. The compiler makes vectors of the lanes on any target that has them.

/// Bytes of a block.
pub const BLOCK: usize = 64;

/// The digest of whole blocks.
pub type State = [u32; 4];

/// By word, then by lane.
type Lanes<const LANES: usize> = [[u32; LANES]; 4];

/// RFC 1321, 3.3.
const BEGIN: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// RFC 1321, 3.4: by round.
const ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// RFC 1321, 3.4: the integer part of 2³² times |sin(step)|, of steps from 1 on.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// A running MD5.
pub struct Md5 {
    /// Behind all whole blocks.
    pub state: State,
    /// The bytes behind the last whole block.
    pending: Vec<u8>,
    length: u64,
}

impl Md5 {
    /// Of nothing so far.
    pub fn new() -> Self {
        Self {
            state: BEGIN,
            pending: Vec::new(),
            length: 0,
        }
    }

    /// Takes more bytes, all but the whole blocks among them, which are answered: [`Self::state`] has to be that
    /// behind them before anything else is called.
    pub fn take_blocks<'a>(&mut self, mut data: &'a [u8]) -> &'a [u8] {
        self.length = self.length.wrapping_add(data.len() as u64);
        if !self.pending.is_empty() {
            let (head, rest) = data.split_at(data.len().min(BLOCK - self.pending.len()));
            self.pending.extend_from_slice(head);
            data = rest;
            if self.pending.len() == BLOCK {
                self.state = alone(self.state, &self.pending);
                self.pending.clear();
            }
        }
        let (blocks, rest) = data.split_at(data.len() - data.len() % BLOCK);
        self.pending.extend_from_slice(rest);
        blocks
    }

    /// More bytes.
    pub fn update(&mut self, data: &[u8]) {
        let blocks = self.take_blocks(data);
        self.state = alone(self.state, blocks);
    }

    /// The digest.
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.length.wrapping_mul(8);
        let used = (self.length % BLOCK as u64) as usize;
        let zeros = (2 * BLOCK - 9 - used) % BLOCK;
        self.update(&[&[0x80][..], &[0; BLOCK][..zeros], &bits.to_le_bytes()].concat());
        let mut digest = [0; 16];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }
}

/// One stream's state after whole blocks.
pub fn alone(state: State, blocks: &[u8]) -> State {
    let [state] = compress([state], [blocks]);
    state
}

/// The states of streams after as many whole blocks as the shortest of them has.
pub fn compress<const LANES: usize>(
    states: [State; LANES],
    data: [&[u8]; LANES],
) -> [State; LANES] {
    let blocks = data
        .iter()
        .map(|data| data.len() / BLOCK)
        .min()
        .unwrap_or(0);
    let mut lanes: Lanes<LANES> = std::array::from_fn(|word| states.map(|state| state[word]));
    for block in 0..blocks {
        let mut words = [[0; LANES]; 16];
        for (lane, data) in data.iter().enumerate() {
            let block = &data[block * BLOCK..(block + 1) * BLOCK];
            for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
                word[lane] = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
        one_block(&mut lanes, &words);
    }
    std::array::from_fn(|lane| std::array::from_fn(|word| lanes[word][lane]))
}

/// RFC 1321, 3.4, of all lanes. Each step is written out, so that rotations and places are constants.
#[inline(always)]
fn one_block<const LANES: usize>(lanes: &mut Lanes<LANES>, words: &[[u32; LANES]; 16]) {
    let mut now = *lanes;
    macro_rules! steps {
        ($round:literal, ($factor:literal, $first:literal), $mix:expr, $($step:literal)*) => {
            $(
                let word = &words[($factor * $step + $first) % 16];
                let sine = SINES[16 * $round + $step];
                let rotation = ROTATIONS[$round][$step % 4];
                now = one_step(now, word, sine, rotation, $mix);
            )*
        };
        ($round:literal, $words:tt, $mix:expr) => {
            steps!($round, $words, $mix, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        };
    }
    steps!(0, (1, 0), |b, c, d| (b & c) | (!b & d));
    steps!(1, (5, 1), |b, c, d| (b & d) | (c & !d));
    steps!(2, (3, 5), |b, c, d| b ^ c ^ d);
    steps!(3, (7, 0), |b, c, d| c ^ (b | !d));
    for (word, now) in lanes.iter_mut().zip(now) {
        for (word, now) in word.iter_mut().zip(now) {
            *word = word.wrapping_add(now);
        }
    }
}

#[inline(always)]
fn one_step<const LANES: usize>(
    [a, b, c, d]: Lanes<LANES>,
    word: &[u32; LANES],
    sine: u32,
    rotation: u32,
    mix: impl Fn(u32, u32, u32) -> u32,
) -> Lanes<LANES> {
    let sum: [u32; LANES] = std::array::from_fn(|lane| {
        let mixed = mix(b[lane], c[lane], d[lane]).wrapping_add(a[lane]);
        mixed.wrapping_add(word[lane].wrapping_add(sine))
    });
    let next = std::array::from_fn(|lane| sum[lane].rotate_left(rotation).wrapping_add(b[lane]));
    [d, next, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::md5::Digest;
    use proptest::prelude::*;

    fn reference(data: &[u8]) -> [u8; 16] {
        ::md5::Md5::digest(data).into()
    }

    #[test]
    fn every_length_around_a_block_is_padded() {
        for length in 0..4 * BLOCK {
            let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut md5 = Md5::new();
            md5.update(&data);
            assert_eq!(md5.finish(), reference(&data), "{length}");
        }
    }

    proptest! {
        #[test]
        fn lanes_do_not_mix(blocks in 0usize..5, data in prop::collection::vec(any::<u8>(), 4 * 5 * BLOCK)) {
            let lanes: [&[u8]; 4] = std::array::from_fn(|lane| &data[lane * 5 * BLOCK..][..blocks * BLOCK]);
            let begin = std::array::from_fn(|lane| [lane as u32, 1, u32::MAX, 7]);
            let together = compress(begin, lanes);
            for lane in 0..4 {
                prop_assert_eq!(together[lane], alone(begin[lane], lanes[lane]));
            }
        }
    }
}
