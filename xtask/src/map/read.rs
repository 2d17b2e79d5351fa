//! Arrows between the files of a crate, from their tokens.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path of names, such as a module's below the crate's root.
type Path = Vec<String>;

/// Names that a chain of re-exports may go through.
const DEPTH: usize = 8;

/// What the tokens of a module say.
#[derive(Default)]
struct Module {
    /// The file that it lies in.
    file: String,
    /// Items that it defines.
    defines: BTreeSet<String>,
    /// Names that it takes from elsewhere, with their paths as written.
    names: BTreeMap<String, Path>,
    /// Paths that end in `*`.
    globs: Vec<Path>,
    /// Paths that it uses, other than to hand them on.
    uses: Vec<Path>,
}

/// The arrows of a crate whose files are `sources`: names from its `src`, and texts.
pub fn arrows(sources: &[(String, &str)]) -> BTreeSet<(String, String)> {
    let mut modules = BTreeMap::new();
    for (file, text) in sources {
        let Ok(tokens) = text.parse::<TokenStream>() else { continue };
        modules.entry(module_of(file)).or_insert_with(Module::default).file.clone_from(file);
        scan(tokens, &module_of(file), file, &mut modules);
    }
    let mut arrows = BTreeSet::new();
    for (at, module) in &modules {
        for path in &module.uses {
            if let Some(to) = target(&modules, at, path, DEPTH).and_then(|found| modules.get(&found)) {
                arrows.insert((module.file.clone(), to.file.clone()));
            }
        }
    }
    arrows
}

/// `memory/mod.rs` and `memory.rs` are the module `memory`; `lib.rs` is the root.
fn module_of(file: &str) -> Path {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main") { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// Reads the tokens of the module `at`.
fn scan(tokens: TokenStream, at: &Path, file: &str, modules: &mut BTreeMap<Path, Module>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut i = 0;
    while i < tokens.len() {
        i = match &tokens[i] {
            TokenTree::Punct(p) if p.as_char() == '#' && is_for_tests(tokens.get(i + 1)) => {
                i + 2 + length_of_item(&tokens[i + 2..])
            }
            TokenTree::Ident(word) if word == "use" => {
                let end = end_of_statement(&tokens, i);
                let mut paths = Vec::new();
                tree(&tokens[i + 1..end], &Vec::new(), &mut paths);
                add_use(modules.entry(at.clone()).or_default(), paths, is_public(&tokens[..i]));
                end
            }
            TokenTree::Ident(word) if word == "mod" => scan_module(&tokens, i, at, file, modules),
            TokenTree::Ident(word) if is_definition(&word.to_string()) => {
                let module = modules.entry(at.clone()).or_default();
                module.defines.extend(ident(tokens.get(i + 1)));
                i + 1
            }
            TokenTree::Ident(_) => {
                let (path, end) = path_at(&tokens, i);
                if path.len() > 1 {
                    modules.entry(at.clone()).or_default().uses.push(path);
                }
                end
            }
            TokenTree::Group(group) => {
                scan(group.stream(), at, file, modules);
                i + 1
            }
            _ => i + 1,
        };
    }
}

/// Reads `mod name { … }`; `mod name;` says nothing. Returns the index behind it.
fn scan_module(
    tokens: &[TokenTree],
    i: usize,
    at: &Path,
    file: &str,
    modules: &mut BTreeMap<Path, Module>,
) -> usize {
    let (Some(name), Some(TokenTree::Group(body))) = (ident(tokens.get(i + 1)), tokens.get(i + 2)) else {
        return i + 1;
    };
    let inner: Path = at.iter().cloned().chain([name]).collect();
    file.clone_into(&mut modules.entry(inner.clone()).or_default().file);
    scan(body.stream(), &inner, file, modules);
    i + 3
}

fn add_use(module: &mut Module, paths: Vec<(Path, Option<String>)>, is_public: bool) {
    for (path, name) in paths {
        match name {
            Some(name) => _ = module.names.insert(name, path.clone()),
            None => module.globs.push(path.clone()),
        }
        if !is_public {
            module.uses.push(path);
        }
    }
}

/// The paths of a use tree, each with the name that it gets; none: `*`.
fn tree(tokens: &[TokenTree], before: &Path, paths: &mut Vec<(Path, Option<String>)>) {
    let commas = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
    for part in tokens.split(commas) {
        let mut path = before.clone();
        let mut name = None;
        let mut words = part.iter();
        while let Some(token) = words.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => name = words.next().map(ToString::to_string),
                TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(p) if p.as_char() == '*' => paths.push((path.clone(), None)),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    tree(&inner, &path, paths);
                }
                _ => {}
            }
        }
        let ends_in_name = matches!(part.last(), Some(TokenTree::Ident(_)));
        if ends_in_name && let Some(last) = path.last().cloned() {
            paths.push((path, Some(name.unwrap_or(last))));
        }
    }
}

