//! The variable that an allocation's pointer ends up in, by the call stack of the allocation.

use std::rc::Rc;

use homenode_log::recording::SourcePlace;

use crate::dwarf::function::Function;
use crate::dwarf::types::{Element, Kind};
use crate::dwarf::{Debug, Die};
use crate::image::Image;
use crate::naming::Named;
use crate::site::{Handed, Site};
use crate::text::{Source, Sources, Target};
use crate::variable::{Dimension, ElementOrder, FoundBy, Variable, VariableScope};

/// Functions that store the address in a word that one of their arguments points to, and the
/// argument's number.
const BY_ARGUMENT: [(&str, usize); 6] = [
    ("posix_memalign", 0),
    ("hbw_posix_memalign", 0),
    ("hbw_posix_memalign_psize", 0),
    ("memkind_posix_memalign", 1),
    ("MPI_Alloc_mem", 2),
    ("PMPI_Alloc_mem", 2),
];
/// Most calls of a stack that are looked at.
const DEEPEST: usize = 32;

/// What the walk is after.
enum Sought {
    /// What becomes of the call's result, or of a word that it fills.
    Pointer(Handed),
    /// An object of the system's classes that the called function works on: its first argument.
    Object,
    /// What argument of this number points to: a pointer, or a container if `false`.
    Argument(usize, bool),
    /// A library keeps the address, unless its function is known to store it through an argument.
    Kept,
}

/// The walk up a call stack.
pub(crate) struct Walk<'a> {
    pub sources: &'a mut Sources,
    sought: Sought,
    /// The best answer so far: the local variable of a function that hands its value on.
    fallback: Option<Variable>,
    /// The type that the system's allocator class was asked for, or that of the pointer in a
    /// container.
    element: Option<Element>,
    /// The call at hand, from the innermost.
    call: usize,
}

/// What one call says.
enum Verdict {
    /// The next call may say more.
    Next,
    Done(Option<Box<Variable>>),
}

