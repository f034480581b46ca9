//! The state of a drive model (docs/format/model-state.md). A right checksum in front of somebody's own model is
//! not looked at: a state is trusted like a program. So whatever is changed of a whole one has to be refused.

#![no_main]

use drive_model::{AnyProfile, Time, state};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

fn whole() -> &'static (AnyProfile, Vec<u8>) {
    static WHOLE: OnceLock<(AnyProfile, Vec<u8>)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let profile = AnyProfile::named("seagate-cmr").expect("a profile of ours");
        let model = profile.model(1).expect("its drive");
        let bytes = state::save(&profile, &*model, Time::START).expect("its state");
        (profile, bytes)
    })
}

fuzz_target!(|input: &[u8]| {
    let (profile, whole) = whole();
    assert!(state::load(profile, input).is_err());
    // Two bytes say where, the rest what is changed there; an odd place cuts off as well.
    let Some((place, change)) = input.split_first_chunk::<2>() else {
        return;
    };
    let place = usize::from(u16::from_le_bytes(*place));
    let mut changed = whole.clone();
    let from = place / 2 % changed.len();
    changed[from..]
        .iter_mut()
        .zip(change)
        .for_each(|(byte, change)| *byte ^= change);
    if place % 2 == 1 {
        changed.truncate(from + change.len());
    }
    if changed != *whole {
        assert!(state::load(profile, &changed).is_err());
    }
});
