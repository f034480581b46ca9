//! The listing against an obvious model, and how few entries it may read.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

impl Keyed for String {
    fn key(&self) -> &str {
        self
    }
}

/// Counts what a seek costs.
#[derive(Default)]
struct Cost {
    seeks: usize,
    entries: usize,
}

fn list(keys: &BTreeSet<String>, query: &Query<'_>, cost: &mut Cost) -> Page<String> {
    let seek = |from: &str, n: usize| -> Result<Vec<String>, ()> {
        let found: Vec<String> = keys
            .range(from.to_owned()..)
            .filter(|key| key.starts_with(query.prefix))
            .take(n)
            .cloned()
            .collect();
        cost.seeks += 1;
        cost.entries += found.len();
        Ok(found)
    };
    page(query, seek).unwrap()
}

/// All items in order, by the definition.
fn model(keys: &BTreeSet<String>, prefix: &str, delimiter: &str) -> Vec<(String, bool)> {
    let mut items = BTreeSet::new();
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        let at = (!delimiter.is_empty())
            .then(|| key[prefix.len()..].find(delimiter))
            .flatten();
        match at {
            Some(at) => items.insert((key[..prefix.len() + at + delimiter.len()].to_owned(), true)),
            None => items.insert((key.clone(), false)),
        };
    }
    items.into_iter().collect()
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn key() -> impl Strategy<Value = String> {
    "[ab/é\u{d7ff}\u{10ffff}]{0,6}".prop_filter("keys are not empty", |key| !key.is_empty())
}

proptest! {
    #[test]
    fn pages_put_together_are_the_whole(
        keys in prop::collection::btree_set(key(), 0..60),
        prefix in "[ab/]{0,2}",
        delimiter in "(|/|a|ab|\u{10ffff})",
        limit in 1usize..8,
    ) {
        let expected = model(&keys, &prefix, &delimiter);
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let query = Query { prefix: &prefix, delimiter: &delimiter, after: &after, limit };
            let page = list(&keys, &query, &mut Cost::default());
            let mut items: Vec<(String, bool)> =
                page.entries.iter().map(|key| (key.clone(), false)).collect();
            items.extend(page.prefixes.iter().map(|prefix| (prefix.clone(), true)));
            items.sort();
            prop_assert!(items.len() <= limit);
            if let Some(next) = &page.next {
                prop_assert_eq!(items.len(), limit);
                prop_assert_eq!(&items[limit - 1].0, next);
            }
            found.extend(items);
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_start_gives_what_lies_behind(
        keys in prop::collection::btree_set(key(), 0..40),
        prefix in "[ab/]{0,2}",
        delimiter in "(|/|a)",
        after in "[ab/é]{0,5}",
    ) {
        let query = Query { prefix: &prefix, delimiter: &delimiter, after: &after, limit: 1000 };
        let page = list(&keys, &query, &mut Cost::default());
        let expected: Vec<_> = model(&keys, &prefix, &delimiter)
            .into_iter()
            .filter(|(item, _)| *item > after)
            .collect();
        let mut items: Vec<(String, bool)> = page.entries.into_iter().map(|key| (key, false)).collect();
        items.extend(page.prefixes.into_iter().map(|prefix| (prefix, true)));
        items.sort();
        prop_assert_eq!(items, expected);
    }

    #[test]
    fn a_successor_is_the_next_string(prefix in "\\PC{0,4}", tail in "\\PC{0,3}") {
        if let Some(next) = successor_of_prefix(&prefix) {
            let below = format!("{prefix}{tail}");
            prop_assert!(below < next && !next.starts_with(&prefix), "{:?} {:?}", prefix, next);
        } else {
            prop_assert!(prefix.chars().all(|c| c == char::MAX));
        }
    }

    #[test]
    fn tokens_go_both_ways(key in "\\PC{0,30}") {
        prop_assert_eq!(decode_token(&encode_token(&key)), Some(key));
    }

    #[test]
    fn any_token_is_read(token in "\\PC{0,30}") {
        decode_token(&token);
    }
}

#[test]
fn keys_below_a_common_prefix_are_jumped_over() {
    let mut keys = BTreeSet::new();
    for directory in 0..5 {
        keys.extend((0..20_000).map(|n| format!("d{directory}/{n:06}")));
    }
    keys.extend((0..10).map(|n| format!("z{n}")));
    let mut cost = Cost::default();
    let query = Query {
        delimiter: "/",
        limit: 1000,
        ..Default::default()
    };
    let page = list(&keys, &query, &mut cost);
    assert_eq!(page.prefixes, ["d0/", "d1/", "d2/", "d3/", "d4/"]);
    assert_eq!((page.entries.len(), page.next), (10, None));
    assert!(
        cost.seeks <= 7 && cost.entries <= 7 * 16,
        "{} {}",
        cost.seeks,
        cost.entries
    );
}

#[test]
fn a_flat_page_takes_few_seeks() {
    let keys: BTreeSet<String> = (0..5000).map(|n| format!("{n:06}")).collect();
    let mut cost = Cost::default();
    let page = list(
        &keys,
        &Query {
            limit: 1000,
            ..Default::default()
        },
        &mut cost,
    );
    assert_eq!(
        (page.entries.len(), page.next.as_deref()),
        (1000, Some("000999"))
    );
    assert!(cost.seeks <= 2, "{}", cost.seeks);
    let mut cost = Cost::default();
    let query = Query {
        limit: 1000,
        delimiter: "/",
        ..Default::default()
    };
    assert_eq!(list(&keys, &query, &mut cost).entries.len(), 1000);
    assert!(cost.seeks <= 6, "{}", cost.seeks);
}

#[test]
fn nothing_asked_nothing_given() {
    let keys = set(&["a", "b"]);
    let page = list(
        &keys,
        &Query {
            limit: 0,
            ..Default::default()
        },
        &mut Cost::default(),
    );
    assert_eq!(
        page,
        Page {
            entries: vec![],
            prefixes: vec![],
            next: None
        }
    );
}

#[test]
fn a_start_within_a_common_prefix_skips_it() {
    let keys = set(&["a/1", "a/2", "b"]);
    let query = Query {
        delimiter: "/",
        after: "a/1",
        limit: 10,
        ..Default::default()
    };
    let page = list(&keys, &query, &mut Cost::default());
    assert_eq!(
        (page.prefixes, page.entries),
        (vec![], vec!["b".to_owned()])
    );
}

#[test]
fn url_encoding_keeps_slashes() {
    assert_eq!(url_encode("a b/é+%\u{1}~"), "a%20b/%C3%A9%2B%25%01~");
}
