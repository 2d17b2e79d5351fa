//! Formulas of the manifest: what a kernel's arrays take and what a round touches, as its source
//! says.
//!
//! ```text
//! sum    = term (("+" | "-") term)*          compare = sum [("<" | "<=" | "==" | ">=" | ">") sum]
//! term   = factor (("*" | "/") factor)*      factor  = ["-"] base ["^" factor]
//! base   = number | name | name "(" compare ("," compare)* ")" | "(" compare ")"
//! ```
//!
//! Numbers are doubles; a comparison is 1 or 0. Functions: `floor`, `ceil`, `sqrt`, `log2`, `min`,
//! `max`, `if(condition, then, else)`, `sum(name, from, to, formula)` over whole numbers, and
//!
//! - `lines(bytes)`: 64-byte lines of one array that is swept whole;
//! - `runs(count, bytes, stride)`: lines of `count` runs of `bytes` bytes, one every `stride`
//!   bytes. Elements are doubles, so of a gap of g bytes between two runs (g - 56) / 64 lines lie
//!   in it whole on average over where it begins.

use std::collections::BTreeMap;

/// Values of names.
pub type FormulaValues = BTreeMap<String, f64>;

/// Longest formula, and most terms of all its sums.
const MOST_BYTES: usize = 4096;
const MOST_TERMS: f64 = 1e6;
/// Deepest nesting.
const MOST_DEPTH: usize = 64;
/// Bytes of a line and of an element.
const LINE: f64 = 64.0;
const ELEMENT: f64 = 8.0;

