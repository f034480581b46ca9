//! Random changes of a few objects on a drive and in a model, compared after each; mounts again in between.

use crate::support::{formatted, mount};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use store::Store;
use swift_drive::{Address, Ages, Error, Hashes, ObjectHash, PolicyKind, Put, Suffix, SwiftDrive};
use swift_files::{FileName, Kind, Reclaim, SuffixHash, Timestamp, Wanted, choose};

const AGE: u64 = 50;
const NOW: u64 = 1000;
const RECLAIM: Reclaim = Reclaim { age: AGE, now: NOW };
/// No commit is on its way.
const AGES: Ages = Ages {
    reclaim: RECLAIM,
    committing_since: u64::MAX,
};

type Files = BTreeMap<FileName, (Vec<u8>, Vec<u8>)>;

struct Model {
    kind: PolicyKind,
    objects: BTreeMap<(u32, ObjectHash), Files>,
    changed: BTreeSet<(u32, Suffix)>,
}

impl Model {
    fn policy(&self) -> swift_files::Policy<'static> {
        match self.kind {
            PolicyKind::Replication => swift_files::Policy::Replication,
            PolicyKind::ErasureCoding => swift_files::Policy::ErasureCoding(Wanted::default()),
        }
    }

    fn change(&mut self, at: Address, to: impl FnOnce(&mut Files)) {
        let files = self.objects.entry((at.partition, at.hash)).or_default();
        to(files);
        if files.is_empty() {
            self.objects.remove(&(at.partition, at.hash));
        }
        self.changed.insert((at.partition, at.hash.suffix()));
    }

    fn names(&self, at: Address) -> Vec<FileName> {
        let files = self.objects.get(&(at.partition, at.hash));
        files.map_or_else(Vec::new, |files| files.keys().copied().collect())
    }

    /// Of a partition; takes what is too old from suffixes that have changed.
    fn hashes(&mut self, partition: u32) -> Hashes {
        let policy = self.policy();
        for ((_, hash), files) in self
            .objects
            .iter_mut()
            .filter(|((of, _), _)| *of == partition)
        {
            if self.changed.contains(&(partition, hash.suffix())) {
                let names: Vec<FileName> = files.keys().copied().collect();
                let going = choose(&names, policy).reclaim(RECLAIM, |_| false);
                files.retain(|file, _| !going.contains(file));
            }
        }
        self.objects.retain(|_, files| !files.is_empty());
        self.changed.retain(|(of, _)| *of != partition);
        let mut hashes: BTreeMap<Suffix, SuffixHash> = BTreeMap::new();
        for ((_, hash), files) in self.objects.iter().filter(|((of, _), _)| *of == partition) {
            let names: Vec<FileName> = files.keys().copied().collect();
            hashes
                .entry(hash.suffix())
                .or_default()
                .add(&choose(&names, policy));
        }
        hashes
            .into_iter()
            .map(|(suffix, hash)| (suffix, hash.finish(policy)))
            .collect()
    }
}

fn some_address(dice: &mut Rng) -> Address {
    let mut hash = [0; 16];
    hash[0] = dice.u8(..3);
    hash[14] = dice.u8(..2) << 4;
    hash[15] = dice.u8(..2);
    Address {
        policy: 3,
        partition: dice.u32(..3) * 2_000_000_000,
        hash: ObjectHash::new(hash),
    }
}

fn some_file(dice: &mut Rng, kind: PolicyKind) -> FileName {
    let time = |dice: &mut Rng| {
        let ticks = if dice.bool() {
            NOW - dice.u64(..8)
        } else {
            NOW - AGE - dice.u64(..8)
        };
        Timestamp::new(ticks, dice.u64(..2)).unwrap()
    };
    let file = match dice.u32(..5) {
        0 => Kind::Tombstone,
        1 => Kind::Meta {
            content_type: dice
                .bool()
                .then(|| Timestamp::new(NOW - dice.u64(..8), 0).unwrap()),
        },
        _ if kind == PolicyKind::Replication => Kind::Data,
        _ => Kind::Fragment {
            index: dice.u32(..3),
            is_durable: dice.u32(..4) == 0,
        },
    };
    // As its name says it: a content type of the same moment has the same offset.
    FileName {
        timestamp: time(dice),
        kind: file,
    }
    .to_string()
    .parse()
    .unwrap()
}

