//! An explanation as Markdown, for a comment in a merge request.

use homenode_dataset::foreign::clean;
use homenode_explain::Explanation;

use super::{expected, fault, names, share, signed, touched};
use crate::answer::not_whole;
use crate::human::plain;

/// A text that Markdown and HTML take as it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match c {
            '<' => out += "&lt;",
            '&' => out += "&amp;",
            '\\' | '*' | '_' | '[' | ']' | '|' | '#' | '`' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A piece of code. A back tick would end it.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", clean(text).replace('`', "'"))
}

/// The explanation.
pub fn render(it: &Explanation) -> String {
    let mut lines = Vec::new();
    if let Some(line) = not_whole(&it.missing) {
        lines.extend([format!("**{}**", escaped(&line)), String::new()]);
    }
    match &it.no_finding {
        Some(reason) => lines.push(format!("**No finding:** {}", escaped(&reason.text))),
        None => lines.push(format!(
            "**{}** on {}; {} % of the accesses are remote",
            crate::human::plural(it.findings.len() as u64, "finding", "findings"),
            escaped(&it.machine),
            share(&it.remote)
        )),
    }
    lines.push(String::new());
    lines.extend(it.warnings.iter().map(|w| format!("- ⚠ {}", escaped(&w.text))));
    for finding in &it.findings {
        let allocated = finding.variables.first().and_then(|v| v.allocated.short());
        let allocated = allocated.map(|a| format!(" ({})", code(&a))).unwrap_or_default();
        lines.push(format!("- {}{allocated}: {}", code(&names(&finding.variables)), fault(finding.pattern)));
        lines.push(format!("  - {}; {} % remote", escaped(&touched(finding)), share(&finding.remote)));
        for (number, fix) in finding.fixes.iter().enumerate() {
            let effect = match &fix.effect {
                Some(effect) if number == 0 => format!(": {}", escaped(&expected(it, effect))),
                Some(effect) => format!(": {} %", signed(effect.change())),
                None => String::new(),
            };
            lines.push(format!(
                "  - {} {}{effect}",
                if number == 0 { "**fix**" } else { "or" },
                code(&fix.text)
            ));
        }
    }
    lines
        .extend([String::new(), format!("Evidence: {}, {} threads", escaped(&it.evidence.text), it.threads)]);
    plain(&lines.join("\n")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_are_text() {
        assert_eq!(escaped("<b>*a_b*"), "&lt;b>\\*a\\_b\\*");
        assert_eq!(code("a`b"), "`a'b`");
    }
}
