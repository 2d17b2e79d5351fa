//! Lists and texts with bounds, for `#[serde(…)]` attributes.
//!
//! A reader stops with an error at the first element beyond the bound. A writer refuses a list that
//! is too long, so that it never makes what no reader takes. A writer cuts a text at the bound, at
//! a character's border: a message with the first 4096 bytes of a path says more than none.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};

/// Bytes of a text: a path, a note, a name.
pub const TEXT: usize = 4096;
/// Bytes of a byte string: a path, or an argument or variable of a program (the kernel's
/// `MAX_ARG_STRLEN`).
pub const BYTES: usize = 128 << 10;
/// Nodes of a machine; Linux has at most 1024.
pub const NODES: usize = 1024;
/// CPUs of a machine.
pub const CPUS: usize = 1 << 14;

/// `text` on one line and within the bound of a text.
pub fn line(text: &str) -> String {
    cut(text).replace(['\n', '\r'], " ")
}

/// The beginning of `text` that is within the bound.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// A `String` of at most [`TEXT`] bytes.
pub mod text {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// The writer fails.
    pub fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(cut(text))
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is too long or no text.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        struct Short;
        impl Visitor<'_> for Short {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a text of at most {TEXT} bytes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
                if text.len() > TEXT {
                    return Err(E::invalid_length(text.len(), &self));
                }
                Ok(text.to_owned())
            }
        }
        from.deserialize_str(Short)
    }
}

/// A text as an element of a list.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text::deserialize(from).map(Self)
    }
}

/// An `Option<String>` of at most [`TEXT`] bytes.
pub mod some_text {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// The writer fails.
    pub fn serialize<S: Serializer>(text: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
        match text {
            Some(text) => to.serialize_some(cut(text)),
            None => to.serialize_none(),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is too long or no text.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        Ok(Option::<Text>::deserialize(from)?.map(|t| t.0))
    }
}

/// A `Vec<String>` of at most `MOST` texts.
pub mod texts {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// There are too many.
    pub fn write<const MOST: usize, S: Serializer>(texts: &[String], to: S) -> Result<S::Ok, S::Error> {
        if texts.len() > MOST {
            return Err(S::Error::custom("too many texts"));
        }
        let mut list = to.serialize_seq(Some(texts.len()))?;
        for text in texts {
            list.serialize_element(cut(text))?;
        }
        list.end()
    }

    /// Reads it.
    ///
    /// # Errors
    /// There are too many, or one is too long.
    pub fn read<'de, const MOST: usize, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let list: Vec<Text> = list::read::<MOST, _, _>(from)?;
        Ok(list.into_iter().map(|t| t.0).collect())
    }
}

/// A byte string of at most [`BYTES`]: what the system calls a path, an argument, a variable.
struct Os(OsString);

impl<'de> Deserialize<'de> for Os {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Short;
        impl Visitor<'_> for Short {
            type Value = Os;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {BYTES} bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Os, E> {
                if bytes.len() > BYTES {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                Ok(Os(OsString::from_vec(bytes.to_vec())))
            }
        }
        from.deserialize_bytes(Short)
    }
}

/// A borrowed one, which is not cut: a path without its end is another path.
struct Borrowed<'a>(&'a OsStr);

impl Serialize for Borrowed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.len() > BYTES {
            return Err(S::Error::custom("too many bytes"));
        }
        to.serialize_bytes(self.0.as_bytes())
    }
}

/// An `OsString` or `PathBuf` of at most [`BYTES`].
pub mod os {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// It is too long.
    pub fn serialize<T: AsRef<OsStr>, S: Serializer>(text: &T, to: S) -> Result<S::Ok, S::Error> {
        Borrowed(text.as_ref()).serialize(to)
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is too long.
    pub fn deserialize<'de, T: From<OsString>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        Os::deserialize(from).map(|os| os.0.into())
    }
}

/// An `Option` of an `OsString` or `PathBuf` of at most [`BYTES`].
pub mod some_os {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// It is too long.
    pub fn serialize<T: AsRef<OsStr>, S: Serializer>(text: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        text.as_ref().map(|t| Borrowed(t.as_ref())).serialize(to)
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is too long.
    pub fn deserialize<'de, T: From<OsString>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<Os>::deserialize(from)?.map(|os| os.0.into()))
    }
}

/// A `Vec<OsString>` of at most `MOST` elements of at most [`BYTES`] each.
pub mod oses {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// There are too many, or one is too long.
    pub fn write<const MOST: usize, S: Serializer>(all: &[OsString], to: S) -> Result<S::Ok, S::Error> {
        list::write::<MOST, _, _>(&all.iter().map(|os| Borrowed(os)).collect(), to)
    }

    /// Reads it.
    ///
    /// # Errors
    /// There are too many, or one is too long.
    pub fn read<'de, const MOST: usize, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
        let all: Vec<Os> = list::read::<MOST, _, _>(from)?;
        Ok(all.into_iter().map(|os| os.0).collect())
    }
}

/// A `BTreeMap<OsString, OsString>` of at most `MOST` pairs of at most [`BYTES`] each.
pub mod pairs {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// There are too many, or one is too long.
    pub fn write<const MOST: usize, S: Serializer>(
        all: &BTreeMap<OsString, OsString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let pairs: Vec<_> = all.iter().map(|(name, value)| (Borrowed(name), Borrowed(value))).collect();
        list::write::<MOST, _, _>(&pairs, to)
    }

    /// Reads it. Of two pairs with one name the last holds.
    ///
    /// # Errors
    /// There are too many, or one is too long.
    pub fn read<'de, const MOST: usize, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<OsString, OsString>, D::Error> {
        let all: Vec<(Os, Os)> = list::read::<MOST, _, _>(from)?;
        Ok(all.into_iter().map(|(name, value)| (name.0, value.0)).collect())
    }
}

/// A `Vec` of at most `MOST` elements.
pub mod list {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// There are too many.
    pub fn write<const MOST: usize, T: Serialize, S: Serializer>(
        list: &Vec<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        if list.len() > MOST {
            return Err(S::Error::custom("too many elements"));
        }
        list.serialize(to)
    }

    /// Reads it.
    ///
    /// # Errors
    /// There are too many, or one makes no sense.
    pub fn read<'de, const MOST: usize, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<T>, D::Error> {
        struct Few<const MOST: usize, T>(PhantomData<T>);
        impl<'de, const MOST: usize, T: Deserialize<'de>> Visitor<'de> for Few<MOST, T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MOST} elements")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
                let said = from.size_hint().unwrap_or_default();
                if said > MOST {
                    return Err(de::Error::invalid_length(said, &self));
                }
                // What was announced may not be there: the list grows with what is.
                let mut list = Vec::new();
                while let Some(element) = from.next_element()? {
                    if list.len() == MOST {
                        return Err(de::Error::invalid_length(MOST + 1, &self));
                    }
                    list.push(element);
                }
                Ok(list)
            }
        }
        from.deserialize_seq(Few::<MOST, T>(PhantomData))
    }
}
