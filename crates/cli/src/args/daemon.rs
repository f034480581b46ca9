//! `zonestore daemon …`

use super::Care;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore daemon sdb=d.zoned --socket /run/zonestore/daemon.sock
  zonestore daemon /dev/sdb /dev/sdc --socket /run/zonestore/daemon.sock --user swift

A storage node of OpenStack Swift has one daemon for its zoned drives; the back end (package zonestore-swift) asks it
through the socket. Each drive has a store (`zonestore store mkfs DRIVE`). NAME is the device's name in the ring; without
it, it is the last part of the path, less `.zoned`. `docs/daemon.yaml` describes the calls (OpenAPI), and the daemon
answers with it at /v1/openapi.yaml. While it runs, `zonestore store df|health|clean` and `drive report` ask it through the socket
beside each drive, DRIVE.sock. Ctrl-C or SIGTERM stops it after the requests in hand, SIGINT
and SIGHUP only if they were not ignored when it was started, as in the background of a script or under nohup.")]
pub struct DaemonArguments {
    /// The drives, each with the name that Swift's ring has for it
    #[arg(required = true, value_name = "[NAME=]DRIVE")]
    pub drives: Vec<PathBuf>,
    /// Where to listen: the path of a Unix socket in a folder that exists
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// Who may connect besides root and whoever runs this: a user's name or number, who is given the socket's file
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    #[command(flatten)]
    pub care: Care,
}
