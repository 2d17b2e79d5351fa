//! Rewriting a compiler's assembly: the calls before accesses become the recorder's filter check in
//! place.
//!
//! # Problem
//!
//! A call for each access costs more than what it does. The compilers have no way to put other code
//! there, but they write assembly, and in it a call is one line.
//!
//! # What is written
//!
//! A *run* is a stretch of code that is entered at its top and left at its end only: between two
//! labels, jumps or calls. Each run's accesses are counted at once. Then each `call __tsan_read8`
//! becomes
//!
//! ```text
//!     shrq  $6, %rdi                               line
//!     movl  %edi, %esi
//!     andl  %fs:homenode_exe_tls@tpoff+24, %esi    place in the filter
//!     movq  %fs:homenode_exe_tls@tpoff, %rdx
//!     cmpq  %rdi, (%rdx,%rsi,8)
//!     jne   .Lhns0                          to the end of the function: homenode_read_passed, and back
//! .Lhnr0:
//! ```
//!
//! In a run of several accesses whose own instructions do not mention `r8` to `r10`, these hold the
//! three fields. The layout of `homenode_exe_tls` is `homenode_trace`'s `Tls`; [`EXE_TLS`] defines
//! it in the executable.
//!
//! # Why it is sound
//!
//! * At a call the compiler holds nothing in the call-clobbered registers
//!   (`rax rcx rdx rsi rdi r8`–`r11`) and flags, so the check may use them. Between two accesses it
//!   may use them itself: hence the look at what is mentioned.
//! * The slow branch is still a call at a place where the compiler had one: the stack is aligned
//!   and nothing lies in the red zone. It stands before the end of the function's unwind range,
//!   with the call's frame address.
//! * The jumps and labels of compilers have known shapes. Every line that is not understood ends a
//!   run.
//! * The place that the log names is the one of the call: the slow branch passes the label behind
//!   the check.
//! * `@tpoff` works in executables only: the driver does not rewrite position-independent code for
//!   libraries.

use std::io::Write;

/// Defines the recorder's thread-local block in an executable, whose code then reaches it in one
/// instruction.
pub const EXE_TLS: &str = "\
	.section .tdata,\"awT\",@progbits
	.globl homenode_exe_tls
	.type homenode_exe_tls,@object
	.size homenode_exe_tls,64
	.p2align 6
homenode_exe_tls:
	.quad homenode_exe_empty, homenode_exe_empty
	.zero 48
	.section .bss
	.p2align 3
	.type homenode_exe_empty,@object
	.size homenode_exe_empty,8
homenode_exe_empty:
	.zero 8
	.section .note.GNU-stack,\"\",@progbits
";

const USED: &str = "%fs:homenode_exe_tls@tpoff";
const WRITTEN: &str = "%fs:homenode_exe_tls@tpoff+8";
const CLOCK: &str = "%fs:homenode_exe_tls@tpoff+16";
const MASK: &str = "%fs:homenode_exe_tls@tpoff+24";

/// Which registers a line mentions, of those that may hold fields: bit 0 `r8` to bit 2 `r10`.
type Registers = u8;

/// What a line is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    /// A call before an access.
    Site { write: bool },
    /// Nothing that is executed, and no place that is jumped to.
    Silent,
    /// An instruction that goes on to the next one.
    Plain(Registers),
    /// Anything else: a run ends here.
    Boundary,
    /// A directive on the frame, with what follows it.
    Cfi(&'a str),
    /// The last line of a function's code is before this one.
    FunctionEnd,
}

/// Rewrites a compiler's output. `None`: it has a shape that is not understood, and is to be
/// assembled as it is.
pub fn rewrite(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let lines = classify(text)?;
    let runs = runs(&lines);
    let mut out = Out { text: Vec::with_capacity(text.len() * 2), ..Out::default() };
    let mut runs = runs.into_iter().peekable();
    let mut run: Option<Run> = None;
    for (at, (line, raw)) in lines.iter().zip(text.split_inclusive('\n')).enumerate() {
        match line {
            Line::Site { write } => {
                let first = runs.next_if(|r| r.first == at);
                let starts = first.is_some();
                run = first.or(run);
                out.site(run.as_ref()?, starts, *write);
                continue;
            }
            Line::Cfi(directive) => {
                if *directive == "endproc" {
                    out.stubs();
                }
                out.frame.follow(directive)?;
            }
            Line::FunctionEnd => out.stubs(),
            // Without unwind tables a function ends with its size.
            Line::Boundary if !out.frame.open && raw.trim_start().starts_with(".size") => out.stubs(),
            Line::Silent | Line::Plain(_) | Line::Boundary => {}
        }
        out.text.extend_from_slice(raw.as_bytes());
    }
    out.pending.is_empty().then_some(out.text)
}

