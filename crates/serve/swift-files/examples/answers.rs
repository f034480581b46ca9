//! Answers questions about files of objects, a JSON value a line, for `tests/swift`, which asks Swift the same.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use swift_files::{Choice, FileName, Policy, Preference, Reclaim, SuffixHash, Wanted, choose};

#[derive(Deserialize)]
struct Question {
    /// With erasure coding.
    erasure: bool,
    /// Files by an object's hash.
    objects: BTreeMap<String, Vec<String>>,
    index: Option<u32>,
    preferences: Option<Vec<(String, Vec<u32>)>>,
    /// Seconds since 1970, and seconds.
    now: u64,
    reclaim_age: u64,
}

#[derive(Serialize)]
struct Answer {
    objects: BTreeMap<String, Object>,
    /// Behind what goes by its age; fragments as text, the rest under "".
    hashes: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Object {
    data: Option<String>,
    meta: Option<String>,
    content_type: Option<String>,
    tombstone: Option<String>,
    obsolete: Vec<String>,
    strays: Vec<String>,
    /// What a clean-up leaves.
    left: Vec<String>,
}

fn text(file: Option<FileName>) -> Option<String> {
    file.map(|file| file.to_string())
}

fn sorted<'a>(files: impl IntoIterator<Item = &'a FileName>) -> Vec<String> {
    let mut names: Vec<String> = files.into_iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names
}

fn answer(question: &Question) -> Result<Answer, Box<dyn std::error::Error>> {
    let mut preferences = Vec::new();
    for (timestamp, exclude) in question.preferences.iter().flatten() {
        let timestamp = timestamp.parse()?;
        preferences.push(Preference {
            timestamp,
            exclude: exclude.clone(),
        });
    }
    let wanted = Wanted {
        index: question.index,
        preferences: question.preferences.is_some().then_some(&preferences),
    };
    let policy = |wanted| {
        if question.erasure {
            Policy::ErasureCoding(wanted)
        } else {
            Policy::Replication
        }
    };
    let reclaim = Reclaim {
        age: question.reclaim_age * 100_000,
        now: question.now * 100_000,
    };
    let mut hash = SuffixHash::new();
    let mut objects = BTreeMap::new();
    for (of, names) in &question.objects {
        let files: Vec<FileName> = names
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()?;
        let Choice {
            data,
            meta,
            content_type,
            tombstone,
            obsolete,
            strays,
            ..
        } = choose(&files, policy(wanted));
        let going = choose(&files, policy(Wanted::default())).reclaim(reclaim, |_| false);
        let left: Vec<FileName> = files
            .into_iter()
            .filter(|file| !going.contains(file))
            .collect();
        if !left.is_empty() {
            hash.add(&choose(&left, policy(Wanted::default())));
        }
        let object = Object {
            data: text(data),
            meta: text(meta),
            content_type: text(content_type),
            tombstone: text(tombstone),
            obsolete: sorted(&obsolete),
            strays: sorted(&strays),
            left: sorted(&left),
        };
        objects.insert(of.clone(), object);
    }
    let hashes = hash.finish(policy(Wanted::default())).into_iter();
    let hashes = hashes
        .map(|(of, hash)| {
            (
                of.map_or_else(String::new, |index| index.to_string()),
                hash.as_str().to_owned(),
            )
        })
        .collect();
    Ok(Answer { objects, hashes })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&serde_json::from_str(&line?)?)?;
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
    }
    Ok(())
}
