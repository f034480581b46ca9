//! Encoding and decoding of NBD messages, as pure functions. Any input of a client gives a reply or a [`Violation`],
//! never a panic, and no accepted length exceeds [`MAX_OPTION_BYTES`] or [`MAX_PAYLOAD_BYTES`].

use codec::Reader;
use thiserror::Error;

/// Most bytes that a request may read or write: the limit that every client may expect.
pub const MAX_PAYLOAD_BYTES: u32 = 32 << 20;
/// Most bytes of an option: two names of the longest kind.
pub const MAX_OPTION_BYTES: u32 = 8 << 10;
/// Bytes of a request without its payload.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an option without its data.
pub const OPTION_BYTES: usize = 16;

const GREETING: u64 = 0x4e42_444d_4147_4943; // NBDMAGIC
const OPTION: u64 = 0x4948_4156_454f_5054; // IHAVEOPT
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

/// Handshake flags: fixed newstyle, and no zeros after an export; the client's flags have the same bits.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
}

mod option_reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    const ERROR: u32 = 1 << 31;
    pub const UNSUPPORTED: u32 = ERROR | 1;
    pub const INVALID: u32 = ERROR | 3;
    pub const UNKNOWN: u32 = ERROR | 6;
}

mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

mod transmission {
    pub const HAS_FLAGS: u16 = 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const ROTATIONAL: u16 = 1 << 4;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Force unit access, the only supported flag of requests.
const FUA: u16 = 1;

/// A message of a client that ends the connection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Violation {
    /// A magic number is wrong: the client speaks another protocol, or is out of step.
    #[error("{found:#x} where {expected:#x} belongs")]
    Magic {
        /// The expected number.
        expected: u64,
        /// The received number.
        found: u64,
    },
    /// Flags that the server did not offer.
    #[error("unknown flags {found:#x} in the handshake")]
    Flags {
        /// All received flags.
        found: u32,
    },
    /// The option is longer than a server has to accept.
    #[error("an option of {bytes} bytes")]
    OptionTooLong {
        /// Its length.
        bytes: u32,
    },
    /// The write is longer than a server has to accept.
    #[error("a write of {bytes} bytes")]
    PayloadTooLong {
        /// Its length.
        bytes: u32,
    },
}

/// The exported device. All connections have the same device: a flush on one covers writes on all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Its name; the empty name is a synonym.
    pub name: String,
    /// A description in one line.
    pub description: String,
    /// Its size.
    pub bytes: u64,
    /// Preferred bytes of a request, a power of two.
    pub block_bytes: u32,
    /// Whether trims have an effect.
    pub trims: bool,
    /// Whether it has rotating platters.
    pub rotational: bool,
}

/// Errors of requests, as the protocol numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Errno {
    /// The device failed.
    Io = 5,
    /// The request is invalid.
    Invalid = 22,
    /// The request reaches beyond the device, or there is no space.
    NoSpace = 28,
    /// The command is not supported.
    Unsupported = 95,
    /// The server shuts down.
    ShuttingDown = 108,
}

/// The next phase after an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// More options follow.
    Haggle,
    /// Requests follow.
    Transmit,
    /// The connection ends.
    Close,
}

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Reads bytes.
    Read,
    /// Writes bytes, which follow the request.
    Write,
    /// Ends the connection, without a reply.
    Disconnect,
    /// Replies when all completed writes are durable.
    Flush,
    /// Tells the device that bytes hold no data of use.
    Trim,
    /// A command that was not offered.
    Other(u16),
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// Its flags.
    pub flags: u16,
    /// Identifies the reply.
    pub cookie: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

fn magic(found: u64, expected: u64) -> Result<(), Violation> {
    if found == expected {
        Ok(())
    } else {
        Err(Violation::Magic { expected, found })
    }
}

/// The server's first message.
pub fn greeting() -> Vec<u8> {
    let flags = (FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes();
    [&GREETING.to_be_bytes()[..], &OPTION.to_be_bytes(), &flags].concat()
}

/// Decodes the client's flags: whether it wants no zeros after an export.
///
/// # Errors
/// [`Violation::Flags`].
pub fn client_flags(bytes: [u8; 4]) -> Result<bool, Violation> {
    let found = u32::from_be_bytes(bytes);
    if found & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
        return Err(Violation::Flags { found });
    }
    Ok(found & u32::from(NO_ZEROES) != 0)
}

/// Decodes the head of an option: its number, and how many bytes of data follow.
///
/// # Errors
/// [`Violation::Magic`], [`Violation::OptionTooLong`].
pub fn option_head(bytes: &[u8; OPTION_BYTES]) -> Result<(u32, usize), Violation> {
    let mut fields = Reader(bytes);
    magic(fields.u64_be().unwrap_or_default(), OPTION)?;
    let option = fields.u32_be().unwrap_or_default();
    let length = fields.u32_be().unwrap_or_default();
    if length > MAX_OPTION_BYTES {
        return Err(Violation::OptionTooLong { bytes: length });
    }
    Ok((option, length as usize))
}

fn option_reply(to: &mut Vec<u8>, option: u32, reply: u32, data: &[u8]) {
    to.extend(OPTION_REPLY.to_be_bytes());
    to.extend(option.to_be_bytes());
    to.extend(reply.to_be_bytes());
    to.extend((data.len() as u32).to_be_bytes());
    to.extend(data);
}

impl Export {
    fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    fn flags(&self) -> u16 {
        use transmission::*;
        let trim = if self.trims { SEND_TRIM } else { 0 };
        let turns = if self.rotational { ROTATIONAL } else { 0 };
        HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | trim | turns
    }

