//! What a configuration is made of: sections with fields, each written down once with its type, default, example and
//! meaning. The reader, the example, the documentation and `config check` all go by that.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

/// One field, in words.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type and unit.
    pub kind: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// A value, as it is written.
    pub example: &'static str,
    /// What it says.
    pub what: &'static str,
}

/// Makes a section: a struct whose fields may all be left out, and its [`Field`]s.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty, $kind:literal, $default:literal, $example:literal, $what:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(#[doc = $what] pub $field: Option<$type>,)*
        }

        impl $name {
            /// Its fields, in words.
            pub const FIELDS: &[$crate::settings::field::Field] = &[$($crate::settings::field::Field {
                name: stringify!($field), kind: $kind, default: $default, example: $example, what: $what,
            }),*];

            /// What is said here, and of the rest what `below` says.
            pub fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)* }
            }

            /// Its fields with their values as they are written, as far as they are said. Secrets are not shown.
            pub fn shown(&self) -> Vec<(&'static str, Option<String>)> {
                use $crate::settings::field::Shown as _;
                vec![$((stringify!($field), self.$field.as_ref().map(|value| value.shown())),)*]
            }
        }
    };
}
pub(crate) use section;

/// A value as it is written in a configuration.
pub trait Shown {
    /// In TOML, or instead of a secret, dots.
    fn shown(&self) -> String;
}

/// A value in words, as the command line has it too: `"64GiB"`, `"22:00-06:00"`. A number needs no quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value.
    pub value: T,
    text: String,
}

impl<T: FromStr> FromStr for Parsed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let (value, text) = (text.parse()?, text.to_owned());
        Ok(Self { value, text })
    }
}

impl<T: Display> From<T> for Parsed<T> {
    fn from(value: T) -> Self {
        let text = value.to_string();
        Self { value, text }
    }
}

impl<T> Shown for Parsed<T> {
    fn shown(&self) -> String {
        format!("{:?}", self.text)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words<T>(PhantomData<T>);
        impl<T: FromStr<Err: Display>> Visitor<'_> for Words<T> {
            type Value = Parsed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Parsed<T>, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Parsed<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Parsed<T>, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Words(PhantomData))
    }
}

/// A secret: in no debug output, and in no error.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The library's words for a value of another type would show it.
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("a string is meant")),
        }
    }
}

impl Shown for Secret {
    fn shown(&self) -> String {
        "\"…\"".to_owned()
    }
}

impl Shown for String {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl Shown for PathBuf {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl Shown for bool {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for u32 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> String {
        let values: Vec<String> = self.iter().map(T::shown).collect();
        format!("[{}]", values.join(", "))
    }
}
