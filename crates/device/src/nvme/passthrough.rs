//! NVMe commands by the kernel's passthrough (`linux/nvme_ioctl.h`). The only unsafe code of this
//! back end; the structure is the kernel's, byte by byte.

use rustix::io::{Errno, retry_on_intr};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::fs::File;

const GROUP: u8 = b'N';
/// Status code type and status code; the other bits say whether to retry.
const STATUS_MASK: i32 = 0x7ff;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PassthruCommand64 {
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
    result: u64,
}

const _: () = assert!(size_of::<PassthruCommand64>() == 80);

const NAMESPACE_ID: Opcode = opcode::none(GROUP, 0x40);
const ADMIN: Opcode = opcode::read_write::<PassthruCommand64>(GROUP, 0x47);
const IO: Opcode = opcode::read_write::<PassthruCommand64>(GROUP, 0x48);

/// The status of a command that the drive refused: status code type and status code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Status(pub u16);

/// Why a command has no result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The drive's answer.
    Status(Status),
    /// The kernel's.
    System(Errno),
}

/// Which queue a command is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    Admin,
    Io,
}

/// The bytes of a command.
pub(super) enum Data<'a> {
    None,
    ToDrive(&'a [u8]),
    FromDrive(&'a mut [u8]),
}

/// The words of a command.
#[derive(Clone, Copy, Default)]
pub(super) struct Words {
    pub opcode: u8,
    pub nsid: u32,
    /// Double words 10 and 11: most often a block address.
    pub cdw10: u64,
    pub cdw12: u32,
    pub cdw13: u32,
}

/// A call whose answer is the number that it returns.
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

/// The namespace that a device is.
pub(super) fn namespace_id(file: &File) -> Result<u32, Errno> {
    let call = Call {
        opcode: NAMESPACE_ID,
        command: None,
    };
    // SAFETY: the call takes no argument.
    let id = unsafe { ioctl(file, call) }?;
    u32::try_from(id).map_err(|_| Errno::INVAL)
}

/// Carries out a command; answers its result, as far as it has one.
pub(super) fn submit(
    file: &File,
    queue: Queue,
    words: Words,
    data: Data<'_>,
) -> Result<u64, Failure> {
    let (addr, length) = match data {
        Data::None => (0, 0),
        Data::ToDrive(bytes) => (bytes.as_ptr() as u64, bytes.len()),
        Data::FromDrive(bytes) => (bytes.as_mut_ptr() as u64, bytes.len()),
    };
    let mut command = PassthruCommand64 {
        opcode: words.opcode,
        nsid: words.nsid,
        addr,
        data_len: u32::try_from(length).map_err(|_| Failure::System(Errno::INVAL))?,
        cdw10: words.cdw10 as u32,
        cdw11: (words.cdw10 >> 32) as u32,
        cdw12: words.cdw12,
        cdw13: words.cdw13,
        ..Default::default()
    };
    let status = retry_on_intr(|| {
        let call = Call {
            opcode: match queue {
                Queue::Admin => ADMIN,
                Queue::Io => IO,
            },
            command: Some(&mut command),
        };
        // SAFETY: `addr` and `data_len` are a slice that is borrowed until the call is over,
        // mutably where the opcode's lowest two bits say that data comes from the drive.
        unsafe { ioctl(file, call) }
    });
    match status.map_err(Failure::System)? & STATUS_MASK {
        0 => Ok(command.result),
        status => Err(Failure::Status(Status(status as u16))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_numbers_are_the_kernels() {
        // As `linux/nvme_ioctl.h` expands on x86-64 and arm64.
        assert_eq!(NAMESPACE_ID, 0x4e40);
        assert_eq!(ADMIN, 0xc050_4e47);
        assert_eq!(IO, 0xc050_4e48);
    }

    #[test]
    fn what_is_no_nvme_device_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(namespace_id(&file).is_err());
        let done = submit(&file, Queue::Io, Words::default(), Data::None);
        assert!(matches!(done, Err(Failure::System(_))));
    }
}
