//! Renders a snapshot of a drive: as lines of text, on a terminal of any size, or as an SVG picture. Nothing
//! here does I/O.

mod blkzone;
mod picture;
mod screen;
mod text;

pub use blkzone::blkzone_line;
pub use picture::svg;
pub use screen::{View, draw};
pub use text::{letters, most_dead, owners, scale, title, totals};
