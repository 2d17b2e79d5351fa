//! `allocate` statements of Fortran.

use super::Target;

/// Most lines of one statement.
const LINES: usize = 60;

/// The targets of the `allocate` statements that a line is a part of, in order.
pub(crate) fn targets(text: &str, line: u32) -> Vec<Target> {
    let statement = statement(text, line).to_lowercase();
    let mut found = Vec::new();
    for part in split(&statement, ';') {
        let Some(list) = allocate(&part) else { continue };
        for item in split(list, ',') {
            let item = item.trim();
            // `real(8) :: a(n)`; `stat=ierr`
            let item = item.rsplit("::").next().unwrap_or(item).trim();
            if !plain(item, '=') {
                continue;
            }
            let Some(name) = designator(item) else { continue };
            let root = name.split(['%', '(']).next().unwrap_or(&name).to_owned();
            found.push(Target { name, root, call: String::new(), line });
        }
    }
    found
}

/// A line with those that it continues and those that continue it, without comments. gfortran's
/// line numbers are those of a statement's end.
fn statement(text: &str, line: u32) -> String {
    let Ok(here) = usize::try_from(line.saturating_sub(1)) else { return String::new() };
    let skipped = here.saturating_sub(LINES);
    let before: Vec<&str> = text.lines().skip(skipped).take(here - skipped + 1).collect();
    let mut start = here;
    // From the line upwards: as long as this line continues the one above it.
    for pair in before.windows(2).rev() {
        let [above, this] = pair else { break };
        if !(without_comment(above).trim_end().ends_with('&') || fixed_continuation(this)) {
            break;
        }
        start -= 1;
    }
    let lines = text.lines().skip(start);
    let mut statement = String::new();
    let mut goes_on = true;
    for (i, line) in lines.take(LINES).enumerate() {
        let fixed = fixed_continuation(line) && !goes_on;
        if i > 0 && !goes_on && !fixed {
            break;
        }
        let code = without_comment(line);
        let code = if fixed { code.get(6..).unwrap_or("") } else { &code };
        let code = code.trim();
        if code.is_empty() {
            continue;
        }
        let code = code.strip_prefix('&').filter(|_| i > 0).unwrap_or(code);
        goes_on = code.ends_with('&');
        statement.push_str(code.strip_suffix('&').unwrap_or(code));
        statement.push(' ');
    }
    statement
}

/// In fixed form, a character in column 6 continues the line before.
fn fixed_continuation(line: &str) -> bool {
    let bytes = line.as_bytes();
    let blank = |b: &[u8]| b.iter().all(|b| *b == b' ');
    bytes.len() > 6
        && blank(&bytes[..5])
        && !matches!(bytes[5], b' ' | b'0')
        && !bytes[5].is_ascii_alphanumeric()
}

fn without_comment(line: &str) -> String {
    if line.starts_with(['c', 'C', '*']) && !line.starts_with("call") && line.as_bytes().get(1) == Some(&b' ')
    {
        return String::new();
    }
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '!') => return line[..at].to_owned(),
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if c == q => quote = None,
            _ => {}
        }
    }
    line.to_owned()
}

/// Parts between separators that no bracket holds.
fn split(text: &str, separator: char) -> Vec<String> {
    let (mut depth, mut parts) = (0_i32, vec![String::new()]);
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        if c == separator && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

/// No bracket-free part of the text is this character.
fn plain(text: &str, character: char) -> bool {
    split(text, character).len() == 1
}

/// What the brackets of an `allocate` hold.
fn allocate(statement: &str) -> Option<&str> {
    let mut rest = statement.trim();
    // `if (n > 0) allocate(…)`, `10 allocate(…)`
    rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    if let Some(condition) = rest.strip_prefix("if").map(str::trim_start).filter(|c| c.starts_with('(')) {
        rest = condition.get(closing(condition)? + 1..)?.trim_start();
    }
    let list = rest.strip_prefix("allocate")?.trim_start();
    let end = closing(list)?;
    list.get(end + 1..)?.trim().is_empty().then(|| list.get(1..end))?
}

/// Where the bracket that a text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// `g%part(3)%u(n, 0:m)` → `g%part()%u`
fn designator(item: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest: String = item.chars().filter(|c| !c.is_whitespace()).collect();
    loop {
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if length == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        name.push_str(&rest[..length]);
        rest = rest[length..].to_owned();
        if rest.starts_with('(') {
            rest = rest.get(closing(&rest)? + 1..)?.to_owned();
            if rest.starts_with('%') {
                name.push_str("()");
            }
        }
        match rest.strip_prefix('%') {
            Some(next) => {
                name.push('%');
                rest = next.to_owned();
            }
            None => return rest.is_empty().then_some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        targets(text, 1).into_iter().map(|t| t.name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn allocate_statements_are_read() {
        assert_eq!(of("  ALLOCATE(A(N), b(0:m, size(c,1)), stat = ierr)  ! a(1)"), "a b");
        assert_eq!(of("  allocate(g%u(n), g%part(3)%v(n))"), "g%u g%part()%v");
        assert_eq!(of("  if (.not. allocated(a)) allocate (a(n))"), "a");
        assert_eq!(of("  allocate(real(8) :: a(n), b(n), source=c)"), "a b");
        assert_eq!(of("  allocate(a(n), & ! first\n    & b(n), &\n  c(m))"), "a b c");
        assert_eq!(of("      allocate(a(n),\n     $  b(n))\n      x = 1"), "a b");
        let last = targets("x = 1\n  allocate(a(n), & ! first\n    & b(n), &\n  c(m))\nx = 2", 4);
        assert_eq!(last.len(), 3, "by the last line");
        assert_eq!(of("  allocate(p); allocate(q(3))"), "p q");
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "allocate",
            "allocate(",
            "allocate(a(n)",
            "x = allocate(a)",
            "call allocate(a(n))",
            "&",
            "'",
            "allocate(1)",
            "é",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }
}
