//! MD5 (RFC 1321) of whole blocks, of one stream or of several side by side.
//!
//! Each step of MD5 waits for the step before, so one stream uses a fraction of what a processor could do in that
//! time. A vector has a stream in each of its lanes: with AVX-512, sixteen take little longer than one.

/// Bytes of a block.
pub const BLOCK: usize = 64;

/// MD5 state after whole blocks.
pub type State = [u32; 4];

/// Continues `state` with whole blocks of one stream.
pub fn alone(state: State, blocks: &[u8]) -> State {
    let [state] = scalar::compress([state], [blocks]);
    state
}

/// Streams that [`side_by_side`] takes at a time on this processor; 1 without AVX2 or AVX-512.
pub fn most_lanes() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return avx512::LANES;
        }
        if is_x86_feature_detected!("avx2") {
            return avx2::LANES;
        }
    }
    scalar::LANES
}

/// Continues each state with its blocks; all streams have the same number of blocks. Two streams take as long as
/// [`most_lanes`] do; more than that are computed in groups.
pub fn side_by_side(states: &mut [State], data: &[&[u8]]) {
    #[cfg(target_arch = "x86_64")]
    match most_lanes() {
        // SAFETY: the processor has it, as `most_lanes` has asked.
        avx512::LANES => {
            return fill(states, data, |states, data| unsafe {
                avx512::compress(states, data)
            });
        }
        // SAFETY: the same.
        avx2::LANES => {
            return fill(states, data, |states, data| unsafe {
                avx2::compress(states, data)
            });
        }
        _ => {}
    }
    for (state, data) in states.iter_mut().zip(data) {
        *state = alone(*state, data);
    }
}

/// Computes `LANES` streams at a time; lanes without a stream compute the last stream again.
#[cfg(target_arch = "x86_64")]
fn fill<const LANES: usize>(
    states: &mut [State],
    data: &[&[u8]],
    compress: impl Fn([State; LANES], [&[u8]; LANES]) -> [State; LANES],
) {
    for (states, data) in states.chunks_mut(LANES).zip(data.chunks(LANES)) {
        if let ([state], [data]) = (&mut *states, data) {
            *state = alone(*state, data);
            continue;
        }
        let of = |lane: usize| lane.min(states.len() - 1);
        let next = compress(
            std::array::from_fn(|lane| states[of(lane)]),
            std::array::from_fn(|lane| data[of(lane)]),
        );
        for (state, next) in states.iter_mut().zip(next) {
            *state = next;
        }
    }
}

