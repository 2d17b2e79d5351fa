//! The grammar of the fuzzer's programs: a seed becomes the text that `interpreter.c` runs.
//!
//! A program is deterministic by construction. A thread writes only to slots that it owns. It reads
//! slots that nobody writes to while it runs. A child that shares locks of other threads by its way
//! of forking does only what needs no lock.

use std::fmt::Write;

/// Pseudo-random numbers by splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Where an operation may stand.
const TOP: u8 = 1;
/// In a thread of a team.
const PART: u8 = 2;
/// In a child by `fork`, whose locks the C library puts right.
const CHILD: u8 = 4;
/// In a child that inherits locks as they were.
const BARE: u8 = 8;

const THREADS: u8 = TOP | PART;
const LOCKS: u8 = TOP | PART | CHILD;
const ALL: u8 = LOCKS | BARE;

/// An argument.
#[derive(Clone, Copy)]
enum Arg {
    /// A slot that the thread owns.
    Own,
    /// A slot that the thread reads.
    Any,
    /// Bytes of a slot.
    Bytes,
    /// A number below this.
    Below(u64),
}

use Arg::{Any, Below, Bytes, Own};

/// An operation: name, weight, where it may stand, its arguments.
type Form = (&'static str, u64, u8, &'static [Arg]);

const FORMS: &[Form] = &[
    ("alloc", 10, LOCKS, &[Own, Below(9), Bytes, Below(4)]),
    ("free", 3, LOCKS, &[Own]),
    ("grow", 5, LOCKS, &[Own, Bytes, Below(100)]),
    ("move", 2, ALL, &[Own]),
    ("fill", 4, ALL, &[Own, Below(1000)]),
    ("mix", 6, ALL, &[Own, Below(1000)]),
    ("sum", 5, ALL, &[Any]),
    ("touch", 6, ALL, &[Own, Below(512)]),
    ("copy", 4, ALL, &[Any, Own]),
    ("sort", 2, BARE | THREADS, &[Own]),
    ("text", 2, LOCKS, &[Own, Below(1000)]),
    ("dontneed", 3, ALL, &[Own, Below(1000), Below(64)]),
    ("protect", 2, ALL, &[Own]),
    ("trap", 2, ALL, &[Own, Below(1000)]),
    ("pipe", 3, ALL, &[Any, Own]),
    ("file", 3, ALL, &[Any, Own]),
    ("vector", 3, ALL, &[Own, Own]),
    ("message", 3, ALL, &[Own, Own, Below(2)]),
    ("stream", 3, LOCKS, &[Own, Own, Below(1000)]),
    ("ask", 3, LOCKS, &[Own, Below(8)]),
    ("sleep", 5, ALL, &[Below(4000)]),
    ("signal", 3, ALL, &[Own, Below(8)]),
    ("jump", 1, ALL, &[Own]),
    ("wait", 2, ALL, &[Own]),
    ("notify", 1, THREADS, &[Own]),
    ("meet", 2, LOCKS, &[Own, Below(3), Below(300)]),
    ("detach", 1, LOCKS, &[Own]),
    ("context", 1, TOP, &[Own]),
    ("deep", 1, ALL, &[Below(100)]),
    ("each", 6, THREADS, &[Own, Below(4), Below(4), Below(1000)]),
    ("reduce", 3, THREADS, &[Any, Below(4)]),
    ("tasks", 2, THREADS, &[Own, Below(4)]),
    ("stages", 2, THREADS, &[Own, Below(4), Below(30)]),
    ("spawn", 2, LOCKS, &[Below(4), Own]),
    ("load", 1, THREADS, &[]),
    ("closed", 1, TOP, &[]),
    ("team", 6, THREADS, &[]),
    ("fork", 4, THREADS, &[]),
    ("loop", 5, ALL, &[]),
];

/// What may be used at a place.
#[derive(Clone)]
struct Place {
    kind: u8,
    own: Vec<u64>,
    read: Vec<u64>,
    depth: u32,
}

struct Writer {
    rng: Rng,
    text: String,
}

impl Writer {
    fn line(&mut self, depth: u32, line: std::fmt::Arguments<'_>) {
        for _ in 0..depth {
            self.text.push_str("  ");
        }
        let _ = writeln!(self.text, "{line}");
    }

    fn of(&mut self, slots: &[u64]) -> u64 {
        slots[self.rng.below(slots.len() as u64) as usize]
    }

    fn bytes(&mut self) -> u64 {
        let most = match self.rng.below(16) {
            0..2 => 48 << 10,
            2..14 => 1 << 20,
            _ => 4 << 20,
        };
        (16 << 10) + self.rng.below(most)
    }

