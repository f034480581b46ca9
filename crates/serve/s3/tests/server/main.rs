//! The server on a drive in memory: what clients cannot provoke from outside.

mod bodies;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod copies;
mod damage;
mod expiry;
mod object_lock;
mod rights;
mod start_and_stop;
mod turns;

use common::{MARK, answer, config, drive, expecting, mount, patient, serve, spoil};
use s3::{Limits, ServeError, Server};
use std::time::Duration;
use store::{Attributes, Transaction};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

const MIB: usize = 1 << 20;

fn body(size: usize, mark_at: Option<usize>) -> Vec<u8> {
    let mut body: Vec<u8> = (0..size).map(|n| (n * 31 % 253) as u8).collect();
    if let Some(at) = mark_at {
        body[at..at + MARK.len()].copy_from_slice(&MARK);
    }
    body
}
