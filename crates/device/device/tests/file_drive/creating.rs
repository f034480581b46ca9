use super::*;

#[test]
fn creating_refuses_what_is_there_and_leaves_nothing_behind() {
    let place = place();
    let directory = place.path.parent().unwrap();
    std::fs::write(&place.path, b"precious").unwrap();
    let error = FileDrive::create(&place.path, &geometry(), "").unwrap_err();
    assert!(matches!(error, FileDriveError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read(&place.path).unwrap(), b"precious");
    let other = directory.join("other");
    let error = FileDrive::create(&other, &geometry(), &"n".repeat(64)).unwrap_err();
    assert!(
        matches!(
            error,
            FileDriveError::NameTooLong {
                length: 64,
                max: 63,
                ..
            }
        ),
        "{error}"
    );
    let error = FileDrive::create(directory.join("no/where"), &geometry(), "").unwrap_err();
    assert!(matches!(error, FileDriveError::Io { .. }), "{error}");
    let impossible = Geometry {
        block_size: 1000,
        ..geometry()
    };
    let error = FileDrive::create(&other, &impossible, "").unwrap_err();
    assert!(matches!(error, FileDriveError::Geometry(_)), "{error}");
    let many = Geometry {
        zone_size: 4096,
        zone_capacity: 4096,
        zone_count: 1 << 25,
        ..geometry()
    };
    let error = FileDrive::create(&other, &many, "").unwrap_err();
    assert!(
        matches!(error, FileDriveError::TooManyZones { .. }),
        "{error}"
    );
    let beyond = Geometry {
        zone_size: 1 << 59,
        zone_count: 16,
        ..geometry()
    };
    let error = FileDrive::create(&other, &beyond, "").unwrap_err();
    assert!(!matches!(error, FileDriveError::Io { .. }), "{error}");
    let left: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.zoned"]);
}

#[test]
fn what_was_chosen_at_creation_is_found_again() {
    let place = place();
    let uuid = DriveUuid([0xab; 16]);
    let options = CreateOptions {
        profile_name: "p".repeat(63),
        label: "Prüfstand 3".into(),
        uuid: Some(uuid),
    };
    drop(FileDrive::create_with(&place.path, &geometry(), options).unwrap());
    let drive = FileDrive::open(&place.path).unwrap();
    assert_eq!((drive.uuid(), drive.label()), (uuid, "Prüfstand 3"));
    assert_eq!(drive.profile_name(), "p".repeat(63));
    assert_eq!(
        drive.uuid().to_string(),
        "abababab-abab-abab-abab-abababababab"
    );
    assert_eq!(drive.geometry(), &geometry());
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn a_drive_appears_once_it_is_filled() {
    let place = place();
    let directory = place.path.parent().unwrap();
    let create = |fill: &dyn Fn(&FileDrive) -> Result<(), FileDriveError>| {
        FileDrive::create_filled(&place.path, &geometry(), "", |drive| {
            let memory = drive.host_memory().unwrap();
            memory.write(0, b"x").unwrap();
            assert!(!place.path.exists());
            fill(&drive)
        })
    };
    create(&|_| Err(FileDriveError::Exists { path: "x".into() })).unwrap_err();
    assert_eq!(names(directory), [""; 0]);
    create(&|_| Ok(())).unwrap();
    assert_eq!(names(directory), ["a.zoned"]);
    FileDrive::open(&place.path).unwrap();
}

#[test]
fn what_killed_creations_left_is_removed_by_the_next() {
    let place = place();
    let directory = place.path.parent().unwrap();
    let left = |name: &str, digit: u8| {
        let name = format!(".{name}.{}.new", DriveUuid([digit; 16]));
        let file = File::create_new(directory.join(&name)).unwrap();
        (name, file)
    };
    let (killed, _) = left("a.zoned", 1);
    File::create_new(directory.join(format!("{killed}.unsynced"))).unwrap();
    let (made_now, lock) = left("a.zoned", 2);
    lock.lock().unwrap();
    let (of_another, _) = left("b.zoned", 3);
    drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
    assert_eq!(names(directory), [made_now, of_another, "a.zoned".into()]);
}
