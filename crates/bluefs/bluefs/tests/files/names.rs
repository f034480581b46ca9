//! Names of files and directories: creation, rename, link, listing and removal.

use super::*;

#[test]
fn names_do_what_names_do() {
    let (device, fs) = fresh();
    fs.create_directory("/db").unwrap();
    assert!(matches!(
        fs.create_directory("/db/"),
        Err(Error::Exists { .. })
    ));
    assert!(matches!(fs.create("/nope/x"), Err(Error::NotFound { .. })));
    assert!(matches!(fs.list("/nope"), Err(Error::NotFound { .. })));
    put(&fs, "/db/CURRENT", b"MANIFEST-1");
    put(&fs, "/db/tmp", b"MANIFEST-2");
    fs.rename("/db/tmp", "/db/CURRENT").unwrap();
    fs.link("/db/CURRENT", "/db/other").unwrap();
    assert!(matches!(
        fs.link("/db/CURRENT", "/db/other"),
        Err(Error::Exists { .. })
    ));
    assert_eq!(fs.metadata("/db/other").unwrap().links, 2);
    assert!(fs.is_same("/db/CURRENT", "/db/other").unwrap());
    assert!(!fs.is_same("/db", "/db/other").unwrap());
    fs.create_directory("/db/log").unwrap();
    assert!(fs.is_same("/db/log", "/db//log/").unwrap());
    assert!(!fs.is_same("/db", "/db/log").unwrap());
    assert!(matches!(
        fs.is_same("/db", "/nope"),
        Err(Error::NotFound { .. })
    ));
    fs.remove_directory("/db/log").unwrap();
    fs.delete("/db/CURRENT").unwrap();
    assert_eq!(read(&fs, "/db/other"), b"MANIFEST-2");
    assert!(matches!(
        fs.remove_directory("/db"),
        Err(Error::DirectoryNotEmpty { .. })
    ));
    fs.rename("/db", "/db2").unwrap();
    fs.sync_metadata().unwrap();
    fs.unmount().unwrap();
    assert!(matches!(fs.create("/late"), Err(Error::Unmounted)));
    let fs = mount(&device);
    assert_eq!(fs.list("/").unwrap(), ["db2"]);
    assert_eq!(fs.list("/db2").unwrap(), ["other"]);
    assert_eq!(read(&fs, "/db2//./other"), b"MANIFEST-2");
    assert!(fs.metadata("/db2").unwrap().is_directory);
    fs.lock("/db2/LOCK").unwrap();
    assert!(matches!(fs.lock("/db2/LOCK"), Err(Error::Locked { .. })));
    fs.unlock("/db2/LOCK");
    fs.lock("/db2/LOCK").unwrap();
}