fn put(swift: &SwiftDrive, store: &Store, model: &mut Model, dice: &mut Rng) {
    let (at, file) = (some_address(dice), some_file(dice, model.kind));
    let has_data = matches!(file.kind, Kind::Data | Kind::Fragment { .. });
    let length = if has_data {
        [0, 10, 3000, 70_000][dice.usize(..4)]
    } else {
        0
    };
    let data: Vec<u8> = std::iter::repeat_with(|| dice.u8(..))
        .take(length)
        .collect();
    let metadata = format!("{}", dice.u64(..)).into_bytes();
    let written = has_data.then(|| {
        let mut writer = store.writer(Some(length as u64)).unwrap();
        writer.write(&data).unwrap();
        writer.finish().unwrap()
    });
    let done = swift.put(at, file, written, metadata.clone()).unwrap();
    let mut names = model.names(at);
    names.retain(|name| *name != file);
    names.push(file);
    let obsolete = choose(&names, model.policy()).obsolete;
    if obsolete.contains(&file) {
        assert_eq!(done, Put::Obsolete);
        return;
    }
    assert_eq!(done, Put::Done);
    model.change(at, |files| {
        files.insert(file, (data, metadata));
        files.retain(|name, _| !obsolete.contains(name));
    });
}

fn make_durable(swift: &SwiftDrive, model: &mut Model, dice: &mut Rng) {
    let at = some_address(dice);
    let Some(file) = dice.choice(model.names(at)) else {
        return;
    };
    let Kind::Fragment { index, .. } = file.kind else {
        assert!(matches!(
            swift.make_durable(at, file),
            Err(Error::NoFile { .. })
        ));
        return;
    };
    swift.make_durable(at, file).unwrap();
    let durable = FileName {
        kind: Kind::Fragment {
            index,
            is_durable: true,
        },
        ..file
    };
    if file == durable {
        return;
    }
    let policy = model.policy();
    model.change(at, |files| {
        let found = files.remove(&file).unwrap();
        files.insert(durable, found);
        let names: Vec<FileName> = files.keys().copied().collect();
        let obsolete = choose(&names, policy).obsolete;
        files.retain(|name, _| !obsolete.contains(name));
    });
}

fn compare_object(swift: &SwiftDrive, model: &Model, at: Address) {
    let names = model.names(at);
    let opened = match swift.open(at, Wanted::default()) {
        Err(Error::NoObject) => return assert!(names.is_empty()),
        opened => opened.unwrap(),
    };
    let sorted = |files: &[FileName]| files.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(sorted(&opened.files), sorted(&names));
    let choice = choose(&names, model.policy());
    let files = &model.objects[&(at.partition, at.hash)];
    let metadata = |file: Option<FileName>| file.map(|file| files[&file].1.clone());
    assert_eq!(opened.metadata.data, metadata(choice.data));
    assert_eq!(opened.metadata.meta, metadata(choice.meta));
    assert_eq!(opened.metadata.content_type, metadata(choice.content_type));
    assert_eq!(opened.metadata.tombstone, metadata(choice.tombstone));
    assert_eq!(opened.reader.is_some(), choice.data.is_some());
    if let (Some(reader), Some(data)) = (opened.reader, choice.data) {
        let mut bytes = Vec::new();
        reader.range(0..u64::MAX).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, files[&data].0);
    }
}

