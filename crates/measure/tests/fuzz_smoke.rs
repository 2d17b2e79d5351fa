//! Measurements that somebody damaged or made up: compared, or refused in words.

#[path = "../../../fuzz/mutate.rs"]
mod mutate;

use homenode_measure::{Host, MeasureRequest, Measurement, Synthetic, diff, measure, plan};
use mutate::{Rng, mutated};

fn measurement() -> Measurement {
    let machine = homenode_machine::preset("cxl").unwrap();
    let (host, ask) = (Host::like(&machine), MeasureRequest::quick());
    let plan = plan(&host, &ask);
    measure(&host, &ask, &plan, &mut Synthetic::new(&machine), &|| false, &mut |_, _| ())
}

#[test]
fn damaged_measurements_are_refused_in_words_or_compare() {
    let sound = measurement();
    let text = sound.to_json();
    assert!(!sound.cells.is_empty());
    assert_eq!(Measurement::from_json(&text).unwrap().cells.len(), sound.cells.len());
    let (mut rng, mut read, mut refused) = (Rng(3), 0, 0);
    for _ in 0..3000 {
        let bytes = mutated(&text, &text, &mut rng);
        // A file that is no text is refused before.
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        match Measurement::from_json(&changed) {
            Ok(m) => {
                read += 1;
                let all = diff(&sound, &m).len() + diff(&m, &sound).len() + diff(&m, &m).len();
                assert!(all <= 4 * (sound.cells.len() + m.cells.len()));
            }
            Err(why) => {
                refused += 1;
                let text = why.to_string();
                assert!(!text.is_empty() && text.len() < 10_000, "{text}");
            }
        }
    }
    assert!(read > 50 && refused > 500, "{read} read, {refused} refused");
}
