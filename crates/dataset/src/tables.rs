//! The tables. `docs/dataset.md` is made from this file.
//!
//! Ids join the tables: `object`, `region`, `interval`, `thread`, `node`. The stable name of an
//! object, which is the same in every kind of recording and every run of the program, is
//! [`Object::id`].

use homenode_model::{AccessKind, Bytes, NodeId, Ns, ObjectId, Ps, ThreadId};

use crate::basis::SeenCount;
use crate::column::Chunk;
use crate::fields::Fields;
use crate::schema::{ColumnInfo, RowContradiction, TableRow, table, words};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl crate::schema::Single for $name {
            const PART: crate::schema::ColumnPart = crate::schema::ColumnPart::only(crate::column::ColumnKind::Int, "");
            fn put_one(&self, to: &mut crate::column::ColumnData) {
                to.push_int(u64::from(self.0));
            }
            fn take_one(from: &crate::column::ColumnData, row: usize) -> Option<Self> {
                from.int(row).and_then(|n| u32::try_from(n).ok()).map(Self)
            }
        }
    };
}

number!(
    /// A region of the source, by its row in `regions`.
    RegionNo
);
number!(
    /// An interval of the recording, by its row in `intervals`.
    IntervalNo
);

words! {
    /// What an object is.
    pub enum ObjectKind {
        /// A variable of the program's file or of a library.
        Static = "static",
        /// An allocation.
        Allocated = "allocated",
        /// A thread's stack.
        Stack = "stack",
        /// Memory without a known object: the small heap, unknown mappings.
        Other = "other",
    }
}

words! {
    /// How a region was recognised.
    pub enum RegionKind {
        /// A parallel region of OpenMP.
        Parallel = "parallel",
        /// The code between two barriers of a parallel region.
        Barrier = "barrier",
        /// A part of a program without parallel regions.
        Phase = "phase",
    }
}

words! {
    /// How an iteration was recognised.
    pub enum IterationSource {
        /// The program called `hn_iteration`.
        Told = "told",
        /// homenode found the rounds in the sequence of regions.
        Found = "found",
    }
}

words! {
    /// Why a page moved.
    pub enum MigrationCause {
        /// The page was armed and followed its next toucher.
        NextTouch = "next touch",
        /// A policy decided so.
        Policy = "policy",
        /// A plan of an earlier run said so.
        Plan = "plan",
        /// The guard took back a move that did not pay.
        Undo = "undo",
        /// Linux moved the page.
        Kernel = "kernel",
        /// The program asked for it.
        Program = "program",
    }
}

words! {
    /// What came of a move.
    pub enum MigrationOutcome {
        /// The page is on the new node.
        Moved = "moved",
        /// The page went back to a node where it had been before.
        PingPong = "ping-pong",
        /// Somebody refused: pinned, busy, no memory.
        Refused = "refused",
    }
}

words! {
    /// What the guard had done with a page that it sampled.
    pub enum GuardGroup {
        /// The page had moved.
        Moved = "moved",
        /// The page was held back for comparison.
        HeldBack = "held back",
    }
}

table! {
    /// A node of the machine.
    "nodes" Node {
        /// Number of the node.
        node: NodeId,
        /// Memory of the node. Null where it is not known.
        memory_bytes: Option<Bytes>,
        /// CPUs of the node.
        cpus: u32,
    }
}

table! {
    /// What lies between two nodes. A node and itself have a row, too.
    "links" Link {
        /// The accessing node.
        from_node: NodeId,
        /// The node whose memory is accessed.
        to_node: NodeId,
        /// The kernel's distance: 10 is local.
        distance: Option<u32>,
        /// Latency of an access, modelled or measured.
        latency_ps: Option<Ps> = "ps",
        /// Bandwidth of the link. Null where it is unlimited or not known.
        bandwidth_mb_per_s: Option<u64> = "MB/s",
    }
}

table! {
    /// A stay of a thread on a CPU. A thread that changes its CPU has several rows.
    "threads" ThreadStay {
        /// Number of the thread, in the order of first appearance.
        thread: ThreadId,
        /// Number of the process.
        process: u32,
        /// Number of the CPU. Null where it is not known.
        cpu: Option<u32>,
        /// Node of the CPU. Null where it is not known.
        node: Option<NodeId>,
        /// When the stay began.
        from_ns: Ns,
        /// When it ended, as far as it was observed.
        to_ns: Ns,
        /// Whether the thread was bound to a part of the machine.
        bound: Option<bool>,
    }
}

