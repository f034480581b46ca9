//! A plug-in, which is loaded when a program asks its library for the default.

use crate::caller::module;
use libc::{RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym};
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::OnceLock;

pub(crate) struct Plugin {
    /// The environment variable that names the plug-in's file.
    variable: &'static str,
    /// Symbol of the function that returns the library's default.
    default: &'static CStr,
    /// Prefix of the file name of the library that the plug-in is for.
    library: &'static str,
    /// Symbol of the plug-in's function that is called instead.
    answer: &'static CStr,
    loaded: OnceLock<Option<Loaded>>,
}

#[derive(Clone, Copy)]
struct Loaded {
    answer: usize,
    /// Address of the default's function in the library that the plug-in is linked with.
    default: usize,
}

impl Plugin {
    pub const fn new(
        variable: &'static str,
        default: &'static CStr,
        library: &'static str,
        answer: &'static CStr,
    ) -> Self {
        Self {
            variable,
            default,
            library,
            answer,
            loaded: OnceLock::new(),
        }
    }

    /// The plug-in's function to call instead of `theirs`; `None` if `theirs` is of a library that the plug-in was not
    /// built for.
    pub fn answer(&self, theirs: *mut c_void) -> Option<*mut c_void> {
        let of = module(theirs).filter(|module| !module.dli_fname.is_null())?;
        // SAFETY: the loader's name of a file.
        let file = unsafe { CStr::from_ptr(of.dli_fname) }.to_str().ok()?;
        let file = Path::new(file).file_name()?.to_str()?;
        if !file.starts_with(self.library) {
            return None;
        }
        // Loaded before the lock is taken: the thread that holds the loader's lock may wait for this one, in a constructor
        // of a library that calls this, too. A second load changes nothing.
        let loaded = match self.loaded.get() {
            Some(loaded) => loaded,
            None => {
                let loaded = self.load();
                self.loaded.get_or_init(|| loaded)
            }
        };
        let loaded = loaded.as_ref()?;
        let is_for = loaded.default == theirs.addr();
        is_for.then(|| std::ptr::with_exposed_provenance_mut(loaded.answer))
    }

    fn load(&self) -> Option<Loaded> {
        let path = std::env::var_os(self.variable)?;
        let path = CString::new(path.into_vec()).ok()?;
        // SAFETY: plain calls of the loader with names that end; the plug-in is never unloaded.
        let loaded = unsafe {
            let handle = dlopen(path.as_ptr(), RTLD_NOW | RTLD_LOCAL);
            if handle.is_null() {
                let why = CStr::from_ptr(dlerror()).to_string_lossy();
                eprintln!("zonestore: {why}");
                return None;
            }
            let of = |name: &CStr| dlsym(handle, name.as_ptr()).expose_provenance();
            Loaded {
                answer: of(self.answer),
                default: of(self.default),
            }
        };
        (loaded.answer != 0).then_some(loaded)
    }
}
