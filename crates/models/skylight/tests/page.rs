//! The page of a drive: all figures that its tests can fill, in one file that needs no other.

use drive_model::Span;
use skylight::target::limits::Limits;
use skylight::{
    Findings, Model, Options, Target, TargetError, Unfinished, examine, examine_for_figures, html,
};
use std::sync::atomic::Ordering;

const OPTIONS: Options = Options {
    quick: false,
    seed: 1,
};

fn shown(page: &str) -> Vec<&str> {
    let figures = page.split("<figure id=\"figure-").skip(1);
    figures.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_seagate_drives_page_has_every_figure() {
    let mut model = Model::named("st5000as0011", 1).unwrap();
    let (found, seen, result) = examine_for_figures(&mut model, OPTIONS, &mut |_| {});
    assert_eq!(result, Ok(()));
    let page = html::page("a <drive>", model.blocks(), &found, &seen, None);
    let all = [
        "2.4", "2.7", "2.8", "2.10", "2.12", "2.13", "2.15", "2.16", "2.17", "2.18", "2.19",
        "2.21", "2.22", "2.26",
    ];
    assert_eq!(shown(&page), all);
    assert!(page.len() < 3 << 20, "{}", page.len());
    assert!(page.contains("a &lt;drive&gt;") && !page.contains("a <drive>"));
    for elsewhere in ["<script", "<link", "<img", "src=", "url(", "@import"] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    // Namespaces of the format are allowed; links are not.
    assert_eq!(
        page.matches("http").count(),
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count()
    );
    // Every axis has a unit.
    assert_eq!(page.matches("NaN").count(), 0);
    for unit in [
        "latency (ms)",
        "throughput (MB/s)",
        "place on the drive (TB)",
        "size of a write (KiB)",
    ] {
        assert!(page.contains(unit), "{unit}");
    }
}

/// The additional requests for figures change no finding.
#[test]
fn figures_change_no_finding() {
    let look = |figures: bool| {
        let mut model = Model::named("st5000as0011", 1).unwrap();
        let (found, _, result) = if figures {
            examine_for_figures(&mut model, OPTIONS, &mut |_| {})
        } else {
            examine(&mut model, OPTIONS, &mut |_| {})
        };
        assert_eq!(result, Ok(()));
        found
    };
    let (with, without) = (look(true), look(false));
    assert!(with.seconds > without.seconds);
    let seconds = without.seconds;
    assert_eq!(Findings { seconds, ..with }, without);
}

#[test]
fn a_conventional_drives_page_has_the_figures_of_its_tests() {
    let mut model = Model::named("seagate-cmr", 1).unwrap();
    let (found, seen, result) = examine_for_figures(&mut model, OPTIONS, &mut |_| {});
    assert_eq!(result, Ok(()));
    let page = html::page("x", model.blocks(), &found, &seen, None);
    assert_eq!(shown(&page), ["2.4", "2.22", "2.26"]);
}

/// A model that is stopped, by its own clock or from outside, keeps its findings, and its page says so at the top.
#[test]
fn a_page_says_that_a_look_ended_early_and_what_is_missing() {
    let limits = Limits {
        budget: Some(Span::from_seconds(300.0)),
        ..Limits::default()
    };
    let model = Model::named("st5000as0011", 1).unwrap();
    let mut model = model.with_limits(limits);
    let mut step = String::new();
    let (found, seen, result) = examine_for_figures(&mut model, OPTIONS, &mut |next| {
        step = next.into();
    });
    assert_eq!(result, Err(TargetError::TimeOver));
    assert!(found.drive_type.is_some() && found.stream_bytes.is_none());
    assert!((300.0..301.0).contains(&found.seconds), "{}", found.seconds);
    let why = result.unwrap_err().to_string();
    let unfinished = Unfinished::new(why, &step, &found, true, false);
    let page = html::page("x", model.blocks(), &found, &seen, Some(&unfinished));
    let (front, _) = page.split_once("<table>").unwrap();
    assert!(front.contains("the time given is over"), "{front}");
    assert!(front.contains(&step) && front.contains("test 15, streaming"));
    assert!(!front.contains("test 1, drive type"), "{front}");
}

#[test]
fn a_model_stops_when_somebody_wants_it_to() {
    let limits = Limits::default();
    let interrupted = limits.interrupted.clone();
    let model = Model::named("st5000as0011", 1).unwrap();
    let mut model = model.with_limits(limits);
    let (found, _, result) = examine(&mut model, OPTIONS, &mut |step| {
        interrupted.store(step.starts_with("test 3"), Ordering::Relaxed);
    });
    assert_eq!(result, Err(TargetError::Interrupted));
    assert!(found.cache_place.is_some() && found.cleaning.is_none());
}
