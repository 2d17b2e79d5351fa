//! Types: names as the source writes them, sizes, dimensions, fields.

use gimli::AttributeValue;

use super::{CHAIN, Debug, Die};
use crate::names::foreign;
use crate::variable::{Dimension, ElementOrder, StructField};

/// Most fields of a structure that are told.
const FIELDS: usize = 256;
/// Most dimensions of an array.
const DIMENSIONS: usize = 16;
/// Most members that one question may look at.
const WORK: usize = 20_000;

/// What a type is. `None` inside stands for `void`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number, a character, an enumeration.
    Scalar,
    /// A pointer or a reference.
    Pointer(Option<Die>),
    /// An array. `described`: the variable is a descriptor that holds the array's address in its
    /// first word, as Fortran's allocatable arrays and pointers to arrays do.
    Array { element: Option<Die>, dimensions: Vec<Dimension>, described: bool },
    /// A structure, class or union.
    Record,
    /// A typedef.
    Alias(Option<Die>),
    /// `const` and its like.
    Qualified(Option<Die>),
    /// A function, a type that is not understood.
    Other,
}

/// One element of an array, and the dimensions that its type adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub type_name: String,
    pub bytes: Option<u64>,
    pub dimensions: Vec<Dimension>,
    pub order: ElementOrder,
    pub fields: Vec<StructField>,
}

/// Where a pointer lies in a variable's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// What the source writes behind the variable's name: `.cells`, `%u`, `[3]`. It stops at a
    /// container.
    pub suffix: String,
    /// The same without a stop.
    pub full: String,
    /// The type of the pointer, or of the array with a descriptor; of an object, its class.
    pub ty: Die,
    /// A class of a library, or of a template, holds the pointer.
    pub container: bool,
    /// The last member that the suffix names.
    pub member: Option<Die>,
}

impl Holder {
    const fn of(ty: Die, container: bool) -> Self {
        Self { suffix: String::new(), full: String::new(), ty, container, member: None }
    }
}

/// What is looked for at an offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// A pointer, or an array's descriptor.
    Pointer,
    /// An object of a container's class; the offset may be inside of it.
    Container,
}

impl Debug {
    pub(crate) fn kind(&self, die: Die) -> Kind {
        let to = || self.refers(die, gimli::DW_AT_type);
        match self.tag(die) {
            Some(
                gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type | gimli::DW_TAG_unspecified_type,
            ) => Kind::Scalar,
            Some(
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type,
            ) => Kind::Pointer(to()),
            Some(gimli::DW_TAG_array_type) => {
                let described = self.own_attribute(die, gimli::DW_AT_data_location).is_some();
                Kind::Array { element: to(), dimensions: self.dimensions(die), described }
            }
            Some(gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type) => {
                Kind::Record
            }
            Some(gimli::DW_TAG_typedef) => Kind::Alias(to()),
            Some(
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type,
            ) => Kind::Qualified(to()),
            _ => Kind::Other,
        }
    }

    /// What is behind typedefs and `const`.
    pub(crate) fn bare(&self, die: Die) -> Option<Die> {
        let mut here = die;
        for _ in 0..CHAIN {
            match self.kind(here) {
                Kind::Alias(to) | Kind::Qualified(to) => here = to?,
                _ => return Some(here),
            }
        }
        None
    }

    fn dimensions(&self, array: Die) -> Vec<Dimension> {
        let fortran = self.fortran(array.unit);
        let mut found = Vec::new();
        for (child, tag) in self.children(array) {
            if !matches!(tag, gimli::DW_TAG_subrange_type | gimli::DW_TAG_generic_subrange)
                || found.len() == DIMENSIONS
            {
                continue;
            }
            let constant = |name| self.own_attribute(child, name).map(|v| bound(&v));
            let lower = constant(gimli::DW_AT_lower_bound).unwrap_or(Some(i64::from(fortran)));
            let count = constant(gimli::DW_AT_count).flatten().and_then(|c| u64::try_from(c).ok());
            let upper = constant(gimli::DW_AT_upper_bound).flatten();
            let from_bounds = || {
                let extent = upper?.checked_sub(lower?)?.checked_add(1)?;
                u64::try_from(extent).ok()
            };
            found.push(Dimension { lower, extent: count.or_else(from_bounds) });
        }
        found
    }

    /// Bytes of a value of the type; `None` if that is not known.
    pub(crate) fn size(&self, die: Die) -> Option<u64> {
        self.size_within(die, CHAIN)
    }

