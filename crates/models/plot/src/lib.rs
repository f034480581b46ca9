//! Figures: panels with axes and series as data, and drawings of them as SVG.

mod figure;
mod svg;

pub use figure::{Figure, LATENCY, MOST_POINTS, Panel, Series, numbered, thinned, thinning};
pub use svg::{STYLE, document, svg};
