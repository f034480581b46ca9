//! Sends NVMe commands through the kernel's passthrough (`linux/nvme_ioctl.h`), one by a system call or many by
//! a ring (since Linux 5.19). The only unsafe code of this back end; the structures have the kernel's layout.

use crate::rings::Rings;
use io_uring::opcode::UringCmd80;
use io_uring::{cqueue, squeue, types};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;

const GROUP: u8 = b'N';
/// Results of a kernel that takes no commands by ring, or not from this process.
const NO_RINGS: [i32; 4] = [
    -libc::EOPNOTSUPP,
    -libc::EINVAL,
    -libc::ENOTTY,
    -libc::EACCES,
];
/// Status code type and status code; the other bits say whether to retry.
const STATUS_MASK: i32 = 0x7ff;

/// A command without its result, as it is placed in a ring.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Command {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    rsvd2: u32,
}

impl Command {
    /// The bytes of the command in a ring entry.
    fn bytes(self) -> [u8; 80] {
        // SAFETY: the fields leave no gaps (4 of 4 bytes, 2 of 8, 10 of 4), so every byte is initialised.
        let bytes: [u8; 72] = unsafe { std::mem::transmute(self) };
        let mut entry = [0; 80];
        entry[..bytes.len()].copy_from_slice(&bytes);
        entry
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PassthruCommand64 {
    command: Command,
    result: u64,
}

const _: () = assert!(size_of::<Command>() == 72 && size_of::<PassthruCommand64>() == 80);

const NAMESPACE_ID: Opcode = opcode::none(GROUP, 0x40);
const ADMIN: Opcode = opcode::read_write::<PassthruCommand64>(GROUP, 0x47);
const IO: Opcode = opcode::read_write::<PassthruCommand64>(GROUP, 0x48);
const RING_IO: Opcode = opcode::read_write::<Command>(GROUP, 0x80);

/// The status of a refused command: status code type and status code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Status(pub u16);

/// Why a command failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The drive refused it.
    Status(Status),
    /// The kernel refused it.
    System(Errno),
}

/// The queue that a command is sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    Admin,
    Io,
}

/// The data of a command and its direction.
pub(super) enum Data<'a> {
    None,
    ToDrive(&'a [u8]),
    FromDrive(&'a mut [u8]),
}

/// The fields of a command.
#[derive(Clone, Copy, Default)]
pub(super) struct Words {
    pub opcode: u8,
    pub nsid: u32,
    /// Double words 10 and 11: most often a block address.
    pub cdw10: u64,
    pub cdw12: u32,
    pub cdw13: u32,
}

/// A system call whose result is its return value.
struct Call<'a> {
    opcode: Opcode,
    command: Option<&'a mut PassthruCommand64>,
}

// SAFETY: the opcodes are those of the kernel's header for this structure or for no argument, and
// the kernel writes nothing but the structure's result, and the data that it points to.
unsafe impl Ioctl for Call<'_> {
    type Output = IoctlOutput;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.command
            .as_deref_mut()
            .map_or(std::ptr::null_mut(), |command| {
                std::ptr::from_mut(command).cast()
            })
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> rustix::io::Result<IoctlOutput> {
        Ok(out)
    }
}

/// The namespace id of an open device.
pub(super) fn namespace_id(file: &File) -> Result<u32, Errno> {
    let call = Call {
        opcode: NAMESPACE_ID,
        command: None,
    };
    // SAFETY: the call takes no argument.
    let id = unsafe { ioctl(file, call) }?;
    u32::try_from(id).map_err(|_| Errno::INVAL)
}

/// Sends one command and waits; returns its result, which is 0 if the command has none.
pub(super) fn submit(
    file: &File,
    queue: Queue,
    words: Words,
    data: Data<'_>,
) -> Result<u64, Failure> {
    submit_by(words, data, |command| {
        let call = Call {
            opcode: match queue {
                Queue::Admin => ADMIN,
                Queue::Io => IO,
            },
            command: Some(command),
        };
        // SAFETY: `addr` and `data_len` are a slice that is borrowed until the call is over,
        // mutably where the opcode's lowest two bits say that data comes from the drive.
        unsafe { ioctl(file, call) }
    })
}

