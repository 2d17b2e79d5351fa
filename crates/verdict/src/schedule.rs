//! What became of loops whose iterations homenode hands out: one line, details, JSON.

use homenode_dataset::foreign;
use homenode_wire::facts::Facts;
use homenode_wire::schedule::{Dealt, Mode};
use serde_json::{Value, json};

use crate::text::{first_that_fits, percent};

fn all(n: u64, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// One line of at most `columns`: the loops, and what was done with them.
pub fn line(d: &Dealt, columns: usize) -> String {
    let head = format!("schedule {}", d.mode);
    let executions = d.taken + d.own;
    if let (0, 0, [why, ..]) = (d.taken, d.tables, d.refused.as_slice()) {
        let why = foreign::clean(why);
        return first_that_fits(&[format!("{head}: not used: {why}"), format!("{head}: {why}")], columns);
    }
    if d.loops == 0 {
        return format!("{head}: no loop was met that homenode can hand out");
    }
    let loops = all(d.loops, "loop");
    let kept: Vec<String> = d.kept.iter().map(|k| format!("{} {}", k.name, k.loops)).collect();
    let trying = (d.trying > 0).then(|| format!("{} in trial", d.trying));
    let kept = kept.into_iter().chain(trying).collect::<Vec<_>>().join(", ");
    let dealt = format!("{} of {} dealt", d.taken, all(executions, "execution"));
    let replayed = percent(d.replayed, d.chunks.saturating_add(d.recorded));
    let forms = match d.mode {
        Mode::Record => {
            let recorded = format!("{} recorded for a replay", all(d.tables, "schedule"));
            vec![format!("{head}: {loops}, {recorded}, {} chunks", d.recorded), format!("{head}: {recorded}")]
        }
        Mode::Replay => vec![
            format!("{head}: {loops}, {dealt}, {replayed} of chunks replayed"),
            format!("{head}: {loops}, {replayed} of chunks replayed"),
        ],
        Mode::Auto => {
            vec![format!("{head}: {loops}, {dealt}, kept: {kept}"), format!("{head}: {loops}, kept: {kept}")]
        }
        Mode::Block | Mode::Cyclic | Mode::Affinity => {
            vec![format!("{head}: {loops}, {dealt}, {}", all(d.chunks, "chunk")), format!("{head}: {dealt}")]
        }
    };
    first_that_fits(&forms, columns)
}

/// The line of the processes, those with most executions first.
pub fn of(processes: &[Facts]) -> Option<&Dealt> {
    processes.iter().filter_map(|f| f.schedule.as_ref()).max_by_key(|d| (d.taken, d.own))
}

/// All that is known, a line each.
pub fn details(d: &Dealt) -> Vec<String> {
    let mut lines = vec![format!(
        "schedule   {}: {} in the source; {} executions handed out by homenode in {} chunks ({} of these as \
         recorded), {} by the program's run-time; {} chunks recorded, {} schedules (exact)",
        d.mode,
        all(d.loops, "loop"),
        d.taken,
        d.chunks,
        d.replayed,
        d.own,
        d.recorded,
        d.tables
    )];
    for kept in &d.kept {
        lines.push(format!(
            "schedule   auto keeps {} for {}",
            foreign::clean(&kept.name),
            all(kept.loops, "loop")
        ));
    }
    lines.extend(d.refused.iter().map(|why| format!("could not: {}", foreign::clean(why))));
    lines
}

/// As JSON.
pub fn json(d: &Dealt) -> Value {
    let kept: serde_json::Map<String, Value> =
        d.kept.iter().map(|k| (k.name.clone(), k.loops.into())).collect();
    json!({
        "mode": d.mode.to_string(),
        "loops": d.loops,
        "executions_dealt": d.taken,
        "executions_own": d.own,
        "chunks_dealt": d.chunks,
        "chunks_replayed": d.replayed,
        "chunks_recorded": d.recorded,
        "schedules_recorded": d.tables,
        "kept": kept,
        "in_trial": d.trying,
        "refused": d.refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_wire::schedule::Kept;

    fn dealt(mode: Mode) -> Dealt {
        Dealt {
            mode,
            loops: 2,
            taken: 98,
            own: 2,
            chunks: 980,
            replayed: 980,
            recorded: 20,
            kept: vec![Kept { name: "cyclic".into(), loops: 1 }],
            trying: 1,
            tables: 2,
            refused: Vec::new(),
        }
    }

    #[test]
    fn one_line_says_what_was_done() {
        let of = |mode| line(&dealt(mode), 70);
        assert_eq!(
            of(Mode::Record),
            "schedule record: 2 loops, 2 schedules recorded for a replay, 20 chunks"
        );
        assert_eq!(of(Mode::Replay), "schedule replay: 2 loops, 98.0 % of chunks replayed");
        assert_eq!(of(Mode::Block), "schedule block: 2 loops, 98 of 100 executions dealt, 980 chunks");
        assert_eq!(
            line(&dealt(Mode::Auto), 80),
            "schedule auto: 2 loops, 98 of 100 executions dealt, kept: cyclic 1, 1 in trial"
        );
    }

    #[test]
    fn a_refusal_is_said() {
        let why = vec!["the recorded schedules are of another program: app".into()];
        let d = Dealt { taken: 0, tables: 0, refused: why, ..dealt(Mode::Replay) };
        assert_eq!(
            line(&d, 80),
            "schedule replay: not used: the recorded schedules are of another program: app"
        );
        assert!(details(&d).iter().any(|l| l.starts_with("could not: the recorded")));
        let none = Dealt { loops: 0, taken: 0, own: 0, ..dealt(Mode::Auto) };
        assert!(line(&none, 80).contains("no loop was met"));
    }
}
