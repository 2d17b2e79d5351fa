//! Damaged files: whatever is in them, questions have an answer or none, and never a panic.

use std::fs;

use homenode_log::recording::Module;
use homenode_symbols::Resolver;

use crate::programs::{Run, compile, folder, run, sources};

/// The same numbers in each run.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

/// Asks everything that can be asked; how many allocations have a name.
fn ask(run: &Run, modules: &[Module]) -> usize {
    let mut resolver = Resolver::new(modules);
    let mut named = 0;
    for a in &run.allocations {
        named += usize::from(resolver.allocation(&a.frames, a.bytes).is_some());
        for back in &a.frames {
            let _ = (resolver.place(*back), resolver.caller(*back));
        }
    }
    for module in modules {
        let _ = (resolver.statics(module.index, 4096), resolver.build_id(module.index));
    }
    named
}

#[test]
fn damaged_programs_are_asked_in_vain_and_without_harm() {
    let folder = folder("mutations");
    let program = folder.join("plain");
    compile("cc", &["-O1", "-g"], &sources().join("plain.c"), &program);
    let run = run(&program);
    let whole = fs::read(&program).unwrap();
    let damaged = folder.join("damaged");
    let own = run.modules.iter().find(|m| m.path == program.to_string_lossy()).unwrap();
    let modules = [Module { path: damaged.to_string_lossy().into_owned(), ..own.clone() }];
    let try_with = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        ask(&run, &modules)
    };
    assert!(try_with(&whole) > 20);
    let mut rng = Rng(7);
    for _ in 0..150 {
        let mut bytes = whole.clone();
        for _ in 0..=rng.below(20) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        try_with(&bytes);
        bytes.truncate(rng.below(whole.len()));
        try_with(&bytes);
    }
    assert_eq!(try_with(&[]), 0);
    assert_eq!(try_with(b"\x7fELF"), 0);
    fs::remove_file(&damaged).unwrap();
    assert_eq!(ask(&run, &modules), 0, "a file that is gone names nothing");
    fs::remove_dir_all(folder).unwrap();
}
