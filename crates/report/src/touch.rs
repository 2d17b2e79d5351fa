//! Who touched an object first.

use homenode_dataset::tables::FirstTouch;
use homenode_model::{NodeId, ThreadId};
use serde::Serialize;

use crate::serial;

/// Most first touchers that are told apart of one object. The rest is one of its own.
const MOST_TOUCHERS: usize = 256;

/// A node and the code that first touched pages of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstToucher {
    /// The node.
    #[serde(serialize_with = "serial::number")]
    pub node: NodeId,
    /// The thread; none where it is not known or there were several.
    #[serde(serialize_with = "serial::number_or_null")]
    pub thread: Option<ThreadId>,
    /// Source file of the code.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
    /// Function of that code.
    pub function: Option<String>,
    /// Pages that it touched first.
    pub pages: u64,
}

/// The first touchers of an object, while its first touches are read.
#[derive(Clone, Debug, Default)]
pub struct Touchers {
    all: Vec<FirstToucher>,
}

impl Touchers {
    /// Adds a run of pages.
    pub fn add(&mut self, touch: FirstTouch) {
        let FirstTouch { node, thread, file, line, function, pages, .. } = touch;
        let same =
            |t: &FirstToucher| t.node == node && t.line == line && t.file == file && t.function == function;
        let full = self.all.len() >= MOST_TOUCHERS;
        let known = self.all.iter().rposition(same).or(full.then_some(MOST_TOUCHERS - 1));
        match known.and_then(|at| self.all.get_mut(at)) {
            Some(toucher) => {
                toucher.pages = toucher.pages.saturating_add(pages);
                if toucher.thread != thread {
                    toucher.thread = None;
                }
            }
            None => self.all.push(FirstToucher { node, thread, file, line, function, pages }),
        }
    }

    /// Who touched most pages first, first.
    pub fn finish(mut self) -> Vec<FirstToucher> {
        self.all.sort_by(|a, b| {
            let key = |t: &FirstToucher| (std::cmp::Reverse(t.pages), t.node, t.line);
            key(a).cmp(&key(b)).then_with(|| (&a.file, &a.function).cmp(&(&b.file, &b.function)))
        });
        self.all
    }
}
