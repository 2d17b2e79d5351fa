//! One call of a call stack: what becomes of its result in the function that made it.

use std::rc::Rc;

use crate::dwarf::function::{Function, Local};
use crate::dwarf::types::Kind;
use crate::dwarf::{Debug, Die};
use crate::flow::paths::{Body, Callee, Go, Meets};
use crate::flow::state::{ARGUMENTS, State};
use crate::flow::value::{Base, Value};
use crate::image::Image;
use crate::naming::{Named, Sight, linker};
use crate::variable::VariableScope;

/// A call.
pub(crate) struct Site {
    pub image: Rc<Image>,
    /// Its return address in the file's own terms.
    pub back: u64,
    pub body: Option<Rc<Body>>,
    pub callee: Callee,
    /// What was known right before the call.
    before: Option<State>,
    /// The source's function.
    pub scope: Option<SiteScope>,
}

/// Where in the source a call stands.
pub(crate) struct SiteScope {
    pub function: Rc<Function>,
    /// The block of the innermost function that the programmer wrote.
    pub user: Option<usize>,
    /// The block of the system's function that it called and that was inlined.
    pub inlined: Option<usize>,
    /// Variables that are seen there, and that are not the system's.
    pub variables: Vec<usize>,
}

/// What becomes of the allocation's address.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// The variable that holds it.
    pub held: Option<Named>,
    /// Several do, and there is no telling which is meant.
    pub ambiguous: bool,
    /// The function returns it.
    pub returned: bool,
}

/// How the allocating call hands the address out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// As its result.
    Returned,
    /// In a word whose address is its argument of this number.
    Argument(usize),
}

/// What one way through the instructions has met so far.
#[derive(Clone, Debug, Default)]
struct Way {
    /// Variables that held the first byte's address, each further out than the one before.
    held: Vec<Named>,
    /// The last of them belongs to a function that may hand the address on.
    open: bool,
    /// The first variable that held another byte's address.
    inside: Option<Named>,
    ambiguous: bool,
}

impl Site {
    pub(crate) fn of(image: &Rc<Image>, back: u64) -> Self {
        let body = image.body(back);
        let callee = body
            .as_ref()
            .and_then(|b| b.call(back))
            .map_or(Callee::Unknown, |call| crate::flow::paths::callee(&image.binary, call));
        let before = body.as_ref().and_then(|b| b.before(image.unwind(), &image.binary, back));
        let scope = image.function(back.saturating_sub(1)).map(|function| SiteScope::of(function, back - 1));
        let mut site = Self { image: Rc::clone(image), back, body, callee, before, scope };
        site.leave_out_later();
        site
    }

    /// Leaves out variables that the source declares behind the call: compilers let them share
    /// memory with temporaries.
    fn leave_out_later(&mut self) {
        let Some((file, line)) = self.line() else { return };
        let (Some(scope), Some(debug)) = (&mut self.scope, self.image.debug()) else { return };
        let function = &scope.function;
        scope.variables.retain(|v| {
            let local = &function.variables[*v];
            let (at, on) = debug.declared(local.die);
            let here =
                Some(function.function_of(local.block)) == scope.user && at.as_deref() == Some(file.as_str());
            !(here && on.is_some_and(|on| on > line))
        });
    }

    /// The programmer wrote the function, or a function that was inlined around the call.
    pub(crate) fn users(&self) -> bool {
        self.scope.as_ref().is_some_and(|s| s.user.is_some())
    }

