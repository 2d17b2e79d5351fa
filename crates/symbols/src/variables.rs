//! Names and types of variables for the symbols of a recording.

use std::collections::BTreeMap;
use std::path::Path;

use homenode_log::recording::{Allocated, Module, Symbols};

use crate::commons::commons_of;
use crate::resolver::Resolver;
use crate::variable::StaticVariable;

/// Adds to `symbols` the variables that hold allocations, and the types of static objects.
/// `allocations`: the most bytes that a call allocated at once, by its return address and that of
/// its function.
pub fn add_variables(symbols: &mut Symbols, modules: &[Module], allocations: &BTreeMap<(u64, u64), u64>) {
    let mut resolver = Resolver::new(modules);
    for ((site, caller), bytes) in allocations {
        if let Some(variable) = resolver.allocation(&[*site, *caller], *bytes) {
            let elements = variable.elements(*bytes);
            let (site, caller) = (*site, *caller);
            let (name, call) = (variable.name, variable.call);
            symbols.allocated.push(Allocated { site, caller, name, call, elements });
        }
    }
    // Compilers put an underscore behind the name of a common block. Looking for them takes time in
    // a large program.
    if let Some(program) = modules.first()
        && symbols.statics.iter().any(|s| s.module == program.index && s.name.ends_with('_'))
    {
        let commons = commons_of(Path::new(&program.path));
        symbols.commons = commons.into_iter().map(|(at, common)| (at, common.members)).collect();
    }
    let mut known: BTreeMap<u64, Vec<StaticVariable>> = BTreeMap::new();
    for object in &mut symbols.statics {
        let all = known.entry(object.module).or_insert_with(|| resolver.statics(object.module, 1));
        let at = all.partition_point(|s| s.address < object.address);
        if let Some(found) = all.get(at).filter(|s| s.address == object.address) {
            object.variable = Some(found.variable.name.clone());
            object.elements = found.variable.elements(object.bytes);
        }
    }
}
