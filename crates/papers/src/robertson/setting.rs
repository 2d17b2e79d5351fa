//! What is measured, on which machine, and with what.

use std::time::Duration;

use homenode_error::{Context, Result};
use homenode_machine::Machine;
use homenode_measure::{
    Host, HostMeasurer, MeasurePlan, MeasureRequest, Measurement, Prober, Synthetic, Visit, measure,
};
use homenode_table::{Cell, Table};
use homenode_task::Task;

use super::stand_ins::{Bricks, StandIns};
use crate::ask::Ask as Asked;

/// The machine of the paper.
pub(super) const MACHINE: &str = "origin3000";
/// The machine that one sits at.
pub(super) const THIS: &str = "this";
/// A node of a description is to have room for the arrays of two threads, three each, and as much
/// again.
const FITS: u64 = 12;
/// What is measured, and with what.
pub struct Robertson<'a> {
    pub(super) host: Host,
    prober: Box<dyn Prober>,
    pub(super) task: &'a dyn Task,
    pub(super) buffer: u64,
}

impl<'a> Robertson<'a> {
    /// Computed from the description of the paper's machine or the one asked for, or measured on
    /// this one.
    ///
    /// # Errors
    /// There is no such machine; nobody says what this machine has.
    pub fn new(ask: &Asked, task: &'a dyn Task) -> Result<Self> {
        let asked = ask.machine.as_deref().unwrap_or(MACHINE);
        if asked == THIS {
            let host = Host::this().context(|| "cannot tell what this machine has".into())?;
            let prober = Box::new(HostMeasurer::new(&host));
            let buffer = MeasureRequest { buffer: ask.buffer, ..MeasureRequest::all() }.buffer_on(&host);
            return Ok(Self { host, prober, task, buffer });
        }
        Ok(Self::described(&homenode_schemes::machine(asked)?, ask.buffer, task))
    }

    /// Computed from a description; buffers that its smallest node has room for.
    pub(super) fn described(machine: &Machine, buffer: Option<u64>, task: &'a dyn Task) -> Self {
        let host = Host::like(machine);
        let room = host.with_memory().into_iter().filter_map(|n| host.node(n)).map(|n| n.free / FITS).min();
        let rule = MeasureRequest { buffer, ..MeasureRequest::all() }.buffer_on(&host);
        let buffer = buffer.unwrap_or_else(|| rule.min(room.unwrap_or(rule)).max(1 << 20));
        let prober = Box::new(Synthetic::new(machine));
        Self { host, prober, task, buffer }
    }

    /// What machine ours is from.
    pub(super) fn facts(&self, table: &mut Table) {
        let host = &self.host;
        let what = if host.synthetic { "computed from the description of" } else { "measured on" };
        let (cpus, memory) =
            host.nodes.iter().fold((0, 0), |(c, m), n| (c + n.cpus.len(), m + (n.memory >> 20)));
        table.fact(
            "paper_machine",
            Cell::text("SGI Origin 3000, 16 C-bricks of 4 R14000 600 MHz, not dedicated"),
        );
        table.fact(
            "our_machine",
            Cell::text(format!(
                "{what} {}, {}, nodes {}, CPUs {cpus}, memory {memory} MiB",
                host.cpu_model,
                host.kernel,
                host.nodes.len()
            )),
        );
        if !self.host.synthetic {
            self.host.remarks().into_iter().for_each(|r| table.note(r));
        }
    }

    /// Says which rows this machine has not enough nodes for, and what to do.
    pub(super) fn rows_that_cannot_be(
        &self,
        table: &mut Table,
        stand_ins: &StandIns,
        rows: impl Iterator<Item = (&'static str, &'static [Bricks])>,
    ) {
        let lacking: Vec<&str> = rows.filter(|(_, p)| stand_ins.pairs(p).is_err()).map(|(n, _)| n).collect();
        if !lacking.is_empty() {
            table.note(format!(
                "{} cannot be had on {} node{} with CPUs and memory; all can on four: homenode lab run --nodes 4 --cpus 2 -- \
                 homenode paper --machine this …",
                lacking.join(", "),
                stand_ins.len(),
                if stand_ins.len() == 1 { "" } else { "s" }
            ));
        }
        stand_ins.remarks().into_iter().for_each(|r| table.note(r));
    }

    pub(super) fn measure(&mut self, items: Vec<Visit>) -> Measurement {
        // Measuring takes the prober and the host at once.
        let mut prober = std::mem::replace(&mut self.prober, Box::new(Synthetic::recorded(&self.host)));
        let measured = self.measure_with(prober.as_mut(), items);
        self.prober = prober;
        measured
    }

    fn measure_with(&self, prober: &mut dyn Prober, items: Vec<Visit>) -> Measurement {
        let plan = MeasurePlan { items, ..MeasurePlan::default() };
        let ms = |d: Duration| d.as_millis() as u64;
        let total = plan.items.iter().map(|i| ms(i.estimate())).sum::<u64>().max(1);
        let mut progress = self.task.progress("measuring", Some(total));
        let m = measure(
            &self.host,
            &MeasureRequest::all(),
            &plan,
            prober,
            &|| self.task.stop_asked(),
            &mut |item, _| progress.advance(ms(item.estimate())),
        );
        progress.finish();
        m
    }
}