/// As [`submit`], by the system call `call`. `EINTR` is no signal there: the kernel has cancelled the command after a
/// timeout or a reset of the controller, and the drive may have executed it. One that only reads is repeated, once.
fn submit_by(
    words: Words,
    data: Data<'_>,
    mut call: impl FnMut(&mut PassthruCommand64) -> Result<i32, Errno>,
) -> Result<u64, Failure> {
    let reads = matches!(data, Data::FromDrive(_));
    let mut command = PassthruCommand64 {
        command: command(words, data).ok_or(Failure::System(Errno::INVAL))?,
        result: 0,
    };
    let status = match call(&mut command) {
        Err(Errno::INTR) if reads => call(&mut command),
        status => status,
    };
    match status.map_err(Failure::System)? & STATUS_MASK {
        0 => Ok(command.result),
        status => Err(Failure::Status(Status(status as u16))),
    }
}

/// Builds the command in the kernel's layout; `None` if it has too many bytes.
fn command(words: Words, data: Data<'_>) -> Option<Command> {
    let (addr, length) = match data {
        Data::None => (0, 0),
        Data::ToDrive(bytes) => (bytes.as_ptr() as u64, bytes.len()),
        Data::FromDrive(bytes) => (bytes.as_mut_ptr() as u64, bytes.len()),
    };
    Some(Command {
        opcode: words.opcode,
        nsid: words.nsid,
        addr,
        data_len: u32::try_from(length).ok()?,
        cdw10: words.cdw10 as u32,
        cdw11: (words.cdw10 >> 32) as u32,
        cdw12: words.cdw12,
        cdw13: words.cdw13,
        ..Default::default()
    })
}

/// Rings for NVMe commands.
pub(super) type CommandRings = Rings<squeue::Entry128, cqueue::Entry32>;

/// Sends commands that fill buffers, in parallel if the kernel supports it; returns for each whether it
/// succeeded. The caller repeats failed ones with [`submit`], which returns the error.
pub(super) fn submit_many(
    file: &File,
    rings: &CommandRings,
    commands: &mut [(Words, &mut [u8])],
) -> Vec<bool> {
    let entry = |(words, buffer): &mut (Words, &mut [u8])| {
        let command = command(*words, Data::FromDrive(buffer))?;
        let fd = types::Fd(file.as_raw_fd());
        Some(UringCmd80::new(fd, RING_IO).cmd(command.bytes()).build())
    };
    let nothing = vec![false; commands.len()];
    let Some(mut entries) = commands.iter_mut().map(entry).collect::<Option<Vec<_>>>() else {
        return nothing;
    };
    // SAFETY: file and buffers are borrowed for as long as this function runs, the buffers mutably,
    // and no more than their length is asked for.
    let Some(answers) = (unsafe { rings.run(&mut entries) }) else {
        return nothing;
    };
    if are_never_taken(&answers) {
        rings.give_up();
    }
    answers.iter().map(|answer| *answer == 0).collect()
}

/// Whether these results say that the kernel does not support commands by ring. A reset of the controller cancels all
/// commands, too, and the next ones succeed.
fn are_never_taken(answers: &[i32]) -> bool {
    answers.iter().all(|answer| NO_RINGS.contains(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_were_cancelled_do_not_end_the_use_of_rings() {
        assert!(are_never_taken(&[-libc::EOPNOTSUPP; 3]));
        for answers in [[-libc::EINTR; 3], [-libc::EIO; 3], [-libc::EINVAL, 0, 0]] {
            assert!(!are_never_taken(&answers), "{answers:?}");
        }
    }

    #[test]
    fn command_numbers_are_the_kernels() {
        // As `linux/nvme_ioctl.h` expands on x86-64 and arm64.
        assert_eq!(NAMESPACE_ID, 0x4e40);
        assert_eq!(ADMIN, 0xc050_4e47);
        assert_eq!(IO, 0xc050_4e48);
        assert_eq!(RING_IO, 0xc048_4e80);
    }

    #[test]
    fn what_the_kernel_has_cancelled_is_not_sent_again_unless_it_reads() {
        let mut bytes = [0; 8];
        for (data, most) in [
            (Data::None, 1),
            (Data::ToDrive(&[0; 8]), 1),
            (Data::FromDrive(&mut bytes), 2),
        ] {
            let mut calls = 0;
            let done = submit_by(Words::default(), data, |_| {
                calls += 1;
                assert!(calls < 9, "no end");
                Err(Errno::INTR)
            });
            assert!(matches!(done, Err(Failure::System(Errno::INTR))));
            assert_eq!(calls, most);
        }
    }

    #[test]
    fn what_is_no_nvme_device_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(namespace_id(&file).is_err());
        let done = submit(&file, Queue::Io, Words::default(), Data::None);
        assert!(matches!(done, Err(Failure::System(_))));
    }
}
