//! What opening a recording costs: `cargo run --release -p homenode-view --example bench -- REC`.
//!
//! Prints, a line each: seconds until a page can be shown, cold and warm; the 95th percentile of
//! the time for a finer picture, of windows all over the largest object; the memory that was
//! resident at most; bytes of the page in a file. `cargo xtask dataset --gib 10 -o REC` makes a
//! recording to look at.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use homenode_dataset::Dataset;
use homenode_view::cache;
use homenode_view::opened::load;
use homenode_view::page;
use homenode_view::tiles::build::{Window, finer};
use homenode_view::tiles::nodes::Nodes;
use homenode_view::{Budget, findings};

/// Windows that are drawn.
const TILES: u64 = 40;
/// Longest time for all of them.
const PATIENCE: Duration = Duration::from_secs(120);

/// Most memory that was resident, in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a recording")?;
    let path = Path::new(&path);
    let _ = std::fs::remove_file(path.join(cache::FILE));
    let open = || Dataset::open(path);
    println!("accesses: {} MiB", open()?.size_of("accesses") >> 20);

    let begun = Instant::now();
    let (mut model, mut opened) =
        load(vec![open()?], None, Budget::SERVER, &mut |_, _| true).ok_or("stopped")?;
    println!("pictures, cold: {:.1} s", begun.elapsed().as_secs_f64());
    println!("resident so far: {} MiB", resident());
    let begun = Instant::now();
    opened[0].findings = Some(findings::of(&opened[0].set, "./app"));
    opened[0].complete(&mut model);
    println!("what to change: {:.1} s", begun.elapsed().as_secs_f64());
    println!("resident so far: {} MiB", resident());
    cache::save(&opened[0], &model)?;

    let begun = Instant::now();
    let shown = cache::load(&open()?, None).ok_or("nothing was kept")?;
    println!("pictures, warm: {:.2} s, {} KiB", begun.elapsed().as_secs_f64(), shown.model().len() >> 10);

    let set = open()?;
    let nodes = Nodes::of(&set, &opened[0].report);
    let largest = model.objects.iter().max_by_key(|o| o.pages).ok_or("no object has a picture")?;
    let object = largest.report.object.ok_or("it has no number")?;
    let (pages, intervals) = (largest.pages, model.time.intervals);
    let (mut took, all) = (Vec::new(), Instant::now());
    // Windows of a quarter of the object and of the time, down to single pages and intervals.
    for n in 0..TILES {
        let part = 4 << (2 * (n % 5));
        let (wide, long) = ((pages / part).max(1), (intervals as u64 / part).max(1));
        let page = n.wrapping_mul(2_654_435_761) % (pages - wide + 1);
        let first = (n.wrapping_mul(40_503) % (intervals as u64 - long + 1)) as usize;
        let window = Window { object, page, pages: wide, first, intervals: long as usize };
        let begun = Instant::now();
        let drawn = finer(&set, &nodes, largest.report.remote.of, window);
        assert!(!drawn.levels.is_empty());
        took.push(begun.elapsed());
        if all.elapsed() > PATIENCE {
            break;
        }
    }
    took.sort();
    let at = (took.len() * 95).div_ceil(100) - 1;
    println!("tile, 95th percentile of {}: {:.1} ms", took.len(), took[at].as_secs_f64() * 1000.0);

    let (mut file, _) = load(vec![set], None, Budget::FILE, &mut |_, _| true).ok_or("stopped")?;
    let html = page::write_file(&mut file, page::MOST_BYTES)?;
    println!("page in a file: {:.2} MB", html.len() as f64 / 1e6);
    println!("resident at most: {} MiB", resident());
    Ok(())
}
