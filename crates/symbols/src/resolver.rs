//! Answers for the addresses of one process: places in the source, variables of allocations, static
//! variables.

use std::collections::BTreeMap;
use std::rc::Rc;

use homenode_log::recording::{Module, SourcePlace};

use crate::allocation::{Walk, fitted};
use crate::image::Image;
use crate::names::readable;
use crate::places::place;
use crate::text::Sources;
use crate::variable::{ElementOrder, FoundBy, StaticVariable, Variable, VariableScope};

/// Answers for the addresses of one process. Each module's file is opened when it is first needed,
/// and read once.
#[derive(Default)]
pub struct Resolver {
    modules: Vec<Loaded>,
    sources: Sources,
    places: BTreeMap<u64, SourcePlace>,
    allocations: BTreeMap<Vec<u64>, Option<Variable>>,
    trouble: Vec<String>,
}

struct Loaded {
    module: Module,
    /// `None`: not opened yet. Nothing in it: it cannot be read.
    image: Option<Option<Rc<Image>>>,
}

impl Resolver {
    /// For the modules of a process.
    pub fn new(modules: &[Module]) -> Self {
        let modules = modules.iter().map(|m| Loaded { module: m.clone(), image: None }).collect();
        Self { modules, ..Self::default() }
    }

    /// Modules that could not be read so far, each with the reason.
    pub fn trouble(&self) -> &[String] {
        &self.trouble
    }

    /// Function, file and line of the instruction at `pc`; of inlined functions the innermost that
    /// is the program's own. `None` outside of all modules.
    pub fn place(&mut self, pc: u64) -> Option<SourcePlace> {
        if let Some(known) = self.places.get(&pc) {
            return Some(known.clone());
        }
        let (image, at) = self.image(pc)?;
        let found = place(&image.binary, image.debug().map(|d| &d.lines), &image.path, at);
        self.places.insert(pc, found.clone());
        Some(found)
    }

    /// The same of the call that returns to `back`.
    pub fn caller(&mut self, back: u64) -> Option<SourcePlace> {
        self.place(back.checked_sub(1)?)
    }

    /// The variable that holds the pointer of an allocation of `bytes` bytes. `frames` are return
    /// addresses, innermost first: that of the allocating call, then that of the call of its
    /// function, and so on; zeros at the end are left out.
    ///
    /// `None` where nothing names it without doubt.
    pub fn allocation(&mut self, frames: &[u64], bytes: u64) -> Option<Variable> {
        let frames: Vec<u64> = frames.iter().copied().take_while(|f| *f != 0).collect();
        if !self.allocations.contains_key(&frames) {
            let calls: Vec<(Rc<Image>, u64)> = frames
                .iter()
                .map_while(|back| self.image(back.checked_sub(1)?).map(|(i, at)| (i, at + 1)))
                .collect();
            let found = Walk::new(&mut self.sources).up(calls.into_iter());
            self.allocations.insert(frames.clone(), found);
        }
        self.allocations.get(&frames).cloned().flatten().map(|v| fitted(v, bytes))
    }

    /// The static variables of at least `smallest` bytes of the module with this index, by address:
    /// those that debugging information has, and the linker's symbols where there is none.
    pub fn statics(&mut self, module: u64, smallest: u64) -> Vec<StaticVariable> {
        let Some(at) = self.modules.iter().position(|l| l.module.index == module) else { return Vec::new() };
        let Some(image) = self.open(at) else { return Vec::new() };
        if !image.own {
            return Vec::new();
        }
        statics(&image, smallest)
    }

    /// The linker's number of a module's very file; `None` where it has none.
    pub fn build_id(&mut self, module: u64) -> Option<Vec<u8>> {
        let at = self.modules.iter().position(|l| l.module.index == module)?;
        self.open(at)?.binary.build_id.clone()
    }

    /// The module of an address, and the address in the file's own terms.
    fn image(&mut self, pc: u64) -> Option<(Rc<Image>, u64)> {
        let within = |l: &Loaded| {
            let at = pc.checked_sub(l.module.base)?;
            (l.module.low..l.module.high).contains(&at).then_some(at)
        };
        let (number, at) = self.modules.iter().enumerate().find_map(|(i, l)| Some((i, within(l)?)))?;
        Some((self.open(number)?, at))
    }

    fn open(&mut self, number: usize) -> Option<Rc<Image>> {
        let loaded = self.modules.get_mut(number)?;
        if loaded.image.is_none() {
            let path = &loaded.module.path;
            let opened = if path.starts_with('/') {
                Image::open(path)
                    .map_err(|why| self.trouble.push(format!("no names from {path}: {why}")))
                    .ok()
            } else {
                None // The kernel's, without a file.
            };
            loaded.image = Some(opened.map(Rc::new));
        }
        loaded.image.clone().flatten()
    }
}

fn statics(image: &Image, smallest: u64) -> Vec<StaticVariable> {
    let mut found = Vec::new();
    let globals = image.globals();
    let mut end = 0_u64;
    let mut covered: Vec<(u64, u64)> = Vec::new();
    if let Some(debug) = image.debug() {
        for (address, global) in &globals.variables {
            let symbol = || image.binary.data.iter().find(|s| s.address == *address).map_or(0, |s| s.bytes.0);
            let bytes = if global.bytes > 0 { global.bytes } else { symbol() };
            let last = address.saturating_add(bytes);
            let (Some(name), true) = (debug.name(global.die), bytes > 0) else { continue };
            covered.push((*address, last));
            // Parts of variables that already have a name.
            if bytes < smallest || last <= end {
                continue;
            }
            end = end.max(last);
            let element = debug.element(global.ty);
            let (file, line) = debug.declared(global.die);
            found.push(StaticVariable {
                variable: Variable {
                    name,
                    scope: global.scope,
                    within: global.within.and_then(|w| image.title(w)),
                    type_name: Some(element.type_name),
                    element_bytes: element.bytes,
                    dimensions: element.dimensions,
                    order: element.order,
                    fields: element.fields,
                    declared: SourcePlace { function: None, file, line },
                    found_by: FoundBy::Address,
                    call: 0,
                },
                address: *address,
                bytes,
            });
        }
    }
    let mut end = 0;
    for symbol in &image.binary.data {
        let (bytes, last) = (symbol.bytes.0, symbol.address.saturating_add(symbol.bytes.0));
        let next = covered.partition_point(|(start, _)| *start < symbol.address);
        let known = covered.get(next).is_some_and(|(start, _)| *start < last)
            || next.checked_sub(1).and_then(|n| covered.get(n)).is_some_and(|(_, e)| *e > symbol.address);
        if bytes < smallest || symbol.address < end || known {
            continue;
        }
        end = last;
        let common = globals.commons.get(&symbol.name);
        let (name, scope) = match common {
            Some(name) => (name.clone(), VariableScope::Common),
            None => (
                readable(&symbol.name),
                if symbol.local { VariableScope::Static } else { VariableScope::Global },
            ),
        };
        found.push(StaticVariable {
            variable: Variable {
                name,
                scope,
                within: None,
                type_name: None,
                element_bytes: None,
                dimensions: Vec::new(),
                order: ElementOrder::default(),
                fields: Vec::new(),
                declared: SourcePlace::default(),
                found_by: FoundBy::Address,
                call: 0,
            },
            address: symbol.address,
            bytes,
        });
    }
    found.sort_by_key(|s| s.address);
    found
}
