//! Draws figures as SVG, by the plotters library. Black parts take the colour of the surrounding text, so that they
//! are readable on light and dark backgrounds.

use crate::figure::{Figure, Panel, Series};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::fmt::Write;

/// Width of a figure in pixels; the page shows it at half the size.
const WIDTH: u32 = 1_440;
const PANEL: u32 = 400;
/// Height of the strip above a panel, with its title and legend.
const STRIP: u32 = 44;
const TEXT: f64 = 24.0;
const FONT: &str = "sans-serif";
/// Colours that differ on light and dark backgrounds, and for the colour-blind (after Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x1f, 0x83, 0xc4),
    RGBColor(0xe0, 0x6a, 0x10),
    RGBColor(0x10, 0xa0, 0x78),
    RGBColor(0xc8, 0x6d, 0xa0),
    RGBColor(0xb8, 0x93, 0x0a),
    RGBColor(0x80, 0x80, 0x80),
];
const GRID: RGBColor = RGBColor(0x90, 0x90, 0x90);

/// A style sheet that is embedded in each SVG.
pub const STYLE: &str = "svg.figure{color:#1c2126}\
svg.figure .paper{fill:#fff}svg.figure text{fill:currentColor}svg.figure [stroke=\"#000000\"]{stroke:currentColor}\
@media(prefers-color-scheme:dark){svg.figure{color:#dfe3e7}svg.figure .paper{fill:#16191c}}";

/// Draws a figure as SVG; what plotters cannot draw is left out.
pub fn svg(figure: &Figure) -> String {
    let mut text = String::new();
    let panels = figure.panels.len().max(1);
    let height = (PANEL + STRIP) * panels as u32;
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        for (area, panel) in root.split_evenly((panels, 1)).iter().zip(&figure.panels) {
            // Writing to a string cannot fail.
            let _ = draw(area, panel);
        }
        let _ = root.present();
    }
    // The library writes default attributes on every point.
    let text = text
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\" stroke-width=\"1\"", "");
    let size = format!("<svg width=\"{WIDTH}\" height=\"{height}\"");
    let label = format!("Figure {}: {}", figure.number, figure.title);
    let named = format!("<svg class=\"figure\" role=\"img\" aria-label=\"{label}\"");
    text.replacen(&size, &named, 1)
}

/// Draws a figure as an SVG document of its own.
pub fn document(figure: &Figure) -> String {
    let svg = svg(figure);
    let Some(end) = svg.find('>') else { return svg };
    let (head, body) = svg.split_at(end + 1);
    let mut text = head.to_owned();
    let _ = write!(
        text,
        "\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>"
    );
    text + body
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Range of a coordinate, slightly widened.
fn range(panel: &Panel, of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
    let all = || {
        panel
            .series
            .iter()
            .flat_map(|series| &series.points)
            .map(of)
    };
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    if low > high { (0.0, 1.0) } else { (low, high) }
}

fn draw(area: &Area<'_>, panel: &Panel) -> Drawn {
    let (strip, plot) = area.split_vertically(STRIP);
    legend(&strip, panel)?;
    let (left, right) = match panel.names.len() {
        0 => range(panel, |point| point.0),
        groups => (-0.5, groups as f64 - 0.5),
    };
    let (low, high) = range(panel, |point| point.1);
    if panel.logarithmic {
        // Whole decades, so that there are ticks.
        let low = 10f64.powf(low.max(high / 1e6).max(1e-6).log10().floor());
        let high = 10f64.powf(high.max(2.0 * low).log10().ceil());
        let y = (low..high).log_scale();
        return axes(&plot, panel, left..right.max(left + 1e-9), low, y);
    }
    // The axis begins at zero, unless relevant differences would be a small part of the picture.
    let floor = if !panel.names.is_empty() {
        0.0
    } else if low > 0.85 * high && high - low > 0.01 * high {
        low - (high - low) * 0.3
    } else {
        low.min(0.0)
    };
    let floor = if floor < 0.0 && low >= 0.0 {
        0.0
    } else {
        floor
    };
    let top = high + (high - floor).max(1e-9) * 0.06;
    let x = left..right.max(left + 1e-9);
    axes(&plot, panel, x, floor, floor..top)
}

fn axes<Y>(plot: &Area<'_>, panel: &Panel, x: std::ops::Range<f64>, floor: f64, y: Y) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(plot)
        // Half of a rotated label lies in this margin.
        .margin_left(16)
        .margin_right(40)
        .margin_top(8)
        .x_label_area_size(68)
        .y_label_area_size(130)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(&panel.x)
        .y_desc(&panel.y)
        .x_labels(10)
        .y_labels(6)
        .x_label_formatter(&|value| label(panel, *value))
        .y_label_formatter(&|value| number(*value))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.mix(0.35))
        .label_style((FONT, TEXT))
        .axis_desc_style((FONT, TEXT))
        .draw()?;
    let width = 0.8 / panel.series.len().max(1) as f64;
    for (place, (series, colour)) in panel.series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        if !panel.names.is_empty() {
            let bar = |&(group, value): &(f64, f64)| {
                let left = group - 0.4 + width * place as f64;
                Rectangle::new([(left, floor), (left + width, value)], colour.filled())
            };
            chart.draw_series(series.points.iter().map(bar))?;
        } else if series.line {
            let style = ShapeStyle::from(colour).stroke_width(3);
            chart.draw_series(LineSeries::new(series.points.iter().copied(), style))?;
        } else {
            let dot = |point: &(f64, f64)| Circle::new(*point, 3, colour.filled());
            chart.draw_series(series.points.iter().map(dot))?;
        }
    }
    Ok(())
}

