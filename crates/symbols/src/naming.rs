//! From an address that instructions computed to what the source calls the thing at that address.

use crate::dwarf::expression::{Frame, Home, Part};
use crate::dwarf::function::{Function, Local};
use crate::dwarf::types::{Holder, Kind};
use crate::dwarf::{Debug, Die, within};
use crate::flow::state::State;
use crate::flow::value::{Base, Value};
use crate::image::Image;
use crate::variable::VariableScope;

/// Most loads that are gone back through: `a->b->c->…`.
const DEEPEST: usize = 6;

/// A variable, or a part of one, that holds a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// As the source writes it.
    pub name: String,
    /// The variable at the root of the name; the same for all instances of it. `None`: a symbol of
    /// the linker.
    pub root: Option<Die>,
    /// The type of the pointer, of the array with a descriptor, or of the container.
    pub ty: Option<Die>,
    pub scope: VariableScope,
    /// The last member that the name has.
    pub member: Option<Die>,
    /// What is around the variable: a function, module, namespace, class or common block.
    pub around: Option<Die>,
    /// The block of the function that declares it; `usize::MAX` for what has an address of its own.
    pub block: usize,
    /// It is a parameter, with this number.
    pub parameter: Option<usize>,
    /// The parameter that the name goes through, by its number: `*out`, `this->data_`.
    pub through: Option<usize>,
    /// A class of a library, or of a template, holds the pointer.
    pub container: bool,
}

/// How what is behind a region's text is joined to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// The text is a variable.
    Variable,
    /// The text is a pointer to an array of the type.
    Pointer,
    /// The text is a reference.
    Reference,
}

/// Something of a type that an address lies in.
#[derive(Clone, Debug)]
struct Region {
    root: Named,
    join: Join,
    ty: Die,
    offset: u64,
    /// An index that is not known was added.
    spread: bool,
}

/// What names are looked for among: the variables that the call's place in the source sees.
pub(crate) struct Sight<'a> {
    pub image: &'a Image,
    pub debug: &'a Debug,
    pub function: &'a Function,
    /// Numbers of the variables.
    pub variables: &'a [usize],
}