/// Rotations by round (RFC 1321, 3.4).
const ROTATIONS: [[i32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// Integer part of 2³² times |sin(step)|, for steps from 1 on (RFC 1321, 3.4).
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

/// Steps of a round (RFC 1321, 3.4). They are unrolled, so that rotations and places are constants. Terms that do not
/// depend on the step before are added first.
macro_rules! steps {
    ($state:ident, $words:ident, $sines:ident, $mix:ident, $round:literal, ($factor:literal, $first:literal):
     $($step:literal)*) => {$(
        let [a, b, c, d] = $state;
        let known = add(add(a, $words[($factor * $step + $first) % 16]), splat($sines[16 * $round + $step]));
        let sum = $mix(known, b, c, d);
        $state = [d, add(rotate_left::<{ ROTATIONS[$round][$step % 4] }>(sum), b), b, c];
    )*};
}

/// Defines `compress` for `$lanes` lanes in a module with `splat`, `add`, `rotate_left`, the functions of the rounds
/// (which also add their result to `sum`), `load`, `store` and `words`.
macro_rules! compress {
    ($lanes:literal $(, $feature:literal)?) => {
        pub const LANES: usize = $lanes;

        /// The states of streams after as many whole blocks as the shortest stream has.
        $(#[target_feature(enable = $feature)])?
        pub fn compress(states: [State; LANES], data: [&[u8]; LANES]) -> [State; LANES] {
            let blocks = data.iter().map(|data| data.len() / BLOCK).min().unwrap_or(0);
            let by_word: [[u32; LANES]; 4] = std::array::from_fn(|word| states.map(|state| state[word]));
            let mut lanes = [load(&by_word[0]), load(&by_word[1]), load(&by_word[2]), load(&by_word[3])];
            // As constants, the compiler would add them last, after the value that every step waits for.
            let sines = std::hint::black_box(&SINES);
            for block in 0..blocks {
                let mut by_place = [splat(0); 16];
                // One call site, so that it is inlined.
                for place in 0..4 {
                    [by_place[4 * place], by_place[4 * place + 1], by_place[4 * place + 2], by_place[4 * place + 3]] =
                        words(&data, block * BLOCK + 16 * place);
                }
                let mut now = lanes;
                steps!(now, by_place, sines, f, 0, (1, 0): 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
                steps!(now, by_place, sines, g, 1, (5, 1): 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
                steps!(now, by_place, sines, h, 2, (3, 5): 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
                steps!(now, by_place, sines, i, 3, (7, 0): 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
                let [a, b, c, d] = now;
                lanes = [add(lanes[0], a), add(lanes[1], b), add(lanes[2], c), add(lanes[3], d)];
            }
            let by_word = [store(lanes[0]), store(lanes[1]), store(lanes[2]), store(lanes[3])];
            std::array::from_fn(|lane| std::array::from_fn(|word| by_word[word][lane]))
        }
    };
}

/// One stream, without vectors.
mod scalar {
    use super::{BLOCK, ROTATIONS, SINES, State};

    compress!(1);

    #[inline(always)]
    fn splat(word: u32) -> u32 {
        word
    }

    #[inline(always)]
    fn add(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn rotate_left<const BITS: i32>(a: u32) -> u32 {
        a.rotate_left(BITS as u32)
    }

    #[inline(always)]
    fn f(sum: u32, b: u32, c: u32, d: u32) -> u32 {
        add(sum, (b & (c ^ d)) ^ d)
    }

    #[inline(always)]
    fn g(sum: u32, b: u32, c: u32, d: u32) -> u32 {
        add(add(sum, c & !d), b & d)
    }

    #[inline(always)]
    fn h(sum: u32, b: u32, c: u32, d: u32) -> u32 {
        add(sum, c ^ d ^ b)
    }

    #[inline(always)]
    fn i(sum: u32, b: u32, c: u32, d: u32) -> u32 {
        add(sum, c ^ (b | !d))
    }

    #[inline(always)]
    fn load(words: &[u32; LANES]) -> u32 {
        words[0]
    }

    #[inline(always)]
    fn store(a: u32) -> [u32; LANES] {
        [a]
    }

    #[inline(always)]
    fn words(data: &[&[u8]; LANES], at: usize) -> [u32; 4] {
        let data = &data[0][at..at + 16];
        let word = |n: usize| u32::from_le_bytes([data[n], data[n + 1], data[n + 2], data[n + 3]]);
        [word(0), word(4), word(8), word(12)]
    }
}

/// Eight streams, with AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{BLOCK, ROTATIONS, SINES, State};
    use std::arch::x86_64::*;

    compress!(8, "avx2");

    #[inline]
    #[target_feature(enable = "avx2")]
    fn splat(word: u32) -> __m256i {
        _mm256_set1_epi32(word.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(a: __m256i, b: __m256i) -> __m256i {
        _mm256_add_epi32(a, b)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotate_left<const BITS: i32>(a: __m256i) -> __m256i {
        let bits = |bits| _mm_cvtsi32_si128(bits);
        _mm256_or_si256(
            _mm256_sll_epi32(a, bits(BITS)),
            _mm256_srl_epi32(a, bits(32 - BITS)),
        )
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn f(sum: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
        add(
            sum,
            _mm256_xor_si256(_mm256_and_si256(b, _mm256_xor_si256(c, d)), d),
        )
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn g(sum: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
        add(add(sum, _mm256_andnot_si256(d, c)), _mm256_and_si256(b, d))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn h(sum: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
        add(sum, _mm256_xor_si256(_mm256_xor_si256(c, d), b))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn i(sum: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
        let not_d = _mm256_xor_si256(d, _mm256_set1_epi32(-1));
        add(sum, _mm256_xor_si256(c, _mm256_or_si256(b, not_d)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(words: &[u32; LANES]) -> __m256i {
        // SAFETY: as many bytes as the vector has.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(a: __m256i) -> [u32; LANES] {
        let mut words = [0; LANES];
        // SAFETY: as many bytes as the vector has.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), a) }
        words
    }

    /// 16 bytes of a stream.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(data: &[u8], at: usize) -> __m128i {
        let data = &data[at..at + 16];
        // SAFETY: as many bytes as the vector has.
        unsafe { _mm_loadu_si128(data.as_ptr().cast()) }
    }

    /// 16 bytes of every fourth stream from `first` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn row(data: &[&[u8]; LANES], first: usize, at: usize) -> __m256i {
        let row = _mm256_castsi128_si256(four(data[first], at));
        _mm256_inserti128_si256::<1>(row, four(data[first + 4], at))
    }

    /// Transposes four words of four streams within each 128 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn words(data: &[&[u8]; LANES], at: usize) -> [__m256i; 4] {
        let rows = [
            row(data, 0, at),
            row(data, 1, at),
            row(data, 2, at),
            row(data, 3, at),
        ];
        let (low, high) = (
            _mm256_unpacklo_epi32(rows[0], rows[1]),
            _mm256_unpackhi_epi32(rows[0], rows[1]),
        );
        let (low2, high2) = (
            _mm256_unpacklo_epi32(rows[2], rows[3]),
            _mm256_unpackhi_epi32(rows[2], rows[3]),
        );
        [
            _mm256_unpacklo_epi64(low, low2),
            _mm256_unpackhi_epi64(low, low2),
            _mm256_unpacklo_epi64(high, high2),
            _mm256_unpackhi_epi64(high, high2),
        ]
    }
}

/// Sixteen streams, with AVX-512.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{BLOCK, ROTATIONS, SINES, State};
    use std::arch::x86_64::*;

    compress!(16, "avx512f");

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(word: u32) -> __m512i {
        _mm512_set1_epi32(word.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(a: __m512i, b: __m512i) -> __m512i {
        _mm512_add_epi32(a, b)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn rotate_left<const BITS: i32>(a: __m512i) -> __m512i {
        _mm512_rol_epi32::<BITS>(a)
    }

    /// Constants of `ternarylogic`: bit 4b + 2c + d is the function's value for bits b, c and d.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn f(sum: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
        add(sum, _mm512_ternarylogic_epi32::<0xca>(b, c, d))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn g(sum: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
        add(sum, _mm512_ternarylogic_epi32::<0xca>(d, b, c))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn h(sum: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
        add(sum, _mm512_ternarylogic_epi32::<0x96>(b, c, d))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn i(sum: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
        add(sum, _mm512_ternarylogic_epi32::<0x39>(b, c, d))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(words: &[u32; LANES]) -> __m512i {
        // SAFETY: as many bytes as the vector has.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(a: __m512i) -> [u32; LANES] {
        let mut words = [0; LANES];
        // SAFETY: as many bytes as the vector has.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), a) }
        words
    }

    /// 16 bytes of a stream.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn four(data: &[u8], at: usize) -> __m128i {
        let data = &data[at..at + 16];
        // SAFETY: as many bytes as the vector has.
        unsafe { _mm_loadu_si128(data.as_ptr().cast()) }
    }

    /// 16 bytes of every fourth stream from `first` on.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn row(data: &[&[u8]; LANES], first: usize, at: usize) -> __m512i {
        let row = _mm512_castsi128_si512(four(data[first], at));
        let row = _mm512_inserti32x4::<1>(row, four(data[first + 4], at));
        let row = _mm512_inserti32x4::<2>(row, four(data[first + 8], at));
        _mm512_inserti32x4::<3>(row, four(data[first + 12], at))
    }

    /// Transposes four words of four streams within each 128 bits.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn words(data: &[&[u8]; LANES], at: usize) -> [__m512i; 4] {
        let rows = [
            row(data, 0, at),
            row(data, 1, at),
            row(data, 2, at),
            row(data, 3, at),
        ];
        let (low, high) = (
            _mm512_unpacklo_epi32(rows[0], rows[1]),
            _mm512_unpackhi_epi32(rows[0], rows[1]),
        );
        let (low2, high2) = (
            _mm512_unpacklo_epi32(rows[2], rows[3]),
            _mm512_unpackhi_epi32(rows[2], rows[3]),
        );
        [
            _mm512_unpacklo_epi64(low, low2),
            _mm512_unpackhi_epi64(low, low2),
            _mm512_unpacklo_epi64(high, high2),
            _mm512_unpackhi_epi64(high, high2),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// By what this processor would take, and by AVX2 if it has more than that.
        #[test]
        fn lanes_do_not_mix(
            streams in 0usize..40,
            blocks in 0usize..5,
            data in prop::collection::vec(any::<u8>(), 40 * 5 * BLOCK),
        ) {
            let begin: Vec<State> = (0..streams).map(|lane| [lane as u32, 1, u32::MAX, 7]).collect();
            let data: Vec<&[u8]> = (0..streams).map(|lane| &data[lane * 5 * BLOCK..][..blocks * BLOCK]).collect();
            let expected: Vec<State> = begin.iter().zip(&data).map(|(state, data)| alone(*state, data)).collect();
            let mut states = begin.clone();
            side_by_side(&mut states, &data);
            prop_assert_eq!(&states, &expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                let mut states = begin;
                // SAFETY: the processor has it.
                fill(&mut states, &data, |states, data| unsafe { avx2::compress(states, data) });
                prop_assert_eq!(&states, &expected);
            }
        }
    }
}
