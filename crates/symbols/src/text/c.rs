//! Statements of C and C++ that allocate.

use super::Target;

/// A token and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub text: String,
    pub line: u32,
}

/// Operators of more than one character.
const LONG: [&str; 22] = [
    "<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
    "*=", "/=", "%=", "&=", "|=",
];

/// The tokens of a file, without comments and preprocessor lines.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let (mut line, mut rest, mut fresh) = (1_u32, text, true);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\n' => {
                fresh = true;
                1
            }
            c if c.is_whitespace() => c.len_utf8(),
            '#' if fresh => directive(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            '\\' => 1,
            _ => {
                fresh = false;
                let length = token(rest, c);
                found.push(Token { text: rest[..length].to_owned(), line });
                length
            }
        };
        line = line.saturating_add(u32::try_from(rest[..length].matches('\n').count()).unwrap_or(u32::MAX));
        rest = &rest[length..];
    }
    found
}

/// Length of a preprocessor line with those that continue it.
fn directive(rest: &str) -> usize {
    let mut at = 0;
    while let Some(end) = rest[at..].find('\n') {
        let line = &rest[at..at + end];
        at += end;
        if !line.trim_end().ends_with('\\') {
            return at;
        }
        at += 1;
    }
    rest.len()
}

fn token(rest: &str, first: char) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if word(first) {
        return rest.find(|c| !word(c)).unwrap_or(rest.len());
    }
    if first == '"' || first == '\'' {
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            if !escaped && (c == first || c == '\n') {
                return at + usize::from(c == first);
            }
            escaped = c == '\\' && !escaped;
        }
        return rest.len();
    }
    LONG.iter().find(|l| rest.starts_with(**l)).map_or(first.len_utf8(), |l| l.len())
}

/// The statements that a line has a part in.
pub(crate) fn statements(tokens: &[Token], line: u32) -> Vec<&[Token]> {
    let ends = |t: &Token| matches!(t.text.as_str(), ";" | "{" | "}");
    let mut found = Vec::new();
    // A statement that begins before the line.
    let mut from = tokens.partition_point(|t| t.line < line);
    while from > 0 && !ends(&tokens[from - 1]) {
        from -= 1;
    }
    for statement in tokens[from..].split(ends) {
        match (statement.first(), statement.last()) {
            (Some(first), _) if first.line > line => break,
            (Some(_), Some(last)) if last.line >= line => found.push(statement),
            _ => {}
        }
        if found.len() == 64 {
            break;
        }
    }
    found
}

/// All targets that statements of a line assign an allocation to.
pub(crate) fn targets(tokens: &[Token], line: u32) -> Vec<Target> {
    let mut found = Vec::new();
    for statement in statements(tokens, line) {
        assignments(statement, &mut found);
    }
    found
}

/// `a = malloc(n)`, and every declarator of `double *a = malloc(n), *b = malloc(m)`.
fn assignments(statement: &[Token], found: &mut Vec<Target>) {
    for (at, token) in statement.iter().enumerate() {
        if token.text != "=" {
            continue;
        }
        let Some(call) = allocation(&statement[at + 1..]) else { continue };
        if let Some((name, root)) = target(&statement[..at]) {
            found.push(Target { name, root, call, line: token.line });
        }
    }
}

