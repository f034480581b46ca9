//! What is on the screen, on terminals of any size.

#[path = "../../inspect/tests/common/mod.rs"]
mod common;

use common::{sample, zone};
use inspect::{Owner, Snapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use zone_map::{View, draw};

fn drawn(snapshot: &Snapshot, view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, snapshot, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect())
        .collect()
}

#[test]
fn a_small_terminal_shows_all_parts() {
    let screen = drawn(&sample(), &View::default(), 80, 24);
    let all = screen.join("\n");
    for part in [
        "d.zoned: 16 zones of 1 MiB, 3 files, in use by db_bench (pid 7)",
        "active 3 of 4 <- nearest limit",
        "zones, a zone each",
        "WAL",
        "most dead bytes, 2 zones",
        "q leaves",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    // Superblocks, a full SST, one that is half full and empty zones.
    assert!(all.contains("     0  □□□ □□□ ▁▁▁ ▄▄▄ "), "{all}");
    assert!(all.contains("··· ··· "), "{all}");
}

#[test]
fn in_ascii_digits_say_how_full_a_zone_is() {
    let view = View {
        ascii: true,
        ..View::default()
    };
    for width in [60, 80, 200] {
        let all = drawn(&sample(), &view, width, 24).join("\n");
        assert!(all.is_ascii(), "{width}\n{all}");
        assert!(all.contains("     0  ___ ___ 111 444 "), "{width}\n{all}");
        assert!(all.contains(" zones, a zone each --"), "{width}\n{all}");
        let words = all.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("digits are eighths"), "{width}\n{all}");
    }
}

#[test]
fn without_colours_letters_say_whose_a_zone_is() {
    let view = View {
        letters: true,
        ..View::default()
    };
    for width in [60, 80, 200] {
        // Lines are broken where the width demands it.
        let screen = drawn(&sample(), &view, width, 24).join("\n");
        let all = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "SSS SSS JJJ WWW ",
            "W WAL",
            "small letters",
            "active 3 of 4",
            "of 13",
        ] {
            assert!(all.contains(part), "{width} {part}\n{screen}");
        }
    }
}

#[test]
fn the_map_fills_its_room_and_can_have_the_whole_screen() {
    let mut snapshot = sample();
    snapshot.zones = (0..2000).map(|n| zone(n, Owner::Sst, 1 << 20, 0)).collect();
    let signs = |view: &View, width| {
        let screen = drawn(&snapshot, view, width, 50).join("\n");
        (screen.matches('█').count(), screen)
    };
    let whole = View {
        map_only: true,
        ..View::default()
    };
    for width in [60, 80, 200] {
        let (part, _) = signs(&View::default(), width);
        let (all, screen) = signs(&whole, width);
        let least = usize::from(width) * 50 / 4;
        assert!(
            all >= least.min(2000) && all > part,
            "{width}: {all} {part}\n{screen}"
        );
        assert!(!screen.contains("most dead"), "{screen}");
    }
}

#[test]
fn the_list_of_dead_bytes_begins_with_the_most_and_scrolls() {
    let mut snapshot = sample();
    snapshot.zones = (0..40)
        .map(|n| zone(n, Owner::Sst, 1 << 19, 1000))
        .collect();
    for zone in &mut snapshot.zones {
        zone.dead_bytes = Some(u64::from(zone.zone.0) * 1024);
    }
    let top = drawn(&snapshot, &View::default(), 100, 30).join("\n");
    assert!(top.contains("zone     39  SST") && !top.contains("zone     20"));
    let view = View {
        scrolled: 19,
        ..View::default()
    };
    let below = drawn(&snapshot, &view, 100, 30).join("\n");
    assert!(below.contains("zone     20") && !below.contains("zone     39"));
}

#[test]
fn so_many_zones_with_dead_bytes_are_listed() {
    let mut snapshot = sample();
    snapshot.zones = (0..1 << 16)
        .map(|n| zone(n, Owner::Sst, 1 << 19, 1000))
        .collect();
    let screen = drawn(&snapshot, &View::default(), 100, 30).join("\n");
    assert!(screen.contains("zone      0  SST"), "{screen}");
}

#[test]
fn more_zones_than_fit_share_cells_and_that_is_said() {
    let mut snapshot = sample();
    snapshot.zones = (0..60_000).map(|n| zone(n, Owner::Unused, 0, 0)).collect();
    let screen = drawn(&snapshot, &View::default(), 80, 24).join("\n");
    assert!(screen.contains("zones each"), "{screen}");
}

#[test]
fn a_problem_is_shown_and_no_size_is_too_small() {
    let view = View {
        problem: Some("the drive is gone".to_owned()),
        ..View::default()
    };
    let screen = drawn(&sample(), &view, 80, 24).join("\n");
    assert!(screen.contains("the drive is gone"));
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 200), (300, 3)] {
        drawn(&sample(), &view, width, height);
    }
}