    fn size_within(&self, die: Die, left: usize) -> Option<u64> {
        if let Some(bytes) = self.own_attribute(die, gimli::DW_AT_byte_size) {
            return bytes.udata_value();
        }
        let left = left.checked_sub(1)?;
        match self.kind(die) {
            Kind::Pointer(_) => Some(8),
            Kind::Alias(to) | Kind::Qualified(to) => self.size_within(to?, left),
            Kind::Array { element, dimensions, described: false } => {
                let one = self.size_within(element?, left)?;
                dimensions.iter().try_fold(one, |bytes, d| bytes.checked_mul(d.extent?))
            }
            _ => None,
        }
    }

    /// A type as the source writes it.
    pub(crate) fn type_name(&self, die: Option<Die>) -> String {
        self.type_name_within(die, CHAIN)
    }

    fn type_name_within(&self, die: Option<Die>, left: usize) -> String {
        let (Some(die), Some(left)) = (die, left.checked_sub(1)) else {
            return if die.is_none() { "void".into() } else { "?".into() };
        };
        let name = || self.name(die).unwrap_or_else(|| "?".into());
        match self.kind(die) {
            Kind::Scalar | Kind::Alias(_) => name(),
            Kind::Pointer(to) => {
                let sign = match self.tag(die) {
                    Some(gimli::DW_TAG_reference_type) => "&",
                    Some(gimli::DW_TAG_rvalue_reference_type) => "&&",
                    _ => "*",
                };
                if to.is_some_and(|t| self.tag(t) == Some(gimli::DW_TAG_subroutine_type)) {
                    let result = to.and_then(|t| self.refers(t, gimli::DW_AT_type));
                    return format!("{} (*)()", self.type_name_within(result, left));
                }
                let to = self.type_name_within(to, left);
                if to.ends_with(['*', '&']) { format!("{to}{sign}") } else { format!("{to} {sign}") }
            }
            Kind::Array { element, dimensions, .. } => {
                let mut text = self.type_name_within(element, left);
                let fortran = self.fortran(die.unit);
                let bounds = dimensions.iter().map(|d| match (d.extent, d.lower) {
                    (Some(extent), Some(lower)) if fortran && lower != 1 => {
                        let last = i64::try_from(extent).ok().and_then(|e| lower.checked_add(e - 1));
                        last.map_or_else(|| ":".into(), |last| format!("{lower}:{last}"))
                    }
                    (Some(extent), _) => extent.to_string(),
                    (None, _) => if fortran { ":" } else { "" }.to_owned(),
                });
                let bounds = bounds.collect::<Vec<_>>();
                if fortran {
                    text.push_str(&format!("({})", bounds.join(",")));
                } else {
                    bounds.iter().for_each(|b| text.push_str(&format!("[{b}]")));
                }
                text
            }
            Kind::Record => {
                let keyword = match self.tag(die) {
                    Some(gimli::DW_TAG_union_type) => "union",
                    _ => "struct",
                };
                match self.name(die) {
                    Some(name) if self.fortran(die.unit) => format!("type({name})"),
                    Some(name) if self.plain_c(die.unit) => format!("{keyword} {name}"),
                    Some(name) => name,
                    None => keyword.to_owned(),
                }
            }
            Kind::Qualified(to) => {
                let word = match self.tag(die) {
                    Some(gimli::DW_TAG_const_type) => "const ",
                    Some(gimli::DW_TAG_volatile_type) => "volatile ",
                    Some(gimli::DW_TAG_atomic_type) => "_Atomic ",
                    _ => "",
                };
                let pointer = to.is_some_and(|t| matches!(self.kind(t), Kind::Pointer(_)));
                let to = self.type_name_within(to, left);
                if pointer { to } else { format!("{word}{to}") }
            }
            Kind::Other => self.name(die).unwrap_or_else(|| "?".into()),
        }
    }

    /// The element of a variable or of what a pointer points to: arrays are taken apart, typedefs
    /// of anything else are kept.
    pub(crate) fn element(&self, ty: Option<Die>) -> Element {
        let mut element = Element { type_name: "void".into(), ..Element::default() };
        let Some(mut here) = ty else { return element };
        for _ in 0..CHAIN {
            if self.fortran(here.unit) {
                element.order = ElementOrder::ColumnMajor;
            }
            match self.kind(here) {
                Kind::Array { element: Some(to), dimensions, .. } => {
                    element.dimensions.extend(dimensions);
                    element.dimensions.truncate(DIMENSIONS);
                    here = to;
                }
                Kind::Qualified(Some(to)) => here = to,
                Kind::Alias(Some(_)) => match self.bare(here) {
                    Some(bare) if matches!(self.kind(bare), Kind::Array { .. }) => here = bare,
                    _ => break,
                },
                _ => break,
            }
        }
        element.type_name = self.type_name(Some(here));
        element.bytes = self.size(here).filter(|b| *b > 0);
        element.fields = self.fields(here);
        element
    }

