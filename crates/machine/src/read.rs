//! Machine files: TOML in, [`Machine`] out.
//!
//! ```toml
//! name = "twin"
//! source = "assumed"                  # of every number that says no other
//!
//! [[nodes]]
//! count = 2
//! cpus = 8
//! memory = { value = "64 GiB", source = "dmidecode" }
//! bandwidth = "50 GB/s"
//!
//! [latency]                           # or value = [[90, 140], [140, 90]]
//! levels = ["90 ns", "140 ns"]
//! source = "homenode measure, 2026-03-01"
//!
//! [[caches]]
//! level = 2
//! size = "1 MiB"
//! ways = 16
//! ```
//!
//! Any value `V` may be written `{ value = V, source = "text" }`. The tree is walked by hand rather
//! than through derived deserialisation because each problem must name its line and column, what
//! was expected, and, for a key that does not exist, the one that was probably meant; and because
//! sources live beside their values, which no derive flattens.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use homenode_model::{
    Bytes, Cache, CacheScope, Core, Matrix, MbPerS, MigrationCost, Node, NodeId, Ns, Ps, Topology, Writes,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::nearest::nearest;
use crate::quantity::{self, shorten};
use crate::{Bus, Error, Fitted, MAX_CPUS, MAX_FILE, MAX_NODES, MAX_TEXT, Machine, MachineOrigin, OsNumbers};

/// Version of the format that this crate writes and the newest that it reads.
pub(crate) const FORMAT: u64 = 1;
/// More levels of cache than any machine has.
const MAX_CACHES: usize = 8;
/// More page sizes than any machine has.
const MAX_PAGE_SIZES: usize = 32;

const TOP_KEYS: &[&str] = &[
    "format",
    "name",
    "about",
    "source",
    "nodes",
    "cpu_nodes",
    "latency",
    "link",
    "page_sizes",
    "remote_cacheable",
    "counts_references",
    "caches",
    "bus",
    "core",
    "migration",
    "fitted",
    "os",
];

/// Programs that a machine may have fitted constants for.
const MAX_FITTED: usize = 64;

impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::TooLarge`] and those of [`Machine::from_toml`].
    pub fn load(path: &Path) -> Result<Self, Error> {
        let read = |source| Error::Read { path: path.into(), source };
        let mut bytes = Vec::new();
        // Bounded while reading: a size asked for before is wrong for pipes and growing files.
        File::open(path).map_err(read)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(Error::TooLarge { path: path.into(), limit: MAX_FILE });
        }
        let file = path.display().to_string();
        match String::from_utf8(bytes) {
            Ok(text) => Self::from_toml(&text, MachineOrigin::File(file)),
            Err(e) => {
                let good = e.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(&e.as_bytes()[..good]).into_owned();
                let doc = Doc { text: &text, file };
                Err(doc.error(good..good, "not UTF-8: a machine file is TOML text".into()))
            }
        }
    }

    /// Reads the text of a machine file.
    ///
    /// # Errors
    /// [`Error::File`] with line and column; [`Error::Topology`] when every value is readable and
    /// they do not fit together.
    pub fn from_toml(text: &str, origin: MachineOrigin) -> Result<Self, Error> {
        let file = match &origin {
            MachineOrigin::File(path) => path.clone(),
            other => other.to_string(),
        };
        let doc = Doc { text, file };
        let root = DeTable::parse(text)
            .map_err(|e| doc.error(e.span().unwrap_or(0..0), format!("not TOML: {}", e.message())))?;
        let top = Tab { doc: &doc, table: root.get_ref(), span: 0..0, name: "machine file".into() };
        let machine = Reader { sources: BTreeMap::new() }.machine(&top, origin)?;
        machine.check()?;
        Ok(machine)
    }
}

/// The text, for positions.
struct Doc<'d> {
    text: &'d str,
    file: String,
}

impl Doc<'_> {
    fn error(&self, span: Range<usize>, problem: String) -> Error {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        Error::File {
            file: self.file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem,
        }
    }
}

/// A table of the file.
struct Tab<'d> {
    doc: &'d Doc<'d>,
    table: &'d DeTable<'d>,
    span: Range<usize>,
    /// For messages: `[core]`.
    name: String,
}

/// A value of the file, its source taken off.
struct Item<'d> {
    doc: &'d Doc<'d>,
    value: &'d DeValue<'d>,
    span: Range<usize>,
    /// For messages: `memory`.
    key: String,
    source: Option<String>,
}

impl<'d> Tab<'d> {
    fn only(&self, allowed: &[&str]) -> Result<(), Error> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !allowed.contains(&name) {
                let hint = nearest(name, allowed).map_or(String::new(), |n| format!("did you mean `{n}`? "));
                let problem = format!(
                    "{} has no key {:?}; {hint}keys: {}",
                    self.name,
                    shorten(name),
                    allowed.join(", ")
                );
                return Err(self.doc.error(key.span(), problem));
            }
        }
        Ok(())
    }

    fn raw(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.iter().find(|(k, _)| *k.get_ref() == key).map(|(_, v)| v)
    }

    fn item(&self, key: &str) -> Result<Option<Item<'d>>, Error> {
        let Some(raw) = self.raw(key) else {
            return Ok(None);
        };
        let mut item =
            Item { doc: self.doc, value: raw.get_ref(), span: raw.span(), key: key.into(), source: None };
        if let DeValue::Table(table) = raw.get_ref() {
            let wrapped = Tab { doc: self.doc, table, span: raw.span(), name: format!("`{key}`") };
            wrapped.only(&["value", "source"])?;
            item.source = wrapped.text("source")?;
            let inner = wrapped.raw("value").ok_or_else(|| wrapped.missing("value", "the number itself"))?;
            (item.value, item.span) = (inner.get_ref(), inner.span());
        }
        Ok(Some(item))
    }

    fn need(&self, key: &str, example: &str) -> Result<Item<'d>, Error> {
        self.item(key)?.ok_or_else(|| self.missing(key, example))
    }

    fn missing(&self, key: &str, example: &str) -> Error {
        self.doc.error(self.span.clone(), format!("{} lacks `{key}`: expected {example}", self.name))
    }

    /// A text that will be printed on terminals and in reports: bounded, without control
    /// characters.
    fn text(&self, key: &str) -> Result<Option<String>, Error> {
        let Some(raw) = self.raw(key) else {
            return Ok(None);
        };
        let err = |problem: String| Err(self.doc.error(raw.span(), format!("`{key}`: {problem}")));
        match raw.get_ref() {
            DeValue::String(s) if s.len() > MAX_TEXT => {
                err(format!("{} bytes of text, at most {MAX_TEXT}", s.len()))
            }
            DeValue::String(s) if s.chars().any(char::is_control) => {
                err("expected one line of text without control characters".into())
            }
            DeValue::String(s) => Ok(Some(s.to_string())),
            other => err(format!("expected text in quotes, found {}", found(other))),
        }
    }

    fn tables(&self, key: &str, most: usize) -> Result<Vec<Tab<'d>>, Error> {
        let Some(raw) = self.raw(key) else {
            return Ok(Vec::new());
        };
        let expected = |span, what: &DeValue<'_>| {
            let problem = format!("`{key}`: expected tables headed [[{key}]], found {}", found(what));
            self.doc.error(span, problem)
        };
        let DeValue::Array(array) = raw.get_ref() else {
            return Err(expected(raw.span(), raw.get_ref()));
        };
        if array.len() > most {
            return Err(self.doc.error(raw.span(), format!("{} [[{key}]], at most {most}", array.len())));
        }
        let table = |v: &'d Spanned<DeValue<'d>>| match v.get_ref() {
            DeValue::Table(table) => {
                Ok(Tab { doc: self.doc, table, span: v.span(), name: format!("[[{key}]]") })
            }
            other => Err(expected(v.span(), other)),
        };
        array.iter().map(table).collect()
    }

    fn table(&self, key: &str) -> Result<Option<Tab<'d>>, Error> {
        let Some(raw) = self.raw(key) else {
            return Ok(None);
        };
        match raw.get_ref() {
            DeValue::Table(table) => {
                Ok(Some(Tab { doc: self.doc, table, span: raw.span(), name: format!("[{key}]") }))
            }
            other => Err(self
                .doc
                .error(raw.span(), format!("`{key}`: expected a table [{key}], found {}", found(other)))),
        }
    }
}

impl<'d> Item<'d> {
    fn error(&self, problem: &str) -> Error {
        self.doc.error(self.span.clone(), format!("`{}`: {problem}", self.key))
    }

    fn quantity<T>(&self, parse: fn(&str) -> Result<T, String>) -> Result<T, Error> {
        let text = scalar(self.value).ok_or_else(|| {
            let why = parse("").err().unwrap_or_default();
            self.error(&format!("{}, found {}", why.trim_start_matches(|c| c != 'e'), found(self.value)))
        })?;
        parse(&text).map_err(|why| self.error(&why))
    }

    fn count(&self, most: u64) -> Result<u64, Error> {
        let number = match self.value {
            DeValue::Integer(i) => u64::from_str_radix(i.as_str(), i.radix()).ok(),
            _ => None,
        };
        number.filter(|n| *n <= most).ok_or_else(|| {
            self.error(&format!("expected a whole number from 0 to {most}, found {}", found(self.value)))
        })
    }

    fn positive(&self, most: u64) -> Result<u64, Error> {
        match self.count(most)? {
            0 => Err(self.error(&format!("expected a whole number from 1 to {most}, found 0"))),
            n => Ok(n),
        }
    }

    fn flag(&self) -> Result<bool, Error> {
        match self.value {
            DeValue::Boolean(b) => Ok(*b),
            other => Err(self.error(&format!("expected true or false, found {}", found(other)))),
        }
    }

    fn list(&self, most: usize, what: &str) -> Result<Vec<Item<'d>>, Error> {
        let DeValue::Array(array) = self.value else {
            return Err(self.error(&format!("expected a list of {what}, found {}", found(self.value))));
        };
        if array.len() > most {
            return Err(self.error(&format!("{} {what}, at most {most}", array.len())));
        }
        let item = |v: &'d Spanned<DeValue<'d>>| Item {
            doc: self.doc,
            value: v.get_ref(),
            span: v.span(),
            key: self.key.clone(),
            source: None,
        };
        Ok(array.iter().map(item).collect())
    }

    fn counts(&self, most: usize, each: u64) -> Result<Vec<u64>, Error> {
        self.list(most, "whole numbers")?.iter().map(|i| i.count(each)).collect()
    }

    /// A square matrix of `n` rows.
    fn matrix<T: Copy>(&self, n: usize, parse: fn(&str) -> Result<T, String>) -> Result<Matrix<T>, Error> {
        let wrong = |found: usize, what: &str, at: &Item<'_>| {
            at.error(&format!("{found} {what} for {n} nodes: expected one row a node and one column a node"))
        };
        let rows = self.list(MAX_NODES, "rows")?;
        if rows.len() != n {
            return Err(wrong(rows.len(), "rows", self));
        }
        let mut cells = Vec::with_capacity(n * n);
        for row in &rows {
            let columns = row.list(MAX_NODES, "columns")?;
            if columns.len() != n {
                return Err(wrong(columns.len(), "columns", row));
            }
            for cell in &columns {
                cells.push(cell.quantity(parse)?);
            }
        }
        Ok(Matrix::from_fn(n, |r, c| cells[r * n + c]))
    }
}

/// A number or string as text for `quantity`; `None` for anything else.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(s) => Some(s.to_string()),
        DeValue::Integer(i) if i.radix() == 10 => Some(i.as_str().into()),
        DeValue::Integer(i) => u64::from_str_radix(i.as_str(), i.radix()).ok().map(|n| n.to_string()),
        DeValue::Float(f) => Some(f.as_str().into()),
        _ => None,
    }
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("the text {:?}", shorten(s)),
        DeValue::Integer(i) => format!("the number {}", shorten(i.as_str())),
        DeValue::Float(f) => format!("the number {}", shorten(f.as_str())),
        DeValue::Boolean(b) => format!("{b}"),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

struct Reader {
    sources: BTreeMap<String, String>,
}

impl Reader {
    fn machine(mut self, top: &Tab<'_>, origin: MachineOrigin) -> Result<Machine, Error> {
        top.only(TOP_KEYS)?;
        if let Some(format) = top.item("format")? {
            let version = format.count(u64::MAX)?;
            if version != FORMAT {
                let why =
                    format!("version {version}; this homenode reads version {FORMAT}: use a newer homenode");
                return Err(format.error(&why));
            }
        }
        let name = top.text("name")?.ok_or_else(|| top.missing("name", "a short text in quotes"))?;
        let about = top.text("about")?.unwrap_or_default();
        let (nodes, per_node) = self.nodes(top)?;
        let cpus = cpu_nodes(top, &per_node)?;
        let n = nodes.len();
        let topology = Topology {
            name,
            latency: self.latency(top, n)?,
            link: self.link(top, n)?,
            caches: self.caches(top)?,
            page_sizes: self.page_sizes(top)?,
            core: self.core(top)?,
            migration: self.migration(top)?,
            remote_cacheable: match top.item("remote_cacheable")? {
                Some(item) => {
                    self.keep("remote_cacheable", &item);
                    item.flag()?
                }
                None => true,
            },
            counts_references: match top.item("counts_references")? {
                Some(item) => {
                    self.keep("counts_references", &item);
                    item.flag()?
                }
                None => false,
            },
            nodes,
            cpus,
        };
        let os = os(top, topology.cpus.len(), n)?;
        let fitted = self.fitted(top)?;
        let (bus, window) = (self.bus(top)?, self.window(top)?);
        let sources = self.sources;
        let mut machine = Machine { topology, about, sources, fitted, bus, window, os, origin };
        if let Some(default) = top.text("source")? {
            machine.default_source(&default);
        }
        Ok(machine)
    }

    fn keep(&mut self, path: &str, item: &Item<'_>) {
        if let Some(source) = &item.source {
            self.sources.insert(path.into(), source.clone());
        }
    }

    /// A value that may be absent; then it is `default`, and its source with it.
    fn value<T>(
        &mut self,
        tab: &Tab<'_>,
        (path, key): (&str, &str),
        parse: fn(&str) -> Result<T, String>,
        default: T,
    ) -> Result<T, Error> {
        match tab.item(key)? {
            Some(item) => {
                self.keep(&format!("{path}.{key}"), &item);
                item.quantity(parse)
            }
            None => Ok(default),
        }
    }

    fn nodes(&mut self, top: &Tab<'_>) -> Result<(Vec<Node>, Vec<usize>), Error> {
        let (mut nodes, mut per_node) = (Vec::new(), Vec::new());
        let mut total = 0u64;
        for tab in top.tables("nodes", MAX_NODES)? {
            tab.only(&crate::values::NODE_KEYS)?;
            let items = [
                tab.item("count")?,
                Some(tab.need("cpus", "the number of CPUs of a node, 0 for memory only")?),
                Some(tab.need("memory", "a size such as \"64 GiB\", 0 for CPUs only")?),
                tab.item("bandwidth")?,
                tab.item("port")?,
            ];
            let [count, cpus, memory, bandwidth, port] = &items;
            let room = (MAX_NODES - nodes.len()) as u64;
            let count = count.as_ref().map_or(Ok(1), |c| c.positive(room))?;
            if count > room {
                return Err(top.doc.error(tab.span.clone(), format!("more than {MAX_NODES} nodes")));
            }
            let cpus_each = cpus.as_ref().map_or(Ok(0), |c| c.count(MAX_CPUS as u64))?;
            total += cpus_each * count;
            if total > MAX_CPUS as u64 {
                return Err(top.doc.error(tab.span.clone(), format!("more than {MAX_CPUS} CPUs")));
            }
            let rate =
                |i: &Option<Item<'_>>| i.as_ref().map_or(Ok(MbPerS(0)), |i| i.quantity(quantity::bandwidth));
            let node = Node {
                memory: memory.as_ref().map_or(Ok(Bytes(0)), |m| m.quantity(quantity::bytes))?,
                bandwidth: rate(bandwidth)?,
                port: rate(port)?,
            };
            for _ in 0..count {
                for (key, item) in crate::values::NODE_KEYS.iter().zip(&items) {
                    if let Some(item) = item {
                        self.keep(&format!("nodes.{}.{key}", nodes.len()), item);
                    }
                }
                nodes.push(node.clone());
                per_node.push(cpus_each as usize);
            }
        }
        if nodes.is_empty() {
            return Err(top.missing("[[nodes]]", "at least one, with `cpus` and `memory`"));
        }
        Ok((nodes, per_node))
    }

    fn latency(&mut self, top: &Tab<'_>, n: usize) -> Result<Matrix<Ns>, Error> {
        let example = "a matrix `latency = [[90, 140], [140, 90]]` or a table [latency] with `levels`";
        let Some(tab) = top.raw("latency") else {
            return Err(top.missing("latency", example));
        };
        if !matches!(tab.get_ref(), DeValue::Table(_)) {
            return top.need("latency", example)?.matrix(n, quantity::ns);
        }
        let Some(tab) = top.table("latency")? else {
            return Err(top.missing("latency", example));
        };
        tab.only(&["value", "levels", "shape", "groups", "per_router", "source"])?;
        if let Some(source) = tab.text("source")? {
            self.sources.insert("latency".into(), source);
        }
        match (tab.item("value")?, tab.item("levels")?) {
            (Some(matrix), None) => matrix.matrix(n, quantity::ns),
            (None, Some(levels)) => levelled(&tab, &levels, n),
            _ => Err(top.doc.error(tab.span, "[latency] needs either `value` (a matrix) or `levels`".into())),
        }
    }

    /// One bandwidth for all pairs, or a matrix.
    fn link(&mut self, top: &Tab<'_>, n: usize) -> Result<Matrix<MbPerS>, Error> {
        let Some(item) = top.item("link")? else {
            return Ok(Matrix::from_fn(n, |_, _| MbPerS(0)));
        };
        self.keep("link", &item);
        if let DeValue::Array(_) = item.value {
            return item.matrix(n, quantity::bandwidth);
        }
        let all = item.quantity(quantity::bandwidth)?;
        Ok(Matrix::from_fn(n, |a, b| if a == b { MbPerS(0) } else { all }))
    }

    fn page_sizes(&mut self, top: &Tab<'_>) -> Result<Vec<Bytes>, Error> {
        let Some(item) = top.item("page_sizes")? else {
            return Ok(vec![Bytes::kib(4)]);
        };
        self.keep("page_sizes", &item);
        let sizes: Vec<Bytes> = item
            .list(MAX_PAGE_SIZES, "page sizes")?
            .iter()
            .map(|i| i.quantity(quantity::bytes))
            .collect::<Result<_, _>>()?;
        if !sizes.is_sorted_by(|a, b| a < b) {
            return Err(item.error("expected page sizes from the smallest to the largest, each once"));
        }
        Ok(sizes)
    }

    fn caches(&mut self, top: &Tab<'_>) -> Result<Vec<Cache>, Error> {
        let mut out: Vec<Cache> = Vec::new();
        for (i, tab) in top.tables("caches", MAX_CACHES)?.iter().enumerate() {
            tab.only(&["level", "size", "line", "ways", "shared_by", "writes", "hit"])?;
            let path = format!("caches.{i}");
            let level = tab.need("level", "1, 2, 3 …")?.positive(9)? as u8;
            if out.last().is_some_and(|before| before.level >= level) {
                return Err(top.doc.error(tab.span.clone(), "[[caches]]: expected ascending levels".into()));
            }
            let size = tab.need("size", "a size such as \"8 MiB\"")?;
            self.keep(&format!("{path}.size"), &size);
            let ways = tab.need("ways", "the number of ways, 1 for direct-mapped")?;
            self.keep(&format!("{path}.ways"), &ways);
            out.push(Cache {
                level,
                size: size.quantity(quantity::bytes)?,
                line: self.value(tab, (&path, "line"), quantity::bytes, Bytes(64))?,
                ways: ways.positive(u64::from(u32::MAX))? as u32,
                scope: match tab.item("shared_by")? {
                    Some(item) => {
                        self.keep(&format!("{path}.shared_by"), &item);
                        scope(&item)?
                    }
                    None => CacheScope::Cpu,
                },
                writes: match tab.text("writes")?.as_deref() {
                    None | Some("back") => Writes::Back,
                    Some(other) => {
                        let why = format!(
                            "`writes`: expected \"back\", the only policy that is modelled, found {other:?}"
                        );
                        return Err(top.doc.error(tab.span.clone(), why));
                    }
                },
                hit: self.value(tab, (&path, "hit"), quantity::ns, Ns(0))?,
            });
        }
        Ok(out)
    }

    fn core(&mut self, top: &Tab<'_>) -> Result<Core, Error> {
        let tab = top
            .table("core")?
            .ok_or_else(|| top.missing("[core]", "a table with `access` and `outstanding`"))?;
        tab.only(&["access", "outstanding", "window"])?;
        let access = tab.need("access", "a time such as \"0.5 ns\"")?;
        let outstanding = tab.need("outstanding", "how many misses a CPU overlaps, 1 for none")?;
        self.keep("core.access", &access);
        self.keep("core.outstanding", &outstanding);
        let access: Ps = access.quantity(quantity::ps)?;
        Ok(Core { access, outstanding: outstanding.positive(u64::from(u32::MAX))? as u32 })
    }

    fn bus(&mut self, top: &Tab<'_>) -> Result<Option<Bus>, Error> {
        let Some(tab) = top.table("bus")? else { return Ok(None) };
        tab.only(&["bandwidth", "cpus"])?;
        let bandwidth = tab.need("bandwidth", "what passes in both directions, such as \"1.6 GB/s\"")?;
        let cpus = tab.need("cpus", "the number of CPUs that share a bus")?;
        self.keep("bus.bandwidth", &bandwidth);
        self.keep("bus.cpus", &cpus);
        let cpus = cpus.positive(MAX_CPUS as u64)? as u32;
        match bandwidth.quantity(quantity::bandwidth)? {
            MbPerS(0) => {
                Err(bandwidth.error("expected a bandwidth above 0; leave [bus] out if there is no limit"))
            }
            bandwidth => Ok(Some(Bus { bandwidth, cpus })),
        }
    }

    /// Instructions in flight, of the table `core`.
    fn window(&mut self, top: &Tab<'_>) -> Result<Option<u32>, Error> {
        let Some(tab) = top.table("core")? else { return Ok(None) };
        let Some(item) = tab.item("window")? else { return Ok(None) };
        self.keep("core.window", &item);
        Ok(Some(item.positive(u64::from(u32::MAX))? as u32))
    }

    fn fitted(&mut self, top: &Tab<'_>) -> Result<Vec<Fitted>, Error> {
        let mut all: Vec<Fitted> = Vec::new();
        for tab in top.tables("fitted", MAX_FITTED)? {
            tab.only(&["program", "coverage", "access"])?;
            let program = tab.text("program")?.ok_or_else(|| tab.missing("program", "a kernel's name"))?;
            let item = tab.need("coverage", "a percentage from 0 to 100")?;
            if all.iter().any(|f| f.program == program) {
                return Err(item.error(&format!("{program} is fitted twice")));
            }
            self.keep(&format!("fitted.{program}.coverage"), &item);
            let access = tab.item("access")?;
            if let Some(access) = &access {
                self.keep(&format!("fitted.{program}.access"), access);
            }
            let access = access.map(|a| a.quantity(quantity::ps)).transpose()?;
            all.push(Fitted { program, coverage: item.count(100)? as u8, access });
        }
        Ok(all)
    }

    fn migration(&mut self, top: &Tab<'_>) -> Result<MigrationCost, Error> {
        let example = "a table with `fixed` and `per_kib`, what moving a page costs";
        let tab = top.table("migration")?.ok_or_else(|| top.missing("[migration]", example))?;
        tab.only(&["fixed", "per_kib", "shootdown", "serialised", "stops"])?;
        for key in ["fixed", "per_kib"] {
            tab.need(key, "a time such as \"2 us\"")?;
        }
        Ok(MigrationCost {
            fixed: self.value(&tab, ("migration", "fixed"), quantity::ns, Ns(0))?,
            per_kib: self.value(&tab, ("migration", "per_kib"), quantity::ns, Ns(0))?,
            shootdown: self.value(&tab, ("migration", "shootdown"), quantity::ns, Ns(0))?,
            serialised: self.migration_flag(&tab, "serialised")?,
            stops: self.migration_flag(&tab, "stops")?,
        })
    }

    /// A switch that is off unless it is there.
    fn migration_flag(&mut self, tab: &Tab<'_>, key: &'static str) -> Result<bool, Error> {
        let Some(item) = tab.item(key)? else { return Ok(false) };
        self.keep(&format!("migration.{key}"), &item);
        item.flag()
    }
}

fn scope(item: &Item<'_>) -> Result<CacheScope, Error> {
    match item.value {
        DeValue::String(s) if s == "cpu" => Ok(CacheScope::Cpu),
        DeValue::String(s) if s == "node" => Ok(CacheScope::Node),
        DeValue::Integer(_) => Ok(CacheScope::Group(item.positive(MAX_CPUS as u64)? as u32)),
        other => Err(item.error(&format!(
            "expected \"cpu\", \"node\" or how many consecutive CPUs share it, found {}",
            found(other)
        ))),
    }
}

/// The node of each CPU: `per_node` blocks, or as `cpu_nodes` says where CPUs are numbered
/// otherwise.
fn cpu_nodes(top: &Tab<'_>, per_node: &[usize]) -> Result<Vec<NodeId>, Error> {
    let Some(item) = top.item("cpu_nodes")? else {
        return Ok(per_node
            .iter()
            .enumerate()
            .flat_map(|(n, c)| std::iter::repeat_n(NodeId(n as u16), *c))
            .collect());
    };
    let cpus: Vec<NodeId> =
        item.counts(MAX_CPUS, per_node.len() as u64 - 1)?.into_iter().map(|n| NodeId(n as u16)).collect();
    let mut counted = vec![0; per_node.len()];
    cpus.iter().for_each(|n| counted[n.index()] += 1);
    match counted.iter().zip(per_node).position(|(a, b)| a != b) {
        None => Ok(cpus),
        Some(n) => Err(item.error(&format!(
            "{} CPUs on node {n}, whose [[nodes]] says `cpus = {}`: expected the same",
            counted[n], per_node[n]
        ))),
    }
}

fn os(top: &Tab<'_>, cpus: usize, nodes: usize) -> Result<Option<OsNumbers>, Error> {
    let Some(tab) = top.table("os")? else {
        return Ok(None);
    };
    tab.only(&["cpus", "nodes"])?;
    let numbers = |key: &str, n: usize, most: usize| -> Result<Vec<u32>, Error> {
        let item = tab.need(key, "a list of the kernel's numbers")?;
        let list = item.counts(most, u64::from(u32::MAX))?;
        if list.len() != n {
            return Err(
                item.error(&format!("{} numbers, expected {n}, one for each of the machine", list.len()))
            );
        }
        Ok(list.into_iter().map(|n| n as u32).collect())
    };
    Ok(Some(OsNumbers { cpus: numbers("cpus", cpus, MAX_CPUS)?, nodes: numbers("nodes", nodes, MAX_NODES)? }))
}

/// A latency matrix from a list of levels and the shape of the interconnect:
///
/// - `flat` (default): own node, any other node;
/// - `groups`: own node, own group of `groups[0]` consecutive nodes, own group of `groups[1]`, …,
///   the rest;
/// - `hypercube`: own node, own router (`per_router` consecutive nodes), one hop, two hops, ….
fn levelled(tab: &Tab<'_>, levels: &Item<'_>, n: usize) -> Result<Matrix<Ns>, Error> {
    let times: Vec<Ns> =
        levels.list(64, "levels")?.iter().map(|i| i.quantity(quantity::ns)).collect::<Result<_, _>>()?;
    let shape = tab.text("shape")?.unwrap_or_else(|| "flat".into());
    let (mut per_router, mut groups) = (1, Vec::new());
    match (shape.as_str(), tab.item("per_router")?, tab.item("groups")?) {
        ("flat", None, None) => {}
        ("hypercube", given, None) => {
            per_router = given.map_or(Ok(1), |i| i.positive(MAX_NODES as u64))? as usize
        }
        ("groups", None, Some(item)) => {
            groups = item.counts(16, MAX_NODES as u64)?;
            if groups.contains(&0) || groups.windows(2).any(|w| w[0] >= w[1] || w[1] % w[0] != 0) {
                return Err(
                    item.error("expected ascending sizes in nodes, each a multiple of the one before")
                );
            }
        }
        _ => {
            let why = "expected `shape` \"flat\" alone, \"groups\" with `groups = [nodes a group, …]`, or \"hypercube\" with \
                       `per_router`";
            return Err(tab.doc.error(tab.span.clone(), format!("[latency]: {why}")));
        }
    }
    let level = |a: usize, b: usize| match shape.as_str() {
        _ if a == b => 0,
        "hypercube" => 1 + ((a / per_router) ^ (b / per_router)).count_ones() as usize,
        "groups" => {
            1 + groups.iter().position(|g| a / *g as usize == b / *g as usize).unwrap_or(groups.len())
        }
        _ => 1,
    };
    let needed =
        1 + (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).map(|(a, b)| level(a, b)).max().unwrap_or(0);
    // One more is allowed where a group is never left, so that one node more does not change the
    // list's meaning.
    if times.len() < needed {
        return Err(levels.error(&format!(
            "{} levels, but {n} nodes in the shape {shape:?} need {needed}: own node first, farthest last",
            times.len()
        )));
    }
    Ok(Matrix::from_fn(n, |a, b| times[level(a, b)]))
}

impl Machine {
    /// Gives every number that has no source this one.
    pub(crate) fn default_source(&mut self, source: &str) {
        let paths: Vec<String> = self.values().into_iter().map(|v| v.path).collect();
        for path in paths {
            // Node groups were merged for printing: give each node of the group its own.
            let mut parts = path.split('.');
            let (head, span, key) = (parts.next(), parts.next(), parts.next());
            if let (Some("nodes"), Some(span), Some(key)) = (head, span, key) {
                let (first, last) = span.split_once('-').unwrap_or((span, span));
                if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
                    for node in first..=last {
                        self.sources.entry(format!("nodes.{node}.{key}")).or_insert_with(|| source.into());
                    }
                }
            } else {
                self.sources.entry(path).or_insert_with(|| source.into());
            }
        }
    }
}
