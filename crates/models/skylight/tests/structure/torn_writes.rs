use super::*;

/// Test 13: static mapping that streams is torn sooner or later, and other drives never are. Without a switch for the
/// power there is no test.
#[test]
fn only_static_mapping_that_streams_is_torn() {
    let torn = |name: &str| {
        let mut model = Model::named(name, 3).unwrap();
        let seen = t13_torn_writes::workload(&mut model).unwrap().unwrap();
        t13_torn_writes::infer(&seen).unwrap()
    };
    assert!(torn("st5000as0011").value);
    for name in ["emulated-smr-1", "emulated-smr-3", "wd40nmzw"] {
        let torn = torn(name);
        assert!(!torn.value && torn.confidence < 1.0, "{name}: {torn:?}");
    }
}

/// Twelve cuts of 4 GiB each would go past the end of a drive of less than 60 GB.
#[test]
fn a_small_drive_is_torn_within_its_size() {
    for gigabytes in [17, 20, 59] {
        let mut profile = Profile::named("st5000as0011").unwrap();
        profile.capacity_bytes = gigabytes * 1_000_000_000;
        let mut model = Model::new(profile, 3).unwrap();
        let seen = t13_torn_writes::workload(&mut model).unwrap().unwrap();
        assert!(t13_torn_writes::infer(&seen).unwrap().value, "{gigabytes}");
    }
    // A drive that is never torn takes all twelve cuts.
    let mut profile = Profile::named("emulated-smr-1").unwrap();
    profile.capacity_bytes = 20_000_000_000;
    let mut model = Model::new(profile, 3).unwrap();
    let seen = t13_torn_writes::workload(&mut model).unwrap().unwrap();
    assert_eq!(seen.cuts.len(), 12);
}

/// A drive whose power cannot be switched, which counts the requests that it gets.
struct Wired(Model, u64);

impl Target for Wired {
    fn blocks(&self) -> u64 {
        self.0.blocks()
    }
    fn now(&self) -> Time {
        self.0.now()
    }
    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let count = &mut self.1;
        self.0
            .run(depth, &mut requests.inspect(|_| *count += 1), watch)
    }
    fn pause(&mut self, span: Span) {
        self.0.pause(span);
    }
    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.0.set_volatile_cache(on)
    }
    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.0.set_look_ahead(on)
    }
    fn erase(&mut self) -> bool {
        self.0.erase()
    }
}

#[test]
fn without_a_switch_for_the_power_nothing_is_written_for_it() {
    let mut target = Wired(Model::named("st5000as0011", 3).unwrap(), 0);
    assert_eq!(t13_torn_writes::workload(&mut target), Ok(None));
    assert_eq!(target.1, 0);
    let found = Findings {
        drive_type: Some(Finding::new(DriveType::DriveManaged, 1.0)),
        sequential_bytes_per_second: Some((2e8, 1e8)),
        ..Findings::default()
    };
    let rows = rows(&found);
    let torn = rows.iter().find(|row| row.property == "Torn writes");
    assert!(torn.unwrap().value.starts_with("not tested"));
}