impl Verdict {
    fn named(variable: Variable) -> Self {
        Self::Done(Some(Box::new(variable)))
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(sources: &'a mut Sources) -> Self {
        Self { sources, sought: Sought::Pointer(Handed::Returned), fallback: None, element: None, call: 0 }
    }

    /// The variable for calls that return to these addresses of these modules, innermost first; the
    /// dimensions lack what the allocation's length says.
    pub(crate) fn up(mut self, calls: impl Iterator<Item = (Rc<Image>, u64)>) -> Option<Variable> {
        let mut below: Option<(u64, u64)> = None;
        for (call, (image, back)) in calls.take(DEEPEST).enumerate() {
            self.call = call;
            if image.python {
                break;
            }
            let site = Site::of(&image, back);
            let through_argument = BY_ARGUMENT.iter().find(|(n, _)| site.callee.name() == Some(n));
            if let Some((_, argument)) = through_argument
                && (below.is_none() || matches!(self.sought, Sought::Kept))
            {
                self.sought = Sought::Pointer(Handed::Argument(*argument));
            }
            self.allocator(&site);
            let verdict = if site.users() { self.by_user(&site, below) } else { self.by_system(&site) };
            match verdict {
                Verdict::Next => below = image.unwind().function(back.saturating_sub(1)),
                Verdict::Done(found) => return found.map(|v| Variable { call, ..*v }).or(self.fallback),
            }
        }
        self.fallback
    }

    /// Code of the system, or code without debugging information.
    fn by_system(&mut self, site: &Site) -> Verdict {
        match self.sought {
            Sought::Pointer(handed) => {
                let fate = site.fate(handed);
                if fate.returned {
                    self.sought = Sought::Pointer(Handed::Returned);
                } else if let Some(named) = fate.held.filter(|_| site.image.own) {
                    return Verdict::named(variable(site, &named, None, FoundBy::Instructions));
                } else if site.scope.is_some() || site.image.runtime {
                    self.sought = Sought::Object;
                } else if !site.image.own {
                    self.sought = Sought::Kept;
                } else {
                    return Verdict::Done(None);
                }
                Verdict::Next
            }
            Sought::Argument(..) => {
                self.sought = Sought::Object;
                Verdict::Next
            }
            Sought::Object => Verdict::Next,
            Sought::Kept => {
                if site.image.own {
                    Verdict::Done(None)
                } else {
                    Verdict::Next
                }
            }
        }
    }

    /// The programmer's code. `below` is the function that the call went to, as the call stack
    /// says.
    fn by_user(&mut self, site: &Site, below: Option<(u64, u64)>) -> Verdict {
        match self.sought {
            Sought::Pointer(handed) => {
                let fate = site.fate(handed);
                if let Some(named) = fate.held {
                    let answer = variable(site, &named, None, FoundBy::Instructions);
                    if let Some(parameter) = named.through {
                        self.element = element_of(site, &named).or(self.element.take());
                        self.sought = Sought::Argument(parameter, !named.container);
                        self.fallback = Some(Variable { call: self.call, ..answer });
                        return Verdict::Next;
                    }
                    if fate.returned {
                        self.sought = Sought::Pointer(Handed::Returned);
                        self.fallback = Some(Variable { call: self.call, ..answer });
                        return Verdict::Next;
                    }
                    return Verdict::named(answer);
                }
                if fate.returned && !fate.ambiguous {
                    self.sought = Sought::Pointer(Handed::Returned);
                    return Verdict::Next;
                }
                Verdict::Done(self.by_source(site).map(Box::new))
            }
            // A call that took the place of its caller is not on the stack.
            Sought::Object if site.calls_own() => Verdict::Done(None),
            Sought::Object => self.by_argument(site, 0, false),
            Sought::Argument(number, pointer) => {
                if below.is_some_and(|(start, _)| site.goes_elsewhere(start)) {
                    return Verdict::Done(None);
                }
                self.by_argument(site, number, pointer)
            }
            Sought::Kept => Verdict::Done(None),
        }
    }

    /// What an argument of the call points to.
    fn by_argument(&mut self, site: &Site, number: usize, pointer: bool) -> Verdict {
        let Some(named) = site.argument(number, pointer) else {
            return match self.fallback {
                Some(_) => Verdict::Done(None),
                None => Verdict::Done(self.by_source(site).map(Box::new)),
            };
        };
        let answer = variable(site, &named, self.element.as_ref(), FoundBy::Argument);
        if let Some(parameter) = named.through {
            self.sought = Sought::Argument(parameter, pointer);
            self.fallback.get_or_insert(Variable { call: self.call, ..answer });
            return Verdict::Next;
        }
        Verdict::named(answer)
    }

    /// The type that an allocator's class was asked for, by the functions of the system at a call.
    fn allocator(&mut self, site: &Site) {
        let (Some(debug), Some(scope)) = (site.image.debug(), &site.scope) else { return };
        if self.element.is_some() {
            return;
        }
        let function = &scope.function;
        for block in function.around(function.block_at(site.back - 1)) {
            let Some(f) = function.blocks[block].function.as_ref() else { continue };
            if !f.foreign {
                return;
            }
            if debug.name(f.origin).as_deref() == Some("allocate")
                && let Some(to) = allocator_argument(debug, f.origin)
            {
                self.element = Some(debug.element(Some(to)));
                return;
            }
        }
    }

    /// By the declarations and the source text of the line.
    fn by_source(&mut self, site: &Site) -> Option<Variable> {
        let (file, line) = site.line()?;
        let (debug, scope) = (site.image.debug()?, site.scope.as_ref()?);
        let user = scope.user?;
        let fortran = debug.fortran(scope.function.die.unit);
        let source = self.sources.get(&file, fortran);
        let container = scope.inlined.is_some() || matches!(self.sought, Sought::Object);
        let targets = source.as_deref().map(|s| on_line(s, line, container));
        let declared = declared_on(debug, &scope.function, user, &file, line);
        if let [only] = declared.as_slice() {
            let name = debug.name(scope.function.variables[*only].die)?;
            // Where there is a text, it has to agree.
            let agrees = match (&targets, source.as_deref()) {
                (Some(targets), _) if !targets.is_empty() => targets.len() == 1 && targets[0].name == name,
                (_, Some(Source::C(tokens))) => container && crate::text::c::defines(tokens, line, &name),
                (_, Some(Source::Fortran(_))) => false,
                (_, None) => true,
            };
            if agrees {
                let target = Target { root: name.clone(), name, call: String::new(), line };
                return described(site, &target, self.element.as_ref(), FoundBy::Declaration);
            }
        }
        let target = chosen(site, targets?, line)?;
        described(site, &target, self.element.as_ref(), FoundBy::SourceText)
    }
}

/// The targets of a line.
fn on_line(source: &Source, line: u32, container: bool) -> Vec<Target> {
    match source {
        Source::C(tokens) if container => crate::text::c::containers(tokens, line),
        Source::C(tokens) => crate::text::c::targets(tokens, line),
        Source::Fortran(text) => crate::text::fortran::targets(text, line),
    }
}

/// The target of this call among those of its line: the only one, or the one of the same number
/// among as many calls.
fn chosen(site: &Site, mut targets: Vec<Target>, line: u32) -> Option<Target> {
    let callee = site.callee.name().map(|n| match n {
        n if n.starts_with("_Zn") => "new".to_owned(),
        n => crate::site::without_brackets(&crate::names::readable(n))
            .rsplit("::")
            .next()
            .unwrap_or(n)
            .to_owned(),
    });
    if let Some(callee) = &callee
        && targets.iter().any(|t| t.call == *callee)
    {
        targets.retain(|t| t.call == *callee);
    }
    if targets.len() == 1 {
        return targets.pop();
    }
    if site.scope.as_ref()?.inlined.is_some() {
        return None;
    }
    let debug = site.image.debug()?;
    let this_line = |back: &u64| {
        let location = debug.lines.find_location(back - 1).ok().flatten();
        location.is_some_and(|l| l.line == Some(line))
    };
    let calls: Vec<u64> = site
        .body
        .as_ref()?
        .calls(&site.image.binary)
        .into_iter()
        .filter(|(back, to)| *to == site.callee && this_line(back))
        .map(|(back, _)| back)
        .collect();
    if calls.len() != targets.len() {
        return None;
    }
    let number = calls.iter().position(|back| *back == site.back)?;
    Some(targets.swap_remove(number))
}

/// Variables of a function that are declared on a line and that may hold an allocation.
fn declared_on(debug: &Debug, function: &Function, user: usize, file: &str, line: u32) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut origins = Vec::new();
    for (number, local) in function.variables.iter().enumerate() {
        if function.function_of(local.block) != user || local.parameter.is_some() {
            continue;
        }
        let (at, on) = debug.declared(local.die);
        let origin = debug.origin(local.die);
        if on == Some(line)
            && at.as_deref() == Some(file)
            && !origins.contains(&origin)
            && local.ty.is_some_and(|ty| holds(debug, ty))
        {
            origins.push(origin);
            found.push(number);
        }
    }
    found
}

