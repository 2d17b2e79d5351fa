//! Where affinity finds the columns of LU on the lab's four nodes (`tests/lab/columns.c`).

use std::fs;
use std::path::Path;

use crate::lab::{alone, deterministic_lab, there};
use crate::lab_homes;
use crate::support::{built, fresh, outcome};

/// Columns elsewhere in the second execution of the triangular loop, and columns that it updated.
fn second(out: &str, run: &str) -> (u32, u32) {
    let line = out.lines().skip_while(|l| *l != run).find_map(|l| l.strip_prefix("2: "));
    let words = line.and_then(|l| l.split_once(" of ")).unwrap_or_else(|| panic!("{run}: {out}"));
    (words.0.parse().unwrap(), words.1.parse().unwrap())
}

#[test]
fn affinity_keeps_the_columns_of_lu_at_home() {
    let dir = fresh("lab-schedule").join("work");
    fs::create_dir(&dir).unwrap();
    if !there() {
        return;
    }
    built(&["libhomenode.so", "libhomenode_loops.so"]);
    lab_homes::program(&dir, "columns");
    let homenode = Path::new(env!("CARGO_BIN_EXE_homenode"));
    let run = format!("{} run --policy first-touch --schedule affinity", homenode.display());
    let script = format!("set -e\necho own\n./columns 2\necho affinity\n{run} -- ./columns 2\n");
    fs::write(dir.join("script"), script).unwrap();
    let _alone = alone();
    let words = "--mem 192M --numa-balancing off --thp never --env OMP_NUM_THREADS=4 --env OMP_PROC_BIND=true \
                 --env OMP_PLACES=threads --env OMP_SCHEDULE=dynamic,1";
    let mut command = deterministic_lab(&dir, words);
    command.arg("--with").arg(homenode);
    for library in ["libhomenode.so", "libhomenode_loops.so"] {
        command.arg("--with").arg(homenode.with_file_name(library));
    }
    let (status, out, err) = outcome(&command.args(["--", "sh", "script"]).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    println!("{out}");
    let ((own, of), (affinity, _)) = (second(&out, "own"), second(&out, "affinity"));
    assert_eq!(of, 510, "{out}");
    // CPUs take turns at each iteration, so no thread is idle early and takes others' columns.
    assert!(affinity * 20 <= of, "{affinity} of {of} columns are elsewhere: {out}");
    assert!(own * 4 >= of, "{own} of {of} columns are elsewhere with the program's own schedule: {out}");
}