table! {
    /// A variable, or the allocations that one place of the source makes.
    "objects" Object {
        /// Number of the object in this recording.
        object: ObjectId,
        /// Name that is the same in every kind of recording and every run of the program: the
        /// variable, or the place of the allocation and the number of the allocation there.
        id: String,
        /// Number of the process.
        process: u32,
        /// What people call it: the variable where debug information names it, else the place.
        name: String,
        /// What it is.
        kind: ObjectKind,
        /// Type of an element as the source writes it.
        element_type: Option<String>,
        /// Size of an element.
        element_bytes: Option<u64> = "bytes",
        /// Extents, slowest first as in C. Empty where they are not known.
        dimensions: Vec<u64> = "elements",
        /// Source file of the allocation or declaration.
        file: Option<String>,
        /// Line in that file.
        line: Option<u32>,
        /// Function with the allocation.
        function: Option<String>,
        /// Call stack of the allocation, innermost first.
        stack: Vec<String>,
        /// Size; the largest where it was allocated several times.
        bytes: Bytes,
        /// First byte: an address of the process, or of the simulator's canonical space.
        address: u64,
        /// How often it was allocated.
        allocations: u64,
        /// When it was first allocated. Null where it is not known.
        birth_ns: Option<Ns>,
        /// When it was last freed. Null where it lived at the end or it is not known.
        death_ns: Option<Ns>,
        /// Fields of an element.
        fields: Fields,
    }
}

table! {
    /// The first touch of a run of pages.
    "first_touches" FirstTouch {
        /// The object.
        object: ObjectId,
        /// First page of the run, counted from the object's first byte.
        page: u64,
        /// Pages of the run.
        pages: u64,
        /// The thread that touched them first. Null where it is not known.
        thread: Option<ThreadId>,
        /// The node that it ran on.
        node: NodeId,
        /// When. Null where it is not known.
        time_ns: Option<Ns>,
        /// Source file of the code that did it.
        file: Option<String>,
        /// Line in that file.
        line: Option<u32>,
        /// Function of that code.
        function: Option<String>,
    }
}

table! {
    /// A region of the source.
    "regions" Region {
        /// Number of the region in this recording.
        region: RegionNo,
        /// How it was recognised.
        kind: RegionKind,
        /// Function that contains it.
        function: Option<String>,
        /// Source file.
        file: Option<String>,
        /// Line in that file.
        line: Option<u32>,
        /// Place that started it, where that is another one.
        caller: Option<String>,
        /// Build id of the file with its code.
        build_id: Option<String>,
        /// How often it ran.
        runs: u64,
        /// Time from begin to end, all runs together.
        time_ns: Ns,
    }
}

table! {
    /// A stretch of time. Accesses and homes are told by interval.
    "intervals" Interval {
        /// Number of the interval, from 0.
        interval: IntervalNo,
        /// When it began.
        begin_ns: Ns,
        /// When it ended.
        end_ns: Ns,
        /// Number of the iteration that it lies in. Null outside of iterations.
        iteration: Option<u32>,
        /// Whether results count it: initialisation and the program's end are left out.
        timed: bool,
    }
}

table! {
    /// The runs of a region within an interval.
    "region_times" RegionTime {
        /// The interval.
        interval: IntervalNo,
        /// The region.
        region: RegionNo,
        /// How often it ended in the interval.
        runs: u64,
        /// Time from begin to end, these runs together.
        time_ns: Ns,
    }
}

table! {
    /// A round of the outer loop.
    "iterations" Iteration {
        /// Number of the process.
        process: u32,
        /// Number of the round, from 0.
        iteration: u32,
        /// When it began.
        begin_ns: Ns,
        /// When it ended.
        end_ns: Ns,
        /// How it was recognised.
        source: IterationSource,
    }
}

table! {
    /// What one node did to a block of an object in an interval.
    "accesses" Access {
        /// The interval.
        interval: IntervalNo,
        /// The region. Null outside of regions and where it is not known.
        region: Option<RegionNo>,
        /// The object. Null where nobody knows it.
        object: Option<ObjectId>,
        /// First page of the block, counted from the object's first byte.
        page: u64,
        /// Pages of the block.
        pages: u64,
        /// The accessing node.
        node: NodeId,
        /// The node whose memory was accessed. The access is remote where it differs from `node`.
        home: NodeId,
        /// Load or store. Null where it is not known.
        kind: Option<AccessKind>,
        /// How often.
        tally: SeenCount,
    }
}

table! {
    /// Where a run of pages lived over a run of intervals.
    "residency" Residency {
        /// The object. Null where nobody knows it.
        object: Option<ObjectId>,
        /// First page of the run, counted from the object's first byte.
        page: u64,
        /// Pages of the run.
        pages: u64,
        /// First interval at whose end the pages lived there.
        interval: IntervalNo,
        /// Last interval at whose end they did.
        until: IntervalNo,
        /// The node.
        home: NodeId,
    }
}