impl Sight<'_> {
    /// The pointer at an address, at an instruction. `Err`: there are two.
    pub(crate) fn at(&self, address: &Value, ip: u64, state: &State) -> Result<Option<Named>, ()> {
        self.pointer(address, ip, state, DEEPEST)
    }

    /// The container that an address points to, at an instruction.
    pub(crate) fn object(&self, address: &Value, ip: u64, state: &State) -> Result<Option<Named>, ()> {
        let regions = self.regions(address, ip, state, DEEPEST)?;
        only(regions.into_iter().filter_map(|r| {
            let (index, inside) = self.element(&r)?;
            let holder = self.debug.object(r.ty, inside)?;
            Some(join(self.debug, &r, index, &holder))
        }))
    }

    fn pointer(&self, address: &Value, ip: u64, state: &State, left: usize) -> Result<Option<Named>, ()> {
        if address.base == Base::Absolute
            && let Some(symbol) = self.symbol(address)
        {
            return Ok(Some(symbol));
        }
        let regions = self.regions(address, ip, state, left)?;
        only(regions.into_iter().filter_map(|r| {
            let (index, inside) = self.element(&r)?;
            let holder = self.debug.holder(r.ty, inside)?;
            Some(join(self.debug, &r, index, &holder))
        }))
    }

    /// Variables whose register or memory holds the allocation's address, with whether it is its
    /// first byte.
    pub(crate) fn holding(&self, ip: u64, state: &State) -> Vec<(Named, bool)> {
        let mut found = Vec::new();
        for (local, part) in self.homes(ip, state) {
            let Some(ty) = local.ty else { continue };
            let mut add = |offset: u64, value: &Value| {
                if value.is_allocation()
                    && let Some(holder) = self.debug.holder(ty, offset)
                    && let Some(root) = self.root(local)
                {
                    let region = Region { root, join: Join::Variable, ty, offset, spread: false };
                    found.push((join(self.debug, &region, None, &holder), value.is_first_byte()));
                }
            };
            match &part.home {
                Home::Register(r) => {
                    state.registers.get(*r).into_iter().for_each(|value| add(part.at, value));
                }
                Home::Nowhere(value) => add(part.at, value),
                Home::Memory(start) => {
                    let bytes = self.length(&part, ty).max(8);
                    for (address, value) in state.words() {
                        if let Some(inside) =
                            distance(start, address).filter(|i| *i < bytes && !address.spread)
                        {
                            add(part.at + inside, value);
                        }
                    }
                }
            }
        }
        found
    }

    /// Bytes of a part of a variable of a type.
    fn length(&self, part: &Part, ty: Die) -> u64 {
        part.bytes.or_else(|| self.debug.size(ty)).unwrap_or(8).max(1)
    }

    /// Where the variables live at an instruction, part by part.
    fn homes<'s>(&'s self, ip: u64, state: &'s State) -> impl Iterator<Item = (&'s Local, Part)> + 's {
        let frame = self.debug.unit(self.function.die.unit).map(|unit| Frame {
            dwarf: &self.debug.dwarf,
            unit,
            base: self.function.frame_base.as_ref(),
            state,
        });
        self.variables.iter().flat_map(move |v| {
            let local = &self.function.variables[*v];
            let ranges = &self.function.blocks[local.block].ranges;
            let visible = local.block == 0 || within(ranges, ip);
            let here = local.locations.iter().find(|(begin, end, _)| (*begin..*end).contains(&ip));
            let parts = match (&frame, here) {
                (Some(frame), Some((.., expression))) if visible => frame.parts(expression),
                _ => Vec::new(),
            };
            parts.into_iter().map(move |part| (local, part))
        })
    }

    /// What an address lies in.
    fn regions(&self, address: &Value, ip: u64, state: &State, left: usize) -> Result<Vec<Region>, ()> {
        let mut found = Vec::new();
        for (local, part) in self.homes(ip, state) {
            let (Some(ty), Some(root)) = (local.ty, self.root(local)) else { continue };
            let held = match &part.home {
                Home::Memory(start) => {
                    let inside = distance(start, address).filter(|i| *i < self.length(&part, ty));
                    if let Some(inside) = inside {
                        let (offset, spread) = (part.at + inside, address.spread);
                        found.push(Region { root, join: Join::Variable, ty, offset, spread });
                        continue;
                    }
                    // What the variable was given before the call.
                    state.peek(start).filter(|v| !start.spread && start.load().as_ref() != Some(v))
                }
                Home::Register(r) => state.registers.get(*r).cloned(),
                Home::Nowhere(value) => Some(value.clone()),
            };
            if part.at == 0 {
                found.extend(held.and_then(|value| self.behind(&root, ty, &value, address)));
            }
        }
        match &address.base {
            Base::Absolute => found.extend(self.global(address)),
            Base::Load(inner) if left > 0 => {
                // A global's address that the loader put into a table.
                if let Some(global) = self.through_table(inner, address) {
                    found.push(global);
                } else if let Some(pointer) = self.pointer(inner, ip, state, left - 1)? {
                    let ty = pointer.ty;
                    let start = Value::of(address.base.clone());
                    found.extend(ty.and_then(|ty| self.behind(&pointer, ty, &start, address)));
                }
            }
            _ => {}
        }
        Ok(found)
    }

    /// What a pointer of type `ty` with a value points to, if the address lies there.
    fn behind(&self, pointer: &Named, ty: Die, value: &Value, address: &Value) -> Option<Region> {
        if value.base != address.base
            || value.spread
            || matches!(value.base, Base::Absolute | Base::Number(_) | Base::Allocation | Base::Aligned)
        {
            return None;
        }
        let offset = u64::try_from(address.offset.wrapping_sub(value.offset)).ok()?;
        let bare = self.debug.bare(ty)?;
        let (to, join) = match self.debug.kind(bare) {
            Kind::Pointer(to) if self.debug.tag(bare) == Some(gimli::DW_TAG_pointer_type) => {
                (to?, Join::Pointer)
            }
            Kind::Pointer(to) => (to?, Join::Reference),
            Kind::Array { element, described: true, .. } => (element?, Join::Pointer),
            _ => return None,
        };
        Some(Region { root: pointer.clone(), join, ty: to, offset, spread: address.spread })
    }

    fn root(&self, local: &Local) -> Option<Named> {
        let function = self.function.function_of(local.block);
        Some(Named {
            name: self.debug.name(local.die)?,
            root: Some(self.debug.origin(local.die)),
            ty: local.ty,
            scope: if local.parameter.is_some() { VariableScope::Parameter } else { VariableScope::Local },
            member: None,
            around: self.function.blocks[function].function.as_ref().map(|f| f.origin),
            block: local.block,
            // Of the function itself alone: where the parameters of an inlined call come from is
            // not followed.
            parameter: local.parameter,
            through: None,
            container: false,
        })
    }

    fn global(&self, address: &Value) -> Option<Region> {
        let (global, offset) = self.image.globals().at(u64::try_from(address.offset).ok()?)?;
        let root = Named {
            name: self.debug.name(global.die)?,
            root: Some(self.debug.origin(global.die)),
            ty: global.ty,
            scope: global.scope,
            member: None,
            around: global.within,
            block: usize::MAX,
            parameter: None,
            through: None,
            container: false,
        };
        Some(Region { root, join: Join::Variable, ty: global.ty?, offset, spread: address.spread })
    }

    /// A variable of this file whose address the loader puts into the slot at `slot`.
    fn through_table(&self, slot: &Value, address: &Value) -> Option<Region> {
        let slot = u64::try_from(slot.constant()?).ok()?;
        let name = self.image.binary.imports.get(&slot)?;
        let symbol = self.image.binary.data.iter().find(|s| s.name == *name)?;
        let at = Value::absolute(symbol.address).plus(address.offset);
        self.global(&Value { spread: address.spread, ..at })
    }

    /// A data symbol of a pointer's length, in a file without debugging information on variables.
    fn symbol(&self, address: &Value) -> Option<Named> {
        let at = u64::try_from(address.constant()?).ok()?;
        linker(self.image, at).filter(|_| self.image.globals().at(at).is_none())
    }

    /// The number of the element that a region's address lies in, if that is to be told, and the
    /// bytes into the element.
    fn element(&self, region: &Region) -> Option<(Option<Option<u64>>, u64)> {
        let whole = |ty| self.debug.size(ty).filter(|b| *b > 0);
        match region.join {
            Join::Variable if region.spread => {
                // An element of an array.
                let Kind::Array { element, described: false, .. } =
                    self.debug.kind(self.debug.bare(region.ty)?)
                else {
                    return None;
                };
                Some((None, region.offset % whole(element?)?))
            }
            Join::Variable | Join::Reference => (!region.spread).then_some((None, region.offset)),
            Join::Pointer => {
                let Some(bytes) = whole(region.ty) else {
                    return (!region.spread && region.offset == 0).then_some((Some(Some(0)), 0));
                };
                let index = (!region.spread).then_some(region.offset / bytes);
                Some((Some(index), region.offset % bytes))
            }
        }
    }
}

