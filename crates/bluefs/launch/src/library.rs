//! Finds ZoneStore's libraries, and the value of `LD_PRELOAD` for one.

use crate::error::Error;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One of ZoneStore's plug-in libraries.
pub struct Library {
    /// Its file name.
    pub file: &'static str,
    /// The environment variable that names another file to use.
    pub variable: &'static str,
    /// Where programs for it come from, for messages.
    pub programs: &'static str,
}

impl Library {
    /// The path of the file that its variable names, or else of its own.
    pub fn find(&self) -> Result<PathBuf, Error> {
        let variable = self.variable;
        if let Some(named) = env::var_os(variable).filter(|named| !named.is_empty()) {
            let path = std::fs::canonicalize(&named).map_err(|source| Error::NamedLibrary {
                variable,
                path: named.into(),
                source,
            })?;
            return self.preloadable(path);
        }
        self.find_file(self.file)
    }

    /// The path of one of ZoneStore's libraries, beside this program or in `../lib/zonestore`.
    pub fn find_file(&self, file: &'static str) -> Result<PathBuf, Error> {
        let folder = env::current_exe()
            .ok()
            .and_then(|path| std::fs::canonicalize(path).ok())
            .and_then(|path| path.parent().map(Path::to_owned))
            .unwrap_or_default();
        let places = [
            folder.join(file),
            folder.join("../lib/zonestore").join(file),
        ];
        for place in &places {
            if let Ok(path) = std::fs::canonicalize(place) {
                return self.preloadable(path);
            }
        }
        Err(Error::NoLibrary {
            file,
            folder,
            variable: (file == self.file).then_some(self.variable),
        })
    }

    /// The loader splits LD_PRELOAD at spaces and colons; a path with either would be lost silently.
    fn preloadable(&self, path: PathBuf) -> Result<PathBuf, Error> {
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.iter().any(|byte| matches!(byte, b' ' | b':')) {
            let variable = self.variable;
            return Err(Error::NotPreloadable { path, variable });
        }
        Ok(path)
    }
}

/// `LD_PRELOAD` with a library added at the end: the library of a sanitizer has to remain the first.
pub fn preload(library: &Path, existing: Option<OsString>) -> OsString {
    match existing.filter(|existing| !existing.is_empty()) {
        Some(mut existing) => {
            existing.push(":");
            existing.push(library);
            existing
        }
        None => library.as_os_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_already_stays_first() {
        let library = Path::new("/l.so");
        assert_eq!(preload(library, None), "/l.so");
        assert_eq!(preload(library, Some("".into())), "/l.so");
        assert_eq!(preload(library, Some("/asan.so".into())), "/asan.so:/l.so");
    }

    #[test]
    fn a_variable_is_named_only_for_the_library_that_it_can_name() {
        let library = Library {
            file: "nowhere.so",
            variable: "ZONESTORE_NO_SUCH_VARIABLE",
            programs: "",
        };
        for (missing, named) in [
            (library.find(), Some(library.variable)),
            (library.find_file("other.so"), None),
        ] {
            let Err(Error::NoLibrary { variable, .. }) = missing else {
                panic!("{missing:?}");
            };
            assert_eq!(variable, named);
        }
    }

    #[test]
    fn paths_that_cannot_be_preloaded_are_refused() {
        let library = Library {
            file: "l.so",
            variable: "L",
            programs: "",
        };
        for path in ["/a b/l.so", "/a:b/l.so"] {
            let refused = library.preloadable(path.into());
            assert!(matches!(refused, Err(Error::NotPreloadable { .. })));
        }
    }
}
