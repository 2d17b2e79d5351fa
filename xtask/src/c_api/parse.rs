//! Reads the source of the C API.

use super::api::{CApi, CStruct, Code, Function, Item};

/// The whole of it.
pub fn api(codes: &str, files: &[impl AsRef<str>]) -> Result<CApi, String> {
    let mut api = CApi { codes: self::codes(codes)?, ..CApi::default() };
    for file in files {
        items(&mut api, file.as_ref())?;
    }
    Ok(api)
}

/// What one file has.
fn items(api: &mut CApi, functions: &str) -> Result<(), String> {
    let mut lines = functions.lines();
    let mut about = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(doc) = line.strip_prefix("///") {
            about.push(doc.strip_prefix(' ').unwrap_or(doc).to_owned());
        } else if let Some(heading) = line.strip_prefix("// # ") {
            api.items.push(Item::Heading(heading.to_owned()));
        } else if line.starts_with("#[cfg(test)]") {
            break;
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|l| l.strip_suffix(" {")) {
            let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "}").collect();
            api.structs.push(structure(name, std::mem::take(&mut about), &body)?);
        } else if let Some(rest) = line.strip_prefix("pub ") {
            let mut signature = rest.to_owned();
            while !signature.ends_with('{') {
                let more = lines.next().ok_or_else(|| format!("'{signature}' does not end"))?;
                signature += more.trim();
            }
            api.items.push(Item::Function(function(&signature, std::mem::take(&mut about))?));
        } else if !line.starts_with("#[") {
            about.clear();
        }
    }
    Ok(())
}

fn codes(text: &str) -> Result<Vec<Code>, String> {
    let mut about = String::new();
    let mut codes = Vec::new();
    for line in text.lines() {
        if let Some(doc) = line.strip_prefix("/// ") {
            about = if about.is_empty() { doc.into() } else { format!("{about} {doc}") };
        } else if let Some(rest) = line.strip_prefix("pub const HN_") {
            let parts = rest.strip_suffix(';').and_then(|r| r.split_once(": i32 = "));
            let (name, value) = parts.ok_or_else(|| format!("'{line}' is not a code"))?;
            let value = value.parse().map_err(|_| format!("'{line}': not a number"))?;
            let about = std::mem::take(&mut about);
            codes.push(Code { name: format!("HN_{name}"), value, about });
        } else {
            about.clear();
        }
    }
    Ok(codes)
}

fn structure(name: &str, about: Vec<String>, body: &[&str]) -> Result<CStruct, String> {
    let mut fields = Vec::new();
    let mut doc = String::new();
    for line in body.iter().map(|l| l.trim()) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc = text.to_owned();
        } else {
            let parts = line.strip_prefix("pub ").and_then(|l| l.strip_suffix(',')?.split_once(": "));
            let (field, kind) = parts.ok_or_else(|| format!("'{line}' of {name} is not a field"))?;
            fields.push((field.to_owned(), kind.to_owned(), std::mem::take(&mut doc)));
        }
    }
    Ok(CStruct { name: name.to_owned(), about, fields })
}

/// `extern "C" fn name(a: A, b: B) -> R {`
fn function(signature: &str, about: Vec<String>) -> Result<Function, String> {
    let failed = || format!("'pub {signature}' is not a function of the C API");
    let rest = signature.strip_prefix("unsafe ").unwrap_or(signature);
    let rest = rest.strip_prefix("extern \"C\" fn ").ok_or_else(failed)?;
    let (name, rest) = rest.split_once('(').ok_or_else(failed)?;
    let (arguments, rest) = rest.rsplit_once(')').ok_or_else(failed)?;
    let returns = rest.strip_prefix(" -> ").and_then(|r| r.strip_suffix(" {")).ok_or_else(failed)?;
    let argument = |a: &str| a.split_once(':').map(|(n, t)| (n.trim().to_owned(), t.trim().to_owned()));
    let arguments = arguments.split(',').map(str::trim).filter(|a| !a.is_empty()).map(argument);
    // What Rust calls safety is said in the text itself.
    let about: Vec<String> = about.into_iter().take_while(|l| l != "# Safety").collect();
    let end = about.iter().rposition(|l| !l.is_empty()).map_or(0, |i| i + 1);
    if end == 0 {
        return Err(format!("{name}: no comment says what it does"));
    }
    Ok(Function {
        name: name.to_owned(),
        about: about[..end].to_vec(),
        arguments: arguments.collect::<Option<_>>().ok_or_else(failed)?,
        returns: returns.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: &str = "//! X.\n\n/// good\npub const HN_OK: i32 = 0;\n\npub fn f() {}\n";
    const SOURCE: &str = "use x;\n\n/// A thing.\n#[repr(C)]\npub struct hn_thing {\n    /// how many\n    pub n: u64,\n}\n\n\
        // # Part\n\n/// Does it:\n/// well.\n///\n/// # Safety\n/// Not at all.\n#[unsafe(no_mangle)]\n\
        pub unsafe extern \"C\" fn hn_do(\n    at: *mut hn_thing,\n    n: usize,\n) -> i32 {\n    0\n}\n\n/// Ours.\nfn g() {}\n";

    #[test]
    fn codes_structures_headings_and_functions_are_read() {
        let api = api(CODES, &[SOURCE]).unwrap();
        assert_eq!(api.codes, [Code { name: "HN_OK".into(), value: 0, about: "good".into() }]);
        assert_eq!(api.structs[0].fields, [("n".into(), "u64".into(), "how many".into())]);
        let function = Function {
            name: "hn_do".into(),
            about: vec!["Does it:".into(), "well.".into()],
            arguments: vec![("at".into(), "*mut hn_thing".into()), ("n".into(), "usize".into())],
            returns: "i32".into(),
        };
        assert_eq!(api.items, [Item::Heading("Part".into()), Item::Function(function)]);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (from, to) in [("/// Does it:\n/// well.\n", ""), (" -> i32", ""), ("pub n: u64,", "n u64")] {
            assert!(api(CODES, &[SOURCE.replace(from, to)]).is_err(), "{from}");
        }
        assert!(api(&CODES.replace("= 0", "= zero"), &[SOURCE]).is_err());
    }
}
