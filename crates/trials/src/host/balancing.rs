//! Linux's NUMA balancing, switched for a run and put back afterwards.

use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's switch.
const SWITCH: &str = "/proc/sys/kernel/numa_balancing";

/// The switch, and where it stood. Dropped, it stands there again.
pub struct Balancing {
    path: PathBuf,
    /// What it said at first; none where the kernel has no such switch.
    first: Option<String>,
}

impl Balancing {
    /// This machine's.
    pub fn here() -> Self {
        Self::at(Path::new(SWITCH))
    }

    fn at(path: &Path) -> Self {
        let first = fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        Self { path: path.to_owned(), first }
    }

    /// Whether it was on at first.
    pub fn was_on(&self) -> bool {
        self.first.as_deref().is_some_and(|text| text != "0")
    }

    /// Switches it on or off. Nothing happens where it stands so already.
    ///
    /// # Errors
    /// Why it cannot be switched, in words.
    pub fn switch(&self, on: bool) -> Result<(), String> {
        let now = fs::read_to_string(&self.path);
        let Ok(now) = now else {
            return if on { Err("this kernel has no NUMA balancing".into()) } else { Ok(()) };
        };
        if (now.trim() != "0") == on {
            return Ok(());
        }
        let to = if on { "1" } else { "0" };
        fs::write(&self.path, to)
            .map_err(|e| format!("switch NUMA balancing: {e}; root may: sysctl kernel.numa_balancing={to}"))
    }
}

impl Drop for Balancing {
    fn drop(&mut self) {
        if let Some(first) = &self.first
            && fs::read_to_string(&self.path).is_ok_and(|now| now.trim() != first)
        {
            let _ = fs::write(&self.path, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_put_back() {
        let path = std::env::temp_dir().join(format!("homenode-balancing-{}", std::process::id()));
        fs::write(&path, "0\n").unwrap();
        let balancing = Balancing::at(&path);
        assert!(!balancing.was_on());
        balancing.switch(true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
        drop(balancing);
        assert_eq!(fs::read_to_string(&path).unwrap(), "0");
        fs::remove_file(&path).unwrap();
        let none = Balancing::at(&path);
        assert!(none.switch(false).is_ok());
        assert!(none.switch(true).unwrap_err().contains("no NUMA balancing"));
    }
}
