//! Mounts that accept damage.

use super::*;

/// Reported as lost when a damaged frame may have held more than is known.
const NOT_ALL_IS_KNOWN: &str = "the file system";

impl Past {
    /// A damaged drive can be read, and the damage is reported until a mount accepts it. All files not reported as lost
    /// are there, except those that only the damaged frame named.
    pub(super) fn accept(
        &self,
        damaged: &Arc<MemoryDrive>,
        untouched: &[Vec<u8>],
        blocks: &[(ZoneAddress, Vec<u8>)],
        seen: &mut Seen,
        told: &str,
    ) {
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        let refused = BlueFs::mount(damaged.clone(), pool_of(&**damaged), read_only);
        assert!(refused.is_err(), "{told}");
        let pool = pool_of(&**damaged);
        let fs = mount_in(damaged.clone(), pool, true).unwrap();
        assert!(!fs.check(false).unwrap().is_clean(), "{told}");
        let lost = fs.losses().unwrap();
        assert!(image(damaged) == untouched, "{told}: written to");
        drop(fs);
        let accepting = MountOptions {
            accept_damage: true,
            ..MountOptions::default()
        };
        let pool = pool_of(&**damaged);
        let fs = BlueFs::mount(damaged.clone(), pool, accepting).unwrap();
        let told = format!("{told}: {lost:?}");
        let check = fs.check(false).unwrap();
        assert!(check.is_clean(), "{told}: accepting {check:?}");
        drop(fs);
        let fs = mount(damaged.clone()).unwrap();
        let check = fs.check(false).unwrap();
        assert!(check.is_clean(), "{told}: afterwards {check:?}");
        self.is_right_or_named(&fs, &lost, blocks, seen, &told);
    }

    fn is_right_or_named(
        &self,
        fs: &BlueFs,
        lost: &[Loss],
        blocks: &[(ZoneAddress, Vec<u8>)],
        seen: &mut Seen,
        told: &str,
    ) {
        let is_named = |path: &str| lost.iter().any(|loss| loss.path == path);
        let states = || self.before.iter().chain([&self.all]);
        let mut unnamed = 0;
        for path in NAMES {
            let found = fs.exists(path).then(|| read(fs, path));
            if let Some(Err(error)) = &found {
                // Damaged data of an SST; a deep check reports it.
                assert!(matches!(error, Error::Corrupt { .. }), "{told}: {error}");
                assert!(!fs.check(true).unwrap().is_clean(), "{told}");
                continue;
            }
            let found = found.map(Result::unwrap);
            if found.as_ref() == self.all.get(path) {
                continue;
            }
            if let Some(found) = &found {
                // Content of this file, under this name or an earlier one.
                let mut was = states().flat_map(BTreeMap::values);
                assert!(was.any(|was| was.starts_with(found)), "{told}: {path}");
            }
            // No mark covers the last step.
            let last = self.before.first().filter(|_| !self.clean);
            if is_named(path) || last.is_some_and(|last| last.get(path) == found.as_ref()) {
                continue;
            }
            // The records of a log prove that it exists.
            let is_known_of = |loss: &Loss| loss.path.contains("whose name is");
            let is_log = !path.ends_with("sst") && !path.ends_with("CURRENT");
            let was_shorter = found.is_some() && self.all.contains_key(path);
            if blocks.len() == 1 && is_log {
                assert!(!was_shorter, "{told}: {path} is shorter");
                let is_gone = found.is_none();
                assert!(!is_gone || lost.iter().any(is_known_of), "{told}: {path}");
            }
            unnamed += 1;
        }
        assert!(unnamed == 0 || is_named(NOT_ALL_IS_KNOWN), "{told}");
        seen.named_by_nothing += unnamed;
    }
}
