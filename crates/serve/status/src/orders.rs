//! Orders to the cleaner that the page can send.

use serde::Deserialize;
use std::fmt;
use store::{CleanerChange, CleanerStatus, Pace, Store};

/// Most bytes of an order.
pub(crate) const MAX_BYTES: usize = 4096;

/// An action of the cleaner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Stop,
}

/// An order in JSON.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    action: Option<Action>,
    pace: Option<String>,
}

/// An action, a pace, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    action: Option<Action>,
    pace: Option<Pace>,
}

impl Order {
    /// Parses an order, or says what is wrong with it.
    pub(crate) fn read(json: &[u8]) -> Result<Self, String> {
        let Written { action, pace } =
            serde_json::from_slice(json).map_err(|error| format!("the order: {error}"))?;
        if action.is_none() && pace.is_none() {
            return Err("an order has an action, a pace, or both".to_owned());
        }
        let pace = pace.map(|pace| pace.parse()).transpose();
        let pace = pace.map_err(|error| format!("the pace: {error}"))?;
        Ok(Self { action, pace })
    }

    /// Carries the order out; waits for no cleaning.
    pub(crate) fn carry_out(self, store: &Store) -> store::Result<CleanerStatus> {
        let order = self.to_string();
        tracing::info!(target: "audit", order, by = "the status page", "order to the cleaner");
        // A start may fail, and then nothing is changed.
        match self.action {
            Some(Action::Start) => store.clean_start()?,
            Some(Action::Stop) => store.clean_stop(),
            None => {}
        }
        if self.pace.is_some() {
            let pace = self.pace;
            store.clean_change(CleanerChange {
                pace,
                ..CleanerChange::default()
            });
        }
        Ok(store.clean_status())
    }
}

/// The order in words, for the audit log.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = self.action.map(|action| match action {
            Action::Start => "start",
            Action::Stop => "stop",
        });
        f.write_str(action.unwrap_or_default())?;
        if let Some(pace) = self.pace {
            let comma = if action.is_some() { ", " } else { "" };
            write!(f, "{comma}pace {pace}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{MemoryDrive, profile};
    use kv_rocksdb::RocksDb;
    use std::sync::Arc;
    use store::{MkfsOptions, MountOptions};

    #[test]
    fn an_order_to_start_that_fails_changes_no_pace() {
        let profile = profile::by_name("test-small").unwrap();
        let geometry = profile.geometry(64 << 20, None).unwrap();
        let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
        let options = MountOptions {
            read_only: true,
            ..MountOptions::new(RocksDb)
        };
        let store = Store::mount(drive, options).unwrap();
        let was = store.clean_status().pace;
        let order = Order::read(br#"{"action":"start","pace":"3MiB/s"}"#).unwrap();
        assert_ne!(order.pace, Some(was));
        assert!(order.carry_out(&store).is_err());
        assert_eq!(store.clean_status().pace, was);
    }

    #[test]
    fn an_order_says_what_it_is() {
        let start = Order::read(br#"{"action":"start"}"#).unwrap();
        assert_eq!((start.action, start.pace), (Some(Action::Start), None));
        assert_eq!(start.to_string(), "start");
        let both = Order::read(br#"{"action":"stop","pace":"100MiB/s"}"#).unwrap();
        assert_eq!(both.to_string(), "stop, pace 100MiB/s");
        let slow = Order::read(br#"{"pace":"100MiB/s"}"#).unwrap();
        assert!(slow.action.is_none() && slow.pace.is_some());
        for nonsense in [
            "",
            "{}",
            "[]",
            r#"{"pace":"soon"}"#,
            r#"{"action":"erase"}"#,
            r#"{"x":1}"#,
        ] {
            assert!(Order::read(nonsense.as_bytes()).is_err(), "{nonsense}");
        }
    }
}