    /// The fields of a structure, those of base classes first; none for anything else.
    fn fields(&self, ty: Die) -> Vec<StructField> {
        let mut fields = Vec::new();
        if let Some(record) = self.bare(ty).filter(|b| self.kind(*b) == Kind::Record) {
            self.add_fields(record, 0, 4, &mut fields, &mut { WORK });
        }
        fields
    }

    fn add_fields(
        &self,
        record: Die,
        base: u64,
        left: usize,
        fields: &mut Vec<StructField>,
        work: &mut usize,
    ) {
        for (member, tag, offset) in self.members(record) {
            if fields.len() == FIELDS || *work == 0 {
                return;
            }
            *work -= 1;
            let ty = self.refers(member, gimli::DW_AT_type);
            let offset = base.saturating_add(offset);
            match (self.name(member), ty) {
                (Some(name), _) if tag == gimli::DW_TAG_member => {
                    let (bytes, type_name) = (ty.and_then(|t| self.size(t)), self.type_name(ty));
                    fields.push(StructField { name, offset, bytes, type_name });
                }
                (_, Some(ty)) if left > 0 => {
                    if let Some(inner) = self.bare(ty).filter(|b| self.kind(*b) == Kind::Record) {
                        self.add_fields(inner, offset, left - 1, fields, work);
                    }
                }
                _ => {}
            }
        }
    }

    /// Members and base classes with their offsets; static members are none.
    fn members(&self, record: Die) -> Vec<(Die, gimli::DwTag, u64)> {
        let union = self.tag(record) == Some(gimli::DW_TAG_union_type);
        let offset = |child: Die| match self.own_attribute(child, gimli::DW_AT_data_member_location) {
            Some(value) => match value {
                AttributeValue::Exprloc(expression) => {
                    let mut operations = expression.operations(self.unit(child.unit)?.encoding());
                    match operations.next().ok()?? {
                        gimli::Operation::PlusConstant { value } => Some(value),
                        _ => None,
                    }
                }
                value => value.udata_value(),
            },
            None if union => Some(0),
            None => self
                .own_attribute(child, gimli::DW_AT_data_bit_offset)
                .and_then(|bits| bits.udata_value())
                .map(|bits| bits / 8),
        };
        let is_member = |tag| matches!(tag, gimli::DW_TAG_member | gimli::DW_TAG_inheritance);
        let children = self.children(record).into_iter().filter(|(_, tag)| is_member(*tag));
        children.filter_map(|(child, tag)| Some((child, tag, offset(child)?))).collect()
    }

    /// The pointer that lies `offset` bytes into a value of the type.
    pub(crate) fn holder(&self, ty: Die, offset: u64) -> Option<Holder> {
        self.sought(ty, offset, Sought::Pointer, CHAIN, &mut { WORK })
    }

    /// The outermost container that `offset` bytes into a value of the type are a part of.
    pub(crate) fn object(&self, ty: Die, offset: u64) -> Option<Holder> {
        self.sought(ty, offset, Sought::Container, CHAIN, &mut { WORK })
    }

    fn sought(&self, ty: Die, offset: u64, what: Sought, left: usize, work: &mut usize) -> Option<Holder> {
        let (left, ty) = (left.checked_sub(1)?, self.bare(ty)?);
        *work = work.checked_sub(1)?;
        match self.kind(ty) {
            Kind::Pointer(_) | Kind::Array { described: true, .. } => {
                (offset == 0 && what == Sought::Pointer).then(|| Holder::of(ty, false))
            }
            Kind::Array { element: Some(element), dimensions, .. } => {
                let bytes = self.size(element).filter(|b| *b > 0)?;
                let holder = self.sought(element, offset % bytes, what, left, work)?;
                let index = if self.fortran(ty.unit) {
                    "()".to_owned()
                } else {
                    "[]".repeat(dimensions.len().max(1))
                };
                let (suffix, full) = (format!("{index}{}", holder.suffix), format!("{index}{}", holder.full));
                Some(Holder { suffix, full, ..holder })
            }
            Kind::Record => {
                let container = self.container(ty);
                if container && what == Sought::Container {
                    return Some(Holder::of(ty, true));
                }
                let mut holder = self.in_record(ty, offset, what, left, work)?;
                if container {
                    holder.suffix.clear();
                    holder.container = true;
                    holder.member = None;
                }
                Some(holder)
            }
            _ => None,
        }
    }