/// Bytes from a start to an address behind it.
fn distance(start: &Value, address: &Value) -> Option<u64> {
    let comparable = start.base == address.base && !start.spread;
    comparable.then(|| u64::try_from(address.offset.wrapping_sub(start.offset)).ok())?
}

/// A data symbol of a pointer's length.
pub(crate) fn linker(image: &Image, at: u64) -> Option<Named> {
    let symbol = image.binary.data.iter().find(|s| s.address == at && s.bytes.0 == 8)?;
    Some(Named {
        name: crate::names::readable(&symbol.name),
        root: None,
        ty: None,
        scope: if symbol.local { VariableScope::Static } else { VariableScope::Global },
        member: None,
        around: None,
        block: usize::MAX,
        parameter: None,
        through: None,
        container: false,
    })
}

/// The name of what lies in a region: `index` is the number of the element, if the region is an
/// array behind a pointer.
fn join(debug: &Debug, region: &Region, index: Option<Option<u64>>, holder: &Holder) -> Named {
    let root = &region.root;
    let fortran = debug.fortran(region.ty.unit);
    // What a parameter points to may have a name in the caller.
    let whole = holder.suffix.is_empty() && matches!(index, None | Some(Some(0))) && !region.spread;
    let through = root.parameter.filter(|_| region.join != Join::Variable && whole);
    // A container that a pointer points to is called by its member.
    let pointed = holder.container && index.is_some() && holder.suffix.is_empty();
    let suffix = if pointed { &holder.full } else { &holder.suffix };
    let text = &root.name;
    let name = match index {
        None if region.spread => format!("{text}[]{suffix}"),
        None => format!("{text}{suffix}"),
        Some(_) if fortran && suffix.starts_with('%') => format!("{text}{suffix}"),
        Some(_) if fortran => format!("{text}(){suffix}"),
        Some(Some(0)) if suffix.starts_with('.') => format!("{text}->{}", &suffix[1..]),
        Some(Some(0)) if suffix.is_empty() && through.is_some() => format!("*{text}"),
        Some(_) => format!("{text}[]{suffix}"),
    };
    let part = region.join == Join::Pointer || region.spread || !suffix.is_empty();
    Named {
        name,
        ty: Some(holder.ty),
        scope: if part { VariableScope::Member } else { root.scope },
        member: holder.member.or(root.member),
        parameter: root.parameter.filter(|_| region.join == Join::Variable && !part),
        through,
        container: holder.container,
        ..root.clone()
    }
}

/// The only one. Instances of one variable are one.
fn only(names: impl Iterator<Item = Named>) -> Result<Option<Named>, ()> {
    let mut found: Option<Named> = None;
    for name in names {
        match &found {
            // Of an inlined function and the function around it, the inner one's name is that of
            // the place.
            Some(other) if other.block < name.block && name.block != usize::MAX => found = Some(name),
            Some(other) if other.block > name.block && other.block != usize::MAX => {}
            Some(other) if (other.root, &other.name) != (name.root, &name.name) => return Err(()),
            Some(_) => {}
            None => found = Some(name),
        }
    }
    Ok(found)
}
