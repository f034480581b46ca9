//! Sections and fields of a configuration, each defined once with type, default, example and meaning. The parser, the
//! example, the documentation and `config check` all use these definitions.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

/// Description of a field.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type and unit.
    pub kind: &'static str,
    /// The value used without it.
    pub default: &'static str,
    /// An example value, in TOML.
    pub example: &'static str,
    /// Its meaning.
    pub what: &'static str,
}

/// Defines a section: a struct of optional fields, and their [`Field`]s.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty, $kind:literal, $default:literal, $example:literal, $what:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(#[doc = $what] pub $field: Option<$type>,)*
        }

        impl $name {
            /// Descriptions of the fields.
            pub const FIELDS: &[$crate::settings::field::Field] = &[$($crate::settings::field::Field {
                name: stringify!($field), kind: $kind, default: $default, example: $example, what: $what,
            }),*];

            /// The fields set here, and for others those of `below`.
            pub fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)* }
            }

            /// All fields with their values in TOML, `None` if not set. Secrets are not shown.
            pub fn shown(&self) -> Vec<(&'static str, Option<String>)> {
                use $crate::settings::field::Shown as _;
                vec![$((stringify!($field), self.$field.as_ref().map(|value| value.shown())),)*]
            }
        }
    };
}
pub(crate) use section;

/// A value that can be shown as in a configuration.
pub trait Shown {
    /// The value in TOML; dots for a secret.
    fn shown(&self) -> String;
}

/// A value that is parsed from text as on the command line: `"64GiB"`, `"22:00-06:00"`. Numbers need no quotes.
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
        format!("{:?}", traces::without_user(&self.text))
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

/// A secret, which never shows in debug output or errors.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The library's error for a value of another type would show the value.
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
