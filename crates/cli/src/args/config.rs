//! `zonestore config …`

use clap::Subcommand;
use std::path::PathBuf;

/// Check the configuration of a server, or see all that it can say
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Say whether a configuration is sound, with the files that it names, and what would be used
    #[command(after_help = "\
Example:
  zonestore config check /etc/zonestore.toml && systemctl reload zonestore

Nothing is started and no secret is shown. What is printed is what a server would use, each with where it comes
from: the file, or the default.")]
    Check {
        /// The configuration
        file: PathBuf,
    },
    /// Print a configuration with every field and an example, all in comments
    #[command(after_help = "\
Example:
  zonestore config example > zonestore.toml && chmod 600 zonestore.toml")]
    Example,
}