    /// What becomes of the address.
    pub(crate) fn fate(&self, handed: Handed) -> Fate {
        let (Some(body), Some(before)) = (&self.body, &self.before) else { return Fate::default() };
        let mut state = before.clone();
        if let Handed::Argument(number) = handed {
            let Some(at) = ARGUMENTS.get(number).map(|r| state.registers[*r].clone()) else {
                return Fate::default();
            };
            state.store(&at, Value::of(Base::Allocation));
        }
        let debug = self.image.debug();
        let sight = match (debug, &self.scope) {
            (Some(debug), Some(scope)) if scope.user.is_some() => Some(Sight {
                image: &self.image,
                debug,
                function: &scope.function,
                variables: &scope.variables,
            }),
            _ => None,
        };
        let mut ways: Vec<Way> = vec![Way::default()];
        let mut returned = false;
        let in_result = handed == Handed::Returned;
        // A posted word was stored before anything is followed.
        let mut posted = match handed {
            Handed::Argument(number) => ARGUMENTS.get(number).map(|r| before.registers[*r].clone()),
            Handed::Returned => None,
        };
        {
            let ways = std::cell::RefCell::new(&mut ways);
            body.follow(
                &self.image.binary,
                self.back,
                state,
                in_result,
                |number, meets| {
                    let mut ways = ways.borrow_mut();
                    let Some(way) = ways.get_mut(number) else { return Go::Stop };
                    match meets {
                        Meets::Returned => {
                            returned = true;
                            Go::Stop
                        }
                        Meets::Call(callee, state) => match &sight {
                            Some(sight) => self.handed(sight, callee, state, way),
                            None => Go::On,
                        },
                        Meets::Instruction(ip, state, stores) => {
                            let posted = posted.take();
                            let stores = stores.iter().chain(&posted);
                            match &sight {
                                Some(sight) => sight.look(ip, state, stores, way),
                                None => self.by_symbols(state, stores, way),
                            }
                        }
                    }
                },
                |from| {
                    let mut ways = ways.borrow_mut();
                    let copy = ways.get(from).cloned().unwrap_or_default();
                    ways.push(copy);
                },
            );
        }
        let mut fate = merged(ways);
        fate.returned = returned && self.may_return();
        if let (Some(held), Some(scope)) = (&mut fate.held, &self.scope)
            && scope.function.blocks.get(held.block).is_some()
            && scope.function.function_of(held.block) > 0
        {
            held.through = None; // Where the parameters of an inlined call come from is not followed.
        }
        fate
    }

    /// The function's result may be an address, as far as is known: the register may hold one by
    /// chance.
    fn may_return(&self) -> bool {
        let (Some(debug), Some(scope)) = (self.image.debug(), &self.scope) else { return true };
        let result = debug.refers(scope.function.die, gimli::DW_AT_type).and_then(|t| debug.bare(t));
        result.is_some_and(|t| match debug.kind(t) {
            Kind::Scalar => debug.size(t) == Some(8),
            _ => true,
        })
    }

    /// The call goes to a function that the programmer wrote.
    pub(crate) fn calls_own(&self) -> bool {
        let target =
            self.body.as_ref().and_then(|b| b.call(self.back)).map(iced_x86::Instruction::near_branch_target);
        let function = target.filter(|t| *t != 0).and_then(|t| self.image.function(t));
        function.is_some_and(|f| f.blocks[0].function.as_ref().is_some_and(|f| !f.foreign))
    }

    /// The address is an argument of a class's function: a smart pointer takes it.
    fn handed(&self, sight: &Sight<'_>, callee: &Callee, state: &State, way: &mut Way) -> Go {
        let [object, pointer, ..] = ARGUMENTS.map(|r| &state.registers[r]);
        if !way.held.is_empty() || !pointer.is_allocation() || !callee.name().is_some_and(takes) {
            return Go::On;
        }
        match sight.object(object, self.back, state) {
            Ok(Some(named)) => {
                way.held.push(named);
                Go::Stop
            }
            _ => Go::On,
        }
    }