/// A pointer, an array with a descriptor, or a container.
fn holds(debug: &Debug, ty: Die) -> bool {
    debug.bare(ty).is_some_and(|bare| match debug.kind(bare) {
        Kind::Pointer(_) | Kind::Array { described: true, .. } => true,
        Kind::Record => debug.container(bare),
        _ => false,
    })
}

/// The type of which an allocator's class hands out memory, by its function `allocate`.
fn allocator_argument(debug: &Debug, function: Die) -> Option<Die> {
    let (first, _) =
        debug.children(function).into_iter().find(|(_, t)| *t == gimli::DW_TAG_formal_parameter)?;
    let ty = debug.bare(debug.refers(first, gimli::DW_AT_type)?)?;
    match debug.kind(ty) {
        Kind::Pointer(to) => debug.template_argument(debug.bare(to?)?),
        _ => None,
    }
}

/// The elements behind a pointer, an array with a descriptor, or in a container.
fn element_of(site: &Site, named: &Named) -> Option<Element> {
    let debug = site.image.debug()?;
    element_behind(debug, named.ty?, named.container)
}

/// `library`: typedefs are not the programmer's.
fn element_behind(debug: &Debug, ty: Die, library: bool) -> Option<Element> {
    let bare = debug.bare(ty)?;
    match debug.kind(bare) {
        Kind::Pointer(to) => {
            let to = if library { to.and_then(|t| debug.bare(t)) } else { to };
            let mut element = debug.element(to);
            // Whose extent the length of the allocation says.
            element
                .dimensions
                .insert(0, Dimension { lower: Some(i64::from(debug.fortran(bare.unit))), extent: None });
            Some(element)
        }
        Kind::Array { described: true, .. } => Some(debug.element(Some(bare))),
        Kind::Record => {
            let mut element = debug.element(Some(debug.template_argument(bare)?));
            element.dimensions.retain(|d| d.extent.is_some());
            element.dimensions.insert(0, Dimension { lower: Some(0), extent: None });
            Some(element)
        }
        _ => None,
    }
}

