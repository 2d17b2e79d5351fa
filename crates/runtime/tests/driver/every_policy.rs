//! Every registered policy under the driver: it comes to rest at each event, and its journal
//! replays.

use homenode_policy::{POLICIES, build};

use super::*;

/// The source that the policy of this name needs.
fn source(policy: &str) -> Option<AnswerKind> {
    let machine = wire::MachineNodes::even(2, 2, Bytes::gib(1), 20);
    let machine = homenode_runtime::driver::LiveMachine::of(&machine).unwrap();
    let interest = build(policy, &machine.context(Bytes(PAGE as u64))).unwrap().interest();
    if interest.counts() {
        return Some(SAMPLED);
    }
    interest.draws.then_some(PRESENCE)
}

#[test]
fn every_policy_comes_to_rest_and_its_journal_replays() {
    let folder = std::env::temp_dir().join(format!("homenode-every-policy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A plan needs a recording.
    for policy in POLICIES.iter().map(|p| p.name).filter(|name| *name != "plan") {
        let (mut d, world) = driver(policy, source(policy), &[Set::Journal(folder.clone())]);
        for i in 0..20 {
            let seen: Vec<_> = (0..64).cycle().take(640).map(|p| (p, u16::from((p + i) % 5 > 1))).collect();
            round(&mut d, &world, &seen);
            d.next_touch(BASE, 8 * PAGE);
            let touch = Touch { address: BASE + (i % 8) * PAGE, pages: 1, node: NodeId(1), moved: true };
            world.lock().unwrap().touches.push(touch);
            d.tick();
        }
        d.dies(BASE);
        d.end();
        assert!(!d.notes().iter().any(|n| n.contains("still decided")), "{policy}: {:?}", d.notes());
        let bytes = std::fs::read(folder.join(format!("{}.hnpj", std::process::id()))).unwrap();
        let checked = journal::check(&bytes).unwrap();
        assert!(checked.complete && checked.difference.is_none(), "{policy}: {checked:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
