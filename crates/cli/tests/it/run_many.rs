//! More than `homenode run` has room for: the closing report says what was left out.

use crate::support::{fresh, homenode, outcome, plain};

/// More allocations at once than there are places for, untouched, and as many again when those have
/// gone.
const MANY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { N = 17000 };
static void *all[N];
int main(void) {
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++)
            if (!(all[i] = malloc(65536))) return 1;
        for (int i = 0; i < N; i++) free(all[i]);
    }
    puts("done");
    return 0;
}
"#;

#[test]
fn what_there_is_no_room_for_is_told() {
    let dir = fresh("run-many");
    let Some(_) = plain(&dir, "many", MANY) else { return };
    let mut run = homenode(&dir);
    run.args(["run", "-v", "--pretend-nodes", "2", "--threads", "2", "--summary", "report", "--", "./many"]);
    assert_eq!(outcome(&run.output().unwrap()), (Some(0), "done\n".into(), String::new()));
    let report = std::fs::read_to_string(dir.join("report")).unwrap();
    let says = |words: &str| {
        let line = report.lines().find(|l| l.contains("could not: ") && l.contains(words));
        let line = line.unwrap_or_else(|| panic!("{words}: {report}"));
        let number = line.split("could not: ").nth(1).and_then(|t| t.split(' ').next());
        number.and_then(|n| n.parse::<u64>().ok()).unwrap()
    };
    // Some find no place before all are taken.
    let lost = says("allocations were not followed, for too many lived at once (there is room for 16384)");
    assert!((2 * (17000 - 16384)..4000).contains(&lost), "{report}");
    let unarmed = says("objects were not armed unless the program asked: 4096 others waited");
    // The list of them is an object, too.
    assert_eq!(lost + unarmed, 2 * (17000 - (4096 - 1)), "{report}");
}