/// All that is known of a variable; `element` is what the allocation was made for, if a container
/// holds it.
fn variable(site: &Site, named: &Named, element: Option<&Element>, found_by: FoundBy) -> Variable {
    let own = element_of(site, named);
    let mut name = named.name.clone();
    let element = match (element, own) {
        (Some(asked), own) if found_by == FoundBy::Argument => {
            let mut asked = asked.clone();
            // An array in an element of the container.
            if own.is_some_and(|own| own.type_name != asked.type_name && own.type_name.contains('<')) {
                name.push_str("[]");
            }
            if asked.dimensions.is_empty() {
                asked.dimensions.push(Dimension { lower: Some(0), extent: None });
            }
            Some(asked)
        }
        (_, own) => own,
    };
    let mut declared = SourcePlace::default();
    let mut within = None;
    if let Some(debug) = site.image.debug() {
        if let Some(die) = named.member.or(named.root) {
            (declared.file, declared.line) = debug.declared(die);
        }
        within = named.around.and_then(|a| site.image.title(a));
        let in_function =
            matches!(named.scope, VariableScope::Local | VariableScope::Parameter | VariableScope::Member)
                && named.block != usize::MAX;
        declared.function = within.clone().filter(|_| in_function);
    }
    assembled(name, named.scope, within, element, declared, found_by)
}

fn assembled(
    name: String,
    scope: VariableScope,
    within: Option<String>,
    element: Option<Element>,
    declared: SourcePlace,
    found_by: FoundBy,
) -> Variable {
    let known = element.is_some();
    let element = element.unwrap_or_default();
    Variable {
        name,
        scope,
        within,
        type_name: known.then_some(element.type_name),
        element_bytes: element.bytes,
        dimensions: if element.dimensions.is_empty() {
            vec![Dimension::default()]
        } else {
            element.dimensions
        },
        order: element.order,
        fields: element.fields,
        declared,
        found_by,
        call: 0,
    }
}

/// The variables that a name in the source text may mean.
struct Roots {
    dies: Vec<(Die, VariableScope)>,
    /// The whole name.
    name: String,
    /// What follows the variable in the name.
    path: String,
}

impl Roots {
    /// The variables of the function; or the member of `this` that it names without `this`; or the
    /// global variables.
    fn of(site: &Site, target: &Target) -> Option<Self> {
        let (debug, scope) = (site.image.debug()?, site.scope.as_ref()?);
        let (function, user) = (&scope.function, scope.user?);
        let named = |die: Die, name: &str| debug.name(die).as_deref() == Some(name);
        let mut roots = Self {
            dies: Vec::new(),
            name: target.name.clone(),
            path: target.name.trim_start_matches('*')[target.root.len()..].to_owned(),
        };
        let locals = || function.variables.iter().filter(|v| function.function_of(v.block) == user);
        for local in locals().filter(|v| named(v.die, &target.root)) {
            let origin = debug.origin(local.die);
            if !roots.dies.iter().any(|(r, _)| *r == origin) {
                let is_parameter = local.parameter.is_some();
                let scope = if is_parameter { VariableScope::Parameter } else { VariableScope::Local };
                roots.dies.push((origin, scope));
            }
        }
        if roots.dies.is_empty()
            && let Some(this) = locals().find(|v| named(v.die, "this"))
            && debug.name_member(this.ty, &target.root).is_some()
        {
            roots.dies.push((debug.origin(this.die), VariableScope::Member));
            roots.path = format!("->{}{}", target.root, roots.path);
            roots.name = format!("this->{}", roots.name);
        }
        if roots.dies.is_empty() {
            let all = site.image.globals().variables.values();
            roots.dies.extend(all.filter(|g| named(g.die, &target.root)).map(|g| (g.die, g.scope)));
        }
        Some(roots)
    }
}