/// The value of a formula.
///
/// # Errors
/// A sentence with the place: a word that it does not know, a value that is no number.
pub fn evaluate(formula: &str, names: &FormulaValues) -> Result<f64, String> {
    if formula.len() > MOST_BYTES {
        return Err(format!("a formula of {} bytes, at most {MOST_BYTES}", formula.len()));
    }
    let mut parser =
        Parser { text: formula.as_bytes(), at: 0, names: names.clone(), depth: 0, terms: 0.0, skip: false };
    let value = parser.compare().and_then(|value| {
        parser.space();
        if parser.at < formula.len() { Err(parser.wrong("an operator")) } else { Ok(value) }
    });
    match value {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(value) => Err(format!("'{formula}' is {value}")),
        Err(why) => Err(format!("'{formula}': {why}")),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    names: FormulaValues,
    depth: usize,
    /// Terms of all sums so far.
    terms: f64,
    /// Inside a branch that is not taken, whose values do not matter.
    skip: bool,
}

type Value = Result<f64, String>;

impl Parser<'_> {
    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Takes a symbol if it comes next.
    fn take(&mut self, symbol: &str) -> bool {
        self.space();
        let taken = self.text[self.at..].starts_with(symbol.as_bytes());
        if taken {
            self.at += symbol.len();
        }
        taken
    }

    fn need(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) { Ok(()) } else { Err(self.wrong(&format!("'{symbol}'"))) }
    }

    fn wrong(&self, wanted: &str) -> String {
        format!("byte {}: expected {wanted}", self.at + 1)
    }

    fn compare(&mut self) -> Value {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("nested more than {MOST_DEPTH} deep"));
        }
        let left = self.sum()?;
        // The longer symbols first.
        let symbols = ["<=", ">=", "==", "<", ">"];
        let found = symbols.iter().position(|s| self.take(s));
        let value = if let Some(found) = found {
            let right = self.sum()?;
            let holds = match found {
                0 => left <= right,
                1 => left >= right,
                2 => left == right,
                3 => left < right,
                _ => left > right,
            };
            f64::from(u8::from(holds))
        } else {
            left
        };
        self.depth -= 1;
        Ok(value)
    }

    fn sum(&mut self) -> Value {
        let mut value = self.term()?;
        loop {
            if self.take("+") {
                value += self.term()?;
            } else if self.take("-") {
                value -= self.term()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn term(&mut self) -> Value {
        let mut value = self.factor()?;
        loop {
            if self.take("*") {
                value *= self.factor()?;
            } else if self.take("/") {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Value {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("nested more than {MOST_DEPTH} deep"));
        }
        let negative = self.take("-");
        let mut value = self.base()?;
        if self.take("^") {
            value = value.powf(self.factor()?);
        }
        self.depth -= 1;
        Ok(if negative { -value } else { value })
    }

    fn base(&mut self) -> Value {
        if self.take("(") {
            let value = self.compare()?;
            self.need(")")?;
            return Ok(value);
        }
        let start = self.at;
        let is_name = self.text.get(start).is_some_and(|b| b.is_ascii_alphabetic());
        let part = |b: &u8| {
            b.is_ascii_digit() || if is_name { b.is_ascii_alphabetic() || *b == b'_' } else { *b == b'.' }
        };
        while self.text.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        // All of it is ASCII.
        let word = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        if !is_name {
            return word.parse().map_err(|_| self.wrong("a number, a name or '('"));
        }
        if self.take("(") {
            return self.call(&word);
        }
        self.names.get(&word).copied().ok_or_else(|| format!("nothing is called '{word}'"))
    }

    fn call(&mut self, function: &str) -> Value {
        match function {
            "sum" => return self.series(),
            "if" => return self.branch(),
            _ => {}
        }
        let mut values = vec![self.compare()?];
        while self.take(",") {
            values.push(self.compare()?);
        }
        self.need(")")?;
        match (function, values[..].as_ref()) {
            ("floor", [x]) => Ok(x.floor()),
            ("ceil", [x]) => Ok(x.ceil()),
            ("sqrt", [x]) => Ok(x.sqrt()),
            ("log2", [x]) => Ok(x.log2()),
            ("min", [a, b]) => Ok(a.min(*b)),
            ("max", [a, b]) => Ok(a.max(*b)),
            ("lines", [bytes]) => Ok((bytes / LINE).ceil()),
            ("runs", [count, bytes, stride]) => Ok(runs(*count, *bytes, *stride)),
            _ => Err(format!("there is no function '{function}' of {} values", values.len())),
        }
    }

    /// `if`, without the value of the branch that is not taken: it may divide by zero or never end.
    fn branch(&mut self) -> Value {
        let condition = self.compare()? != 0.0;
        self.need(",")?;
        let then = self.unless(!condition)?;
        self.need(",")?;
        let other = self.unless(condition)?;
        self.need(")")?;
        Ok(if condition { then } else { other })
    }

    fn unless(&mut self, skip: bool) -> Value {
        let outer = self.skip;
        self.skip |= skip;
        let value = self.compare();
        self.skip = outer;
        value
    }

    fn series(&mut self) -> Value {
        self.space();
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_alphabetic) {
            self.at += 1;
        }
        let name = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        self.need(",")?;
        let first = self.compare()?;
        self.need(",")?;
        let last = self.compare()?;
        self.need(",")?;
        let terms = last - first;
        if !self.skip && (terms.is_nan() || terms > MOST_TERMS) {
            return Err(format!("a sum from {first} to {last}"));
        }
        let body = self.at;
        let outer = self.names.insert(name.clone(), first);
        // Once at least, to get past it.
        let empty = self.skip || first > last;
        let mut value = self.unless(empty)?;
        let mut index = first + 1.0;
        while !self.skip && index <= last {
            self.terms += 1.0;
            if self.terms > MOST_TERMS {
                return Err(format!("sums of more than {MOST_TERMS} terms"));
            }
            self.at = body;
            self.names.insert(name.clone(), index);
            value += self.compare()?;
            index += 1.0;
        }
        match outer {
            Some(outer) => self.names.insert(name, outer),
            None => self.names.remove(&name),
        };
        self.need(")")?;
        Ok(if empty { 0.0 } else { value })
    }
}

fn runs(count: f64, bytes: f64, stride: f64) -> f64 {
    let whole_in_gap = (stride - bytes - (LINE - ELEMENT)).max(0.0);
    ((count - 1.0) * (stride - whole_in_gap) + bytes) / LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(formula: &str) -> Value {
        evaluate(formula, &FormulaValues::from([("n".into(), 10.0), ("t".into(), 2.0)]))
    }

    #[test]
    fn arithmetic_is_as_in_books() {
        for (formula, expected) in [
            ("1 + 2*3 - 4/2", 5.0),
            ("-2^2", -4.0),
            ("2^3^2", 512.0),
            ("(n + t)^2 / 8", 18.0),
            ("10 - 3 - 2", 5.0),
            ("max(floor(n/3), ceil(n/3))", 4.0),
            ("log2(2^n)", 10.0),
            ("if(n < 5, 1/0, if(n >= 10, 7, 8))", 7.0),
            ("sum(l, 1, 3, l^2) + sum(l, 2, 1, l)", 14.0),
            ("sum(l, 1, 2, sum(m, 1, l, m))", 4.0),
        ] {
            assert_eq!(value(formula), Ok(expected), "{formula}");
        }
    }

    #[test]
    fn runs_are_counted_as_by_hand() {
        // Every alignment in steps of a double: the mean number of distinct lines.
        for (count, bytes, stride) in [(5, 24, 40), (4, 8, 200), (7, 64, 128), (3, 400, 528), (9, 8, 8)] {
            let mut touched = 0;
            for start in (0..64).step_by(8) {
                let mut lines = std::collections::BTreeSet::new();
                for run in 0..count {
                    let first = start + run * stride;
                    lines.extend((first..first + bytes).map(|b| b / 64));
                }
                touched += lines.len();
            }
            let mean = touched as f64 / 8.0;
            let formula = format!("runs({count}, {bytes}, {stride})");
            // The two ends of the whole are left out of the formula: less than a line.
            let value = value(&formula).unwrap();
            assert!((mean - value - 7.0 / 8.0).abs() < 1e-9, "{formula} is {value}, counted {mean}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (formula, word) in [
            ("n +", "byte 4"),
            ("q", "'q'"),
            ("1 2", "operator"),
            ("floor(1, 2)", "2 values"),
            ("1/0", "inf"),
            ("sqrt(0-1)", "NaN"),
            ("sum(l, 1, 1/0, l)", "to inf"),
            ("(1", "')'"),
            ("sum(l, 1, 5000, sum(m, 1, 5000, 1))", "more than 1000000 terms"),
            ("", "byte 1"),
        ] {
            let error = value(formula).unwrap_err();
            assert!(error.contains(word), "{formula}: {error}");
        }
        assert!(value(&"(".repeat(1000)).unwrap_err().contains("deep"));
        assert!(value(&"-".repeat(1000)).is_err());
        assert!(value(&"1+".repeat(3000)).unwrap_err().contains("at most"));
    }
}
