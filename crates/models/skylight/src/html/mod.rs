//! What was found as one page: the table, what it means, and the figures. Nothing on it is from elsewhere.

pub mod figures;
mod surfaces;

use crate::examine::Observations;
use crate::finding::Findings;
use crate::report::{advice, rows};
use crate::step::Unfinished;
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1c2126;background:#fff}\
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2.2rem}\
table{border-collapse:collapse}td,th{text-align:left;padding:.25rem 1.2rem .25rem 0;\
border-bottom:1px solid #8884;vertical-align:top}\
figure{margin:2rem 0}figcaption{font-size:.92rem;margin-bottom:.4rem}\
svg.figure{width:100%;height:auto}\
small,.sure{color:#777}\
.unfinished{border-left:.4rem solid #c60;background:#c602;padding:.6rem 1rem}\
@media(prefers-color-scheme:dark){body{color:#dfe3e7;background:#16191c}small,.sure{color:#9aa}}";

/// The page of a drive called `name` with `blocks` blocks. A look that ended early says so in front.
pub fn page(
    name: &str,
    blocks: u64,
    found: &Findings,
    seen: &Observations,
    unfinished: Option<&Unfinished>,
) -> String {
    let name = escape(name);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Skylight: {name}</title>\n<style>{STYLE}{}</style>\n\
         <h1>Skylight: {name}</h1>\n{}<table>\n\
         <tr><th>property<th>found<th>sure</tr>\n",
        plot::STYLE,
        unfinished.map(warning).unwrap_or_default()
    );
    for row in rows(found) {
        let sure = row.confidence.map(|c| format!("{:.0} %", c * 100.0));
        let _ = writeln!(
            text,
            "<tr><td>{}<td>{}<td class=\"sure\">{}</tr>",
            row.property,
            escape(&row.value),
            sure.unwrap_or_default()
        );
    }
    let _ = write!(
        text,
        "</table>\n<p><small>Properties as in table 2.3 of A. Aghayev, Adopting Zoned Storage in \
         Distributed Storage Systems (CMU-CS-20-130), as are the numbers of tests and figures. {} of the \
         drive’s time.</small></p>\n",
        duration(found.seconds)
    );
    let advice = advice(found, blocks);
    if !advice.is_empty() {
        text.push_str("<h2>What it means for you</h2>\n<ul>\n");
        for line in advice {
            let _ = writeln!(text, "<li>{}</li>", escape(&line));
        }
        text.push_str("</ul>\n");
    }
    text.push_str("<h2>What was measured</h2>\n");
    for figure in figures::figures(seen) {
        let _ = writeln!(
            text,
            "<figure id=\"figure-{}\">\n<figcaption><b>Figure {}. {}.</b> {}</figcaption>\n{}</figure>",
            figure.number,
            figure.number,
            escape(figure.title),
            escape(&figure.caption),
            plot::svg(&figure)
        );
    }
    text.push_str("</html>\n");
    text
}

fn warning(unfinished: &Unfinished) -> String {
    format!(
        "<p class=\"unfinished\"><b>Not all was done: {}.</b><br>Missing, or not to the end: {}.</p>\n",
        escape(&unfinished.reason),
        escape(&unfinished.missing.join("; "))
    )
}

fn duration(seconds: f64) -> String {
    if seconds < 7_200.0 {
        format!("{:.0} minutes", seconds / 60.0)
    } else {
        format!("{:.1} hours", seconds / 3600.0)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
