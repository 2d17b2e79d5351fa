//! What every kind of frame must survive: truncation, flipped bits, hostile lengths, unknown
//! versions.

use std::fmt::Debug;

use homenode_wire::frame::HEADER;
use homenode_wire::{Error, FrameFault, Message, decode, encode, read};

/// Cuts, flips and announces too much. `message` should use every field of its type.
pub fn is_noticed<M: Message + PartialEq + Debug>(message: &M) {
    let good = encode(message).unwrap();
    assert_eq!(decode::<M>(&good).as_ref(), Ok(message));
    for at in 0..good.len() {
        let error = decode::<M>(&good[..at]).unwrap_err();
        let (start, wanted) = if at < HEADER { (0, HEADER) } else { (HEADER, good.len() - HEADER) };
        let fault = FrameFault::CutOff { wanted: wanted as u64, had: (at - start) as u64 };
        assert_eq!(error, Error { kind: M::KIND, offset: start as u64, fault }, "cut at {at}");
    }
    for bit in 0..8 * good.len().min(4096) {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let error = decode::<M>(&bad).unwrap_err();
        let expected = match bit / 8 {
            0..4 => matches!(error.fault, FrameFault::Magic(_)),
            4..6 => matches!(error.fault, FrameFault::Kind(_)),
            6..8 => matches!(error.fault, FrameFault::Version { known, .. } if known == M::VERSION),
            8..12 => matches!(
                error.fault,
                FrameFault::TooLong { .. }
                    | FrameFault::CutOff { .. }
                    | FrameFault::Checksum { .. }
                    | FrameFault::Trailing(_)
            ),
            _ => matches!(error.fault, FrameFault::Checksum { .. }),
        };
        assert!(expected, "bit {bit}: {error}");
    }
    let mut long = good.clone();
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let fault = FrameFault::TooLong { length: u64::from(u32::MAX), most: M::MOST as u64 };
    assert_eq!(decode::<M>(&long).unwrap_err().fault, fault);
    let mut twice = good.clone();
    twice.extend(&good);
    assert_eq!(decode::<M>(&twice).unwrap_err().fault, FrameFault::Trailing(good.len() as u64));
    let mut from = &twice[..];
    assert_eq!(read::<M>(&mut from).as_ref(), Ok(message));
    assert_eq!(read::<M>(&mut from).as_ref(), Ok(message));
    assert!(from.is_empty(), "a frame takes no more than its own bytes");
}

/// A frame around any payload, with a checksum that holds: what an attacker can make.
pub fn framed<M: Message>(payload: &[u8]) -> Vec<u8> {
    let mut frame = b"hnwf".to_vec();
    frame.extend((M::KIND as u16).to_le_bytes());
    frame.extend(M::VERSION.to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&frame);
    sum.update(payload);
    frame.extend(sum.finalize().to_le_bytes());
    frame.extend(payload);
    frame
}

/// Damaged payloads behind a checksum that holds: an error or another value, and never a panic.
pub fn is_survived<M: Message + PartialEq + Debug>(message: &M, position: usize, to: u8) {
    let good = encode(message).unwrap();
    let mut payload = good[HEADER..].to_vec();
    let at = position % payload.len().max(1);
    if let Some(byte) = payload.get_mut(at) {
        *byte = to;
    }
    // A length that announces all memory, in front of the rest.
    let hostile = [&payload[..at], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat();
    for payload in [payload, hostile] {
        match decode::<M>(&framed::<M>(&payload)) {
            Ok(value) => assert_eq!(decode::<M>(&encode(&value).unwrap()), Ok(value)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Payloads into which pieces of `other`, of the payload itself or none at all were put, behind a
/// checksum that holds: an error or another value, and never a panic. `seed` chooses the pieces.
pub fn splices_are_survived<M: Message + PartialEq + Debug>(message: &M, other: &[u8], seed: u64) {
    let good = encode(message).unwrap();
    let own = &good[HEADER..];
    let mut state = seed | 1;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    for _ in 0..SPLICES {
        let mut payload = own.to_vec();
        for _ in 0..=below(3) {
            let donor = if below(2) == 0 { other } else { own };
            let (at, from) = (below(payload.len() + 1), below(donor.len() + 1));
            let end = (at + below(64)).min(payload.len());
            let piece = &donor[from..(from + below(64)).min(donor.len())];
            payload.splice(at..end, piece.iter().copied());
        }
        match decode::<M>(&framed::<M>(&payload)) {
            Ok(value) => {
                let again = encode(&value).map(|bytes| decode::<M>(&bytes));
                assert_eq!(again, Ok(Ok(value)));
            }
            Err(error) => assert!(error.offset <= (HEADER + payload.len()) as u64, "{error}"),
        }
    }
}

/// Splices of a message.
const SPLICES: usize = 64;

#[test]
fn an_error_names_what_and_where() {
    use homenode_wire::facts::Facts;
    let mut bytes = encode(&Facts::default()).unwrap();
    let error = |bytes: &[u8]| decode::<Facts>(bytes).unwrap_err().to_string();
    assert_eq!(
        error(&bytes[..3]),
        "the program's report, byte 0: it is cut off: 16 bytes should follow, 3 are there"
    );
    bytes[6] = 9;
    assert_eq!(
        error(&bytes),
        format!(
            "the program's report, byte 0: it is of version 9, and this homenode reads version {}",
            Facts::VERSION
        )
    );
    bytes[4] = 3;
    assert!(error(&bytes).ends_with("it is something else: the live stream"), "{}", error(&bytes));
    let read = |bytes: &[u8]| decode::<Facts>(&framed::<Facts>(bytes)).unwrap_err();
    assert_eq!((read(&[]).offset, read(&[1, 2]).offset), (HEADER as u64, HEADER as u64));
}
