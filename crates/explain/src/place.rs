//! Places in the source.

use homenode_dataset::tables::Object;
use serde::Serialize;

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
}

impl Place {
    /// `file.c:12`, or what is known of it.
    pub fn short(&self) -> Option<String> {
        let file = self.file.as_deref().map(|f| f.rsplit('/').next().unwrap_or(f));
        match (file, self.line) {
            (Some(file), Some(line)) => Some(format!("{file}:{line}")),
            (Some(file), None) => Some(file.to_owned()),
            (None, _) => self.function.clone(),
        }
    }

    /// Whether nothing is known.
    pub const fn is_unknown(&self) -> bool {
        self.file.is_none() && self.function.is_none()
    }
}

/// Where an object is allocated or declared.
pub(crate) fn allocated(object: &Object) -> Place {
    Place { file: object.file.clone(), line: object.line, function: object.function.clone() }
}

/// A function as the source knows it, without its parameters: compilers make functions of their own
/// of regions.
pub fn function(name: &str) -> &str {
    let ends = [" [clone ", "._omp_fn", ".omp_outlined"].into_iter().filter_map(|end| name.find(end));
    let name = &name[..ends.min().unwrap_or(name.len())];
    let name = name.strip_suffix("__").or_else(|| name.strip_suffix("._omp")).unwrap_or(name);
    without_parameters(name.strip_suffix(" const").unwrap_or(name))
}

/// A name without the parentheses at its end and what they hold.
fn without_parameters(name: &str) -> &str {
    let mut open = 0u32;
    if !name.ends_with(')') {
        return name;
    }
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' => open += 1,
            '(' if open == 1 && at > 0 => return &name[..at],
            '(' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    name
}
