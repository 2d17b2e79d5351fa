//! The output of the guest's console, for error messages.

use std::fs;
use std::path::Path;

/// Lines of the console that are shown.
const LINES: usize = 12;

/// The last lines of the console in `file`, without unprintable characters. They begin with the
/// line that names the cause, if there is one.
pub fn last(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap_or_default();
    let tail = &bytes[bytes.len().saturating_sub(16 << 10)..];
    let text = String::from_utf8_lossy(tail);
    let clean = |l: &str| l.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<String> = text.lines().map(clean).filter(|l| !l.trim().is_empty()).collect();
    let last = lines.len().saturating_sub(LINES);
    let from = lines.iter().position(|l| diagnosis(std::slice::from_ref(l)).is_some()).unwrap_or(last);
    lines[from.min(last)..].iter().take(LINES).cloned().collect()
}

/// The cause, if the console names it.
pub fn diagnosis(lines: &[String]) -> Option<&'static str> {
    let said = |words: &str| lines.iter().any(|l| l.contains(words));
    if said("deadlocked on memory") || said("Out of memory") || said("out of memory") {
        Some("the guest ran out of memory")
    } else if said("Kernel panic") {
        Some("the guest's kernel panicked")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_before_panic() {
        let lines = |l: &[&str]| l.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            diagnosis(&lines(&["Kernel panic - not syncing: x"])),
            Some("the guest's kernel panicked")
        );
        let oom = "Kernel panic - not syncing: System is deadlocked on memory";
        assert_eq!(diagnosis(&lines(&[oom])), Some("the guest ran out of memory"));
        assert_eq!(diagnosis(&lines(&["hello"])), None);
    }
}