    fn size_and_flags(&self) -> Vec<u8> {
        [&self.bytes.to_be_bytes()[..], &self.flags().to_be_bytes()].concat()
    }

    /// Replies to an option; returns the reply and the next phase.
    pub fn answer(&self, option: u32, data: &[u8], no_zeroes: bool) -> (Vec<u8>, Next) {
        let mut to = Vec::new();
        let mut say = |reply, data: &[u8]| {
            option_reply(&mut to, option, reply, data);
            Next::Haggle
        };
        let next = match option {
            option::EXPORT_NAME if self.is_named(data) => {
                to.extend(self.size_and_flags());
                to.resize(to.len() + if no_zeroes { 0 } else { 124 }, 0);
                Next::Transmit
            }
            // This option has no negative reply.
            option::EXPORT_NAME => Next::Close,
            option::ABORT => {
                say(option_reply::ACK, &[]);
                Next::Close
            }
            option::LIST if data.is_empty() => {
                let mut name = (self.name.len() as u32).to_be_bytes().to_vec();
                name.extend(self.name.as_bytes());
                say(option_reply::SERVER, &name);
                say(option_reply::ACK, &[])
            }
            option::INFO | option::GO => match asked_for(data) {
                Some((name, wanted)) if self.is_named(name) => {
                    let next = self.inform(&wanted, say);
                    if option == option::GO {
                        Next::Transmit
                    } else {
                        next
                    }
                }
                Some(_) => say(option_reply::UNKNOWN, b"no such export"),
                None => say(option_reply::INVALID, &[]),
            },
            option::LIST => say(option_reply::INVALID, &[]),
            _ => say(option_reply::UNSUPPORTED, &[]),
        };
        (to, next)
    }

    /// Sends the information that was asked for, and that which is mandatory.
    fn inform(&self, wanted: &[u16], mut say: impl FnMut(u32, &[u8]) -> Next) -> Next {
        let mut tell = |kind: u16, data: &[u8]| {
            say(
                option_reply::INFO,
                &[&kind.to_be_bytes()[..], data].concat(),
            )
        };
        tell(info::EXPORT, &self.size_and_flags());
        let sizes = [1, self.block_bytes, MAX_PAYLOAD_BYTES];
        let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_be_bytes()).collect();
        for (kind, data) in [
            (info::NAME, self.name.as_bytes()),
            (info::DESCRIPTION, self.description.as_bytes()),
            (info::BLOCK_SIZE, &sizes),
        ] {
            if wanted.contains(&kind) {
                tell(kind, data);
            }
        }
        say(option_reply::ACK, &[])
    }

    /// Checks that a request can be done.
    ///
    /// # Errors
    /// The error for the reply.
    pub fn check(&self, request: &Request) -> Result<(), Errno> {
        match request.command {
            Command::Trim if !self.trims => return Err(Errno::Unsupported),
            Command::Other(_) => return Err(Errno::Unsupported),
            _ => {}
        }
        if request.flags & !FUA != 0 {
            return Err(Errno::Invalid);
        }
        if matches!(request.command, Command::Flush | Command::Disconnect) {
            return Ok(());
        }
        let is_read = request.command == Command::Read;
        if request.length == 0 || (is_read && request.length > MAX_PAYLOAD_BYTES) {
            return Err(Errno::Invalid);
        }
        let end = request.offset.checked_add(request.length.into());
        match end {
            Some(end) if end <= self.bytes => Ok(()),
            _ if is_read => Err(Errno::Invalid),
            _ => Err(Errno::NoSpace),
        }
    }
}

/// Decodes an option that asks for information: the export's name, and the requested kinds.
fn asked_for(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut fields = Reader(data);
    let length = fields.u32_be()?;
    let name = fields.take(usize::try_from(length).ok()?)?;
    let count = fields.u16_be()?;
    let wanted: Option<Vec<u16>> = (0..count).map(|_| fields.u16_be()).collect();
    fields.end()?;
    Some((name, wanted?))
}

impl Request {
    /// Decodes the head of a request.
    ///
    /// # Errors
    /// [`Violation::Magic`], [`Violation::PayloadTooLong`].
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, Violation> {
        let mut fields = Reader(bytes);
        let found = fields.u32_be().unwrap_or_default();
        magic(found.into(), REQUEST.into())?;
        let flags = fields.u16_be().unwrap_or_default();
        let command = match fields.u16_be().unwrap_or_default() {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            other => Command::Other(other),
        };
        let request = Self {
            command,
            flags,
            cookie: fields.u64_be().unwrap_or_default(),
            offset: fields.u64_be().unwrap_or_default(),
            length: fields.u32_be().unwrap_or_default(),
        };
        if request.payload_bytes() > MAX_PAYLOAD_BYTES as usize {
            return Err(Violation::PayloadTooLong {
                bytes: request.length,
            });
        }
        Ok(request)
    }

    /// Number of bytes that follow the head.
    pub const fn payload_bytes(&self) -> usize {
        match self.command {
            Command::Write => self.length as usize,
            _ => 0,
        }
    }

    /// Whether the request has to be durable at its completion.
    pub const fn is_fua(&self) -> bool {
        self.flags & FUA != 0
    }
}

/// Encodes the head of a reply; the data of a successful read follow it.
pub fn reply(cookie: u64, result: Result<(), Errno>) -> [u8; 16] {
    let error = result.err().map_or(0, |errno| errno as u32);
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&REPLY.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}