/// Accesses that are counted at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Run {
    /// The line of the first.
    first: usize,
    reads: u32,
    writes: u32,
    /// Mentioned between the first and the last.
    mentioned: Registers,
}

impl Run {
    /// Whether register `r8 + n` holds its field through the run, which `uses` accesses need.
    fn holds(&self, n: u8, uses: u32) -> bool {
        uses > 1 && self.mentioned & 1 << n == 0
    }
    fn holds_used(&self) -> bool {
        self.holds(0, self.reads)
    }
    fn holds_written(&self) -> bool {
        self.holds(1, self.writes)
    }
    fn holds_mask(&self) -> bool {
        self.holds(2, self.reads + self.writes)
    }
}

fn runs(lines: &[Line]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    let mut since_last = 0;
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Site { write } => {
                if !open {
                    runs.push(Run { first: at, ..Run::default() });
                    open = true;
                    since_last = 0;
                }
                if let Some(run) = runs.last_mut() {
                    run.mentioned |= since_last;
                    *(if *write { &mut run.writes } else { &mut run.reads }) += 1;
                }
            }
            Line::Plain(mentioned) => since_last |= mentioned,
            Line::Silent | Line::Cfi(_) => {}
            Line::Boundary | Line::FunctionEnd => open = false,
        }
    }
    runs
}

/// `None` if a line cannot be in a compiler's AT&T output.
fn classify(text: &str) -> Option<Vec<Line<'_>>> {
    let mut lines = Vec::new();
    let mut in_asm = false; // between #APP and #NO_APP stands what the user wrote
    for raw in text.split_inclusive('\n') {
        let line = raw.trim();
        if line.starts_with("#APP") || line.starts_with("#NO_APP") {
            in_asm = line.starts_with("#APP");
            lines.push(Line::Boundary);
        } else if in_asm {
            lines.push(Line::Boundary);
        } else if line.is_empty() || line.starts_with('#') {
            lines.push(Line::Silent);
        } else if line.starts_with(".intel_syntax")
            || line.starts_with(".code32")
            || line.starts_with(".code16")
        {
            return None;
        } else if let Some((label, rest)) = split_label(line) {
            lines.push(label_line(label, rest));
        } else if let Some(cfi) = line.strip_prefix(".cfi_") {
            lines.push(Line::Cfi(cfi));
        } else if let Some(directive) = line.strip_prefix('.') {
            lines.push(directive_line(directive));
        } else {
            lines.push(instruction(line));
        }
    }
    Some(lines)
}

/// The label that a line begins with, and what follows it.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "_.$@".contains(c)))?;
    let rest = line[end..].strip_prefix(':')?;
    Some((&line[..end], rest))
}

