//! The store in lockstep with a model: random transactions of all kinds, cleaning, uploads, restarts and faults, on
//! drives in memory, in files, that fail, and that lose their power.

mod call;
mod carry_out;
mod crash_pairs;
mod deal;
mod difference;
mod failing;
mod images;
mod kinds;
mod machine;
mod plan;
mod runs;
mod shrink;
mod step;
mod world;
