//! A data set as a trace for Perfetto's user interface: JSON of the Trace Event Format.
//!
//! | track | from | what a slice, mark or point is |
//! |---|---|---|
//! | iterations | `iterations` | one round of the outer loop |
//! | a region | `region_times` | an interval in which the region ran, with its runs and its time there |
//! | moves to a node | `migrations` | a run of pages that moved or was refused |
//! | accesses by a node | `accesses` | local and remote ones in an interval |
//! | pages on a node | `residency` | pages that lived there at the end of an interval |
//! | homenode's own CPU time | `own_cost` | milliseconds until then |
//!
//! Times are microseconds since the start of the program, with three decimals: nanoseconds. Memory
//! grows with intervals and nodes, both bounded, and not with rows. What is left out stands in
//! `otherData` of the file and in [`WrittenTrace`].

use std::collections::BTreeMap;
use std::io::{self, Write};

use homenode_dataset::Dataset;
use homenode_dataset::tables::{
    Access, Interval, IntervalNo, Iteration, Migration, Object, OwnCost, Region, RegionNo, RegionTime,
    Residency,
};
use homenode_model::{NodeId, ObjectId};
use serde_json::{Value, json};

/// Most points of a counter: more intervals are added up in groups.
const MOST_POINTS: usize = 20_000;
/// Most moves, and most intervals of all regions together.
const MOST_EVENTS: u64 = 200_000;
/// Most nodes.
const MOST_NODES: usize = 256;
/// Rows between two looks at whether somebody asks to stop.
const LOOK: u64 = 1 << 16;

/// Numbers of tracks.
const ITERATIONS: u64 = 1;
const MOVES: u64 = 1000;
const REGIONS: u64 = 100_000;

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenTrace {
    /// Events of the trace.
    pub events: u64,
    /// What was left out or added up, a sentence each.
    pub coarsened: Vec<String>,
    /// Whether somebody asked to stop: the text is then not whole.
    pub stopped: bool,
}

struct Out<'a, W> {
    to: &'a mut W,
    events: u64,
}

impl<W: Write> Out<'_, W> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.to.write_all(if self.events == 0 { b"\n" } else { b",\n" })?;
        self.events += 1;
        serde_json::to_writer(&mut *self.to, event).map_err(io::Error::from)
    }

    /// Names a track.
    fn track(&mut self, tid: u64, name: &str) -> io::Result<()> {
        self.event(
            &json!({ "ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": { "name": name } }),
        )?;
        let order = json!({ "sort_index": tid });
        self.event(&json!({ "ph": "M", "pid": 1, "tid": tid, "name": "thread_sort_index", "args": order }))
    }

    fn slice(&mut self, tid: u64, name: &str, begin: u64, end: u64, args: &Value) -> io::Result<()> {
        let dur = micros(end.saturating_sub(begin));
        self.event(&json!({
            "ph": "X", "pid": 1, "tid": tid, "name": name, "ts": micros(begin), "dur": dur, "args": args,
        }))
    }

    fn counter(&mut self, name: &str, ns: u64, args: &Value) -> io::Result<()> {
        self.event(&json!({ "ph": "C", "pid": 1, "name": name, "ts": micros(ns), "args": args }))
    }
}

/// Nanoseconds as microseconds.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// The intervals of a recording as points of counters.
struct Points {
    intervals: Vec<Interval>,
    /// Intervals of a point.
    each: usize,
}

impl Points {
    fn of(set: &Dataset) -> Self {
        let mut intervals: Vec<Interval> = set.rows::<Interval>().collect();
        intervals.sort_by_key(|i| i.interval);
        intervals.dedup_by_key(|i| i.interval);
        let each = intervals.len().div_ceil(MOST_POINTS).max(1);
        Self { intervals, each }
    }

    fn count(&self) -> usize {
        self.intervals.len().div_ceil(self.each).max(1)
    }

    /// The point of an interval; that of the last one for a number behind it.
    fn point(&self, number: IntervalNo) -> usize {
        let at = self.intervals.partition_point(|i| i.interval < number);
        at.min(self.intervals.len().saturating_sub(1)) / self.each
    }

    fn interval(&self, number: IntervalNo) -> Option<&Interval> {
        let at = self.intervals.binary_search_by_key(&number, |i| i.interval).ok()?;
        self.intervals.get(at)
    }

    fn begin(&self, point: usize) -> u64 {
        self.intervals.get(point * self.each).map_or(0, |i| i.begin_ns.0)
    }

