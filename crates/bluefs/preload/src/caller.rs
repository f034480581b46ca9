//! Finds the caller's module, and the function that it would call if this library were not preloaded.

use libc::{Dl_info, RTLD_LAZY, RTLD_NEXT, RTLD_NOLOAD, dladdr, dlopen, dlsym};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;

unsafe extern "C" {
    // From the library that unwinds panics.
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}
const GO_ON: c_int = 0;
const STOP: c_int = 4;

/// The module (program or library) that an address lies in.
pub(crate) fn module(address: *const c_void) -> Option<Dl_info> {
    let mut info = MaybeUninit::<Dl_info>::zeroed();
    // SAFETY: it fills `info` if it answers other than zero.
    let found = unsafe { dladdr(address, info.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is a value too.
    found.then(|| unsafe { info.assume_init() })
}

fn is_ours(module: &Dl_info) -> bool {
    static HERE: u8 = 0;
    self::module((&raw const HERE).cast()).is_some_and(|here| here.dli_fbase == module.dli_fbase)
}

/// The module of the first function on the stack that is not of this library.
fn caller() -> Option<Dl_info> {
    extern "C" fn each(frame: *mut c_void, found: *mut c_void) -> c_int {
        // SAFETY: the frame is the one that we are called with. In front of where it goes on is the call.
        let at = unsafe { _Unwind_GetIP(frame) }.wrapping_sub(1);
        match module(std::ptr::without_provenance(at)) {
            Some(module) if is_ours(&module) => GO_ON,
            module => {
                // SAFETY: `found` is what is handed over below.
                unsafe { *found.cast::<Option<Dl_info>>() = module };
                STOP
            }
        }
    }
    let mut found: Option<Dl_info> = None;
    // SAFETY: it keeps nothing of it.
    unsafe { _Unwind_Backtrace(each, (&raw mut found).cast()) };
    found
}

/// The function called `name` that the caller would reach without this library: its own, or that of a library it is
/// linked with.
///
/// If the caller is the program itself, the next one after this library in the loader's order.
pub(crate) fn without_us(name: &CStr) -> *mut c_void {
    // SAFETY: plain calls of the loader with names that end. Nothing is loaded, and no library goes away
    // that somebody is calling us from.
    let found = unsafe {
        let of_caller = caller()
            .map(|caller| dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD))
            .filter(|handle| !handle.is_null())
            .map(|handle| dlsym(handle, name.as_ptr()))
            .filter(|found| !module(*found).is_none_or(|module| is_ours(&module)));
        of_caller.unwrap_or_else(|| dlsym(RTLD_NEXT, name.as_ptr()))
    };
    if found.is_null() {
        eprintln!("zonestore: {name:?} is called, and nothing but zonestore's library has it");
        std::process::abort();
    }
    found
}
