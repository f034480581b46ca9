//! The file of a model's state: what else may stand under its name.

use drive_model::state::StateError;
use drive_model::{AnyProfile, StateFile, StateFileError, Time};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn profile() -> AnyProfile {
    AnyProfile::named("seagate-cmr").unwrap()
}

/// Goes on with the drive in a file, as a command does.
fn go_on(path: &Path) -> Time {
    let file = StateFile::open(path).unwrap();
    let (model, start) = file.start(&profile(), 1).unwrap();
    let end = Time::from_nanos(start.nanos() + 1_000);
    file.save(&profile(), &*model, end).unwrap();
    start
}

/// A state goes to the file that a link leads to, whether or not it is there already.
#[test]
fn links_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (link, big) = (folder.path().join("s"), folder.path().join("big"));
    fs::create_dir(&big).unwrap();
    symlink("big/other", &link).unwrap();
    symlink("s", big.join("other")).unwrap();
    for nanos in [0, 1_000] {
        assert_eq!(go_on(&link), Time::from_nanos(nanos));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(
            fs::symlink_metadata(big.join("other"))
                .unwrap()
                .is_symlink()
        );
        assert!(StateFile::is_one(&big.join("s")));
    }
    // What was created and not saved goes; the links do not.
    fs::remove_file(big.join("s")).unwrap();
    drop(StateFile::open(&link).unwrap());
    assert!(!big.join("s").exists());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_device_is_neither_replaced_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let null = folder.path().join("null");
    let made = Command::new("mknod")
        .arg(&null)
        .args(["c", "1", "3"])
        .status();
    if !made.is_ok_and(|made| made.success()) {
        println!("only root makes devices");
        return;
    }
    let link = folder.path().join("link");
    symlink("null", &link).unwrap();
    let before = fs::symlink_metadata(&null).unwrap();
    for path in [&null, &link] {
        let source = match StateFile::open(path).map(|_| ()) {
            Err(StateFileError::State { source, .. }) => source,
            other => panic!("{other:?}"),
        };
        assert_eq!(source, StateError::NotAState);
    }
    let after = fs::symlink_metadata(&null).unwrap();
    assert!(after.file_type().is_char_device());
    assert_eq!(after.ino(), before.ino());
}

/// An empty file is a new drive; a command that keeps no state leaves the file there.
#[test]
fn an_empty_file_of_the_users_is_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    fs::write(&path, b"").unwrap();
    drop(StateFile::open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    assert_eq!(go_on(&path), Time::START);
    assert!(StateFile::is_one(&path));
}

#[test]
fn mode_and_owner_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    fs::write(&path, b"").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    // Only root can give a file away.
    let _ = std::os::unix::fs::chown(&path, Some(1_234), Some(1_235));
    let owned = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        (found.mode() & 0o7777, found.uid(), found.gid())
    };
    let before = owned(&path);
    assert_eq!(before.0, 0o640);
    go_on(&path);
    assert_eq!(owned(&path), before);
}
