//! An open file: its space is kept until the last handle is dropped, even if the file has no name any more.

use crate::node::Node;
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Handle {
    pub shared: Arc<Shared>,
    pub node: Arc<Node>,
}

impl Handle {
    /// The caller must hold the state's lock, so that the file is not freed meanwhile.
    pub fn new(shared: Arc<Shared>, node: Arc<Node>) -> Self {
        node.handles.fetch_add(1, Ordering::AcqRel);
        Self { shared, node }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let last = self.node.handles.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && self.node.links.load(Ordering::Acquire) == 0 {
            state.nameless.remove(&self.node.inode);
            state.free_node(&self.node);
        }
    }
}
