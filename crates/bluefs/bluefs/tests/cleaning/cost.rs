//! What cleaning ahead of need costs in bytes moved, and how many waits it saves.

use super::*;

/// Cost of a history in which most of the deleted files are young.
struct Cost {
    /// Number of files whose write had to wait until data had been moved.
    waits: u64,
    moved: u64,
    amplification: f64,
}

fn history(percent_live: u64, cleaning: Option<Cleaning>) -> Cost {
    let mut g = geometry(256, 0, 14);
    (g.zone_size, g.zone_capacity) = (128 << 10, 128 << 10);
    let fs = mount_with(support::formatted(g), cleaning);
    let mut state = 1u64;
    let mut random = |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let most = fs.usage().capacity_bytes * percent_live / 100;
    let mut files: Vec<(String, u64)> = Vec::new();
    let (mut live, mut waits) = (0, 0);
    for i in 0..4000u64 {
        let size = 512 + random(31_000);
        while live + size > most {
            let count = files.len() as u64;
            let is_young = random(10) < 8;
            let age = random(if is_young { count / 5 + 1 } else { count });
            let (name, size) = files.remove((count - 1 - age.min(count - 1)) as usize);
            fs.delete(&name).unwrap();
            live -= size;
        }
        let in_need = || {
            let s = fs.statistics();
            s.moved_bytes_written - s.moved_ahead_bytes_written
        };
        let (name, before) = (format!("/{i:06}.sst"), in_need());
        let mut writer = fs.create(&name).unwrap();
        writer.set_lifetime([Lifetime::Medium, Lifetime::Long][(i % 2) as usize]);
        writer.append(&vec![i as u8; size as usize]).unwrap();
        writer.sync().unwrap();
        writer.close().unwrap();
        waits += u64::from(in_need() > before);
        files.push((name, size));
        live += size;
        while fs.clean_ahead().unwrap() {}
    }
    assert_clean(&fs);
    let s = fs.statistics();
    Cost {
        waits,
        moved: s.moved_bytes_written,
        amplification: s.bytes_written() as f64 / s.bytes_asked() as f64,
    }
}

#[test]
fn nobody_waits_for_a_move_when_zones_are_cleaned_ahead_of_need() {
    for percent_live in [70, 90] {
        let stepwise = Cleaning {
            in_background: false,
            ..Cleaning::default()
        };
        let [without, with] = [None, Some(stepwise)].map(|c| history(percent_live, c));
        for (name, cost) in [("in need", &without), ("ahead", &with)] {
            println!(
                "{percent_live} % live, {name}: {} files waited, {} KiB moved, written {:.2} times",
                cost.waits,
                cost.moved >> 10,
                cost.amplification
            );
        }
        assert!(without.waits > 100);
        assert_eq!(with.waits, 0);
        assert!(with.amplification < without.amplification * 1.25);
    }
}
