//! Names of the objects and places that a process on the lab reported, from the program's files.

use homenode_dataset::fields::Fields;
use homenode_lab::recording::told::{GuestStatic, NameLookup, SourceVariable, UnnamedAddresses};
use homenode_log::recording::{FieldRecord, Module, SourcePlace};
use homenode_symbols::{self as symbols, Resolver};

/// Smaller static objects share pages with others and get no name.
const SMALLEST: u64 = 4096;

/// Names of one process.
struct Resolved {
    resolver: Resolver,
    modules: Vec<u64>,
}

/// Looks up the names of a process.
pub fn of(modules: &[Module], _: &UnnamedAddresses) -> Box<dyn NameLookup> {
    let numbers = modules.iter().map(|m| m.index).collect();
    Box::new(Resolved { resolver: Resolver::new(modules), modules: numbers })
}

/// The variable in the words of a recording; `bytes`: the size of the object.
fn variable(found: symbols::Variable, bytes: u64) -> SourceVariable {
    SourceVariable {
        dimensions: found.extents(bytes),
        fields: Fields::of(found.element_fields().into_iter().map(FieldRecord::into_parts)),
        name: found.name,
        call: found.call,
        element_type: found.type_name,
        element_bytes: found.element_bytes,
    }
}

impl NameLookup for Resolved {
    fn call(&mut self, back: u64) -> Option<SourcePlace> {
        self.resolver.caller(back)
    }

    fn place(&mut self, pc: u64) -> Option<SourcePlace> {
        self.resolver.place(pc)
    }

    fn statics(&mut self) -> Vec<GuestStatic> {
        let mut all = Vec::new();
        for module in &self.modules {
            all.extend(self.resolver.statics(*module, SMALLEST).into_iter().map(|s| GuestStatic {
                module: *module,
                address: s.address,
                bytes: s.bytes,
                declared: s.variable.declared.clone(),
                variable: variable(s.variable, s.bytes),
            }));
        }
        all
    }

    fn allocation(&mut self, calls: &[u64], bytes: u64) -> Option<SourceVariable> {
        self.resolver.allocation(calls, bytes).map(|v| variable(v, bytes))
    }

    fn build_id(&mut self, module: u64) -> Option<String> {
        let id = self.resolver.build_id(module)?;
        Some(id.iter().map(|b| format!("{b:02x}")).collect())
    }

    fn trouble(&mut self) -> Vec<String> {
        self.resolver.trouble().to_vec()
    }
}