    fn operation(&mut self, place: &Place) {
        let fits = |f: &&Form| f.2 & place.kind != 0 && (place.depth < 3 || !is_block(f.0));
        let forms: Vec<&Form> = FORMS.iter().filter(fits).collect();
        let mut draw = self.rng.below(forms.iter().map(|f| f.1).sum());
        let form = forms.into_iter().find(|f| {
            let found = draw < f.1;
            draw = draw.wrapping_sub(f.1);
            found
        });
        let Some(&(name, _, _, args)) = form else { return };
        match name {
            "team" => return self.team(place),
            "fork" => return self.fork(place),
            "loop" => return self.repeated(place),
            _ => {}
        }
        let mut line = name.to_owned();
        for arg in args {
            let number = match arg {
                Own => self.of(&place.own),
                Any if place.read.is_empty() || self.rng.one_in(2) => self.of(&place.own),
                Any => self.of(&place.read),
                Bytes => self.bytes(),
                Below(n) => self.rng.below(*n),
            };
            let _ = write!(line, " {number}");
        }
        self.line(place.depth, format_args!("{line}"));
    }

    fn block(&mut self, place: &Place, most: u64) {
        for _ in 0..=self.rng.below(most) {
            self.operation(place);
        }
    }

    /// Threads, each with slots of its own; the last slots are for all of them to read.
    fn team(&mut self, place: &Place) {
        let n = self.rng.below(3) + 1;
        if place.own.len() as u64 <= n {
            return;
        }
        let (way, depth) = (self.rng.below(3), place.depth);
        self.line(depth, format_args!("team {way}"));
        let each = place.own.len() / (n as usize + 1);
        let (given, kept) = place.own.split_at(each * n as usize);
        for own in given.chunks(each) {
            let how = self.rng.below(3);
            self.line(depth + 1, format_args!("part {how}"));
            let read = [kept, &place.read[..]].concat();
            self.block(&Place { kind: PART, own: own.to_vec(), read, depth: depth + 2 }, 6);
            self.line(depth + 1, format_args!("end"));
        }
        self.line(depth, format_args!("end"));
    }

    fn fork(&mut self, place: &Place) {
        // One and two: `_Fork` and `clone`, after which nobody puts locks right.
        let (way, ends, depth) = (self.rng.below(3), self.rng.below(5), place.depth);
        let kind = if way == 0 { CHILD } else { BARE };
        self.line(depth, format_args!("fork {way} {ends}"));
        self.block(&Place { kind, depth: depth + 1, ..place.clone() }, 5);
        self.line(depth, format_args!("end"));
    }

    fn repeated(&mut self, place: &Place) {
        let depth = place.depth;
        let most = if depth == 0 { 12 } else { 4 };
        let times = self.rng.below(most) + 1;
        self.line(depth, format_args!("loop {times}"));
        // What a loop holds once holds many times; slots stay as they are.
        self.block(&Place { depth: depth + 1, ..place.clone() }, 3);
        self.line(depth, format_args!("end"));
    }
}

fn is_block(name: &str) -> bool {
    matches!(name, "team" | "fork" | "loop")
}

/// The program of this seed.
pub fn program(seed: u64) -> String {
    let mut w = Writer { rng: Rng(seed), text: String::new() };
    let slots = 3 + w.rng.below(8);
    let place = Place { kind: TOP, own: (0..slots).collect(), read: Vec::new(), depth: 0 };
    for slot in 0..slots {
        let (kind, bytes, salt) = (w.rng.below(9), w.bytes(), w.rng.below(4));
        w.line(0, format_args!("alloc {slot} {kind} {bytes} {salt}"));
    }
    w.line(0, format_args!("sleep 3000"));
    let most = 5 + w.rng.below(20);
    w.block(&place, most);
    if w.rng.one_in(8) {
        w.line(0, format_args!("drop"));
        w.block(&place, 5);
    }
    for slot in 0..slots {
        w.line(0, format_args!("sum {slot}"));
    }
    let (mut way, code) = (w.rng.below(16), w.rng.below(100));
    // `pthread_exit` of the first thread waits for all others, and some never end.
    let stays = ["each ", "reduce ", "tasks ", "stages ", "team 1", "notify "];
    if way == 6 && stays.iter().any(|s| w.text.contains(s)) {
        way = 0;
    }
    if way < 11 {
        w.line(0, format_args!("end_by {way} {code}"));
    }
    w.text
}

/// The program's pieces that can be left out alone: a line, or a block.
pub fn pieces(text: &str) -> Vec<std::ops::Range<usize>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut pieces = Vec::new();
    let mut open = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if *line == "end" {
            pieces.extend(open.pop().map(|from| from..at + 1));
        } else if line.starts_with("part ") || is_block(line.split(' ').next().unwrap_or("")) {
            open.push(at);
        } else {
            pieces.push(at..at + 1);
        }
    }
    // Large ones first.
    pieces.sort_by_key(|p| (std::cmp::Reverse(p.len()), p.start));
    pieces
}

/// The text without these lines.
pub fn without(text: &str, gap: &std::ops::Range<usize>) -> String {
    let kept = text.lines().enumerate().filter(|(at, _)| !gap.contains(at));
    kept.fold(String::new(), |all, (_, line)| all + line + "\n")
}
