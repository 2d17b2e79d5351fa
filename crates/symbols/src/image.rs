//! A module with everything that was read of it so far.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use homenode_model::is_runtime_library;

use crate::binary::Binary;
use crate::dwarf::function::{Function, Functions};
use crate::dwarf::globals::Globals;
use crate::dwarf::{Debug, Die};
use crate::flow::paths::Body;
use crate::flow::unwind::Unwind;
use crate::names::{own, python, readable};

/// Most functions with their variables, and most functions' instructions, that are kept.
const KEPT: usize = 256;

/// A module.
pub(crate) struct Image {
    pub path: String,
    pub binary: Binary,
    /// The program's own.
    pub own: bool,
    /// A run-time library of a language, or an allocator.
    pub runtime: bool,
    /// The Python interpreter.
    pub python: bool,
    debug: OnceCell<Option<Debug>>,
    unwind: OnceCell<Unwind>,
    globals: OnceCell<Globals>,
    units: RefCell<BTreeMap<usize, Rc<Functions>>>,
    functions: RefCell<BTreeMap<Die, Option<Rc<Function>>>>,
    bodies: RefCell<BTreeMap<u64, Rc<Body>>>,
}

impl Image {
    pub(crate) fn open(path: &str) -> Result<Self, String> {
        Ok(Self {
            path: path.to_owned(),
            binary: Binary::open(Path::new(path))?,
            own: own(path),
            runtime: is_runtime_library(path.as_bytes()),
            python: python(path),
            debug: OnceCell::new(),
            unwind: OnceCell::new(),
            globals: OnceCell::new(),
            units: RefCell::default(),
            functions: RefCell::default(),
            bodies: RefCell::default(),
        })
    }

    /// Debugging information; of the program's own modules alone.
    pub(crate) fn debug(&self) -> Option<&Debug> {
        self.debug.get_or_init(|| self.own.then(|| Debug::of(&self.binary)).flatten()).as_ref()
    }

    pub(crate) fn unwind(&self) -> &Unwind {
        self.unwind.get_or_init(|| Unwind::of(&self.binary))
    }

    pub(crate) fn globals(&self) -> &Globals {
        self.globals.get_or_init(|| self.debug().map(Debug::globals).unwrap_or_default())
    }

    /// The function of the source with the code at `at`.
    pub(crate) fn function(&self, at: u64) -> Option<Rc<Function>> {
        let debug = self.debug()?;
        let unit = debug.unit_at(at)?;
        let functions =
            Rc::clone(self.units.borrow_mut().entry(unit).or_insert_with(|| Rc::new(debug.functions(unit))));
        let holds = |(begin, end, _): &&(u64, u64, Die)| (*begin..*end).contains(&at);
        let (.., die) =
            *functions.iter().filter(holds).min_by_key(|(begin, end, die)| (end - begin, *die))?;
        let mut kept = self.functions.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.entry(die).or_insert_with(|| debug.function(die).map(Rc::new)).clone()
    }

    /// The instructions of the function with the call that returns to `back`.
    pub(crate) fn body(&self, back: u64) -> Option<Rc<Body>> {
        if !self.binary.x86_64 {
            return None;
        }
        let (start, _) = self.unwind().function(back.checked_sub(1)?)?;
        if let Some(body) = self.bodies.borrow().get(&start) {
            return Some(Rc::clone(body));
        }
        let body = Rc::new(Body::around(&self.binary, self.unwind(), back)?);
        let mut kept = self.bodies.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(start, Rc::clone(&body));
        Some(body)
    }

    /// What a function, namespace, module, class or common block is called.
    pub(crate) fn title(&self, die: Die) -> Option<String> {
        let debug = self.debug()?;
        let linker = debug.attribute(die, gimli::DW_AT_linkage_name);
        let linker = linker.and_then(|(at, value)| debug.text(at.unit, value));
        let linker = linker.filter(|n| n.starts_with("_Z")).map(|n| readable(&n));
        linker.or_else(|| debug.name(die))
    }
}
