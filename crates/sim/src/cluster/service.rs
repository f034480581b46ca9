//! How long a drive takes for a job, as a distribution.

use drive_model::Span;

/// The distribution of the times of one kind of job.
#[derive(Clone, PartialEq, Debug)]
pub enum Service {
    /// Always the same time.
    Constant(Span),
    /// Exponential, with this mean.
    Exponential(Span),
    /// Measured times, the shortest first, each of which is as likely.
    Measured(Vec<Span>),
}

impl Service {
    /// The distribution of measured times, in any order; constant 0 if there is none.
    pub fn measured(mut times: Vec<Span>) -> Self {
        times.sort_unstable();
        match times.as_slice() {
            [] => Self::Constant(Span::ZERO),
            _ => Self::Measured(times),
        }
    }

    /// Draws a time.
    pub fn draw(&self, random: &mut fastrand::Rng) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Exponential(mean) => exponential(mean.nanos() as f64, random),
            Self::Measured(times) => times[random.usize(..times.len())],
        }
    }

    /// The mean.
    pub fn mean(&self) -> Span {
        match self {
            Self::Constant(span) | Self::Exponential(span) => *span,
            Self::Measured(times) => {
                let sum: u128 = times.iter().map(|span| u128::from(span.nanos())).sum();
                let mean = sum / times.len().max(1) as u128;
                Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Draws from the exponential distribution with this mean in nanoseconds.
pub fn exponential(mean_nanos: f64, random: &mut fastrand::Rng) -> Span {
    // Never the logarithm of 0.
    let above_zero = 1.0 - random.f64();
    Span::from_nanos((-above_zero.ln() * mean_nanos) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_what_is_drawn() {
        let ms = |n: u32| Span::from_millis(f64::from(n));
        let measured = Service::measured(vec![ms(9), ms(1), ms(2)]);
        assert_eq!(measured.mean(), ms(4));
        assert_eq!(Service::measured(Vec::new()).mean(), Span::ZERO);
        for service in [
            measured,
            Service::Exponential(ms(4)),
            Service::Constant(ms(4)),
        ] {
            let mut random = fastrand::Rng::with_seed(1);
            let sum: f64 = (0..100_000)
                .map(|_| service.draw(&mut random).millis())
                .sum();
            assert!((sum / 1e5 - 4.0).abs() < 0.05, "{service:?} {sum}");
        }
    }
}
