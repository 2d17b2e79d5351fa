//! Starts the user's browser.

use std::process::{Command, Stdio};

/// Starts the user's browser where there is a screen for it. What fails is nobody's error: the
/// address is printed.
pub fn start(url: &str) {
    let there = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if !there("DISPLAY") && !there("WAYLAND_DISPLAY") {
        return;
    }
    let mut opener = Command::new("xdg-open");
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = opener.spawn() {
        std::thread::spawn(move || child.wait());
    }
}

/// What a person reads about where the page is: the address, and the line for a tunnel from another
/// machine.
pub fn directions(url: &str, port: u16) -> String {
    format!(
        "{url}\n\
         from another machine: ssh -L {port}:127.0.0.1:{port} THIS-HOST, then open the same address\n"
    )
}
