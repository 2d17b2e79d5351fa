//! Functions and their frames by `.eh_frame`, which stripped files and optimised code have too.

use gimli::{BaseAddresses, CfaRule, EhFrame, EhFrameOffset, UnwindContext, UnwindSection};

use super::state::{GENERAL, State};
use super::value::{Base, Value};
use crate::binary::{Binary, Reader};

/// Most functions of a file.
const MOST: usize = 4_000_000;

/// The functions of a file with what their frames look like.
pub(crate) struct Unwind {
    section: EhFrame<Reader>,
    bases: BaseAddresses,
    /// First address, one past the last, and the entry's offset.
    functions: Vec<(u64, u64, usize)>,
}

impl Unwind {
    pub(crate) fn of(binary: &Binary) -> Self {
        let (address, bytes) = binary.reader(".eh_frame");
        let mut section = EhFrame::from(bytes);
        section.set_address_size(8);
        let bases = BaseAddresses::default()
            .set_eh_frame(address)
            .set_text(binary.address_of(".text"))
            .set_got(binary.address_of(".got"));
        let mut functions = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            if functions.len() == MOST {
                break;
            }
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(fde) = partial.parse(|section, bases, at| section.cie_from_offset(bases, at))
                && fde.len() > 0
            {
                functions.push((fde.initial_address(), fde.end_address(), fde.offset()));
            }
        }
        functions.sort_unstable();
        Self { section, bases, functions }
    }

    /// First address and one past the last of the function, or of the part of it, at `at`.
    pub(crate) fn function(&self, at: u64) -> Option<(u64, u64)> {
        self.entry(at).map(|(start, end, _)| (start, end))
    }

    fn entry(&self, at: u64) -> Option<(u64, u64, usize)> {
        let before = self.functions.partition_point(|(start, ..)| *start <= at).checked_sub(1)?;
        self.functions.get(before).copied().filter(|(_, end, _)| at < *end)
    }

    /// What is known at `at` when nothing is known of the instructions before: where the frame is.
    pub(crate) fn state(&self, at: u64) -> State {
        let entry = self.entry(at);
        let mut state = State::new(entry.is_some_and(|(start, ..)| start == at));
        if !state.from_entry
            && let Some((register, offset)) = entry.and_then(|(.., entry)| self.frame(entry, at))
        {
            state.registers[register] = Value::of(Base::Frame).plus(offset.wrapping_neg());
        }
        state
    }

    /// The register, by the debugging information's number, that the frame's address is computed
    /// from, and what is added.
    fn frame(&self, entry: usize, at: u64) -> Option<(usize, i64)> {
        let fde = self
            .section
            .fde_from_offset(&self.bases, EhFrameOffset(entry), |section, bases, at| {
                section.cie_from_offset(bases, at)
            })
            .ok()?;
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&self.section, &self.bases, &mut context, at).ok()?;
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } if usize::from(register.0) < GENERAL => {
                Some((usize::from(register.0), *offset))
            }
            _ => None,
        }
    }
}
