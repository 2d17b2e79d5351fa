//! Prints a machine: `cargo run -p homenode-machine --example show -- this`.

fn main() {
    let spec = std::env::args().nth(1).unwrap_or_else(|| "this".into());
    match homenode_machine::resolve(&spec) {
        Ok(machine) => {
            println!("{} ({})", machine.topology.name, machine.origin);
            for v in machine.values() {
                println!("  {:24} {:32} {}", v.path, v.text, v.source);
            }
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(125);
        }
    }
}
