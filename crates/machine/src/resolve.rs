//! What a user types after `--machine`.

use std::path::Path;

use crate::nearest::nearest;
use crate::{Error, Machine, host, list, preset};

/// The machine that `spec` names: `this` or `host`; a preset; a file (TOML, or `.xml` for a
/// topology that `lstopo` wrote).
///
/// A preset wins over a file of the same name; `./sf15k` means the file.
///
/// # Errors
/// [`Error::Unknown`] lists the presets and the nearest name; otherwise what the file or hwloc has
/// to say.
pub fn resolve(spec: &str) -> Result<Machine, Error> {
    if spec == "this" || spec == "host" {
        return host::this();
    }
    if let Some(machine) = preset(spec) {
        return Ok(machine);
    }
    let path = Path::new(spec);
    // Something that looks like a path gets the system's reason, not a list of presets.
    if path.exists() || spec.contains('/') || path.extension().is_some_and(|e| e == "toml" || e == "xml") {
        return if path.extension().is_some_and(|e| e == "xml") {
            host::from_xml_file(path)
        } else {
            Machine::load(path)
        };
    }
    let known: Vec<&'static str> = list().iter().map(|p| p.name).collect();
    Err(Error::Unknown { spec: crate::quantity::shorten(spec), nearest: nearest(spec, &known), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_preset_gets_the_nearest_and_the_list() {
        let e = resolve("sf51k").unwrap_err().to_string();
        assert!(e.contains("did you mean `sf15k`?") && e.contains("epyc-nps4"), "{e}");
    }

    #[test]
    fn a_path_gets_the_systems_reason() {
        let e = resolve("no/such/machine.toml").unwrap_err();
        assert!(matches!(&e, Error::Read { .. }));
        assert!(e.to_string().contains("No such file"), "{e}");
        assert!(matches!(resolve("."), Err(Error::Read { .. })));
    }

    #[test]
    fn presets_go_by_name() {
        assert_eq!(resolve("wildfire").unwrap().topology.name, "wildfire");
    }
}
