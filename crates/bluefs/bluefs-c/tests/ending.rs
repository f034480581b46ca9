//! The end of a process, which this test's own process stands for.

use bluefs_c as _;

unsafe extern "C" {
    fn zs_fs_unmount_all();
}

/// One thread unmounts and goes on or ends, and the process ends by another, which unmounts, too.
#[test]
fn a_second_thread_that_ends_the_process_comes_back() {
    // SAFETY: it may be called at any time.
    let unmount = || unsafe { zs_fs_unmount_all() };
    std::thread::spawn(unmount).join().unwrap();
    unmount();
}
