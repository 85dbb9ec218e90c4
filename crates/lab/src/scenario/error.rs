//! Why a scenario file is refused, and where.

use std::fmt;
use std::io;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::channel::SpecError;
use crate::trace::TraceError;

/// Why a scenario file is refused: one sentence that names the file, the line if it is known, the field and what it takes.
#[derive(Debug)]
pub struct ScenarioError {
    /// The file.
    pub file: String,
    /// The line, from 1; None when no line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub why: Refusal,
}

/// What is wrong with a scenario file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is no TOML, has a field that there is not, or a field of the wrong type; in the words of the parser.
    Syntax {
        /// The field, if it is one.
        field: Option<String>,
        /// What is wrong with it.
        message: String,
    },
    /// A field is outside its range.
    Range {
        /// Which field.
        field: String,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A field must be there and is not.
    Missing {
        /// Which field, or which of several.
        field: String,
    },
    /// A field cannot stand beside another, or says nothing without another.
    Conflict {
        /// Which field.
        field: String,
        /// Why not.
        why: &'static str,
    },
    /// The path makes no sense.
    Path(SpecError),
    /// A recording cannot be read or played.
    Recording {
        /// The field that names it.
        field: String,
        /// What is wrong with it, and where.
        error: Box<TraceError>,
    },
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "the scenario cannot be read: {error}"),
            Self::Syntax {
                field: Some(field),
                message,
            } => write!(f, "`{field}`: {message}"),
            Self::Syntax {
                field: None,
                message,
            } => f.write_str(message),
            Self::Range {
                field,
                expected,
                found,
            } => write!(f, "`{field}` must be {expected}, not {found}"),
            Self::Missing { field } => write!(f, "`{field}` is missing"),
            Self::Conflict { field, why } => write!(f, "`{field}` {why}"),
            Self::Path(error) => write!(f, "the network makes no sense: {error}"),
            Self::Recording { field, error } => write!(f, "`{field}`: {error}"),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// What is wrong, and at which place.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) place: Vec<Key>,
    pub(super) why: Refusal,
}

/// A step of the way to a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Field(&'static str),
    Item(usize),
}

/// A place in the file: the way to a table, from the top.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Self>,
    key: Key,
}

impl<'a> Place<'a> {
    /// The top.
    pub(super) const TOP: Self = Self {
        parent: None,
        key: Key::Field(""),
    };

    pub(super) const fn table(&'a self, name: &'static str) -> Self {
        Self {
            parent: Some(self),
            key: Key::Field(name),
        }
    }

    pub(super) const fn item(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            key: Key::Item(index),
        }
    }

    fn keys(&self, field: &'static str) -> Vec<Key> {
        let mut keys = if field.is_empty() {
            Vec::new()
        } else {
            vec![Key::Field(field)]
        };
        let mut at = Some(self);
        while let Some(place) = at.filter(|place| place.parent.is_some()) {
            keys.push(place.key);
            at = place.parent;
        }
        keys.reverse();
        keys
    }

    pub(super) fn range(
        &self,
        field: &'static str,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Problem {
        let place = self.keys(field);
        Problem {
            why: Refusal::Range {
                field: dotted(&place),
                expected: expected.into(),
                found: found.to_string(),
            },
            place,
        }
    }

    pub(super) fn missing(&self, field: &'static str) -> Problem {
        // The line is that of the table, for the field has none.
        let mut name = dotted(&self.keys(""));
        if !name.is_empty() {
            name.push('.');
        }
        Problem {
            place: self.keys(""),
            why: Refusal::Missing {
                field: name + field,
            },
        }
    }

    pub(super) fn conflict(&self, field: &'static str, why: &'static str) -> Problem {
        let place = self.keys(field);
        Problem {
            why: Refusal::Conflict {
                field: dotted(&place),
                why,
            },
            place,
        }
    }

    pub(super) fn recording(&self, field: &'static str, error: TraceError) -> Problem {
        let place = self.keys(field);
        Problem {
            why: Refusal::Recording {
                field: dotted(&place),
                error: Box::new(error),
            },
            place,
        }
    }

    pub(super) fn path(&self, error: SpecError) -> Problem {
        Problem {
            place: self.keys(""),
            why: Refusal::Path(error),
        }
    }
}

/// `stream.traffic.every_ms`: as TOML has it; which of several streams, the line says.
fn dotted(keys: &[Key]) -> String {
    let names = keys.iter().filter_map(|key| match key {
        Key::Field(name) => Some(*name),
        Key::Item(_) => None,
    });
    names.collect::<Vec<_>>().join(".")
}

impl Problem {
    /// With the line, which is found by reading the text again.
    pub(super) fn in_text(self, file: &str, text: &str) -> ScenarioError {
        ScenarioError {
            file: file.to_owned(),
            line: offset_of(text, &self.place).map(|offset| line_of(text, offset)),
            why: self.why,
        }
    }
}

/// What the parser says, with file and line.
pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> ScenarioError {
    let offset = error.span().map(|span| span.start);
    // "unknown field" names it already; of the rest, such as "invalid type", the parser does not say where.
    let message = error
        .message()
        .trim()
        .replace('\n', ", ")
        .replace("expected f64", "expected a number")
        .replace("expected u64", "expected a whole number, 0 or more");
    let field = offset
        .filter(|_| !message.contains("field `"))
        .and_then(|offset| name_at(text, offset));
    ScenarioError {
        file: file.to_owned(),
        line: offset.map(|offset| line_of(text, offset)),
        why: Refusal::Syntax { field, message },
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// Where the deepest part of the way that there is begins.
fn offset_of(text: &str, place: &[Key]) -> Option<usize> {
    let top = DeTable::parse(text).ok()?;
    let mut keys = place.iter();
    let mut table: Option<&DeTable<'_>> = Some(top.get_ref());
    let mut value: Option<&Spanned<DeValue<'_>>> = None;
    let mut offset = None;
    for key in &mut keys {
        let next = match *key {
            Key::Field(name) => table.and_then(|table| {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
                Some((key.span().start, value))
            }),
            Key::Item(index) => value.and_then(|value| match value.get_ref() {
                DeValue::Array(items) => items.get(index).map(|item| (item.span().start, item)),
                _ => None,
            }),
        };
        let Some((start, found)) = next else { break };
        offset = Some(start);
        value = Some(found);
        table = match found.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        };
    }
    offset
}

/// The dotted name of the value that lies at `offset`.
fn name_at(text: &str, offset: usize) -> Option<String> {
    fn search(value: &Spanned<DeValue<'_>>, offset: usize) -> Option<String> {
        match value.get_ref() {
            DeValue::Table(table) => search_table(table, offset),
            DeValue::Array(items) => items.iter().find_map(|item| search(item, offset)),
            _ => value.span().contains(&offset).then(String::new),
        }
    }
    fn search_table(table: &DeTable<'_>, offset: usize) -> Option<String> {
        table.iter().find_map(|(key, value)| {
            let below = search(value, offset)
                .or_else(|| (value.span().start == offset).then(String::new))?;
            let dot = if below.is_empty() { "" } else { "." };
            Some(format!("{}{dot}{below}", key.get_ref()))
        })
    }
    search_table(DeTable::parse(text).ok()?.get_ref(), offset)
}
