//! The mechanisms of next touch, and what a mover starts with.

use homenode_model::Bytes;

/// The mechanisms of next touch, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// userfaultfd: missing pages raise SIGBUS in their toucher, which copies them from a shadow.
    UserFault,
    /// Inaccessible 2 MiB blocks: the toucher makes them accessible and has the kernel move them.
    Protect,
    /// Inaccessible 2 MiB blocks: the toucher copies them to fresh memory, which takes their place.
    /// For containers that forbid all calls that name nodes, and only with
    /// [`MovingOptions::copy_unseen`].
    CopyRemap,
    /// No next touch: [`Started::reasons`] says why.
    None,
}

impl Mechanism {
    /// The name, to follow "by".
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserFault => "userfaultfd",
            Self::Protect => "protected blocks",
            Self::CopyRemap => "copied blocks",
            Self::None => "none",
        }
    }
}

/// What a touch of an armed page does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// The page comes to its toucher, with the rest of its block.
    #[default]
    Around,
    /// The page comes to its toucher, alone.
    Alone,
    /// The page stays where it is, and [`super::drain`] reports who touched it.
    Stays,
}

/// How to start.
#[derive(Clone, Copy, Debug, Default)]
pub struct MovingOptions {
    /// Deal the CPUs into this many nodes and keep a table of page homes, instead of using the
    /// machine's nodes. Moves by the kernel become copies.
    pub pretend_nodes: Option<u16>,
    /// The pretended node of each CPU; without it as [`crate::nodes::Nodes::pretend`] deals them.
    pub pretend_cpus: Option<&'static [u16]>,
    /// Use this mechanism or none.
    pub mechanism: Option<Mechanism>,
    /// Copy blocks if there is no userfaultfd. A copy takes 0.2 ms. A `munmap`, `mremap` or
    /// `madvise` that the program makes past the C library meanwhile is not seen, and the memory
    /// that it gave up comes back. Only for programs that make no such calls.
    pub copy_unseen: bool,
    /// Pages must be able to stay on their node ([`Manner::Stays`]).
    pub stay: bool,
    /// Bytes that come with one touch under [`Mechanism::UserFault`]: a power of two from a page to
    /// 64 KiB (the default).
    pub fault_around: Option<Bytes>,
}

/// What the mover can use.
#[derive(Clone, Debug)]
pub struct Started {
    /// What [`super::arm()`] will use.
    pub mechanism: Mechanism,
    /// What better mechanisms lack, one sentence each: what was tried, and the system's answer.
    pub reasons: Vec<String>,
    /// Whether the kernel moves pages ([`super::move_pages`]).
    pub kernel_moves: bool,
}