    fn end(&self, point: usize) -> u64 {
        let last = ((point + 1) * self.each).min(self.intervals.len());
        last.checked_sub(1).and_then(|i| self.intervals.get(i)).map_or(0, |i| i.end_ns.0)
    }
}

/// What a node did in each interval.
#[derive(Clone, Debug)]
struct Node {
    /// Local and remote accesses, then local and remote sightings of rows that have no count.
    touched: Vec<[u64; 4]>,
    /// Pages that came minus pages that left.
    pages: Vec<i64>,
}

/// Writes a data set. `more` gets the number of rows that were read, and says whether to go on.
///
/// # Errors
/// What the system said.
pub fn write(
    set: &Dataset,
    to: &mut impl Write,
    more: &mut dyn FnMut(u64) -> bool,
) -> io::Result<WrittenTrace> {
    let mut written = WrittenTrace::default();
    let points = Points::of(set);
    if points.each > 1 {
        written.coarsened.push(format!("a point of a counter is {} intervals", points.each));
    }
    to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut out = Out { to, events: 0 };
    let name = json!({ "name": set.meta().command.join(" ") });
    out.event(&json!({ "ph": "M", "pid": 1, "name": "process_name", "args": name }))?;
    iterations(set, &mut out)?;
    regions(set, &points, &mut out, &mut written)?;
    moves(set, &mut out, &mut written)?;
    counters(set, &points, &mut out, &mut written, more)?;
    for cost in set.rows::<OwnCost>().take(MOST_POINTS) {
        let name = format!("homenode's own CPU time, process {}", cost.process);
        out.counter(&name, cost.time_ns.0, &json!({ "ms": cost.own_ns.0 as f64 / 1e6 }))?;
    }
    written.events = out.events;
    let about = json!({
        "made by": format!("homenode {}", env!("CARGO_PKG_VERSION")),
        "machine": set.meta().machine,
        "policy": set.meta().policy,
        "basis of counts": set.meta().basis,
        "missing": set.missing().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "coarsened": written.coarsened,
    });
    writeln!(to, "\n],\"otherData\":{about}}}")?;
    Ok(written)
}

fn iterations(set: &Dataset, out: &mut Out<'_, impl Write>) -> io::Result<()> {
    let mut named = Vec::new();
    for round in set.rows::<Iteration>().take(MOST_EVENTS as usize) {
        let tid = ITERATIONS + u64::from(round.process.min(900));
        if !named.contains(&tid) {
            out.track(tid, &format!("iterations of process {}", round.process))?;
            named.push(tid);
        }
        let args = json!({ "source": round.source.as_str() });
        out.slice(tid, &format!("iteration {}", round.iteration), round.begin_ns.0, round.end_ns.0, &args)?;
    }
    Ok(())
}

fn regions(
    set: &Dataset,
    points: &Points,
    out: &mut Out<'_, impl Write>,
    written: &mut WrittenTrace,
) -> io::Result<()> {
    let mut names: BTreeMap<RegionNo, String> = BTreeMap::new();
    for r in set.rows::<Region>().take(MOST_EVENTS as usize) {
        let place = r.file.map(|f| format!("{f}{}", r.line.map(|l| format!(":{l}")).unwrap_or_default()));
        let parts: Vec<String> = [r.function, place].into_iter().flatten().collect();
        let name = if parts.is_empty() { format!("region {}", r.region.0) } else { parts.join(" ") };
        out.track(REGIONS + u64::from(r.region.0), &format!("{} {name}, by interval", r.kind.as_str()))?;
        names.insert(r.region, name);
    }
    let mut rows = 0_u64;
    for time in set.rows::<RegionTime>() {
        rows += 1;
        if rows > MOST_EVENTS {
            continue;
        }
        let Some(interval) = points.interval(time.interval) else { continue };
        let name = names.get(&time.region).map_or("region", String::as_str);
        let args =
            json!({ "runs": time.runs, "time in it, ns": time.time_ns.0, "interval": time.interval.0 });
        let tid = REGIONS + u64::from(time.region.0);
        out.slice(tid, name, interval.begin_ns.0, interval.end_ns.0, &args)?;
    }
    if rows > MOST_EVENTS {
        written.coarsened.push(format!("regions of {} intervals are left out", rows - MOST_EVENTS));
    }
    Ok(())
}

