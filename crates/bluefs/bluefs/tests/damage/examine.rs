//! Runs a history, and checks what must hold after damage.

use super::*;

impl Past {
    pub(super) fn new(history: History<'_>, conventional: u32, active: u32, clean: bool) -> Self {
        Self::in_copies(1, history, conventional, active, clean)
    }

    /// Runs the history on a drive with `copies` copies.
    pub(super) fn in_copies(
        copies: u32,
        history: History<'_>,
        conventional: u32,
        active: u32,
        clean: bool,
    ) -> Self {
        let device = Arc::new(MemoryDrive::new(geometry(40, conventional, active)).unwrap());
        format_copies(&*device, Role::Alone, copies);
        let mut pair = Pair::new(device.clone()).unwrap();
        let mut before = Vec::new();
        let mut snapshots = Vec::new();
        for steps in history {
            before.insert(0, contents(&pair.fs));
            for step in *steps {
                pair.step(*step).unwrap();
            }
            snapshots.push(device.snapshot());
        }
        let all = contents(&pair.fs);
        if clean {
            pair.fs.unmount().unwrap();
        }
        let mut blocks = Vec::new();
        for (zone, _) in pair.fs.zones() {
            let report = device.report_zone(zone).unwrap();
            let used = if report.write_pointer_valid() {
                report.write_pointer
            } else {
                report.capacity
            };
            let places = (0..used).step_by(BLOCK);
            let places = places.map(|offset| ZoneAddress::new(zone, offset));
            blocks.extend(places.filter(|at| block(&device, *at) != [0; BLOCK]));
        }
        Self {
            device,
            snapshots,
            all,
            before,
            blocks,
            clean,
            name: format!("{history:?} {conventional} {active} {clean}"),
        }
    }

    /// Asserts that after damage all files are right, or the damage is reported.
    pub(super) fn examine(&self, what: &str, blocks: &[(ZoneAddress, Vec<u8>)], seen: &mut Seen) {
        let damaged = changed(&self.device, blocks);
        let told = format!("{}: {what}", self.name);
        let untouched = image(&damaged);
        let fs = match mount(damaged.clone()) {
            Ok(fs) => fs,
            Err(error) if error.is_damage() => {
                seen.refused += 1;
                assert!(image(&damaged) == untouched, "{told}: written to");
                return self.accept(&damaged, &untouched, blocks, seen, &told);
            }
            Err(error) => panic!("{told}: {error}"),
        };
        let found = match readable(&fs) {
            Ok(found) => found,
            // Reading a whole SST compares its checksum.
            Err(Error::Corrupt { .. }) => {
                seen.reported += 1;
                assert!(!fs.check(true).unwrap().is_clean(), "{told}");
                return;
            }
            Err(error) => panic!("{told}: {error}"),
        };
        if found == self.all {
            seen.all_there += 1;
        } else if !fs.check(true).unwrap().is_clean() {
            seen.reported += 1;
        } else {
            seen.last_step_missing += 1;
            let sizes = |files: &BTreeMap<&str, Vec<u8>>| -> Vec<_> {
                files
                    .iter()
                    .map(|(n, f)| (n.to_string(), f.len()))
                    .collect()
            };
            // No mark covers the last step. If the damage hits that step too, there may be no mark left that covers the
            // step before.
            let earlier = &self.snapshots[self.snapshots.len() - 2];
            let is_last = |at: &ZoneAddress| block(earlier, *at) != block(&self.device, *at);
            let may_miss = blocks
                .len()
                .min(1 + blocks.iter().filter(|(at, _)| is_last(at)).count());
            assert!(
                !self.clean && self.before[..may_miss].contains(&found),
                "{told}: {:?} of {:?}",
                sizes(&found),
                sizes(&self.all)
            );
        }
    }
}
