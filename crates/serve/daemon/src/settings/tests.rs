use super::*;
use s3::{Right, Rights};
use std::fs;
use std::os::unix::fs::PermissionsExt;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, mode: u32, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn load(&self, text: &str) -> Result<Vec<Key>, SettingsError> {
        Settings::load(&self.write("zonestore.toml", 0o600, text))?.keys()
    }
}

fn key(text: &str) -> String {
    format!("[[key]]\naccess_key = \"a\"\nsecret_key = \"12345678\"\n{text}\n")
}

#[test]
fn keys_have_the_rights_that_they_are_given() {
    let folder = Folder::new();
    folder.write("b.secret", 0o600, "a secret of b\n");
    let text = "admin = true\n[[key]]\naccess_key = \"b\"\nsecret_file = \"b.secret\"\n\
                rights = [{ bucket = \"logs-*\", may = [\"read\", \"list\"] }]";
    let keys = folder.load(&key(text)).unwrap();
    let [a, b] = &keys[..] else {
        panic!("{keys:?}")
    };
    assert_eq!(
        (a.credentials.access_key(), &a.rights),
        ("a", &Rights::Admin)
    );
    assert_eq!(b.credentials.access_key(), "b");
    let Rights::Granted(grants) = &b.rights else {
        panic!("{b:?}")
    };
    assert_eq!(grants[0].may, [Right::Read, Right::List].into());
}

#[test]
fn keys_that_are_not_whole_are_refused() {
    let folder = Folder::new();
    let rights = "rights = [{ bucket = \"b\", may = [\"read\"] }]";
    for (text, why) in [
        (key(""), "it may do nothing"),
        (key(&format!("admin = true\n{rights}")), "leave out one"),
        (key("rights = [{ bucket = \"b\" }]"), "bucket and may"),
        (
            key("admin = true\nsecret_file = \"x\""),
            "either secret_key",
        ),
        (key("admin = true") + &key("admin = true"), "there twice"),
        ("[[key]]\nadmin = true".to_owned(), "no access_key"),
        ("[[key]]\naccess_key = \"a/b\"".to_owned(), "letters"),
        (
            "[[key]]\naccess_key = \"a\"\nadmin = true\nsecret_key = \"1234567\"".to_owned(),
            "fewer than 8",
        ),
    ] {
        let error = folder.load(&text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("1234567"), "{error}");
    }
}

#[test]
fn files_with_secrets_are_their_owners_alone() {
    let folder = Folder::new();
    let path = folder.write("zonestore.toml", 0o644, &key("admin = true"));
    let readable = |loaded: Result<_, SettingsError>| {
        matches!(
            loaded,
            Err(SettingsError::File(FileError::Readable { mode: 0o644, .. }))
        )
    };
    assert!(readable(Settings::load(&path).map(|_| ())));
    let text = "[[key]]\naccess_key = \"a\"\nsecret_file = \"a.secret\"\nadmin = true\n";
    folder.write("a.secret", 0o644, "12345678");
    let path = folder.write("zonestore.toml", 0o644, text);
    assert!(readable(Settings::load(&path).unwrap().keys().map(|_| ())));
    folder.write("a.secret", 0o600, "12345678");
    assert_eq!(Settings::load(&path).unwrap().keys().unwrap().len(), 1);
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    for (text, why) in [
        ("[tls]\ncertificate = \"a.pem\"", "both certificate and key"),
        ("[limits.key]\nrequests = 0", "let nobody in"),
    ] {
        let error = folder.load(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn paths_begin_where_the_configuration_is() {
    let folder = Folder::new();
    let text = "[serve]\ndrive = \"d.zoned\"\n[log]\naccess = \"/var/log/access.log\"";
    let path = folder.write("zonestore.toml", 0o644, text);
    let file = Settings::load(&path).unwrap().file;
    assert_eq!(file.serve.drive, Some(folder.0.path().join("d.zoned")));
    assert_eq!(file.log.access, Some("/var/log/access.log".into()));
}

#[test]
fn what_is_said_above_wins() {
    let above = parse("[serve]\ns3 = \"a:1\"").unwrap().serve;
    let below = parse("[serve]\ns3 = \"b:2\"\ncreate = true").unwrap().serve;
    let both = above.over(below);
    assert_eq!((both.s3.as_deref(), both.create), (Some("a:1"), Some(true)));
}