fn moves(set: &Dataset, out: &mut Out<'_, impl Write>, written: &mut WrittenTrace) -> io::Result<()> {
    let names: BTreeMap<ObjectId, String> =
        set.rows::<Object>().take(MOST_EVENTS as usize).map(|o| (o.object, o.name)).collect();
    let (mut rows, mut named) = (0_u64, Vec::new());
    for m in set.rows::<Migration>() {
        rows += 1;
        if rows > MOST_EVENTS {
            continue;
        }
        let tid = MOVES + u64::from(m.to_node.0);
        if !named.contains(&tid) {
            out.track(tid, &format!("moves to node {}", m.to_node.0))?;
            named.push(tid);
        }
        let object = m.object.and_then(|o| names.get(&o)).map_or("unknown memory", String::as_str);
        let pages = if m.pages == 1 { "1 page".to_owned() } else { format!("{} pages", m.pages) };
        let args = json!({
            "object": object, "page": m.page, "pages": m.pages, "from": m.from_node.0, "to": m.to_node.0,
            "cause": m.cause.as_str(), "policy": m.policy, "outcome": m.outcome.as_str(),
            "cost, ns": m.cost_ns.map(|c| c.0),
        });
        let name = format!("{}: {pages} of {object} from node {}", m.outcome.as_str(), m.from_node.0);
        out.event(&json!({
            "ph": "i", "s": "t", "pid": 1, "tid": tid, "name": name, "ts": micros(m.time_ns.0), "args": args,
        }))?;
    }
    if rows > MOST_EVENTS {
        written.coarsened.push(format!("{} moves are left out", rows - MOST_EVENTS));
    }
    Ok(())
}

fn counters(
    set: &Dataset,
    points: &Points,
    out: &mut Out<'_, impl Write>,
    written: &mut WrittenTrace,
    more: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    let count = points.count();
    let mut nodes: BTreeMap<NodeId, Node> = BTreeMap::new();
    let empty = || Node { touched: vec![[0; 4]; count], pages: vec![0; count + 1] };
    let mut left_out = false;
    for r in set.rows::<Residency>() {
        if !nodes.contains_key(&r.home) && nodes.len() >= MOST_NODES {
            left_out = true;
            continue;
        }
        let node = nodes.entry(r.home).or_insert_with(empty);
        let (first, last) = (points.point(r.interval), points.point(r.until));
        let pages = i64::try_from(r.pages).unwrap_or(i64::MAX);
        // The home at the end of a point's last interval.
        let ends_within = points.intervals.get(((last + 1) * points.each).wrapping_sub(1));
        let behind = last + usize::from(ends_within.is_none_or(|i| i.interval <= r.until));
        node.pages[first] = node.pages[first].saturating_add(pages);
        node.pages[behind] = node.pages[behind].saturating_sub(pages);
    }
    let (mut counts, mut sightings) = (false, false);
    for (a, row) in set.rows::<Access>().zip(1_u64..) {
        if row.is_multiple_of(LOOK) && !more(LOOK) {
            written.stopped = true;
            return Ok(());
        }
        if !nodes.contains_key(&a.node) && nodes.len() >= MOST_NODES {
            left_out = true;
            continue;
        }
        let touched = &mut nodes.entry(a.node).or_insert_with(empty).touched[points.point(a.interval)];
        let count = a.tally.count().map(|c| c.parts().0);
        counts |= count.is_some();
        sightings |= count.is_none();
        let at = usize::from(a.node != a.home) + if count.is_some() { 0 } else { 2 };
        touched[at] = touched[at].saturating_add(count.unwrap_or_else(|| a.tally.seen()));
    }
    if counts && sightings {
        written.coarsened.push("the counters hold no sightings, because a sighting is not a count".into());
    }
    if left_out {
        written.coarsened.push(format!("only {MOST_NODES} nodes have counters"));
    }
    let unit = if counts { "accesses" } else { "sightings" };
    for (node, sums) in &nodes {
        let (mut pages, mut before) = (0_i64, None);
        for point in 0..count {
            let [local, remote, seen, seen_remote] = sums.touched[point];
            let (local, remote) = if counts { (local, remote) } else { (seen, seen_remote) };
            let args = json!({ "local": local, "remote": remote });
            out.counter(&format!("{unit} by node {}", node.0), points.begin(point), &args)?;
            pages = pages.saturating_add(sums.pages[point]);
            if before != Some(pages) {
                let name = format!("pages on node {}", node.0);
                out.counter(&name, points.end(point), &json!({ "pages": pages }))?;
                before = Some(pages);
            }
        }
    }
    Ok(())
}