    /// Without debugging information, the linker's symbols are left.
    fn by_symbols<'v>(&self, state: &State, stores: impl Iterator<Item = &'v Value>, way: &mut Way) -> Go {
        for at in stores {
            let exact = state.peek(at).is_some_and(|v| v.is_first_byte());
            let named = at.constant().and_then(|a| linker(&self.image, u64::try_from(a).ok()?));
            if let Some(named) = named.filter(|_| exact) {
                way.held.push(named);
                return Go::Stop;
            }
        }
        Go::On
    }

    /// The container, or the pointer, that argument `number` of the call points to.
    pub(crate) fn argument(&self, number: usize, pointer: bool) -> Option<Named> {
        let (scope, before, debug) = (self.scope.as_ref()?, self.before.as_ref()?, self.image.debug()?);
        scope.user?;
        let variables = &scope.variables;
        let sight = Sight { image: &self.image, debug, function: &scope.function, variables };
        let at = &before.registers[*ARGUMENTS.get(number)?];
        let ip = self.back - 1;
        let found = if pointer { sight.at(at, ip, before) } else { sight.object(at, ip, before) };
        found.ok()?
    }

    /// The call goes to an address that is not the beginning of the function that the stack has
    /// below.
    pub(crate) fn goes_elsewhere(&self, start: u64) -> bool {
        let target =
            self.body.as_ref().and_then(|b| b.call(self.back)).map(iced_x86::Instruction::near_branch_target);
        target.is_some_and(|t| {
            t != 0 && t != start && self.image.unwind().function(t).is_some_and(|(s, _)| s == t)
        })
    }

    /// File and line of the call, in the programmer's code.
    pub(crate) fn line(&self) -> Option<(String, u32)> {
        let scope = self.scope.as_ref()?;
        if let Some(inlined) = scope.inlined {
            let call = scope.function.blocks[inlined].function.as_ref()?.call.clone()?;
            return Some((call.0?, call.1));
        }
        let location = self.image.debug()?.lines.find_location(self.back - 1).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }
}

/// A constructor, or a smart pointer's `reset`.
fn takes(linker: &str) -> bool {
    let name = crate::names::readable(linker);
    let Some(name) = linker.starts_with("_ZN").then_some(name) else { return false };
    let plain = without_brackets(&name);
    let mut parts = plain.rsplit("::");
    match (parts.next(), parts.next()) {
        (Some("reset"), Some(_)) => true,
        (Some(function), Some(class)) => function == class,
        _ => false,
    }
}