/// Labels that compilers put where nothing is ever jumped to.
fn label_line<'a>(label: &str, rest: &str) -> Line<'a> {
    let numbered = |prefix: &str| {
        label.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    // LVL: places of variables; LBB, LBE, LBI: lexical blocks (clang's LBB0_1 is a jump target);
    // LEHB, LEHE: what an exception table speaks of; Ltmp: clang's for all of these, and for labels
    // whose address is taken.
    let silent =
        [".LVL", ".LBB", ".LBE", ".LBI", ".LEHB", ".LEHE", ".LCFI", ".Ltmp"].iter().any(|p| numbered(p));
    if numbered(".Lfunc_end") {
        Line::FunctionEnd
    } else if silent
        && (rest.is_empty() || rest.trim_start().starts_with('#'))
        && !rest.contains("address taken")
    {
        Line::Silent
    } else {
        Line::Boundary
    }
}

fn directive_line<'a>(directive: &str) -> Line<'a> {
    let name = directive.split_ascii_whitespace().next().unwrap_or_default();
    // Notes for the debugger, and padding before a label that ends the run by itself.
    if matches!(name, "loc" | "file" | "p2align") { Line::Silent } else { Line::Boundary }
}

fn instruction<'a>(line: &str) -> Line<'a> {
    let code = line.split('#').next().unwrap_or_default().trim_end();
    let (mnemonic, operands) = match code.find(|c: char| c.is_ascii_whitespace()) {
        Some(at) => (&code[..at], code[at..].trim_start()),
        None => (code, ""),
    };
    if code.contains(';') || code.contains('"') || code.contains("/*") {
        return Line::Boundary;
    }
    if matches!(mnemonic, "call" | "callq") {
        return match access_of(operands) {
            Some(write) => Line::Site { write },
            None => Line::Boundary,
        };
    }
    // Prefixes stand before instructions that may be jumps (`rep ret`, `notrack jmp`).
    let leaves = mnemonic.starts_with('j')
        || ["ret", "loop", "sys", "int", "iret", "ud", "hlt", "x", "endbr"]
            .iter()
            .any(|p| mnemonic.starts_with(p))
            && !mnemonic.starts_with("xor")
            && !mnemonic.starts_with("xchg")
            && !mnemonic.starts_with("xadd")
        || matches!(
            mnemonic,
            "rep" | "repz" | "repe" | "repne" | "repnz" | "notrack" | "bnd" | "lock" | "data16"
        );
    if leaves || !mnemonic.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return Line::Boundary;
    }
    let mentioned = ["%r8", "%r9", "%r10"]
        .iter()
        .enumerate()
        .fold(0, |set, (n, name)| set | Registers::from(operands.contains(name)) << n);
    Line::Plain(mentioned)
}

/// Whether a call tells its target about an access within one line. The value: whether the access
/// is a store.
fn access_of(operand: &str) -> Option<bool> {
    let name = match operand.strip_prefix('*') {
        Some(indirect) => indirect.strip_suffix("@GOTPCREL(%rip)")?,
        None => operand.strip_suffix("@PLT").unwrap_or(operand),
    };
    let name = name.strip_prefix("__tsan_")?;
    match name {
        "vptr_read" => return Some(false),
        "vptr_update" => return Some(true),
        _ => {}
    }
    let name = name.strip_prefix("volatile_").unwrap_or(name);
    let (write, bytes) = if let Some(bytes) = name.strip_prefix("read_write") {
        (true, bytes)
    } else if let Some(bytes) = name.strip_prefix("read") {
        (false, bytes)
    } else {
        (true, name.strip_prefix("write")?)
    };
    matches!(bytes, "1" | "2" | "4" | "8" | "16").then_some(write)
}

/// How the frame's address is computed, as the assembly last said.
#[derive(Clone, Debug, Default)]
struct Frame {
    /// Between `.cfi_startproc` and `.cfi_endproc`.
    open: bool,
    /// Register and offset, or the directive for what is more complex.
    cfa: Cfa,
    saved: Vec<Cfa>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cfa {
    Register(String, i64),
    Expression(String),
}

impl Default for Cfa {
    fn default() -> Self {
        Cfa::Register("7".into(), 8) // rsp, at a function's entry
    }
}

impl Frame {
    fn follow(&mut self, directive: &str) -> Option<()> {
        let directive = directive.split('#').next().unwrap_or_default();
        let (name, rest) = directive
            .trim_end()
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((directive.trim_end(), ""));
        let rest = rest.trim();
        match (name, &mut self.cfa) {
            ("startproc", _) => *self = Frame { open: true, ..Frame::default() },
            ("endproc", _) => self.open = false,
            ("def_cfa", cfa) => {
                let (register, offset) = rest.split_once(',')?;
                *cfa = Cfa::Register(register.trim().into(), offset.trim().parse().ok()?);
            }
            ("def_cfa_offset", Cfa::Register(_, offset)) => *offset = rest.parse().ok()?,
            ("adjust_cfa_offset", Cfa::Register(_, offset)) => *offset += rest.parse::<i64>().ok()?,
            ("def_cfa_register", Cfa::Register(register, _)) => *register = rest.into(),
            ("def_cfa_offset" | "adjust_cfa_offset" | "def_cfa_register", Cfa::Expression(_)) => return None,
            ("escape", cfa) if rest.starts_with("0xf,") || rest.starts_with("0x0f,") => {
                *cfa = Cfa::Expression(rest.into());
            }
            ("remember_state", cfa) => self.saved.push(cfa.clone()),
            ("restore_state", cfa) => *cfa = self.saved.pop()?,
            _ => {}
        }
        Some(())
    }
}

/// A slow branch that is still to be written.
#[derive(Clone, Debug)]
struct Stub {
    number: usize,
    write: bool,
    frame: Option<Cfa>,
}

#[derive(Default)]
struct Out {
    text: Vec<u8>,
    sites: usize,
    pending: Vec<Stub>,
    frame: Frame,
}

impl Out {
    fn line(&mut self, line: std::fmt::Arguments) {
        // Writing to memory does not fail.
        let _ = writeln!(self.text, "\t{line}");
    }

