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
    /// Why conclusions do not hold on 128 processors.
    pub why: Reasons,
}

/// Reasons with their numbers, by what the conclusions are about. None where all of them hold.
#[derive(Clone, Copy)]
pub(super) struct Reasons {
    /// Times of versions: Fig. 1 and 4.
    pub times: Option<&'static str>,
    /// Local and remote accesses: Fig. 2 and 5.
    pub accesses: Option<&'static str>,
    /// The engine's own time: Fig. 3.
    pub engine: Option<&'static str>,
}

impl Program {
    /// Whether a user who types `name` means it.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.kernel.eq_ignore_ascii_case(name)
    }
    /// What a reader of the class should know.
    pub fn note(&self, class: &str) -> Option<String> {
        let planes = self.planes_of(class)?;
        Some(format!("{planes} planes are shared out, so no more threads than that work"))
    }
    fn planes_of(&self, class: &str) -> Option<u32> {
        self.planes.iter().find(|(c, _)| *c == class).map(|(_, planes)| *planes)
    }
    /// Threads that have work with the class on `processors` processors.
    pub fn working(&self, class: &str, processors: u32) -> u32 {
        self.planes_of(class).map_or(processors, |planes| planes.min(processors))
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
        why: Reasons {
            times: Some(
                "BT: the model overlaps misses that the program cannot. With class A latencies come to 30 % of the time of the threads at work with automatic and to 21 % with manual; a CPU with four misses under way, dependent or not and however far apart, hides most of the difference. With one miss under way (outstanding = 1 in the machine file) automatic is 11.2 % slower than manual, offline as fast as manual, and online 11.5 % slower. The model lacks the instruction window and dependences that stand between the two, and a TLB. 62 planes are shared out (22 with class W), so 62 of 128 threads work",
            ),
            accesses: Some(
                "BT: round robin over 64 nodes leaves a page local with a chance of 1 in 64, so 98 % of the accesses are remote. The paper's 55 and 25 % are of all memory, with code, stacks and the system's own pages, which the model lacks. Online is seen in the 4 simulated iterations of 200, in which an engine that moves a page every millisecond moves few",
            ),
            engine: None,
        },
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
        why: Reasons {
            times: Some(
                "SP: the model overlaps misses that the program cannot, as in BT. With class A latencies come to 66 % of the time of the threads at work with automatic and to 47 % with manual. With one miss under way (outstanding = 1 in the machine file) automatic is 11.9 % slower than manual, offline 0.1 % and online 11.9 %. 62 planes are shared out (34 with class W), so 62 of 128 threads work, and manual uses the memory of their 31 nodes alone",
            ),
            accesses: None,
            engine: None,
        },
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
        why: Reasons {
            times: Some(
                "CG: all threads read one vector, and the nodes of its pages are the limit wherever its pages live. A line that another CPU changed comes from its home here, never from that CPU's cache",
            ),
            accesses: None,
            engine: None,
        },
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
        why: Reasons {
            times: Some(
                "FT: a plane has 64 pages with class W and with class A, as many as the machine has nodes. So round robin puts the same part of all planes on one node, and all threads meet there when they go through the planes. On a machine of 63 nodes round robin takes 18 % of the time (class W)",
            ),
            accesses: None,
            engine: Some(
                "FT: round robin leaves most pages on wrong nodes, and the engine is at work to the end: it moves 2603 pages in six iterations and 4844 in twelve (class W, 250 us a page). So its share does not fall",
            ),
        },
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
        why: Reasons {
            times: Some(
                "MG: queues take back what manual placement gains. With class W latencies fall from 97 to 59 % of the threads' time, and queues rise from 664 to 971 ns an access: the busiest node serves 1.44 times the mean, with round robin 1.22 times. With one miss under way (outstanding = 1 in the machine file) automatic is 2.9 % slower than manual and offline 0.8 % faster. 72 % of the misses follow another CPU's write, and the model sends all of these lines from their home's memory, never from the cache that has them",
            ),
            accesses: Some(
                "MG: a run of class W takes 52 ms and a move 250 us, so the engine moves 176 pages, and online's accesses stay round robin's: 98 % are remote with both",
            ),
            engine: Some(
                "MG: a run is too short for the engine, which is at work to the end: it moves 176 pages in four iterations and 419 in eight (class W, 250 us a page). So its share does not fall",
            ),
        },
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