/// `std::unique_ptr<double []>::unique_ptr<…>(double*)` → `std::unique_ptr::unique_ptr`
pub(crate) fn without_brackets(name: &str) -> String {
    let mut depth = 0_u32;
    let mut plain = String::new();
    for c in name.chars() {
        match c {
            '(' if depth == 0 => break,
            '<' | '[' => depth += 1,
            '>' | ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain.trim_end().to_owned()
}

impl SiteScope {
    fn of(function: Rc<Function>, at: u64) -> Self {
        let block = function.block_at(at);
        let (user, inlined) = match function.users(block) {
            Some((user, inlined)) => (Some(user), inlined),
            None => (None, None),
        };
        let mut variables = Vec::new();
        if let Some(user) = user {
            // Blocks of the programmer's function, and of those that it is inlined into.
            let seen: Vec<usize> = function
                .around(block)
                .filter(|b| {
                    let owner = function.function_of(*b);
                    let foreign = function.blocks[owner].function.as_ref().is_some_and(|f| f.foreign);
                    !foreign && owner <= user
                })
                .collect();
            variables = (0..function.variables.len())
                .filter(|v| seen.contains(&function.variables[*v].block))
                .collect();
        }
        Self { function, user, inlined, variables }
    }
}

impl Sight<'_> {
    /// Looks for variables that hold the address before the instruction at `ip`.
    fn look<'v>(&self, ip: u64, state: &State, stores: impl Iterator<Item = &'v Value>, way: &mut Way) -> Go {
        let mut found: Vec<(Named, bool)> = Vec::new();
        for at in stores {
            let exact = state.peek(at).is_none_or(|v| v.is_first_byte());
            match self.at(at, ip, state) {
                Ok(Some(named)) => found.push((named, exact)),
                Ok(None) => {}
                Err(()) => way.ambiguous |= way.held.is_empty(),
            }
        }
        found.extend(self.holding(ip, state));
        if way.inside.is_none() {
            way.inside = found.iter().find(|(_, exact)| !exact).map(|(n, _)| n.clone());
        }
        let mut found: Vec<Named> = found.into_iter().filter(|(_, exact)| *exact).map(|(n, _)| n).collect();
        // Innermost first; what has an address of its own is the outermost.
        found.sort_by(|a, b| {
            let inner = |n: &Named| n.block.wrapping_add(1);
            inner(b).cmp(&inner(a)).then_with(|| (a.root, &a.name).cmp(&(b.root, &b.name)))
        });
        found.dedup();
        let mut rest = found.into_iter().peekable();
        while let Some(named) = rest.next() {
            if !self.replaces(way, &named) {
                continue;
            }
            let twin = |other: &Named| {
                other.block == named.block && (other.root, &other.name) != (named.root, &named.name)
            };
            if rest.peek().is_some_and(twin) {
                way.ambiguous = true;
                return Go::Stop;
            }
            way.open = self.passes_on(&named);
            way.held.push(named);
        }
        if way.ambiguous || !way.held.is_empty() && !way.open { Go::Stop } else { Go::On }
    }

    /// Whether a variable is a better answer than the one before it.
    fn replaces(&self, way: &Way, named: &Named) -> bool {
        let Some(last) = way.held.last() else { return true };
        if !way.open || (last.root, &last.name) == (named.root, &named.name) {
            return false;
        }
        // Handed out by a parameter, or by an inlined function.
        let owner = self.function.function_of(last.block);
        let further_out = named.block == usize::MAX || self.function.function_of(named.block) < owner;
        named.through.is_some() || owner > 0 && further_out
    }

    /// A variable of a function that may hand its value on: the caller's variable says more.
    fn passes_on(&self, named: &Named) -> bool {
        if named.block == usize::MAX {
            return false;
        }
        let owner = self.function.function_of(named.block);
        if named.through.is_some() {
            return owner > 0;
        }
        if named.scope == VariableScope::Member {
            return false;
        }
        let origin = self.function.blocks[owner].function.as_ref().map(|f| f.origin);
        let returns = origin.is_some_and(|f| points(self.debug, f).is_some());
        let hands = |local: &Local| {
            let to = local.ty.and_then(|ty| self.debug.bare(ty)).and_then(|ty| match self.debug.kind(ty) {
                Kind::Pointer(to) => self.debug.bare(to?),
                _ => None,
            });
            local.parameter.is_some()
                && local.block == owner
                && to.is_some_and(|t| matches!(self.debug.kind(t), Kind::Pointer(_)))
        };
        returns || self.function.variables.iter().any(hands)
    }
}

/// What a function's result points to, if the result is a pointer.
fn points(debug: &Debug, function: Die) -> Option<Option<Die>> {
    let result = debug.refers(function, gimli::DW_AT_type).and_then(|t| debug.bare(t))?;
    match debug.kind(result) {
        Kind::Pointer(to) => Some(to),
        _ => None,
    }
}

/// What all ways together say.
fn merged(ways: Vec<Way>) -> Fate {
    let mut fate = Fate::default();
    let exact = ways.iter().any(|w| !w.held.is_empty());
    for way in ways {
        fate.ambiguous |= way.ambiguous;
        let Some(named) = (if exact { way.held.last().cloned() } else { way.inside }) else { continue };
        match &fate.held {
            Some(other) if (other.root, &other.name) == (named.root, &named.name) => {}
            // The one way ended before the other met the variable further out.
            Some(other) if way.held.iter().any(|n| n == other) => fate.held = Some(named),
            Some(_) => fate.ambiguous = true,
            None => fate.held = Some(named),
        }
    }
    if fate.ambiguous {
        fate.held = None;
    }
    fate
}
