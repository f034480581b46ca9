use super::*;

/// In the environment: this process is the victim of the next test and writes to this drive,
/// counting its rounds from that number.
const VICTIM: &str = "DEVICE_TEST_VICTIM";

const FIRST_ROUND: &str = "DEVICE_TEST_FIRST_ROUND";

/// Blocks of a zone. Writes are large, so that most kills hit the middle of one.
const KILL_BLOCKS: u64 = 1024;

fn kill_geometry() -> Geometry {
    Geometry {
        zone_size: KILL_BLOCKS * 4096,
        zone_capacity: KILL_BLOCKS * 4096,
        zone_count: 10,
        max_open_zones: 0,
        max_active_zones: 0,
        ..geometry()
    }
}

/// Not a test of its own: what is killed by the next one. Two threads write, finish and reset, and
/// print the round of each zone after its reset was answered.
#[test]
fn victim() {
    let Ok(path) = std::env::var(VICTIM) else {
        return;
    };
    let first_round: u64 = std::env::var(FIRST_ROUND).unwrap().parse().unwrap();
    let drive = FileDrive::open(path).unwrap();
    let g = kill_geometry();
    std::thread::scope(|scope| {
        for first in [2, 3] {
            let (drive, g) = (&drive, &g);
            scope.spawn(move || {
                for round in first_round.. {
                    for zone in (first..g.zone_count).step_by(2) {
                        drive.reset(ZoneId(zone)).unwrap();
                        println!("reset {zone} {round}");
                        let mut block = 0;
                        while block < KILL_BLOCKS {
                            let blocks = (block * 7 + round * 97) % 300;
                            let blocks = 1 + blocks % if block % 3 == 0 { 300 } else { 12 };
                            let end = (block + blocks).min(KILL_BLOCKS);
                            let data: Vec<u8> = (block..end)
                                .flat_map(|block| told(zone, round, block))
                                .collect();
                            let at = g.start(ZoneId(zone)).0 + block * 4096;
                            drive.write(ByteOffset(at), &data).unwrap();
                            println!("wrote {zone} {round} {end}");
                            // From then on small writes are found by their data.
                            if blocks % 3 == 0 {
                                drive.flush().unwrap();
                            }
                            block = end;
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn a_killed_process_leaves_everything_answered_and_only_whole_blocks() {
    let place = place();
    let g = kill_geometry();
    drop(FileDrive::create(&place.path, &g, "").unwrap());
    for lines in [1, 20, 30, 40, 50, 60, 70, 80, 90, 200] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(only("killed::victim"))
            .env(VICTIM, &place.path)
            .env(FIRST_ROUND, (lines * 1_000_000).to_string())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut answered: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut note = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["reset", zone, round] => {
                    answered.insert(zone.parse().unwrap(), (round.parse().unwrap(), 0));
                }
                ["wrote", zone, round, end] => {
                    let progress = (round.parse().unwrap(), end.parse().unwrap());
                    answered.insert(zone.parse().unwrap(), progress);
                }
                _ => {}
            }
        };
        let mut output = output.lines().map(Result::unwrap);
        output.by_ref().take(lines + 3).for_each(|line| note(&line));
        child.kill().unwrap();
        // What was still in the pipe had been answered too; its last line may be cut short.
        let rest: Vec<String> = output.collect();
        rest.iter()
            .take(rest.len().saturating_sub(1))
            .for_each(|line| note(line));
        child.wait().unwrap();
        assert!(!answered.is_empty(), "killed before it wrote");

        let drive = FileDrive::open(&place.path).unwrap();
        for (zone, (round, blocks)) in &answered {
            let pointer = drive.report_zone(ZoneId(*zone)).unwrap().write_pointer / 4096;
            let mut found = vec![0; (pointer * 4096) as usize];
            if pointer > 0 {
                drive.read(g.start(ZoneId(*zone)), &mut found).unwrap();
            }
            // At least what was answered, or the next round's reset and more.
            let found_round = if pointer == 0 {
                None
            } else {
                Some(u64::from_le_bytes(found[8..16].try_into().unwrap()) - 1)
            };
            match found_round {
                Some(found_round) if found_round == *round => assert!(pointer >= *blocks),
                Some(found_round) => {
                    assert!(
                        *blocks == KILL_BLOCKS && found_round == round + 1,
                        "zone {zone} went back"
                    );
                }
                None => assert!(
                    *blocks == 0 || *blocks == KILL_BLOCKS,
                    "zone {zone} lost {blocks} blocks"
                ),
            }
            for (block, bytes) in found.chunks(4096).enumerate() {
                let expected = told(*zone, found_round.unwrap(), block as u64);
                assert!(bytes == expected, "zone {zone}, block {block} of {pointer}");
            }
        }
        assert!(!answered.is_empty());
    }
}