/// All that the debugging information knows of what the source text names.
fn described(site: &Site, target: &Target, asked: Option<&Element>, found_by: FoundBy) -> Option<Variable> {
    let (debug, scope) = (site.image.debug()?, site.scope.as_ref()?);
    let (function, user) = (&scope.function, scope.user?);
    let block = &function.blocks[function.function_of(user)];
    let title = block.function.as_ref().and_then(|f| site.image.title(f.origin));
    let Roots { dies: roots, name, path } = Roots::of(site, target)?;
    let whole = path.is_empty() && !name.starts_with('*');
    let (root, scope_of) = match roots.as_slice() {
        [only] => *only,
        // Lines alone: the name is all there is.
        [] if function.variables.is_empty() => {
            let place = site.line().map(|(file, line)| SourcePlace {
                function: title.clone(),
                file: Some(file),
                line: Some(line),
            });
            let scope = if whole { VariableScope::Unknown } else { VariableScope::Member };
            let mut found = assembled(name, scope, title, None, place.unwrap_or_default(), found_by);
            found.order = if debug.fortran(function.die.unit) {
                ElementOrder::ColumnMajor
            } else {
                ElementOrder::RowMajor
            };
            return Some(found);
        }
        _ => return None,
    };
    let mut ty = debug.refers(root, gimli::DW_AT_type)?;
    if name.starts_with('*') {
        ty = debug.pointee(ty)?;
    }
    let mut member = None;
    for part in parts(&path) {
        (ty, member) = debug.part(ty, part, member)?;
    }
    let named = Named {
        name,
        root: Some(root),
        ty: Some(ty),
        scope: if whole { scope_of } else { VariableScope::Member },
        member,
        around: function.blocks[user].function.as_ref().map(|f| f.origin),
        block: if matches!(scope_of, VariableScope::Local | VariableScope::Parameter | VariableScope::Member)
        {
            user
        } else {
            usize::MAX
        },
        parameter: None,
        through: None,
        container: debug.bare(ty).is_some_and(|b| debug.kind(b) == Kind::Record),
    };
    let asked = asked.filter(|_| named.container);
    let mut found = variable(
        site,
        &named,
        asked.map(|a| a as &Element),
        if named.container { FoundBy::Argument } else { found_by },
    );
    found.found_by = found_by;
    (found.type_name.is_some()).then_some(found)
}

/// `->part.cells[]` → `->part`, `.cells`, `[]`
fn parts(path: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let skip =
            if rest.starts_with("->") || rest.starts_with("[]") || rest.starts_with("()") { 2 } else { 1 };
        let length =
            rest.get(skip..).and_then(|r| r.find(['-', '.', '%', '[', '('])).map_or(rest.len(), |l| l + skip);
        let length = if rest.starts_with(['[', '(']) { 2 } else { length };
        found.push(&rest[..length.min(rest.len())]);
        rest = rest.get(length..).unwrap_or("");
    }
    found
}

/// Gives the outermost dimension the extent that the allocation's length says.
pub(crate) fn fitted(mut variable: Variable, bytes: u64) -> Variable {
    let Some(element) = variable.element_bytes.filter(|b| *b > 0) else { return variable };
    let open: Vec<usize> =
        (0..variable.dimensions.len()).filter(|d| variable.dimensions[*d].extent.is_none()).collect();
    let known = variable.dimensions.iter().filter_map(|d| d.extent);
    let (Some(one), [only]) = (known.into_iter().try_fold(element, u64::checked_mul), open.as_slice()) else {
        return variable;
    };
    // C++ puts the count in front of objects that it has to destroy.
    let behind_count = bytes.checked_sub(8).filter(|_| !variable.fields.is_empty());
    let data = [Some(bytes), behind_count].into_iter().flatten().find(|b| one > 0 && b % one == 0);
    variable.dimensions[*only].extent = data.map(|d| d / one);
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_says_the_outermost_extent() {
        let of = |dimensions: &[Option<u64>], bytes| {
            let dimensions = dimensions.iter().map(|e| Dimension { lower: Some(0), extent: *e }).collect();
            let element = Element { bytes: Some(8), dimensions, ..Element::default() };
            let place = SourcePlace::default();
            let v = assembled(
                "u".into(),
                VariableScope::Local,
                None,
                Some(element),
                place,
                FoundBy::Instructions,
            );
            fitted(v, bytes).dimensions.into_iter().map(|d| d.extent).collect::<Vec<_>>()
        };
        assert_eq!(of(&[None], 800), [Some(100)]);
        assert_eq!(of(&[None, Some(10)], 800), [Some(10), Some(10)]);
        assert_eq!(of(&[None], 801), [None], "no whole number of elements");
        assert_eq!(of(&[None, None], 800), [None, None]);
    }

    #[test]
    fn a_path_falls_into_parts() {
        assert_eq!(parts("->part.cells[]"), ["->part", ".cells", "[]"]);
        assert_eq!(parts("()%u"), ["()", "%u"]);
        assert!(parts("").is_empty());
    }
}
