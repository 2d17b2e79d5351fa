//! What opening a recording costs: `cargo run --release -p homenode-view --example bench -- REC`.
//!
//! Prints, a line each: seconds until a page can be shown, cold and warm; the time for a finer
//! picture from the pyramid and from the tables, of windows all over the largest object; the memory
//! that was resident at most; bytes of the page in a file. `cargo xtask dataset --gib 10 -o REC`
//! makes a recording to look at.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use homenode_dataset::Dataset;
use homenode_report::time::Timeline;
use homenode_view::cache;
use homenode_view::opened::{OpenedRecordings, load};
use homenode_view::page;
use homenode_view::tiles::build::{Window, finer};
use homenode_view::tiles::nodes::RecordedNodes;
use homenode_view::tiles::pyramid::{Pyramid, PyramidError};
use homenode_view::{PyramidBudget, findings};

/// Windows that are drawn.
const TILES: u64 = 140;
/// Time after which no further one is drawn from the same source.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let OpenedRecordings { mut model, mut opened, mut pyramids } =
        load(vec![open()?], None, PyramidBudget::SERVER, &mut cache::begin, &mut |_, _| true)
            .ok_or("stopped")?;
    println!("pictures, cold: {:.1} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let pyramid = cache::finish(&opened[0].set, pyramids.remove(0)?, &mut |_| true)?;
    let size = std::fs::metadata(path.join(cache::PYRAMID)).map_or(0, |m| m.len());
    println!("the rest of the pyramid: {:.1} s, {} MiB", begun.elapsed().as_secs_f64(), size >> 20);
    println!("resident so far: {} MiB", resident());
    let begun = Instant::now();
    opened[0].findings = Some(findings::of(&opened[0].set, "./app", &mut |_| true));
    opened[0].complete(&mut model);
    println!("what to change: {:.1} s", begun.elapsed().as_secs_f64());
    println!("resident so far: {} MiB", resident());
    cache::save(&opened[0], &model)?;

    let begun = Instant::now();
    let (shown, _) = cache::load(&open()?, None).ok_or("nothing was kept")?;
    let kept = cache::pyramid(&open()?);
    println!("pictures, warm: {:.2} s, {} KiB", begun.elapsed().as_secs_f64(), shown.model().len() >> 10);

    let pyramid = kept.unwrap_or(pyramid);
    let set = open()?;
    let timeline = Timeline::of(&set);
    let nodes = RecordedNodes::of(&set, &opened[0].report);
    let largest = model.objects.iter().max_by_key(|o| o.pages).ok_or("no object has a picture")?;
    let object = largest.report.object.ok_or("it has no number")?;
    let (pages, intervals) = (largest.pages, model.time.intervals);
    // Windows of the object and of the time, each in parts down to single pages and intervals.
    let window = |n: u64, wide: u64, long: u64| {
        let part = |all: u64, by: u64| (all >> (2 * by)).max(1);
        let (wide, long) = (part(pages, wide), part(intervals as u64, long));
        let page = n.wrapping_mul(2_654_435_761) % (pages - wide + 1);
        let first = (n.wrapping_mul(40_503) % (intervals as u64 - long + 1)) as usize;
        Window { object, page, pages: wide, first, intervals: long as usize }
    };
    let windows: Vec<Window> = (0..TILES).map(|n| window(n, n % 7, n / 7 % 5)).collect();
    let unit = largest.report.remote.of;
    let measure = |from: Option<&Pyramid>, name: &str| {
        let (mut took, all, mut bytes) = (Vec::new(), Instant::now(), 0);
        for window in &windows {
            let begun = Instant::now();
            let drawn = finer(&set, &timeline, &nodes, unit, *window, from).bytes();
            took.push((begun.elapsed(), *window));
            bytes = drawn.len().max(bytes);
            if all.elapsed() > PATIENCE {
                break;
            }
        }
        took.sort();
        let at = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1].0.as_secs_f64() * 1000.0;
        let percentiles = format!("{:.1}, {:.1} and {:.1} ms", at(50), at(95), at(100));
        println!("tile {name}, median, 95th percentile and longest of {}: {percentiles}", took.len());
        println!("  the longest is {:?}; at most {} KiB", took[took.len() - 1].1, bytes >> 10);
    };
    measure(Some(&pyramid), "from the pyramid");
    println!("resident so far: {} MiB", resident());
    measure(None, "from the tables");

    let mut none = |_: &Dataset, _| Err(PyramidError::Damaged("a file draws nothing finer"));
    let OpenedRecordings { model: mut file, .. } =
        load(vec![set], None, PyramidBudget::FILE, &mut none, &mut |_, _| true).ok_or("stopped")?;
    let html = page::write_file(&mut file, page::MOST_BYTES)?;
    println!("page in a file: {:.2} MB", html.len() as f64 / 1e6);
    println!("resident at most: {} MiB", resident());
    Ok(())
}