fn compare_all(swift: &SwiftDrive, model: &mut Model, again: &[Suffix]) {
    let with_suffix: BTreeSet<u32> = model
        .objects
        .keys()
        .map(|(partition, _)| *partition)
        .collect();
    let partitions = swift.partitions(3, 0, 10).unwrap();
    assert!(with_suffix.is_subset(&partitions.into_iter().collect()));
    for partition in [0, 2_000_000_000, 4_000_000_000] {
        model
            .changed
            .extend(again.iter().map(|suffix| (partition, *suffix)));
        let changed = model
            .changed
            .iter()
            .filter(|(of, _)| *of == partition)
            .count();
        let (found, computed) = swift.hashes(3, partition, again, AGES).unwrap();
        assert_eq!(found, model.hashes(partition));
        assert!(computed <= changed, "{computed} of {changed}");
        let suffixes: BTreeSet<Suffix> = found.iter().map(|(suffix, _)| *suffix).collect();
        assert_eq!(
            swift.suffixes(3, partition).unwrap(),
            suffixes.iter().copied().collect::<Vec<_>>()
        );
        for suffix in suffixes {
            for (hash, files) in swift.objects(3, partition, suffix).unwrap() {
                let names = model.names(Address {
                    policy: 3,
                    partition,
                    hash,
                });
                assert_eq!(
                    files.into_iter().collect::<BTreeSet<_>>(),
                    names.into_iter().collect()
                );
            }
        }
    }
}

fn run(kind: PolicyKind, seed: u64, steps: u32) {
    let mut dice = Rng::with_seed(seed);
    let drive = formatted();
    let mut store = mount(&drive);
    let mut swift = SwiftDrive::new(store.clone());
    assert!(matches!(
        swift.files(some_address(&mut dice)),
        Err(Error::NoPolicy { policy: 3 })
    ));
    swift.add_policy(3, kind).unwrap();
    swift.add_policy(3, kind).unwrap();
    let mut model = Model {
        kind,
        objects: BTreeMap::new(),
        changed: BTreeSet::new(),
    };
    for step in 0..steps {
        match dice.u32(..40) {
            0..=24 => put(&swift, &store, &mut model, &mut dice),
            25..=29 => make_durable(&swift, &mut model, &mut dice),
            30..=31 => {
                let at = some_address(&mut dice);
                let file = dice.choice(model.names(at));
                let file = file.unwrap_or_else(|| some_file(&mut dice, kind));
                let is_there = model.names(at).contains(&file);
                let is_gone = swift.remove_all(at, &[file], None, true);
                assert_eq!(is_gone.unwrap(), is_there);
                if is_there {
                    model.change(at, |files| drop(files.remove(&file)));
                }
            }
            32 => {
                let at = some_address(&mut dice);
                let is_there = !model.names(at).is_empty();
                assert_eq!(swift.quarantine(at, None).is_ok(), is_there);
                if is_there {
                    model.change(at, Files::clear);
                }
            }
            33..=36 => compare_all(&swift, &mut model, &[]),
            37 => compare_all(&swift, &mut model, &[some_address(&mut dice).hash.suffix()]),
            38 => {
                if dice.bool() {
                    store.unmount().unwrap();
                } else {
                    // Nobody has waited for hashes to be durable.
                    let all = model.objects.keys().map(|(of, hash)| (*of, hash.suffix()));
                    model.changed.extend(all.collect::<Vec<_>>());
                }
                drop((swift, store));
                store = mount(&drive);
                swift = SwiftDrive::new(store.clone());
            }
            _ => {
                let at = some_address(&mut dice);
                let file = some_file(&mut dice, other(kind));
                if matches!(file.kind, Kind::Data | Kind::Fragment { .. }) {
                    let refused = swift.put(at, file, None, Vec::new());
                    assert!(matches!(refused, Err(Error::WrongFile { .. })), "{step}");
                }
            }
        }
        compare_object(&swift, &model, some_address(&mut dice));
    }
    compare_all(&swift, &mut model, &[]);
    assert!(matches!(
        swift.add_policy(3, other(kind)),
        Err(Error::OtherPolicy { .. })
    ));
}

const fn other(kind: PolicyKind) -> PolicyKind {
    match kind {
        PolicyKind::Replication => PolicyKind::ErasureCoding,
        PolicyKind::ErasureCoding => PolicyKind::Replication,
    }
}

#[test]
fn replication() {
    (0..8).for_each(|seed| run(PolicyKind::Replication, seed, 500));
}

#[test]
fn erasure_coding() {
    (0..8).for_each(|seed| run(PolicyKind::ErasureCoding, seed, 500));
}
