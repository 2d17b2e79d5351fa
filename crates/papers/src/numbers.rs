//! What Löf, Nordén and Holmgren print, and which of the kernels stands for each of their programs.

/// A program of the paper, its numbers in the order of [`SCHEMES`] where they are by scheme.
pub(super) struct Program {
    /// As the paper calls it.
    pub name: &'static str,
    /// The kernel that stands for it.
    pub kernel: &'static str,
    /// The class with the paper's size.
    pub class: &'static str,
    /// Iterations that the paper runs.
    pub iterations: u32,
    /// Iterations that are simulated unless asked otherwise; the rest is the last, repeated.
    pub simulated: u32,
    /// Classes with less data, and by how much the caches have to shrink so that data and caches
    /// stay in proportion.
    pub smaller: &'static [(&'static str, u64)],
    /// Options of the kernel, after the manifest's, that make the paper's parallel initialisation.
    pub pi: &'static [&'static str],
    /// Table 1, in units of UMA.
    pub table1: [Option<f64>; 4],
    /// Table 1, in seconds.
    pub seconds: [Option<f64>; 4],
    /// Table 2, in percent.
    pub table2: [Option<f64>; 4],
    /// Table 3, in seconds: 4 threads, 12 threads, 12 threads with 512 KiB pages.
    pub table3: [f64; 3],
    /// After how many iterations migration pays, in words of section 5.
    pub break_even: &'static str,
}

/// The schemes of tables 1 and 2.
pub(super) const SCHEMES: [&str; 4] = ["UMA", "SI", "PI", "SI+MIG"];

/// The programs in the paper's order.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "NAS-CG",
        kernel: "nas-cg",
        class: "B",
        iterations: 75,
        simulated: 5,
        smaller: &[("A", 8), ("W", 16), ("S", 16)],
        pi: &["--init", "npb"],
        table1: [Some(1.00), Some(1.12), Some(1.08), Some(1.04)],
        seconds: [Some(233.94), Some(261.48), Some(253.31), Some(243.31)],
        table2: [Some(0.01), Some(75.07), Some(35.93), Some(6.17)],
        table3: [0.80, 0.77, 0.16],
        break_even: "two",
    },
    Program {
        name: "NAS-MG",
        kernel: "nas-mg",
        class: "B",
        iterations: 20,
        simulated: 3,
        smaller: &[("A", 1), ("W", 8), ("S", 16)],
        pi: &["--init", "npb"],
        table1: [Some(1.00), Some(1.58), Some(1.43), Some(1.15)],
        seconds: [Some(20.76), Some(32.75), Some(29.73), Some(23.88)],
        table2: [Some(0.01), Some(72.38), Some(48.53), Some(11.03)],
        table3: [2.77, 2.52, 1.20],
        break_even: "approximately five",
    },
    Program {
        name: "I-CG",
        kernel: "i-cg",
        class: "B",
        iterations: 47,
        simulated: 4,
        smaller: &[("A", 8), ("W", 16), ("S", 16)],
        pi: &[],
        table1: [Some(1.00), Some(1.58), None, Some(1.15)],
        seconds: [Some(39.91), Some(63.15), None, Some(46.17)],
        table2: [Some(0.01), Some(67.85), None, Some(31.39)],
        table3: [1.72, 1.94, 0.60],
        break_even: "approximately five",
    },
    Program {
        name: "I-MG",
        kernel: "i-mg",
        class: "B",
        iterations: 10,
        simulated: 3,
        smaller: &[("A", 8), ("W", 16), ("S", 16)],
        pi: &[],
        table1: [Some(1.00), Some(1.18), Some(1.00), Some(1.01)],
        seconds: [Some(219.05), Some(258.91), Some(219.83), Some(222.22)],
        table2: [Some(0.09), Some(77.11), Some(4.28), Some(3.58)],
        table3: [3.09, 2.71, 1.10],
        break_even: "the first",
    },
];
