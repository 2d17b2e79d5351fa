//! Names for the objects and regions of a process, from its own files.

use homenode_dataset::identity;
use homenode_log::recording::{self, SourcePlace};
use homenode_symbols::{Resolver, StaticVariable, Variable};
use homenode_wire::facts::{LoadedFile, Origin};

/// Smallest static object that takes part.
const SMALLEST: u64 = 64 << 10;

/// Looks names up; each file is read once, when it is first needed.
pub struct ObservedNames {
    modules: Vec<LoadedFile>,
    resolver: Resolver,
    statics: Vec<(u64, Vec<StaticVariable>)>,
}

/// What an object is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    /// What tells its site from others: the id without its slot for an allocation, the whole id for
    /// a static object.
    pub site: String,
    /// What tells the caller of the site's function from others.
    pub caller: Option<String>,
    /// What people call it.
    pub name: String,
    /// The variable, where debug information names one.
    pub variable: Option<Variable>,
    /// Where it is allocated or declared.
    pub place: SourcePlace,
    /// The call stack, innermost first.
    pub stack: Vec<String>,
}

impl ObservedNames {
    /// For a process with these loaded files.
    pub fn new(modules: &[LoadedFile]) -> Self {
        let numbered = |(index, m): (u64, &LoadedFile)| recording::Module {
            index,
            base: m.base,
            low: m.low,
            high: m.high,
            path: m.path.clone(),
        };
        let all: Vec<_> = (0..).zip(modules).map(numbered).collect();
        Self { modules: modules.to_vec(), resolver: Resolver::new(&all), statics: Vec::new() }
    }

    /// The place of a call that returns to `pc`, as it is part of an id.
    fn call(&mut self, pc: u64) -> Option<(String, SourcePlace)> {
        let place = self.resolver.caller(pc).unwrap_or_default();
        let text = match (&place.file, place.line) {
            (Some(_), Some(_)) => place.to_string(),
            _ => self.bare(pc)?,
        };
        Some((text, place))
    }

    /// The place of an address without debug information.
    fn bare(&self, pc: u64) -> Option<String> {
        let module = self.module(pc)?;
        Some(identity::bare_place(&module.path, pc - module.base))
    }

    fn module(&self, pc: u64) -> Option<&LoadedFile> {
        let inside = |m: &&LoadedFile| pc.checked_sub(m.base).is_some_and(|at| (m.low..m.high).contains(&at));
        self.modules.iter().find(inside)
    }

    fn statics_of(&mut self, module: u64) -> &[StaticVariable] {
        let at = self.statics.iter().position(|(m, _)| *m == module).unwrap_or_else(|| {
            self.statics.push((module, self.resolver.statics(module, SMALLEST)));
            self.statics.len() - 1
        });
        &self.statics[at].1
    }

    /// The name of an object of `bytes` bytes.
    pub fn object(&mut self, origin: &Origin, bytes: u64, python: Option<&str>) -> ObjectName {
        match origin {
            Origin::Static(at) => self.of_static(0, *at, None),
            Origin::Library(path, at) => {
                let module = (0..).zip(&self.modules).find(|(_, m)| m.path == **path).map(|(i, _)| i);
                self.of_static(module.unwrap_or(u64::MAX), *at, Some(path))
            }
            Origin::Allocated(_) => self.allocation(origin.frames(), bytes, python),
        }
    }

    fn of_static(&mut self, module: u64, at: u64, library: Option<&str>) -> ObjectName {
        let known = |s: &&StaticVariable| (s.address..s.address + s.bytes.max(1)).contains(&at);
        let variable = self.statics_of(module).iter().find(known).map(|s| s.variable.clone());
        let file = library.map(|path| path.rsplit('/').next().unwrap_or(path));
        let name = match &variable {
            Some(v) => v.name.clone(),
            None => identity::bare_place(library.unwrap_or("program"), at),
        };
        let place = variable.as_ref().map(|v| v.declared.clone()).unwrap_or_default();
        ObjectName { site: identity::of_static(&name, file), name, variable, place, ..ObjectName::default() }
    }

    fn allocation(&mut self, frames: &[u64], bytes: u64, python: Option<&str>) -> ObjectName {
        let calls: Vec<(String, SourcePlace)> = frames.iter().map_while(|pc| self.call(*pc)).collect();
        let mut stack: Vec<String> = calls.iter().map(|(text, _)| text.clone()).collect();
        let variable = self.resolver.allocation(frames, bytes);
        let site = stack.first().cloned().unwrap_or_else(|| "unknown".into());
        let told = |(text, place): &(String, SourcePlace)| {
            let own = |pc: &u64| self.module(*pc).is_some_and(|m| identity::is_own(&m.path));
            (place.line.is_some() || frames.get(1).is_some_and(own)).then(|| text.clone())
        };
        let mut caller = calls.get(1).and_then(told);
        // The innermost place with a line is the one that a person can change, or that of the call
        // whose result the variable holds.
        let own = |(_, p): &&(String, SourcePlace)| p.line.is_some();
        let named = variable.as_ref().and_then(|v| calls.get(v.call)).filter(own);
        let place = named
            .or_else(|| calls.iter().find(own))
            .or(calls.first())
            .map(|(_, p)| p.clone())
            .unwrap_or_default();
        let mut name = match &variable {
            Some(v) => v.name.clone(),
            None => calls.iter().find(own).map_or_else(|| site.clone(), |(text, _)| text.clone()),
        };
        if let Some(python) = python {
            // The interpreter's own frames are the same for all arrays.
            let lines: Vec<String> = python.split(" < ").map(str::to_owned).collect();
            name = lines.first().map_or(name, |l| l.split(" (").next().unwrap_or(l).to_owned());
            caller = lines.first().cloned();
            stack.splice(0..0, lines);
        }
        ObjectName { site, caller, name, variable, place, stack }
    }

    /// The place of a region: of its outlined function, or of the call that starts it.
    pub fn region(&mut self, function: u64, caller: u64) -> Option<SourcePlace> {
        // No code lies at addresses as low as the numbers of barriers.
        if function > 1 << 16 { self.resolver.place(function) } else { self.resolver.caller(caller) }
    }

    /// The place of a call, in words.
    pub fn caller(&mut self, pc: u64) -> Option<String> {
        self.call(pc).map(|(text, _)| text)
    }

    /// The place of an instruction. Without debug information the function's symbol, or where it
    /// lies in its file.
    pub fn place(&mut self, pc: u64) -> SourcePlace {
        let place = self.resolver.place(pc).unwrap_or_default();
        let function = place.function.or_else(|| self.bare(pc));
        // Without a line, the file is a program's or a library's, and no source.
        SourcePlace { function, file: place.file.filter(|_| place.line.is_some()), line: place.line }
    }

    /// The build id of the file with this code.
    pub fn build_id(&mut self, pc: u64) -> Option<String> {
        let inside = |m: &LoadedFile| pc.checked_sub(m.base).is_some_and(|at| (m.low..m.high).contains(&at));
        let module = self.modules.iter().position(inside)? as u64;
        let id = self.resolver.build_id(module)?;
        Some(id.iter().map(|b| format!("{b:02x}")).collect())
    }
}
