//! What a recorded run writes, and with what it sees first touches.

use homenode_model::{NodeId, Ns, PageNo};
use homenode_sources::first_touches::{FirstTouches, PageFault};

use crate::guard::holdback::Group;
use crate::stream::Stream;
use crate::watch::numbers::PAGE;
use crate::watch::objects::Object;

/// See the module.
#[derive(Default)]
pub struct RunRecording {
    /// The stream; `None` if the run is not recorded.
    pub stream: Option<Stream>,
    /// Who touches pages first.
    pub firsts: Option<FirstTouches>,
    /// Page faults that were taken from `firsts`.
    pub faults: Vec<PageFault>,
}

impl RunRecording {
    /// Writes a page's home at the first look.
    pub fn home(&mut self, object: Option<&mut Object>, page: PageNo, home: NodeId) {
        if let (Some(stream), Some(object)) = (&mut self.stream, object) {
            let index = page.0.saturating_sub(object.pages.first.0);
            stream.home(object, index, home);
        }
    }

    /// Writes a sample: the guard compared the touch of `address` by `node` with the home of its
    /// group.
    pub fn sample(
        &mut self,
        object: Option<&mut Object>,
        address: usize,
        (group, home): (Group, NodeId),
        node: NodeId,
        now: Ns,
    ) {
        if let (Some(stream), Some(object)) = (&mut self.stream, object) {
            let index = (address.saturating_sub(object.whole_pages().start) / PAGE) as u64;
            stream.sample(object, index, (node, home), group == Group::Held, now);
        }
    }
}