fn is_word(token: &Token) -> bool {
    token.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The length of a bracketed group that the tokens begin with.
fn group(tokens: &[Token]) -> Option<usize> {
    let (mut depth, open) = (0_usize, tokens.first()?.text.as_str());
    let close = match open {
        "(" => ")",
        "[" => "]",
        "<" => ">",
        _ => return None,
    };
    for (at, t) in tokens.iter().enumerate() {
        if t.text == open {
            depth += 1;
        } else if t.text == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

/// The function that the right-hand side calls, if it is one call as a whole: casts, a name, its
/// arguments.
fn allocation(tokens: &[Token]) -> Option<String> {
    let mut rest = tokens;
    // Casts.
    loop {
        if rest.first()?.text == "(" {
            let length = group(rest)?;
            let inside = &rest[1..length - 1];
            let next = rest.get(length)?;
            let cast = !inside.is_empty()
                && inside.iter().all(|t| {
                    is_word(t)
                        || matches!(t.text.as_str(), "*" | "::" | "(" | ")" | "[" | "]" | "<" | ">" | ",")
                        || t.text.starts_with(|c: char| c.is_ascii_digit())
                });
            if !cast || !(is_word(next) || next.text == "(") {
                return None;
            }
            rest = &rest[length..];
        } else if matches!(rest.first()?.text.as_str(), "static_cast" | "reinterpret_cast") {
            let length = 1 + group(&rest[1..])?;
            let arguments = &rest[length..];
            let inside = group(arguments)?;
            // Nothing may follow but what ends the initializer.
            ends(arguments.get(inside))?;
            rest = &arguments[1..inside - 1];
        } else {
            break;
        }
    }
    if rest.first()?.text == "new" {
        return Some("new".into());
    }
    let mut at = 0;
    let mut name = String::new();
    loop {
        let word = rest.get(at).filter(|t| is_word(t))?;
        name.clone_from(&word.text);
        at += 1;
        if rest.get(at).is_some_and(|t| t.text == "<") {
            at += group(&rest[at..])?;
        }
        match rest.get(at)?.text.as_str() {
            "::" | "." | "->" => at += 1,
            "(" => break,
            _ => return None,
        }
    }
    at += group(&rest[at..])?;
    ends(rest.get(at))?;
    Some(name)
}

/// What may stand behind an initializer: nothing, the next declarator, the end of a condition.
fn ends(next: Option<&Token>) -> Option<()> {
    next.is_none_or(|t| matches!(t.text.as_str(), "," | ")")).then_some(())
}

/// What the tokens before an `=` end with: the target and its root.
fn target(tokens: &[Token]) -> Option<(String, String)> {
    target_from(tokens).map(|(name, root, _)| (name, root))
}

/// The same with the number of the tokens before it.
fn target_from(tokens: &[Token]) -> Option<(String, String, usize)> {
    let mut at = tokens.len();
    let mut parts: Vec<String> = Vec::new();
    let root = loop {
        let mut last = tokens.get(at.checked_sub(1)?)?;
        // `double (*u)[258][258] =`
        if last.text == ")" {
            return (parts.iter().all(|p| p == "[]"))
                .then(|| declarator(&tokens[..at]))
                .flatten()
                .map(|(n, r)| (n, r, 0));
        }
        while last.text == "]" {
            let mut depth = 0_usize;
            loop {
                at = at.checked_sub(1)?;
                match tokens[at].text.as_str() {
                    "]" => depth += 1,
                    "[" => {
                        depth -= 1;
                        if depth == 0 {
                            break;
                        }
                    }
                    _ => {}
                }
            }
            parts.push("[]".into());
            last = tokens.get(at.checked_sub(1)?)?;
            if last.text == ")" {
                return (parts.iter().all(|p| p == "[]"))
                    .then(|| declarator(&tokens[..at]))
                    .flatten()
                    .map(|(n, r)| (n, r, 0));
            }
        }
        if !is_word(last) {
            return None;
        }
        at -= 1;
        match at.checked_sub(1).map(|before| tokens[before].text.as_str()) {
            Some(join @ ("." | "->")) => {
                parts.push(format!("{join}{}", last.text));
                at -= 1;
            }
            // `ns::table`, `Grid::cells`
            Some("::") => return None,
            _ => break last.text.clone(),
        }
    };
    // `*out = …` as a whole statement; `double *u = …` is a declaration.
    let stars =
        tokens[..at].iter().rev().take_while(|t| t.text == "*" || t.text == "const" || t.text == "restrict");
    let before = at - stars.count();
    let declares = before > 0
        && (is_word(&tokens[before - 1]) || matches!(tokens[before - 1].text.as_str(), "," | ">" | "&"));
    let dereferences = before < at && !declares;
    parts.reverse();
    let name = root.clone() + &parts.concat();
    Some((if dereferences { format!("*{name}") } else { name }, root, at))
}

/// `(*u)`, with what stands before it.
fn declarator(tokens: &[Token]) -> Option<(String, String)> {
    let [.., open, star, name, close] = tokens else { return None };
    let parts = [open, star, close].map(|t| t.text.as_str());
    (parts == ["(", "*", ")"] && is_word(name) && tokens.len() > 4)
        .then(|| (name.text.clone(), name.text.clone()))
}

/// The container that a statement of the line defines with arguments, or whose method it calls as a
/// whole.
pub(crate) fn containers(tokens: &[Token], line: u32) -> Vec<Target> {
    let mut found = targets(tokens, line);
    for statement in statements(tokens, line) {
        // The bracket that the statement's last one closes.
        let closes = |open: &usize| {
            statement[*open].text == "("
                && group(&statement[*open..]).is_some_and(|l| open + l == statement.len())
        };
        let (Some(first), Some(open)) = (statement.first(), (0..statement.len()).find(closes)) else {
            continue;
        };
        if open == 0 {
            continue;
        }
        let call = statement[open - 1].text.clone();
        if open >= 3
            && matches!(statement[open - 2].text.as_str(), "." | "->")
            && let Some((name, root, from)) = target_from(&statement[..open - 2])
            && from
                .checked_sub(1)
                .is_none_or(|before| matches!(statement[before].text.as_str(), ")" | "else" | "do"))
        {
            found.push(Target { name, root, call, line: first.line });
        } else if open >= 2
            && is_word(&statement[open - 1])
            && (is_word(&statement[open - 2]) || statement[open - 2].text == ">")
            && !matches!(first.text.as_str(), "return" | "delete" | "throw" | "else" | "new")
        {
            found.push(Target {
                name: call.clone(),
                root: call,
                call: "constructor".into(),
                line: first.line,
            });
        }
    }
    found
}

/// Whether a statement of the line defines a variable of this name: `name(…`, `name{…`, `name = …`.
pub(crate) fn defines(tokens: &[Token], line: u32, name: &str) -> bool {
    let from = tokens.partition_point(|t| t.line < line);
    let to = tokens.partition_point(|t| t.line <= line.saturating_add(1));
    tokens[from..to].windows(2).any(|pair| {
        pair[0].line == line && pair[0].text == name && matches!(pair[1].text.as_str(), "(" | "{" | "=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        let line = u32::try_from(text.matches('\n').count()).unwrap() + 1;
        targets(&tokens(text), line).into_iter().map(|t| (t.name, t.call)).collect()
    }

    fn pair(name: &str, call: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), call.to_owned())]
    }

    #[test]
    fn targets_are_read() {
        assert_eq!(of("double *u = malloc(n * sizeof *u);"), pair("u", "malloc"));
        assert_eq!(of("u = (double *)malloc(n * sizeof(double));"), pair("u", "malloc"));
        assert_eq!(of("if ((u = malloc(n)) == NULL) {"), pair("u", "malloc"));
        assert_eq!(of("double (*w)[258][n + 2] = calloc(n, sizeof *w);"), pair("w", "calloc"));
        assert_eq!(of("g->part.cells = xmalloc(n);"), pair("g->part.cells", "xmalloc"));
        assert_eq!(of("for (int i = 0; i < n; i++) rows[i][f(2)] = malloc(3);"), pair("rows[][]", "malloc"));
        assert_eq!(of("*out = aligned_alloc(64, n);"), pair("*out", "aligned_alloc"));
        assert_eq!(of("auto v = static_cast<double*>(std::malloc(n));"), pair("v", "malloc"));
        assert_eq!(of("const double *const u = new double[n];"), pair("u", "new"));
        assert_eq!(of("x;\nchar *a /* = b */ =\n  malloc(n)"), pair("a", "malloc"));
        let two = of("double *a = malloc(n), *b = malloc(m);");
        assert_eq!(two, [pair("a", "malloc"), pair("b", "malloc")].concat());
    }

    #[test]
    fn what_is_in_doubt_is_no_target() {
        for doubtful in [
            "s = sum(malloc(n)) + 1;",
            "ok = malloc(n) != NULL;",
            "char *s = \"= malloc(n)\";",
            "u = x ? malloc(n) : malloc(m);",
            "u == malloc(n);",
            "f(malloc(n));",
            "Grid::table = malloc(n);",
            "(a)(b) = malloc(n);",
            "= malloc(n)",
            "u = ",
            "u = (",
        ] {
            let found = of(doubtful);
            assert!(found.is_empty() || found[0].1 == "sum", "{doubtful}: {found:?}");
        }
    }

    #[test]
    fn containers_are_read() {
        let of = |text: &str| {
            let all = containers(&tokens(text), 1);
            all.into_iter().map(|t| t.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("std::vector<double> v(n);"), "v");
        assert_eq!(of("v.resize(n, 2.0);"), "v");
        assert_eq!(of("g->cells.reserve(n);"), "g->cells");
        assert_eq!(of("auto p = std::make_unique<double[]>(n);"), "p");
        assert_eq!(of("i++) pushed.push_back(i);"), "pushed");
        assert_eq!(of("return f(n);"), "");
        assert_eq!(of("fill(v, n);"), "");
        assert_eq!(of("x = v.size() + 1;"), "");
    }

    #[test]
    fn nothing_in_a_file_does_harm() {
        for text in
            ["", "\"", "'", "/*", "//", "#", "#define x \\", "\\", "é = malloc(n)", "]]] = f(", "a[[ = f()"]
        {
            let all = tokens(text);
            for line in 0..3 {
                let _ = (targets(&all, line), containers(&all, line));
            }
        }
    }
}
