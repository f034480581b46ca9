//! Who is connected with whom: each machine by a link in each direction, to a switch that is never the limit.

use super::link::Link;
use drive_model::{Span, Time};

/// A machine's network interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// What comes.
    pub receives: Link,
    /// What goes.
    pub sends: Link,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Network {
    /// Of the proxies.
    pub proxies: Vec<Interface>,
    /// Of the nodes.
    pub nodes: Vec<Interface>,
    hop: Span,
    drives_per_node: u32,
}

impl Network {
    /// So many machines with links of one rate.
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

    /// From one machine to another.
    pub const fn hop(&self) -> Span {
        self.hop
    }

    /// A few bytes, such as a question or an answer: when they arrive.
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
