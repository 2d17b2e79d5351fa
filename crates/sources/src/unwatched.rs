//! Memory that a source should watch and does not, for the report.

use homenode_sys::Span;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwatched {
    no_room: Part,
    refused: Part,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    times: u64,
    bytes: u64,
}

impl Part {
    const fn add(&mut self, span: Span) {
        self.times += 1;
        self.bytes += span.len() as u64;
    }

    /// A stretch counts each time that it should be watched: anew after each of its moves.
    fn sentence(self, why: &str) -> Option<String> {
        let Self { times, bytes } = self;
        let mib = bytes as f64 / f64::from(1 << 20);
        let stretches = if times == 1 { "stretch" } else { "stretches" };
        (times > 0).then(|| format!("{mib:.1} MiB of memory were not watched ({times} {stretches}): {why}"))
    }
}

impl Unwatched {
    /// The limit of watched stretches is reached.
    pub const fn no_room(&mut self, span: Span) {
        self.no_room.add(span);
    }

    /// The kernel refuses to watch it.
    pub const fn refused(&mut self, span: Span) {
        self.refused.add(span);
    }

    /// One sentence for each reason. `most`: the limit of watched stretches.
    pub fn sentences(&self, most: usize) -> impl Iterator<Item = String> {
        let no_room = self.no_room.sentence(&format!("{most} are watched at a time"));
        no_room.into_iter().chain(self.refused.sentence("the kernel refused it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_of_nothing_and_each_kind_by_itself() {
        let mut unwatched = Unwatched::default();
        assert_eq!(unwatched.sentences(8).count(), 0);
        unwatched.refused(Span::new(0, 1 << 20));
        unwatched.no_room(Span::new(0, 1 << 19));
        unwatched.no_room(Span::new(0, 1 << 20));
        let all: Vec<String> = unwatched.sentences(8).collect();
        assert_eq!(
            all,
            [
                "1.5 MiB of memory were not watched (2 stretches): 8 are watched at a time",
                "1.0 MiB of memory were not watched (1 stretch): the kernel refused it"
            ]
        );
    }
}
