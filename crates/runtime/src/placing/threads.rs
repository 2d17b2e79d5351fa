//! Binds threads to CPUs and nodes.

use std::cell::Cell;

use homenode_model::NodeId;
use homenode_model::code::HN_ENODE;
use homenode_sys::affinity::{self, CpuSet};
use homenode_sys::numa;

use super::machine::UsableNodes;
use super::{Failure, Result};
use crate::moving;
use crate::nodes::Nodes;

thread_local! {
    /// The CPUs that the thread could run on before it was first bound here.
    static BEFORE: Cell<Option<CpuSet>> = const { Cell::new(None) };
}

/// Binds the calling thread to `cpu`.
///
/// # Errors
/// The CPU does not exist, or this process may not use it.
pub fn bind_cpu(cpu: i32) -> Result<()> {
    let set = u32::try_from(cpu).map_or(CpuSet::NONE, |c| CpuSet::of([c]));
    bind(&set).map_err(|mut f| {
        if f.code != homenode_model::code::HN_EPERM {
            f.code = HN_ENODE;
        }
        f.text = format!(
            "cannot bind this thread to CPU {cpu}: it is not there, off line, or outside of the \
                          process's cpuset ({f})"
        );
        f
    })
}

/// Binds the calling thread to the CPUs of `node`.
///
/// # Errors
/// The node does not exist, or has no CPUs for this process.
pub fn bind_node(node: i32) -> Result<()> {
    let machine = UsableNodes::here();
    let id = machine.node(node)?;
    let cpus = machine.cpus(id);
    if cpus.is_empty() {
        return Err(Failure::no_node(format!(
            "node {node} has no CPUs that this process may use: memory alone"
        )));
    }
    bind(&CpuSet::of(cpus)).map_err(|mut f| {
        f.text = format!("cannot bind this thread to node {node}: {f}");
        f
    })
}

/// Binds the calling thread to the CPUs of `node`: to those on which the thread may run, or, if a
/// bound thread started it elsewhere, to all of the node. Other threads of a team may be bound.
///
/// # Errors
/// The node has no CPUs, or the process's cpuset leaves none of them.
pub fn bind_share(node: NodeId) -> Result<()> {
    unbind()?;
    let all = Nodes::unbound();
    let on_node = |cpu: &u32| match moving::pretended() {
        0 => all.cpus(node).contains(cpu),
        _ => moving::node_of_cpu(*cpu) == node,
    };
    let every = all.usable().into_iter().flat_map(|n| all.cpus(n).iter().copied());
    let cpus: Vec<u32> = every.filter(on_node).collect();
    if cpus.is_empty() {
        return Err(Failure::no_node(format!("node {} has no CPUs: memory alone", node.0)));
    }
    let own = affinity::get().map_err(|e| Failure::system("asking for the thread's CPUs", e))?;
    let mine: Vec<u32> = own.iter().filter(|cpu| cpus.contains(cpu)).collect();
    bind(&CpuSet::of(if mine.is_empty() { cpus } else { mine })).map_err(|mut f| {
        f.text = format!("cannot bind this thread to node {}: {f}", node.0);
        f
    })
}

/// Undoes [`bind_cpu`] and [`bind_node`]: the calling thread may run where it could before the
/// first.
///
/// # Errors
/// The kernel's answer.
pub fn unbind() -> Result<()> {
    let Some(before) = BEFORE.try_with(Cell::get).ok().flatten() else { return Ok(()) };
    affinity::set(&before).map_err(|e| Failure::system("cannot unbind this thread", e))
}

/// The CPU and the node of the caller. An unbound thread may have moved when the answer arrives.
pub fn here() -> (u32, NodeId) {
    let (cpu, node) = numa::here();
    if moving::pretended() == 0 { (cpu, node) } else { (cpu, moving::node_of_cpu(cpu)) }
}

fn bind(set: &CpuSet) -> Result<()> {
    let tried = |e| Failure::system("setting the thread's CPUs", e);
    let before = affinity::get().map_err(tried)?;
    affinity::set(set).map_err(tried)?;
    // A thread that is ending has no such variable any more, and needs none.
    let _ = BEFORE.try_with(|b| b.set(Some(b.get().unwrap_or(before))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_and_let_go() {
        let before = affinity::get().unwrap();
        unbind().unwrap();
        assert_eq!(affinity::get().unwrap(), before);
        let last = before.iter().last().unwrap();
        bind_cpu(last as i32).unwrap();
        assert_eq!(here().0, last);
        let node = UsableNodes::here().node_of(last).unwrap();
        bind_node(node.0.into()).unwrap();
        assert_eq!(affinity::get().unwrap(), CpuSet::of(UsableNodes::here().cpus(node)));
        unbind().unwrap();
        assert_eq!(affinity::get().unwrap(), before);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for cpu in [-1, i32::MAX, affinity::MOST as i32 - 1] {
            assert_eq!(bind_cpu(cpu).unwrap_err().code, HN_ENODE, "{cpu}");
        }
        assert_eq!(bind_node(-7).unwrap_err().code, HN_ENODE);
    }
}
