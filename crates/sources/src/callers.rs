//! The program's instruction behind an access of a run-time library. `memset` and `memcpy` touch
//! pages for their callers, so the call is what a person looks for.
//!
//! These functions push nothing, so their return address is the top of the stack. The caller is
//! the first of the topmost words that is an address of code outside the run-time libraries.
//! Processors that keep the return address in a register leave no such word: there the library's
//! instruction remains.

use homenode_model::{Ns, is_runtime_library};
use homenode_sys::{Span, maps};

/// Least time between two looks at the process's mappings.
const GAP: Ns = Ns(100_000_000);

/// The process's code.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Executable memory, ascending, and whether it is a run-time library's.
    spans: Vec<(Span, bool)>,
    read: Option<Ns>,
}

impl Code {
    /// The program's instruction for which `pc` accessed memory at the moment `now`: `pc` itself,
    /// unless it is a run-time library's.
    pub(crate) fn program(&mut self, pc: u64, stack: &[u64], now: Ns) -> u64 {
        if !cfg!(target_arch = "x86_64") {
            return pc;
        }
        if self.is_library(pc).is_none() && self.read.is_none_or(|read| now.0.saturating_sub(read.0) >= GAP.0)
        {
            self.spans = read();
            self.read = Some(now);
        }
        if self.is_library(pc) != Some(true) {
            return pc;
        }
        let back = stack.iter().find(|word| self.is_library(**word) == Some(false));
        // The call lies before the address to which it returns.
        back.map_or(pc, |back| back - 1)
    }

    /// Whether an address is a run-time library's code. `None`: it is not known as code.
    fn is_library(&self, at: u64) -> Option<bool> {
        let at = usize::try_from(at).ok()?;
        let next = self.spans.partition_point(|(span, _)| span.start <= at);
        let (span, is_library) = self.spans.get(next.checked_sub(1)?)?;
        span.contains(at).then_some(*is_library)
    }
}

/// The executable memory of this process. Empty: `/proc` is not readable.
fn read() -> Vec<(Span, bool)> {
    let mut spans = Vec::new();
    let _ = maps::each(|m| {
        if m.execute {
            spans.push((m.span, is_runtime_library(m.name)));
        }
        true
    });
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_of_a_library_is_the_programs_instruction() {
        let span = |start: usize| Span::new(start, 0x1000);
        let spans = vec![(span(0x1000), false), (span(0x8000), true), (span(0x9000), false)];
        let mut code = Code { spans, read: Some(Ns::ZERO) };
        let mut program = |pc, stack: &[u64]| code.program(pc, stack, Ns::ZERO);
        assert_eq!(program(0x1010, &[0x9010]), 0x1010, "the program's own");
        assert_eq!(program(0x5000, &[0x1010]), 0x5000, "not known");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(program(0x8010, &[0x1020, 0x9020]), 0x101f);
            assert_eq!(program(0x8010, &[7, 0x8f00, 0x9020]), 0x901f, "a library called the library");
        }
        assert_eq!(program(0x8010, &[7, 0x5000]), 0x8010, "no word is code");
    }

    #[test]
    fn this_process_has_code_of_both_kinds() {
        let mut code = Code::default();
        let here = this_process_has_code_of_both_kinds as *const () as u64;
        assert_eq!(code.program(here, &[], Ns(1)), here);
        assert_eq!(code.is_library(here), Some(false));
        if cfg!(target_env = "gnu") {
            assert!(code.spans.iter().any(|(_, is_library)| *is_library), "the C library");
        }
    }
}
