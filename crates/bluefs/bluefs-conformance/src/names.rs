//! Scenarios with names of files and directories, and with a read-only mount.

use super::{Suite, mount};
use bluefs::Error;

/// Calls that take paths, including those that must fail.
pub(super) fn names(suite: &mut Suite) {
    suite.directory("/d");
    suite.directory("/d/e");
    for (path, length) in [
        ("/a.sst", 5000),
        ("/d/b.sst", 1),
        ("/d/e/c.sst", 70_000),
        ("/d/none", 0),
    ] {
        suite.put(path, length).unwrap();
    }
    refused(suite);
    // To an existing name, into another directory, to its own name.
    for (from, to) in [("/a.sst", "/d/b.sst"), ("/d/b.sst", "/z"), ("/z", "/z")] {
        suite.fs.rename(from, to).unwrap();
        if from != to {
            suite.tree.rename(from, to);
        }
    }
    suite.compare();
    // A second name outlives the first.
    for (from, to) in [("/z", "/d/second"), ("/d/e/c.sst", "/third")] {
        suite.fs.link(from, to).unwrap();
        suite.tree.link(from, to);
        assert!(suite.fs.is_same(from, to).unwrap());
        suite.fs.rename(from, to).unwrap();
    }
    suite.compare();
    suite.delete("/z");
    suite.put("/third", 9000).unwrap();
    assert!(!suite.fs.is_same("/d/e/c.sst", "/third").unwrap());
    // A directory is renamed with everything in it, and to its own name without any effect.
    suite.fs.rename("/d", "/d/").unwrap();
    suite.fs.rename("/d", "/moved").unwrap();
    suite.tree.rename_directory("/d", "/moved");
    suite.compare();
    // An open file can be read after its last name is removed.
    let open = suite.fs.open("/third").unwrap();
    let content = suite.tree.content("/third").clone();
    suite.delete("/third");
    content.compare("/third", &open, &mut suite.random);
    cut_and_appended(suite, "/moved/e/c.sst");
    suite.delete("/moved/e/c.sst");
    suite.fs.remove_directory("/moved/e").unwrap();
    suite.tree.remove_directory("/moved/e");
    suite.fs.sync_metadata().unwrap();
}

fn refused(suite: &Suite) {
    let fs = &suite.fs;
    let missing = |result| assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    missing(fs.delete("/none"));
    missing(fs.rename("/none", "/a.sst"));
    missing(fs.link("/none", "/other"));
    missing(fs.truncate("/none", 0));
    missing(fs.open("/none").map(drop));
    missing(fs.create("/none/a").map(drop));
    missing(fs.list("/none").map(drop));
    let taken = |result| assert!(matches!(result, Err(Error::Exists { .. })), "{result:?}");
    taken(fs.create_directory("/d"));
    taken(fs.create_directory("/a.sst"));
    taken(fs.link("/a.sst", "/d/b.sst"));
    taken(fs.rename("/d", "/d/e/f"));
    let is_directory = |result| {
        assert!(
            matches!(result, Err(Error::IsDirectory { .. })),
            "{result:?}"
        )
    };
    is_directory(fs.create("/d").map(drop));
    is_directory(fs.rename("/a.sst", "/d"));
    let full = fs.remove_directory("/d");
    assert!(
        matches!(full, Err(Error::DirectoryNotEmpty { .. })),
        "{full:?}"
    );
    fs.lock("/d/LOCK").unwrap();
    assert!(matches!(fs.lock("/d/LOCK"), Err(Error::Locked { .. })));
    fs.unlock("/d/LOCK");
}

fn cut_and_appended(suite: &mut Suite, path: &str) {
    for size in [69_999, 40_960, 1, 0] {
        suite.fs.truncate(path, size).unwrap();
        let stream = suite.tree.new_stream();
        let content = suite.tree.content(path);
        content.truncate(size, stream);
        let mut writer = suite.fs.reopen(path).unwrap();
        writer.append(&content.grow(6000)).unwrap();
        writer.close().unwrap();
    }
    let longer = suite.fs.truncate(path, 1 << 30);
    assert!(matches!(longer, Err(Error::Invalid { .. })), "{longer:?}");
}

/// A read-only mount shows everything and changes nothing.
pub(super) fn read_only(suite: &mut Suite) {
    suite.put("/kept.sst", 10_000).unwrap();
    suite.fs.unmount().unwrap();
    let before = suite.device.report(zone::ZoneId(0), u32::MAX).unwrap();
    let fs = mount(&suite.device, true, 0).unwrap();
    suite.tree.compare(&fs, &mut suite.random);
    let refused = [
        fs.create("/new").map(drop),
        fs.delete("/kept.sst"),
        fs.truncate("/kept.sst", 1),
        fs.create_directory("/new"),
        fs.sync_metadata(),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::ReadOnly)), "{result:?}");
    }
    fs.unmount().unwrap();
    assert_eq!(
        suite.device.report(zone::ZoneId(0), u32::MAX).unwrap(),
        before
    );
    suite.mount();
}