table! {
    /// A run of pages that moved together.
    "migrations" Migration {
        /// When the move began.
        time_ns: Ns,
        /// The interval that it lies in.
        interval: IntervalNo,
        /// The object. Null where nobody knows it.
        object: Option<ObjectId>,
        /// First page of the run, counted from the object's first byte.
        page: u64,
        /// Pages of the run.
        pages: u64,
        /// Former home.
        from_node: NodeId,
        /// New home.
        to_node: NodeId,
        /// Why.
        cause: MigrationCause,
        /// The policy, plan or mechanism, as its users spell it.
        policy: Option<String>,
        /// The region in which it happened. Null outside of regions.
        region: Option<RegionNo>,
        /// The thread that moved the pages. Null where it is not known.
        thread: Option<ThreadId>,
        /// What it cost that thread. Null where nobody measured it.
        cost_ns: Option<Ns>,
        /// What came of it.
        outcome: MigrationOutcome,
    }
}

table! {
    /// A sample by which the guard compares moved pages with pages that it holds back.
    "samples" Sample {
        /// When.
        time_ns: Ns,
        /// The object. Null where nobody knows it.
        object: Option<ObjectId>,
        /// The page, counted from the object's first byte.
        page: u64,
        /// What the guard had done with the page.
        group: GuardGroup,
        /// The node that was seen there.
        node: NodeId,
        /// Whether the page lived on another node than the one that was seen.
        remote: bool,
    }
}

table! {
    /// What homenode itself had cost by a moment.
    "own_cost" OwnCost {
        /// The moment.
        time_ns: Ns,
        /// Number of the process.
        process: u32,
        /// CPU time of homenode until then.
        own_ns: Ns,
        /// CPU time of the whole process until then.
        cpu_ns: Ns,
    }
}

/// Says whether a row of a chunk is one of the table.
pub type CheckRow = fn(&Chunk, usize) -> Result<(), RowContradiction>;

/// What a table is, for whoever reads all of them alike.
#[derive(Clone, Copy, Debug)]
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// Its columns.
    pub columns: fn() -> Vec<ColumnInfo>,
    /// Whether a row of a chunk is one of this table.
    pub check: CheckRow,
}

impl TableInfo {
    /// What `T` is.
    pub const fn of<T: TableRow>() -> Self {
        Self {
            name: T::NAME,
            doc: T::DOC.trim_ascii(),
            columns: T::columns,
            check: |chunk, row| T::take(chunk, row).map(drop),
        }
    }

    /// The table of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|t| t.name == name)
    }
}

/// The table `meta` of an export: what [`DatasetMeta`](crate::DatasetMeta) says, as one row. No
/// file of a data set holds it.
pub const META: TableInfo = TableInfo::of::<crate::meta::MetaRow>();

/// All tables, in the order of the documentation.
pub const ALL: &[TableInfo] = &[
    TableInfo::of::<Node>(),
    TableInfo::of::<Link>(),
    TableInfo::of::<ThreadStay>(),
    TableInfo::of::<Object>(),
    TableInfo::of::<FirstTouch>(),
    TableInfo::of::<Region>(),
    TableInfo::of::<Interval>(),
    TableInfo::of::<RegionTime>(),
    TableInfo::of::<Iteration>(),
    TableInfo::of::<Access>(),
    TableInfo::of::<Residency>(),
    TableInfo::of::<Migration>(),
    TableInfo::of::<Sample>(),
    TableInfo::of::<OwnCost>(),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::Basis;

    #[test]
    fn every_column_has_a_name_of_its_own_and_says_what_it_is() {
        for table in ALL.iter().chain([&META]) {
            let columns = (table.columns)();
            for (i, c) in columns.iter().enumerate() {
                assert!(c.doc.ends_with('.'), "{}.{}: {:?}", table.name, c.name, c.doc);
                assert!(columns[..i].iter().all(|d| d.name != c.name), "{}.{} twice", table.name, c.name);
            }
            assert!(table.doc.ends_with('.'), "{}", table.name);
        }
    }

    #[test]
    fn a_row_comes_back_as_it_went_in() {
        let access = |basis, kind| Access {
            interval: IntervalNo(3),
            region: None,
            object: Some(ObjectId(7)),
            page: 16,
            pages: 16,
            node: NodeId(1),
            home: NodeId(0),
            kind,
            tally: SeenCount::new(5, basis),
        };
        let rows = [
            access(Basis::Exact, Some(AccessKind::Write)),
            access(Basis::Presence, None),
            access(Basis::Sampled { one_in: 100 }, Some(AccessKind::Read)),
        ];
        let mut chunk = Access::chunk();
        rows.iter().for_each(|r| r.put(&mut chunk));
        let back: Vec<_> = (0..3).map(|i| Access::take(&chunk, i).unwrap()).collect();
        assert_eq!(back, rows);
        let names: Vec<_> = Access::columns().iter().map(|c| c.name).collect();
        assert_eq!(names[7..], ["kind", "seen", "count", "basis", "one_in"]);
        assert_eq!(chunk.columns[9].int(0), Some(5));
        assert_eq!(chunk.columns[9].int(1), None, "presence has no count to export");
        assert_eq!(chunk.columns[9].int(2), Some(500));
    }
}
