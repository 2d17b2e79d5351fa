//! Colour-blind readers tell the colours of nodes apart.
//!
//! Each kind is simulated with the matrices of Machado, Oliveira and Fernandes (*A
//! Physiologically-based Model for Simulation of Color Vision Deficiency*, 2009, severity 1.0), on
//! linear sRGB. Distances are those of CIE L*a*b* (1976, D65): about 2 is just noticeable.

use std::path::Path;

type Matrix = [[f64; 3]; 3];

const KINDS: [(&str, Matrix); 4] = [
    ("none", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// Least distance of two nodes' colours.
const LEAST: f64 = 15.0;

fn of(matrix: &Matrix, v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
}

/// A colour such as `#0072b2` as a reader of that kind sees it, in L*a*b*.
fn lab(hex: &str, kind: &Matrix) -> [f64; 3] {
    let linear = |at: usize| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let seen = of(kind, [linear(1), linear(3), linear(5)]).map(|c| c.clamp(0.0, 1.0));
    let xyz = of(
        &[
            [0.412_456, 0.357_576, 0.180_438],
            [0.212_673, 0.715_152, 0.072_175],
            [0.019_334, 0.119_192, 0.950_304],
        ],
        seen,
    );
    let f = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let [x, y, z] = [f(xyz[0] / 0.950_47), f(xyz[1]), f(xyz[2] / 1.088_83)];
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// The colours that the page's program has.
fn colours() -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../viewer/src/colours.ts");
    let source = std::fs::read_to_string(source).unwrap();
    let (_, list) = source.split_once("const NODES = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split(',').map(|c| c.trim().trim_matches('"').to_owned()).collect()
}

#[test]
fn colour_blind_readers_tell_nodes_apart() {
    let colours = colours();
    assert_eq!(colours.len(), 8);
    for (kind, matrix) in KINDS {
        for (i, a) in colours.iter().enumerate() {
            for b in &colours[i + 1..] {
                let apart = distance(lab(a, &matrix), lab(b, &matrix));
                assert!(apart >= LEAST, "{kind}: {a} and {b} are {apart:.1} apart");
            }
        }
    }
}

#[test]
fn the_simulation_knows_colours_that_are_alike() {
    let apart = |kind: usize| distance(lab("#009e73", &KINDS[kind].1), lab("#8c8c8c", &KINDS[kind].1));
    assert!(apart(0) > 30.0, "green and grey differ for most readers");
    assert!(apart(2) < LEAST, "and hardly for a deuteranope");
    let white = lab("#ffffff", &KINDS[0].1);
    assert!(distance(white, [100.0, 0.0, 0.0]) < 0.1, "{white:?}");
}
