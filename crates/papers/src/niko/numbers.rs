//! What Nikolopoulos, Ayguadé and Polychronopoulos print, and which kernel stands for each of their
//! programs. Their figures are drawn; the numbers are those of the text of section 4.

/// A program of the paper.
pub(super) struct Program {
    /// As the paper calls it.
    pub name: &'static str,
    /// The kernel that stands for it.
    pub kernel: &'static str,
    /// The paper's class.
    pub class: &'static str,
    /// The class unless another is asked for.
    pub usual: &'static str,
    /// Iterations that the paper runs.
    pub iterations: u32,
    /// Iterations that are simulated; the rest is the last, repeated.
    pub simulated: u32,
    /// Classes with less data, and how much less, as a power of two.
    pub smaller: &'static [(&'static str, u64)],
    /// Planes of the grid that threads share out, by class: no more threads than that work.
    pub planes: &'static [(&'static str, u32)],
    /// Fig. 3: overhead of the engine at 128 processors in percent of the run, where the text says
    /// it.
    pub overhead: Option<f64>,
    /// Section 4.1.2: the same with twice as many iterations.
    pub overhead_doubled: Option<f64>,
    /// Why a conclusion does not hold on 128 processors, with its numbers.
    pub why: &'static str,
}

impl Program {
    /// Whether a user who types `name` means it.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.kernel.eq_ignore_ascii_case(name)
    }
    /// What a reader of the class should know.
    pub fn note(&self, class: &str) -> Option<String> {
        let (_, planes) = self.planes.iter().find(|(c, _)| *c == class)?;
        Some(format!("{planes} planes are shared out, so no more threads than that work"))
    }
}

/// The programs in the order of Fig. 1.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "BT",
        kernel: "nas-bt",
        class: "A",
        usual: "W",
        iterations: 200,
        simulated: 4,
        smaller: &[("W", 16), ("S", 128)],
        planes: &[("A", 62), ("W", 22), ("S", 10)],
        overhead: None,
        overhead_doubled: None,
        why: "BT: with class A the program shares out 62 planes (22 with class W), so 62 of 128 threads work, on 31 of 64 nodes. Manual distribution uses the memory of these nodes alone, and round robin that of all nodes, which makes up for its longer ways",
    },
    Program {
        name: "SP",
        kernel: "nas-sp",
        class: "A",
        usual: "W",
        iterations: 400,
        simulated: 4,
        smaller: &[("W", 4), ("S", 128)],
        planes: &[("A", 62), ("W", 34), ("S", 10)],
        overhead: None,
        overhead_doubled: None,
        why: "SP: with class A the program shares out 62 planes (34 with class W), so 62 of 128 threads work, on 31 of 64 nodes. Manual distribution uses the memory of these nodes alone, and round robin that of all nodes, which makes up for its longer ways",
    },
    Program {
        name: "CG",
        kernel: "nas-cg",
        class: "A",
        usual: "W",
        iterations: 15,
        simulated: 4,
        smaller: &[("W", 4), ("S", 16)],
        planes: &[],
        overhead: None,
        overhead_doubled: None,
        why: "CG: all threads read one vector, and the nodes of its pages are the limit wherever its pages live. A line that another CPU changed comes from its home here, never from that CPU's cache",
    },
    Program {
        name: "FT",
        kernel: "nas-ft",
        class: "A",
        usual: "W",
        iterations: 6,
        simulated: 6,
        smaller: &[("W", 16), ("S", 32)],
        planes: &[],
        overhead: Some(20.0),
        overhead_doubled: Some(7.0),
        why: "FT: a plane has 64 pages with class W and with class A, as many as the machine has nodes. So round robin puts the same part of all planes on one node, and all threads meet there when they go through the planes. On a machine of 63 nodes round robin takes 18 % of the time (class W)",
    },
    Program {
        name: "MG",
        kernel: "nas-mg",
        class: "A",
        usual: "W",
        iterations: 4,
        simulated: 4,
        smaller: &[("W", 8), ("S", 256)],
        planes: &[],
        overhead: Some(39.0),
        overhead_doubled: Some(23.0),
        why: "MG: with class W each of 128 threads has one plane, and both its neighbours are remote. Offline and online look at latency alone, and not at how busy a node is",
    },
];

/// Section 4.1: what manual distribution takes off the automatic version's time, in percent, in the
/// mean over the five programs.
pub(super) const GAIN: [(u32, f64); 2] = [(16, 5.4), (128, 25.0)];
/// The programs whose gain at 128 processors "exceeds 30 %".
pub(super) const GAIN_LARGE: (&[&str], f64) = (&["MG", "CG", "FT"], 30.0);
/// Section 4.1: remote share of BT's accesses at 128 processors in percent: automatic, manual.
pub(super) const BT_REMOTE: (f64, f64) = (55.0, 25.0);
/// Section 4.1.2: by how much the online engine lowers MG's remote accesses, in percent.
pub(super) const MG_FEWER_REMOTE: f64 = 36.0;
/// Section 4.1.2: pages that it moves in MG ("almost 1400").
pub(super) const MG_MOVES: f64 = 1400.0;