    fn site(&mut self, run: &Run, starts: bool, write: bool) {
        if starts {
            self.line(format_args!("addq\t${}, {CLOCK}", run.reads + run.writes));
            for (held, field, register) in [
                (run.holds_used(), USED, "%r8"),
                (run.holds_written(), WRITTEN, "%r9"),
                (run.holds_mask(), MASK, "%r10"),
            ] {
                if held {
                    self.line(format_args!("movq\t{field}, {register}"));
                }
            }
        }
        let number = self.sites;
        self.sites += 1;
        self.line(format_args!("shrq\t$6, %rdi"));
        self.line(format_args!("movl\t%edi, %esi"));
        self.line(format_args!("andl\t{}, %esi", if run.holds_mask() { "%r10d" } else { MASK }));
        let (held, register, field) =
            if write { (run.holds_written(), "%r9", WRITTEN) } else { (run.holds_used(), "%r8", USED) };
        let table = if held { register } else { "%rdx" };
        if !held {
            self.line(format_args!("movq\t{field}, %rdx"));
        }
        self.line(format_args!("cmpq\t%rdi, ({table},%rsi,8)"));
        self.line(format_args!("jne\t.Lhns{number}"));
        let _ = writeln!(self.text, ".Lhnr{number}:");
        let frame = self.frame.open.then(|| self.frame.cfa.clone());
        self.pending.push(Stub { number, write, frame });
    }