/// The path of names with `::` between them that starts at `i`, and the index behind it.
fn path_at(tokens: &[TokenTree], mut i: usize) -> (Path, usize) {
    let mut path = Vec::new();
    while let Some(name) = ident(tokens.get(i)) {
        path.push(name);
        i += 1;
        let is_colon = |t: Option<&TokenTree>| matches!(t, Some(TokenTree::Punct(p)) if p.as_char() == ':');
        if !is_colon(tokens.get(i)) || !is_colon(tokens.get(i + 1)) {
            break;
        }
        i += 2;
    }
    (path, i)
}

/// The module in which what `path` names, as written in the module `at`, is defined. `None`: it is
/// outside of the crate.
fn target(modules: &BTreeMap<Path, Module>, at: &Path, path: &[String], depth: usize) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    let here = match first.as_str() {
        "crate" => Vec::new(),
        "self" => at.clone(),
        "super" => at[..at.len().checked_sub(1)?].to_vec(),
        name => {
            let child: Path = at.iter().cloned().chain([name.to_owned()]).collect();
            if modules.contains_key(&child) {
                child
            } else {
                let imported = modules.get(at)?.names.get(name).filter(|p| p.as_slice() != path)?;
                let whole: Path = imported.iter().chain(rest).cloned().collect();
                return target(modules, at, &whole, depth.checked_sub(1)?);
            }
        }
    };
    walk(modules, here, rest, depth)
}

/// Follows `path` from the module `at` down, and through re-exports.
fn walk(modules: &BTreeMap<Path, Module>, mut at: Path, path: &[String], depth: usize) -> Option<Path> {
    for (i, name) in path.iter().enumerate() {
        if name == "super" {
            at.pop()?;
            continue;
        }
        at.push(name.clone());
        if modules.contains_key(&at) {
            continue;
        }
        at.pop();
        let module = modules.get(&at)?;
        if module.defines.contains(name) {
            return Some(at);
        }
        let whole = |from: &Path, rest: &[String]| from.iter().chain(rest).cloned().collect::<Path>();
        let depth = depth.checked_sub(1)?;
        if let Some(from) = module.names.get(name) {
            return target(modules, &at, &whole(from, &path[i + 1..]), depth);
        }
        let through = module.globs.iter().find_map(|from| {
            let found = target(modules, &at, from, depth)?;
            let other = modules.get(&found)?;
            let has = other.defines.contains(name) || other.names.contains_key(name);
            has.then(|| walk(modules, found, &path[i..], depth)).flatten()
        });
        return through.or(Some(at));
    }
    Some(at)
}

/// The names of the public types that a text defines: structs, enums, traits, aliases and unions.
/// Definitions for tests alone do not count, and neither does what a macro makes.
pub fn public_types(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Ok(tokens) = text.parse::<TokenStream>() {
        add_public_types(tokens, &mut names);
    }
    names
}

fn add_public_types(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let word = |i: usize| ident(tokens.get(i)).unwrap_or_default();
    let mut i = 0;
    while i < tokens.len() {
        i = match &tokens[i] {
            TokenTree::Punct(p) if p.as_char() == '#' && is_for_tests(tokens.get(i + 1)) => {
                i + 2 + length_of_item(&tokens[i + 2..])
            }
            TokenTree::Ident(visible) if visible == "pub" => {
                let kind = i + 1 + usize::from(word(i + 1) == "unsafe");
                let is_type = ["struct", "enum", "trait", "type", "union"].contains(&word(kind).as_str());
                names.extend(is_type.then(|| word(kind + 1)));
                i + 1
            }
            TokenTree::Ident(makes) if makes == "macro_rules" => i + 4,
            TokenTree::Group(group) => {
                add_public_types(group.stream(), names);
                i + 1
            }
            _ => i + 1,
        };
    }
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

fn is_definition(word: &str) -> bool {
    ["fn", "struct", "enum", "trait", "const", "static", "type", "union", "macro_rules"].contains(&word)
}

/// Whether the tokens before a `use` are `pub` or `pub(…)`.
fn is_public(before: &[TokenTree]) -> bool {
    let word = match before.last() {
        Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis => before.iter().rev().nth(1),
        other => other,
    };
    matches!(word, Some(TokenTree::Ident(word)) if word == "pub")
}

fn end_of_statement(tokens: &[TokenTree], from: usize) -> usize {
    let semicolon = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ';');
    tokens[from..].iter().position(semicolon).map_or(tokens.len(), |i| from + i)
}

/// Whether the brackets behind a `#` say that an item is for tests alone.
fn is_for_tests(brackets: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = brackets else { return false };
    let mut words = group.stream().into_iter();
    let is_cfg = matches!(words.next(), Some(TokenTree::Ident(word)) if word == "cfg");
    let names = |group: &Group| group.stream().into_iter().map(|t| t.to_string()).collect::<Vec<_>>();
    is_cfg && matches!(words.next(), Some(TokenTree::Group(what)) if names(&what) == ["test"])
}

/// Number of tokens of the item at the front: to its first `;` or its body.
fn length_of_item(tokens: &[TokenTree]) -> usize {
    let ends = |t: &TokenTree| match t {
        TokenTree::Punct(p) => p.as_char() == ';',
        TokenTree::Group(g) => g.delimiter() == Delimiter::Brace,
        _ => false,
    };
    tokens.iter().position(ends).map_or(tokens.len(), |i| i + 1)
}
