//! Closed forms to compare simulations with.
//!
//! Write amplification is that of blocks overwritten at random: `utilization` is live data ÷ usable capacity, between
//! 0 and 1. Response times of queues are those of requests that arrive at random moments.

use lambert_w::lambert_w0;

/// Write amplification if the zone filled first is cleaned, whatever its size in blocks: α ÷ (α + W(−α·e^−α)) with α
/// = 1 ÷ utilization (Desnoyers, *Analytic Modeling of SSD Write Performance*, SYSTOR 2012).
pub fn fifo(utilization: f64) -> f64 {
    let alpha = utilization.recip();
    alpha / (alpha + lambert_w0(-alpha * (-alpha).exp()))
}

/// The least number of blocks in a zone for which [`greedy`] is right to some per cent.
pub const GREEDY_LEAST_BLOCKS: u32 = 8;

/// Write amplification if the emptiest zone of `blocks_per_zone` blocks is cleaned (Desnoyers, SYSTOR 2012).
pub fn greedy(utilization: f64, blocks_per_zone: u32) -> f64 {
    let n = f64::from(blocks_per_zone);
    let alpha = utilization.recip();
    let beta = (1.0 + 0.5 / n) * alpha;
    let live = 0.5 - n / alpha * lambert_w0(-beta * (-beta).exp());
    n / (n - (live - 1.0))
}

/// Write amplification if any zone is cleaned, drawn at random: 1 ÷ (1 − utilization).
pub fn random(utilization: f64) -> f64 {
    (1.0 - utilization).recip()
}

/// The least write amplification of two groups of blocks, each in zones of its own that are cleaned as by [`fifo`].
///
/// One group is the share `data` of all blocks and gets the share `writes` of all writes. The spare capacity is
/// divided between the groups in the best way.
pub fn two_groups(utilization: f64, data: f64, writes: f64) -> f64 {
    let spare = 1.0 - utilization;
    let cost = |share: f64| {
        let amplification = |data: f64, spare: f64| {
            let live = utilization * data;
            fifo(live / (live + spare))
        };
        writes * amplification(data, spare * share)
            + (1.0 - writes) * amplification(1.0 - data, spare * (1.0 - share))
    };
    // The cost has one minimum, which a ternary search finds.
    let (mut low, mut high) = (1e-6, 1.0 - 1e-6);
    for _ in 0..100 {
        let third = (high - low) / 3.0;
        if cost(low + third) < cost(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    cost(f64::midpoint(low, high))
}

/// The mean response time of a single server that takes `service` for each request. Requests arrive at random
/// moments, and keep the server busy for the share `busy` of the time (Pollaczek and Khinchine; M/D/1).
pub fn md1_response(service: f64, busy: f64) -> f64 {
    service + busy * service / (2.0 * (1.0 - busy))
}

/// The mean of the `nth` smallest of `count` independent exponential times of mean 1.
pub fn order_statistic(count: u32, nth: u32) -> f64 {
    (0..nth).map(|n| f64::from(count - n).recip()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, printed: f64) {
        assert!((found - printed).abs() < 0.001, "{found} for {printed}");
    }

    #[test]
    fn values_are_those_in_print() {
        for (u, of_fifo, of_greedy, of_random) in [
            (0.7, 1.876, 1.833, 3.333),
            (0.8, 2.693, 2.598, 5.0),
            (0.9, 5.179, 4.816, 10.0),
        ] {
            assert_near(fifo(u), of_fifo);
            assert_near(greedy(u, 64), of_greedy);
            assert_near(random(u), of_random);
        }
    }

    #[test]
    fn queues_and_order_statistics_are_those_of_textbooks() {
        assert_near(md1_response(1.0, 0.5), 1.5);
        assert_near(md1_response(10.0, 0.8), 30.0);
        assert_near(order_statistic(3, 2), 5.0 / 6.0);
        assert_near(order_statistic(3, 3), 11.0 / 6.0);
    }

    #[test]
    fn groups_apart_cost_what_is_in_print() {
        for (data, writes, u, printed) in [
            (0.2, 0.8, 0.8, 1.998),
            (0.2, 0.8, 0.9, 3.571),
            (0.1, 0.9, 0.8, 1.481),
            (0.1, 0.9, 0.9, 2.336),
        ] {
            assert_near(two_groups(u, data, writes), printed);
        }
        assert_near(two_groups(0.8, 0.5, 0.5), fifo(0.8));
    }
}