    /// The slow branches of the function that ends here.
    fn stubs(&mut self) {
        let mut now = self.frame.open.then(|| self.frame.cfa.clone());
        for Stub { number, write, frame } in std::mem::take(&mut self.pending) {
            if frame != now {
                match &frame {
                    Some(Cfa::Register(register, offset)) => {
                        self.line(format_args!(".cfi_def_cfa {register}, {offset}"));
                    }
                    Some(Cfa::Expression(bytes)) => self.line(format_args!(".cfi_escape {bytes}")),
                    None => {}
                }
                now = frame;
            }
            let _ = writeln!(self.text, ".Lhns{number}:");
            self.line(format_args!("leaq\t.Lhnr{number}(%rip), %rsi"));
            let what = if write { "write" } else { "read" };
            self.line(format_args!("call\t*homenode_{what}_passed@GOTPCREL(%rip)"));
            self.line(format_args!("jmp\t.Lhnr{number}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        String::from_utf8(rewrite(text.as_bytes()).unwrap()).unwrap()
    }

    fn function(body: &str) -> String {
        format!("f:\n.LFB0:\n\t.cfi_startproc\n{body}\tret\n\t.cfi_endproc\n.LFE0:\n\t.size\tf, .-f\n")
    }

    #[test]
    fn a_run_is_counted_once() {
        let text = rewritten(&function(
            "\tcall\t__tsan_read8@PLT\n.LVL1:\n\t.loc 1 2 3\n\tmovq\t(%rbx), %rax\n\tcallq\t__tsan_write4\n\
             \tjne\t.L2\n\tcall\t*__tsan_read1@GOTPCREL(%rip)\n.L2:\n\tcall\t__tsan_volatile_read2@PLT\n",
        ));
        let counts: Vec<_> = text.lines().filter(|l| l.contains("addq\t$")).collect();
        assert_eq!(counts.len(), 3);
        assert!(counts[0].contains("$2,") && counts[1].contains("$1,") && counts[2].contains("$1,"));
        assert!(!text.contains("__tsan"));
    }

    #[test]
    fn what_may_jump_or_is_not_known_ends_a_run() {
        for between in [
            "\tjmp\t.L3\n",
            ".L9:\n",
            "1:\n",
            "\tcall\tg\n",
            "\trep ret\n",
            "\tnotrack jmp\t*%rax\n",
            "#APP\n\tnop\n#NO_APP\n",
            ".LBB0_3:\n",
            ".Ltmp3: # Block address taken\n",
            "\tcall\t__tsan_unaligned_read8@PLT\n",
            "\t.section\t.x\n",
            "\tlock addl\t$1, (%rax)\n",
            "\tsyscall\n",
            "\tnop; jmp .L3\n",
        ] {
            let text =
                rewritten(&function(&format!("\tcall\t__tsan_read8\n{between}\tcall\t__tsan_read8\n")));
            assert_eq!(text.matches("addq\t$1,").count(), 2, "{between}");
        }
        for between in [
            "\txorl\t%eax, %eax\n",
            ".LBE7:\n",
            ".Ltmp3:\n",
            "# %bb.3:\n",
            "\t.p2align 4\n",
            "\tcmpl\t%r8d, %eax\n",
        ] {
            let text =
                rewritten(&function(&format!("\tcall\t__tsan_read8\n{between}\tcall\t__tsan_read8\n")));
            assert_eq!(text.matches("addq\t$2,").count(), 1, "{between}");
        }
    }

    #[test]
    fn registers_that_the_run_mentions_hold_nothing() {
        let two = |between: &str| {
            rewritten(&function(&format!("\tcall\t__tsan_read8\n{between}\tcall\t__tsan_read8\n")))
        };
        assert!(two("").contains("cmpq\t%rdi, (%r8,%rsi,8)"));
        let text = two("\tmovl\t%r8d, %eax\n");
        assert!(text.contains("cmpq\t%rdi, (%rdx,%rsi,8)") && text.contains("%r10d, %esi"));
        let text = two("\tmovq\t(%r10), %rax\n");
        assert!(text.contains("cmpq\t%rdi, (%r8,%rsi,8)") && !text.contains("%r10d, %esi"));
        // After the last access it may use them as it likes.
        assert!(
            rewritten(&function("\tcall\t__tsan_read8\n\tcall\t__tsan_read8\n\tmovq\t%r8, %rax\n"))
                .contains("(%r8,")
        );
    }

    #[test]
    fn slow_branches_stand_in_the_function_with_the_frame_of_their_call() {
        let text = rewritten(&function(
            "\tpushq\t%rbx\n\t.cfi_def_cfa_offset 16\n\tcall\t__tsan_read8\n\t.cfi_remember_state\n\tpopq\t%rbx\n\
             \t.cfi_def_cfa_offset 8\n\tret\n.L3:\n\t.cfi_restore_state\n\tcall\t__tsan_write8\n\tpopq\t%rbx\n\t.cfi_def_cfa_offset 8\n",
        ));
        let stubs = text.split("\tret\n").last().unwrap();
        assert!(
            stubs.starts_with(
                "\t.cfi_def_cfa 7, 16\n.Lhns0:\n\tleaq\t.Lhnr0(%rip), %rsi\n\tcall\t*homenode_read_passed"
            ),
            "{stubs}"
        );
        assert!(stubs.contains(".Lhns1:") && stubs.matches(".cfi_def_cfa").count() == 1);
        assert!(stubs.find(".Lhns1").unwrap() < stubs.find(".cfi_endproc").unwrap());
        // clang's end of a function, and one without unwind tables.
        let text = rewritten("f:\n\tcall\t__tsan_read8\n\tretq\n.Lfunc_end0:\n\t.size\tf, .Lfunc_end0-f\n");
        assert!(text.find(".Lhns0:").unwrap() < text.find(".Lfunc_end0:").unwrap());
        let text = rewritten("f:\n\tcall\t__tsan_read8\n\tret\n\t.size\tf, .-f\n");
        assert!(text.find(".Lhns0:").unwrap() < text.find(".size").unwrap());
    }

    #[test]
    fn what_is_not_understood_is_left() {
        assert_eq!(rewrite(b"\t.intel_syntax noprefix\n\tcall\t__tsan_read8\n"), None);
        assert_eq!(rewrite(b"f:\n\tcall\t__tsan_read8\n\tret\n"), None, "no end of the function");
        let text = "\tjmp\t__tsan_read8@PLT\n\tcall\t__tsan_read_range@PLT\n\t.ascii \"call __tsan_read8\"\n";
        assert_eq!(rewritten(text), text);
    }
}