    fn in_record(&self, ty: Die, offset: u64, what: Sought, left: usize, work: &mut usize) -> Option<Holder> {
        let mut found: Option<Holder> = None;
        for (member, tag, at) in self.members(ty) {
            let Some(inside) = offset.checked_sub(at) else { continue };
            let Some(member_type) = self.refers(member, gimli::DW_AT_type) else { continue };
            if self.size(member_type).is_some_and(|bytes| inside >= bytes) {
                continue;
            }
            let Some(holder) = self.sought(member_type, inside, what, left, work) else { continue };
            let name = self.name(member).filter(|_| tag == gimli::DW_TAG_member);
            let this = match name {
                // The data of a Fortran class; the programmer does not see it.
                Some(name) if name == "_data" && self.fortran(ty.unit) => holder,
                Some(name) => {
                    let dot = if self.fortran(ty.unit) { '%' } else { '.' };
                    Holder {
                        suffix: format!("{dot}{name}{}", holder.suffix),
                        full: format!("{dot}{name}{}", holder.full),
                        member: holder.member.or(Some(member)),
                        ..holder
                    }
                }
                None => holder,
            };
            match &found {
                // A union with two pointers.
                Some(other) if *other != this => return None,
                _ => found = Some(this),
            }
        }
        found
    }

    /// A class of a template or of a system header: programmers think of its values as arrays.
    pub(crate) fn container(&self, record: Die) -> bool {
        self.name(record).is_some_and(|n| n.contains('<'))
            || self.file(record, gimli::DW_AT_decl_file).is_some_and(|f| foreign(&f))
    }

    /// What a pointer of the type points to.
    pub(crate) fn pointee(&self, ty: Die) -> Option<Die> {
        match self.kind(self.bare(ty)?) {
            Kind::Pointer(to) => to,
            _ => None,
        }
    }

    /// The member of a structure, or of the structure that a pointer points to, by its name.
    pub(crate) fn name_member(&self, ty: Option<Die>, name: &str) -> Option<Die> {
        let mut record = self.bare(ty?)?;
        if let Kind::Pointer(to) = self.kind(record) {
            record = self.bare(to?)?;
        }
        let mut left = WORK;
        self.member_named(record, name, CHAIN, &mut left)
    }

    fn member_named(&self, record: Die, name: &str, depth: usize, left: &mut usize) -> Option<Die> {
        let depth = depth.checked_sub(1)?;
        let members = self.members(record);
        let called = members.iter().find(|(m, ..)| self.name(*m).as_deref() == Some(name));
        if let Some((member, ..)) = called {
            return Some(*member);
        }
        // Base classes, and structures without a name.
        members.iter().find_map(|(member, tag, _)| {
            *left = left.checked_sub(1)?;
            let inside = *tag == gimli::DW_TAG_inheritance || self.name(*member).is_none();
            let inner = self.bare(self.refers(*member, gimli::DW_AT_type).filter(|_| inside)?)?;
            self.member_named(inner, name, depth, left)
        })
    }

    /// The type of a part that the source names: `->cells`, `.cells`, `%u`, `[]`, `()`; with the
    /// last member.
    pub(crate) fn part(&self, ty: Die, part: &str, member: Option<Die>) -> Option<(Die, Option<Die>)> {
        let name = part.trim_start_matches("->").trim_start_matches(['.', '%']);
        if name == "[]" || name == "()" {
            return match self.kind(self.bare(ty)?) {
                Kind::Pointer(to) => Some((to?, member)),
                Kind::Array { element, .. } => Some((element?, member)),
                _ => None,
            };
        }
        let found = self.name_member(Some(ty), name)?;
        Some((self.refers(found, gimli::DW_AT_type)?, Some(found)))
    }

    /// The first type that a template was given.
    pub(crate) fn template_argument(&self, record: Die) -> Option<Die> {
        let (argument, _) =
            self.children(record).into_iter().find(|(_, t)| *t == gimli::DW_TAG_template_type_parameter)?;
        self.refers(argument, gimli::DW_AT_type)
    }
}

/// A bound that is a number. Compilers write unsigned numbers in the shortest form, and negative
/// ones as such.
fn bound(value: &super::Value) -> Option<i64> {
    match value {
        AttributeValue::Sdata(v) => Some(*v),
        AttributeValue::Data8(v) => Some(v.cast_signed()),
        other => other.udata_value().and_then(|v| i64::try_from(v).ok()),
    }
}