/// Label of a tick of the horizontal axis.
fn label(panel: &Panel, value: f64) -> String {
    if panel.names.is_empty() {
        return number(value);
    }
    let is_group = value >= 0.0 && value.fract() == 0.0;
    let name = is_group.then(|| panel.names.get(value as usize)).flatten();
    name.cloned().unwrap_or_default()
}

/// Draws the panel's title and the names of its series, from left to right.
fn legend(strip: &Area<'_>, panel: &Panel) -> Drawn {
    // Without font metrics, the width of a letter is estimated.
    let wide = |text: &str| (text.chars().count() as f64 * TEXT * 0.56) as i32;
    let at = STRIP as i32 - 32;
    let mut x = 130;
    if !panel.title.is_empty() {
        let style = (FONT, TEXT).into_font().style(FontStyle::Bold);
        strip.draw(&Text::new(panel.title.clone(), (x, at), style))?;
        x += wide(&panel.title) + 50;
    }
    let named = |series: &&Series| !series.name.is_empty();
    let all = panel.series.iter().zip(COLOURS.iter().cycle());
    for (series, colour) in all.filter(|(series, _)| named(series)) {
        let middle = at + 12;
        if series.line {
            let line = [(x, middle), (x + 26, middle)];
            strip.draw(&PathElement::new(
                line,
                ShapeStyle::from(colour).stroke_width(5),
            ))?;
        } else {
            strip.draw(&Circle::new((x + 16, middle), 7, colour.filled()))?;
        }
        x += 34;
        strip.draw(&Text::new(series.name.clone(), (x, at), (FONT, TEXT)))?;
        x += wide(&series.name) + 34;
    }
    Ok(())
}

/// A number for an axis, with thousands separators and no unneeded digits.
fn number(value: f64) -> String {
    if value.abs() >= 1000.0 {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (n, digit) in digits.chars().enumerate() {
            if n > 0 && (digits.len() - n).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return if value < 0.0 {
            format!("−{text}")
        } else {
            text
        };
    }
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_it_takes() {
        let all = [0.0, 0.30000000000000004, 25.0, 22800.0, -1234567.0, 0.125];
        let all: Vec<String> = all.into_iter().map(number).collect();
        assert_eq!(all, ["0", "0.3", "25", "22,800", "−1,234,567", "0.125"]);
    }

    #[test]
    fn a_figure_is_one_svg_without_anything_from_elsewhere() {
        let panel = Panel::new("a", "x (ms)", "y (s)")
            .points("dots", vec![(0.0, 1.0), (5.0, 2.0)])
            .line("line", vec![(0.0, 2.0), (5.0, 1.0)]);
        let figure = Figure {
            number: "2.4",
            title: "test",
            caption: String::new(),
            panels: vec![panel.clone(), panel.logarithmic()],
        };
        let svg = document(&figure);
        assert!(svg.starts_with("<svg class=\"figure\"") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<svg").count(), 1);
        assert_eq!(
            svg.matches("http").count(),
            svg.matches("http://www.w3.org/").count()
        );
        assert!(svg.contains("x (ms)") && svg.contains("dots") && svg.contains("polyline"));
    }

    #[test]
    fn a_figure_without_points_is_drawn_too() {
        let figure = Figure {
            number: "2.4",
            title: "none",
            caption: String::new(),
            panels: vec![Panel::new("", "x", "y").points("", Vec::new())],
        };
        assert!(svg(&figure).contains("</svg>"));
    }
}
