//! In a process of its own: what ends homenode's threads ends them for good.

use homenode_model::Ns;
use homenode_sys::{call, own_threads};

#[test]
fn they_have_no_capability_and_are_gone_when_they_were_ended() {
    assert!(own_threads::permit().is_some());
    let thread = std::thread::spawn(move || {
        own_threads::begin();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mut slept = 0;
        while own_threads::sleep(Ns(60_000_000_000)) {
            slept += 1;
        }
        own_threads::end();
        (status, slept)
    });
    while own_threads::count() == 0 {
        call::yield_now();
    }
    assert!(own_threads::any());
    assert!(own_threads::end_all(|| ()));
    assert_eq!(own_threads::count(), 0);
    assert!(own_threads::permit().is_none(), "none is made any more");
    let (status, slept) = thread.join().unwrap();
    assert_eq!(slept, 0, "it was woken");
    for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{set}: {status}");
    }
}
