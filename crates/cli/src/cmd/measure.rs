//! `homenode measure`.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use homenode_error::{Context, FailureKind, Result};
use homenode_measure::{
    Host, HostMeasurer, MeasurePlan, MeasureRequest, Measurement, Prober, Synthetic, machine_file, measure,
    memory_attributes, passes_on, plan,
};
use homenode_schemes as schemes;
use homenode_task::Task as _;

use crate::args::measure::MeasureArgs;
use crate::exit::Exit;
use crate::output::{Format, colours, terminal_width, to_stdout};
use crate::task::Terminal;
use homenode_text::measured;
use homenode_text::table::markdown;

impl MeasureArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let (host, mut prober) = self.subject()?;
        let ask = self.ask();
        let plan = plan(&host, &ask);
        let m = carry_out(&host, &ask, &plan, prober.as_mut())?;
        self.write_files(&m)?;
        let table = measured::table(&m);
        let held = self.output.judge(&table)?;
        match self.output.format() {
            Format::Json => to_stdout(&(m.to_json() + "\n"))?,
            Format::Csv => to_stdout(&table.to_csv())?,
            Format::Markdown => to_stdout(&markdown(&table))?,
            Format::Table => {
                let terminal = io::stdout().is_terminal();
                let width = terminal.then(terminal_width).flatten().map_or(usize::MAX, usize::from);
                to_stdout(&measured::matrices(&m, terminal && colours(), width))?;
            }
        }
        Ok(match held {
            Exit::Done if !m.is_complete() => Exit::Partial,
            other => other,
        })
    }

    /// The machine, and who answers for it.
    fn subject(&self) -> Result<(Host, Box<dyn Prober>)> {
        if let Some(name) = &self.synthetic {
            let machine = described(name)?;
            return Ok((Host::like(&machine), Box::new(Synthetic::new(&machine))));
        }
        let root = self.tree.as_deref().unwrap_or(Path::new("/"));
        let host = Host::at(root).context(|| "cannot tell what this machine has".into())?;
        if self.tree.is_some() {
            let host = Host { synthetic: true, ..host };
            let prober = Synthetic::recorded(&host);
            return Ok((host, Box::new(prober)));
        }
        let real = HostMeasurer::new(&host).with_sabotage(self.sabotage.map(Into::into));
        Ok((host, Box::new(real)))
    }

    fn write_files(&self, m: &Measurement) -> Result<()> {
        let machine = || match &self.synthetic {
            Some(name) => described(name),
            None => schemes::machine("this"),
        };
        if let Some(path) = &self.machine_file {
            let text = machine_file(m, machine()?).to_toml();
            fs::write(path, text).context(|| format!("cannot write the machine file {}", path.display()))?;
        }
        if let Some(path) = &self.hwloc_xml {
            let from = self.synthetic.as_deref();
            let xml = homenode_machine::host::xml(from)
                .context(|| "cannot have hwloc write its topology".into())?;
            fs::write(path, memory_attributes(m, &xml))
                .context(|| format!("cannot write the topology {}", path.display()))?;
        }
        Ok(())
    }
}

/// A name, a file, or hwloc's notation, which has spaces or colons.
fn described(name: &str) -> Result<homenode_machine::Machine> {
    if name.contains(':') && !Path::new(name).exists() {
        return homenode_machine::host::from_synthetic(name)
            .context(|| format!("cannot use the description '{name}'"))
            .map_err(|e| e.kind(FailureKind::Usage));
    }
    schemes::machine(name)
}

fn carry_out(
    host: &Host,
    ask: &MeasureRequest,
    plan: &MeasurePlan,
    prober: &mut dyn Prober,
) -> Result<Measurement> {
    let task = Terminal::watching(false)?;
    let ms = |d: std::time::Duration| d.as_millis() as u64;
    let all = plan.items.iter().map(|i| ms(i.estimate())).sum::<u64>();
    let mut progress = task.progress("measuring", Some((all * u64::from(passes_on(host, ask))).max(1)));
    let m = measure(host, ask, plan, prober, &|| task.stop_asked(), &mut |item, _| {
        progress.advance(ms(item.estimate()));
    });
    progress.finish();
    Ok(m)
}
