//! The network of a cluster: each machine has a link in each direction to a switch that is never the bottleneck.

use super::link::Link;
use drive_model::{Span, Time};

/// A machine's network interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The link from the switch.
    pub receives: Link,
    /// The link to the switch.
    pub sends: Link,
}

/// The interfaces of all machines.
#[derive(Clone, Debug)]
pub struct Network {
    /// The proxies' interfaces.
    pub proxies: Vec<Interface>,
    /// The nodes' interfaces.
    pub nodes: Vec<Interface>,
    hop: Span,
    drives_per_node: u32,
}

impl Network {
    /// A network with links of `rate` bytes a second (0 for no limit) and the delay `hop`.
    pub fn new((proxies, nodes): (u32, u32), drives_per_node: u32, rate: u64, hop: Span) -> Self {
        let interface = Interface {
            receives: Link::new(rate),
            sends: Link::new(rate),
        };
        Self {
            proxies: vec![interface; proxies as usize],
            nodes: vec![interface; nodes as usize],
            hop,
            drives_per_node,
        }
    }

    /// The delay from one machine to another.
    pub const fn hop(&self) -> Span {
        self.hop
    }

    /// When a message of a few bytes arrives, such as a question or an answer.
    pub fn message(&self, now: Time) -> Time {
        now + self.hop
    }

    /// The interface of the node that a drive is in.
    pub fn node_of(&mut self, drive: u32) -> &mut Interface {
        &mut self.nodes[(drive / self.drives_per_node) as usize]
    }

    /// The interface of a proxy.
    pub fn proxy(&mut self, proxy: u32) -> &mut Interface {
        &mut self.proxies[proxy as usize]
    }

    /// Bytes that nodes have sent and received so far.
    pub fn node_bytes(&self) -> u64 {
        let all = self.nodes.iter();
        all.map(|node| node.receives.bytes() + node.sends.bytes())
            .sum()
    }
}
