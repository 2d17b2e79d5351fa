//! Plans that somebody damaged or made up: read in full, or refused in words that name the file.

#[path = "../../../fuzz/mutate.rs"]
mod mutate;

use std::fs;

use homenode_plan::file::PlanFile;
use mutate::{Rng, mutated};

const PLAN: &str = r#"{"schema":"homenode/plan/1","command":["app","-n","3"],"counts":"exact","machine":"two nodes",
"nodes":[0,1],"pretended":true,"page":4096,"ranks":1,"threads":[0,1],"objects":[
{"name":"a","site":{"function":"main","file":"/src/a.c","line":3},"instance":0,"count":1,"order":0,"bytes":1048576,
"homes":[[0,524288,0],[524288,524288,1]]},{"name":"field","static":"field","bytes":65536,"homes":[[0,4096,1]]}]}"#;

#[test]
fn damaged_plans_are_refused_in_words_or_make_sense() {
    let path = std::env::temp_dir().join(format!("homenode-plan-fuzz-{}", std::process::id()));
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    fs::write(&path, PLAN).unwrap();
    let sound = PlanFile::read(&path).unwrap();
    assert_eq!(sound.bytes(), (1 << 20) + 4096);
    let (mut rng, mut read, mut refused) = (Rng(3), 0, 0);
    for _ in 0..3000 {
        fs::write(&path, mutated(PLAN, PLAN, &mut rng)).unwrap();
        match PlanFile::read(&path) {
            Ok(plan) => {
                read += 1;
                assert!(plan.page.is_power_of_two() && !plan.nodes.is_empty() && !plan.threads.is_empty());
                for object in &plan.objects {
                    let end = object.homes.iter().map(|(offset, bytes, _)| offset + bytes).max();
                    assert!(end.unwrap_or(0) <= object.bytes, "{object:?}");
                }
                let _ = plan.bytes();
            }
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.contains(&name) && text.len() < 10_000, "{text}");
            }
        }
    }
    fs::remove_file(&path).unwrap();
    assert!(read > 20 && refused > 500, "{read} read, {refused} refused");
}
