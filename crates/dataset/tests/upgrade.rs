//! Recordings of older forms: what they said is in the data set, and no damage of theirs is a
//! panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::basis::Basis;
use homenode_dataset::tables::{
    Access, Interval, Iteration, Link, Migration, Node, Object, ObjectKind, OwnCost, Residency,
};
use homenode_dataset::{Dataset, Missing, RecordingKind, upgrade};
use homenode_model::{AccessKind, Ns};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings").join(name)
}

struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("homenode-upgrade-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// A copy of a fixture.
    fn of(name: &str, fixture: &Path) -> Self {
        let copy = Self::new(name);
        fs::create_dir(&copy.0).unwrap();
        for entry in fs::read_dir(fixture).unwrap().flatten() {
            fs::copy(entry.path(), copy.0.join(entry.file_name())).unwrap();
        }
        copy
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The fields of each line behind the heading.
fn lines(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

fn objects(set: &Dataset) -> Vec<Object> {
    set.rows::<Object>().collect()
}

/// Accesses by interval, address of the page, node, home, whether stores.
type Counts = BTreeMap<(u64, u64, u64, u64, bool), u64>;

#[test]
fn counts_of_the_lab_come_back_line_by_line() {
    let path = fixture("lab-v1");
    let set = Dataset::open(&path).unwrap();
    assert_eq!(set.missing(), []);
    assert_eq!((set.meta().kind, set.meta().basis.as_str()), (RecordingKind::Lab, "emulated"));
    let mut want = Counts::new();
    for f in lines(&path.join("accesses.csv")) {
        let n = |i: usize| number(&f[i]);
        for (store, count) in [(false, n(6)), (true, n(7))] {
            if count > 0 {
                *want.entry((n(0), n(2), n(5), n(4), store)).or_default() += count;
            }
        }
    }
    let objects = objects(&set);
    let mut got = Counts::new();
    for a in set.rows::<Access>() {
        let o = &objects[a.object.unwrap().index()];
        // The third allocation of arrays.c:12 took the memory of the second one, as did nobody
        // else.
        let address = (o.address / 4096 + a.page) * 4096;
        let (count, basis) = a.tally.count().unwrap().parts();
        assert_eq!(basis, Basis::Emulated);
        let store = a.kind == Some(AccessKind::Write);
        let key = (a.interval.0.into(), address, a.node.0.into(), a.home.0.into(), store);
        *got.entry(key).or_default() += count;
    }
    assert!(want == got, "{want:?}\n{got:?}");
    let sum = got.values().sum::<u64>();
    assert!(sum > 10_000, "{sum}");
}

#[test]
fn what_the_lab_said_besides_has_its_place() {
    let set = Dataset::open(&fixture("lab-v1")).unwrap();
    let ids: Vec<_> = objects(&set).into_iter().filter(|o| o.kind != ObjectKind::Stack).collect();
    let ids: Vec<_> = ids.iter().map(|o| (o.id.as_str(), o.allocations)).collect();
    assert_eq!(
        ids,
        [
            ("table", 1),
            ("arrays.c:6 < arrays.c:8 #0", 1),
            ("arrays.c:6 < arrays.c:8 #1", 1),
            ("arrays.c:12 #0", 1),
            ("arrays.c:12 #1", 2),
            ("other memory", 0),
        ]
    );
    assert_eq!(set.rows::<Node>().map(|n| n.cpus).collect::<Vec<_>>(), [1; 4]);
    let links: Vec<_> = set.rows::<Link>().collect();
    let latency = |i: usize| links[i].latency_ps.unwrap().0;
    assert!(links.len() == 16 && latency(0) < latency(1) && latency(0) > 1000);
    let intervals: Vec<_> = set.rows::<Interval>().collect();
    // Three rounds, and a call at their end.
    let timed: Vec<_> = intervals.iter().map(|i| (i.timed, i.iteration)).collect();
    assert_eq!(timed, [(false, None), (true, Some(0)), (true, Some(1)), (true, Some(2)), (false, None)]);
    let whole = set.meta().ended.as_ref().unwrap().elapsed_ns;
    assert!(intervals[0].begin_ns == Ns(0) && intervals[4].end_ns.0.abs_diff(whole) <= 5);
    assert!(intervals.windows(2).all(|w| w[0].end_ns == w[1].begin_ns && w[0].begin_ns < w[0].end_ns));
    assert_eq!(set.rows::<Iteration>().map(|i| i.iteration).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(set.meta().notes.iter().any(|n| n.contains("Linux 6.1.0-56")), "{:?}", set.meta().notes);
    // Each page has one home at the end of an interval, and none moved but by its rows.
    let mut homes = BTreeMap::new();
    for r in set.rows::<Residency>() {
        for page in r.page..r.page + r.pages {
            for interval in r.interval.0..=r.until.0 {
                assert_eq!(homes.insert((r.object, page, interval), r.home), None, "{r:?}");
            }
        }
    }
    for a in set.rows::<Access>() {
        let next = homes[&(a.object, a.page, a.interval.0)];
        let several = set
            .rows::<Access>()
            .any(|b| (b.object, b.page, b.interval) == (a.object, a.page, a.interval) && b.home != a.home);
        assert!(next == a.home || several, "{a:?} {next:?}");
    }
    assert_eq!(set.rows::<Migration>().count(), 0, "NUMA balancing was off");
}

#[test]
fn sightings_come_back_line_by_line_and_have_no_count() {
    let path = fixture("live-v1");
    let set = Dataset::open(&path).unwrap();
    assert_eq!(set.missing(), []);
    assert_eq!((set.meta().kind, set.meta().basis.as_str()), (RecordingKind::Live, "presence"));
    assert!(set.meta().pretended && set.meta().source.contains("pages taken away"));
    let objects = objects(&set);
    let ids: Vec<_> = objects.iter().map(|o| (o.id.as_str(), o.name.as_str())).collect();
    assert_eq!(ids, [("table", "table"), ("halves.c:12 #0", "array")]);
    let want: Vec<_> = lines(&path.join("sightings.csv"))
        .into_iter()
        .map(|f| (number(&f[1]), number(&f[2]), number(&f[3]), number(&f[5])))
        .collect();
    let got: Vec<_> = set
        .rows::<Access>()
        .map(|a| {
            assert_eq!((a.tally.count(), a.tally.basis()), (None, Basis::Presence));
            let address = (objects[a.object.unwrap().index()].address / 4096 + a.page) * 4096;
            (address, u64::from(a.home.0), u64::from(a.node.0), a.tally.seen())
        })
        .collect();
    assert!(want == got && want.len() > 400, "{}", got.len());
    assert!(set.rows::<Residency>().all(|r| r.home.0 == 0));
    let cost: Vec<_> = set.rows::<OwnCost>().collect();
    assert!(cost.len() == 1 && cost[0].own_ns > Ns(0) && cost[0].own_ns < cost[0].cpu_ns);
}

#[test]
fn samples_stand_for_accesses() {
    let copy = Temporary::of("sampled", &fixture("live-v1"));
    let about = copy.0.join("live.json");
    let text = fs::read_to_string(&about).unwrap();
    let sampled = text.replace("\"presence\"", "\"sampled\"").replace("\"one_in\": null", "\"one_in\": 4000");
    fs::write(&about, sampled).unwrap();
    let set = Dataset::open(&copy.0).unwrap();
    let row = set.rows::<Access>().next().unwrap();
    let basis = Basis::Sampled { one_in: 4000 };
    assert_eq!(row.tally.count().unwrap().parts(), (row.tally.seen() * 4000, basis));
    assert_eq!(set.meta().basis, "sampled, one in 4000");
    for (from, to) in [("4000", "0"), ("\"sampled\"", "\"exact\"")] {
        let sampled = text.replace("\"presence\"", "\"sampled\"").replace("null", "4000");
        fs::write(&about, sampled.replace(from, to)).unwrap();
        let error = Dataset::open(&copy.0).unwrap_err().to_string();
        assert!(error.contains("live.json: it does not say what its numbers are worth"), "{error}");
    }
}

#[test]
fn an_upgraded_recording_reads_as_the_old_one() {
    for name in ["lab-v1", "live-v1"] {
        let new = Temporary::new(&format!("new-{name}"));
        upgrade(&fixture(name), &new.0).unwrap();
        let (old, set) = (Dataset::open(&fixture(name)).unwrap(), Dataset::open(&new.0).unwrap());
        assert_eq!((set.missing(), set.meta().format), (vec![], 1));
        assert!(old.rows::<Access>().eq(set.rows::<Access>()), "{name}");
        assert!(old.rows::<Object>().eq(set.rows::<Object>()), "{name}");
        assert!(old.rows::<Residency>().eq(set.rows::<Residency>()), "{name}");
        assert_eq!(set.meta().notes, old.meta().notes);
        let error = upgrade(&new.0, &new.0.join("again")).unwrap_err().to_string();
        assert!(error.contains("today's form already"), "{error}");
        let error = upgrade(&fixture(name), &new.0).unwrap_err().to_string();
        assert!(error.contains("cannot make the folder"), "nothing is overwritten: {error}");
    }
    let error = upgrade(Path::new("/"), Path::new("/nowhere/x")).unwrap_err().to_string();
    assert!(error.contains("no older form"), "{error}");
}

#[test]
fn a_recording_without_an_end_stays_one() {
    let copy = Temporary::of("endless", &fixture("lab-v1"));
    let meta = copy.0.join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    let at = text.find("\"ended\"").unwrap();
    fs::write(&meta, format!("{}\"ended\": null }}", &text[..at])).unwrap();
    assert_eq!(Dataset::open(&copy.0).unwrap().missing(), [Missing::CutOff]);
    let new = Temporary::new("endless-new");
    upgrade(&copy.0, &new.0).unwrap();
    let set = Dataset::open(&new.0).unwrap();
    assert_eq!(set.missing(), [Missing::CutOff]);
    assert!(set.rows::<Access>().count() > 100);
}

/// Writes `text` as `file` of a copy and opens it: what is missing of it, or why it cannot be read.
fn with(copy: &Temporary, file: &str, text: &str) -> Result<(usize, String), String> {
    fs::write(copy.0.join(file), text).unwrap();
    let set = Dataset::open(&copy.0).map_err(|e| e.to_string())?;
    let missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
    Ok((set.rows::<Access>().count(), missing.join("; ")))
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_there() {
    let copy = Temporary::of("damage", &fixture("lab-v1"));
    let whole = fs::read_to_string(copy.0.join("accesses.csv")).unwrap();
    let all = with(&copy, "accesses.csv", &whole).unwrap().0;
    let second = whole.find('\n').unwrap() + 1;
    let line = &whole[second..][..whole[second..].find('\n').unwrap()];
    let fields: Vec<&str> = line.split(',').collect();
    for (field, value, why) in [
        (4, "9", "there is no such node"),
        (5, "65535", "there is no such node"),
        (0, "4294967295", "there is no such interval"),
        (8, "99", "there is no such object"),
        (2, "0x0", "the object has no such page"),
        (1, "1", "the object has no such page"),
        (6, "-1", "it makes no sense"),
        (2, "0x1ffffffffffffffff", "it makes no sense"),
    ] {
        let mut changed = fields.clone();
        changed[field] = value;
        // A row of the first object, so that its process and its pages matter.
        if changed[8].is_empty() {
            changed[8] = "0";
        }
        let text = whole.replacen(line, &changed.join(","), 1);
        let (rows, missing) = with(&copy, "accesses.csv", &text).unwrap();
        assert!(rows < all && rows + 2 >= all, "{why}: {rows}");
        assert!(missing.contains(&format!("accesses.csv, line 2: {why}")), "{field}: {missing}");
    }
    let more = whole.replacen(
        line,
        &{
            let mut more = fields.clone();
            more[6] = "18446744073709551615";
            more.join(",")
        },
        2,
    );
    let (_, missing) = with(&copy, "accesses.csv", &more).unwrap();
    assert!(missing.contains("its lines add up to 18446744073709551615"), "{missing}");
    let cut = &whole[..whole.len() / 2];
    let (rows, missing) = with(&copy, "accesses.csv", cut).unwrap();
    assert!((all / 3..all * 2 / 3).contains(&rows) && missing.contains("it is cut off"), "{rows} {missing}");
    let error = with(&copy, "accesses.csv", "").unwrap_err();
    assert!(error.contains("accesses.csv, line 1"), "{error}");
    fs::write(copy.0.join("accesses.csv"), &whole).unwrap();
    let (rows, missing) = with(&copy, "lab.json", "{\n  \"machine\": \"\u{1b}[2J\"").unwrap();
    assert!(rows == all && missing.starts_with("lab.json is damaged at byte 15"), "{missing}");
    assert!(!missing.contains('\x1b'), "{missing}");
}

/// What is cut off, each bit of some bytes flipped, and nothing.
fn damaged(text: &str) -> Vec<Vec<u8>> {
    let cut = (0..text.len()).step_by(text.len() / 40 + 1).map(|end| text.as_bytes()[..end].to_vec());
    let flipped = (0..text.len()).step_by(text.len() / 60 + 1).map(|at| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1 << (at % 7);
        bytes
    });
    cut.chain(flipped).collect()
}

#[test]
fn a_damaged_description_costs_no_row() {
    for (name, files) in [("lab-v1", ["meta.json", "lab.json"]), ("live-v1", ["meta.json", "live.json"])] {
        let copy = Temporary::of(&format!("described-{name}"), &fixture(name));
        let sound = Dataset::open(&copy.0).unwrap();
        let (rows, nodes) = (sound.rows::<Access>().count(), sound.rows::<Node>().count());
        for file in files {
            let text = fs::read_to_string(copy.0.join(file)).unwrap();
            let (mut said, mut lost) = (0, 0);
            for bytes in damaged(&text) {
                fs::write(copy.0.join(file), &bytes).unwrap();
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                let set = match Dataset::open(&copy.0) {
                    Ok(set) => set,
                    // Whole, and of another version, or of numbers that nobody can mean.
                    Err(e) => {
                        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(), "{e}\n{shown}");
                        continue;
                    }
                };
                let missing: Vec<String> = set.missing().iter().map(ToString::to_string).collect();
                if !missing.iter().any(|m| m.starts_with(&format!("{file} is damaged"))) {
                    continue;
                }
                said += 1;
                let found = set.rows::<Access>().count();
                assert_eq!(found, rows, "{file}: {missing:?}\n{shown}");
                // Rows name all nodes but the last one.
                assert!(set.rows::<Node>().count() >= nodes.min(2), "{file}: {missing:?}\n{shown}");
                lost += u32::from(missing.iter().any(|m| m.contains("does not tell")));
                let counted = set.rows::<Access>().any(|a| a.tally.count().is_some());
                assert_eq!(counted, name == "lab-v1", "a presence is no count: {missing:?}");
            }
            assert!(said > 60 && lost > 40, "{name}/{file}: {said} are damaged, {lost} lack something");
            fs::write(copy.0.join(file), &text).unwrap();
        }
    }
}

#[test]
fn counts_whose_rate_is_not_told_are_read_as_presence() {
    let copy = Temporary::of("rate", &fixture("live-v1"));
    let about = fs::read_to_string(copy.0.join("live.json")).unwrap();
    let sampled = about.replace("\"presence\"", "\"sampled\"").replace("\"one_in\": null", "\"one_in\": 64");
    with(&copy, "live.json", &sampled).unwrap();
    let basis = || Dataset::open(&copy.0).unwrap().rows::<Access>().next().unwrap().tally.basis();
    assert_eq!(basis(), Basis::Sampled { one_in: 64 });
    let (_, missing) =
        with(&copy, "live.json", &sampled.replace("\"one_in\": 64", "\"one_in\": 6x4")).unwrap();
    assert!(missing.contains("does not tell one_in; its counts are read as presence"), "{missing}");
    assert_eq!(basis(), Basis::Presence);
}

#[test]
fn numbers_that_nobody_can_mean_take_no_memory() {
    let copy = Temporary::of("numbers", &fixture("lab-v1"));
    let about = fs::read_to_string(copy.0.join("lab.json")).unwrap();
    // Without its intervals, their number is believed as far as a row says it.
    let at = about.find("\"intervals\"").unwrap();
    let end = about[at..].find(']').unwrap() + at;
    let none = format!("{}\"intervals\": [{}", &about[..at], &about[end..]);
    let rows = "interval,process,address,physical_page,home,node,loads,stores,object\n\
                4294967295,1,0x1000,0,0,0,1,1,\n1048575,1,0xffffffffffffffff,0,0,0,1,1,\n";
    with(&copy, "lab.json", &none).unwrap();
    let (rows, missing) = with(&copy, "accesses.csv", rows).unwrap();
    assert!(rows == 2 && missing.contains("line 2: there is no such interval"), "{rows} {missing}");
    let huge = about.replace("\"iterations_told\": 4", "\"iterations_told\": 4294967295");
    with(&copy, "lab.json", &huge).unwrap();
    let wide: String = (0..300).map(|_| "[1],").collect();
    let wide = format!(
        "{{\"machine\":\"\",\"linux\":\"\",\"iterations_told\":0,\"cpus\":[],\"latency_ns\":[{}]}}",
        wide.trim_end_matches(',')
    );
    assert!(with(&copy, "lab.json", &wide).unwrap_err().contains("1 to 256 nodes"));
}

#[test]
fn what_is_no_file_is_named_without_waiting() {
    for name in ["lab.json", "accesses.csv", "objects.csv", "meta.json"] {
        let copy = Temporary::of(&format!("fifo-{name}"), &fixture("lab-v1"));
        let path = copy.0.join(name);
        // Without a table nothing is read, without a description what the tables tell.
        let said = || match Dataset::open(&copy.0) {
            Ok(set) => {
                assert!(name.ends_with(".json") && set.rows::<Access>().count() > 100, "{name}");
                set.missing().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            }
            Err(e) => e.to_string(),
        };
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let fifo = said();
        assert!(fifo.contains("not a regular file") && fifo.contains(name), "{fifo}");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(said().contains("symbolic link"), "{}", said());
    }
}

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }
}

/// What a stranger may have put there.
const HOSTILE: [&[u8]; 10] = [
    b"18446744073709551615",
    b"-1",
    b"4294967296",
    b"0xffffffffffffffff",
    b"\x1b[2J",
    b"\n",
    b",",
    b"\"",
    b"\xff\xfe",
    b"0",
];

#[test]
fn no_damage_is_a_panic_and_nothing_that_a_terminal_obeys_comes_through() {
    let rounds: usize = std::env::var("HOMENODE_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut opened, mut refused) = (0, 0);
    for name in ["lab-v1", "live-v1"] {
        let copy = Temporary::of(&format!("fuzz-{name}"), &fixture(name));
        let files: Vec<PathBuf> = fs::read_dir(&copy.0).unwrap().flatten().map(|e| e.path()).collect();
        for _ in 0..rounds {
            let path = &files[random.below(files.len())];
            let whole = fs::read(path).unwrap();
            let mut bytes = whole.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes.truncate(at),
                    1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
                    2 => {
                        // A field or a value of the same place.
                        let is_end = |b: &u8| b",\n :}]".contains(b);
                        let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |n| at + n);
                        bytes.splice(at..end, HOSTILE[random.below(HOSTILE.len())].iter().copied());
                    }
                    _ => {
                        let (from, length) = (random.below(whole.len()), random.below(400));
                        let piece = whole[from..whole.len().min(from + length)].to_vec();
                        bytes.splice(at..at, piece);
                    }
                }
            }
            fs::write(path, &bytes).unwrap();
            match Dataset::open(&copy.0) {
                Ok(set) => {
                    opened += 1;
                    harmless(&set);
                }
                Err(e) => {
                    refused += 1;
                    assert!(!e.to_string().chars().any(char::is_control), "{e}");
                }
            }
            fs::write(path, &whole).unwrap();
        }
    }
    assert!(opened > rounds / 2 && refused > 10, "{opened} and {refused}");
}

fn harmless(set: &Dataset) {
    let objects = objects(set);
    let intervals = set.rows::<Interval>().count();
    for a in set.rows::<Access>() {
        assert!((a.interval.0 as usize) < intervals);
        assert!(a.object.is_some_and(|o| o.index() < objects.len()));
    }
    let texts =
        objects.iter().flat_map(|o| [&o.id, &o.name]).chain(&o_texts(set)).cloned().collect::<Vec<_>>();
    assert!(texts.iter().all(|t| !t.chars().any(char::is_control)), "{texts:?}");
    for table in homenode_dataset::tables::ALL {
        for chunk in set.chunks_of(table.name, &(table.columns)()) {
            assert!((0..chunk.rows()).all(|row| (table.check)(&chunk, row).is_ok()), "{}", table.name);
        }
    }
}

fn o_texts(set: &Dataset) -> Vec<String> {
    let meta = set.meta();
    let missing = set.missing().iter().map(ToString::to_string).collect::<Vec<_>>();
    [&meta.command, &meta.notes, &meta.incomplete, &missing].into_iter().flatten().cloned().collect()
}
