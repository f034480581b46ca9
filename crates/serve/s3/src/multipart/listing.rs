//! ListParts and ListMultipartUploads.

use super::{StoredPart, Upload, load, parts, visit};
use crate::collections::{self, uploads_of};
use crate::dates::timestamp;
use crate::errors::of_store;
use crate::gateway::{Gateway, owner, set_checksum};
use crate::pages::{Encode, MAX_PAGE, page_size};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeMap;

fn initiator() -> Initiator {
    let Owner { display_name, id } = owner();
    Initiator { display_name, id }
}

/// ListParts.
pub async fn list_parts(
    gateway: &Gateway,
    request: S3Request<ListPartsInput>,
) -> S3Result<S3Response<ListPartsOutput>> {
    let input = request.input;
    let limit = page_size(input.max_parts)?;
    let marker = input.part_number_marker.unwrap_or(0);
    let first = u32::try_from(marker)
        .map_err(|_| s3_error!(InvalidArgument, "A part number marker must not be negative"))?
        .saturating_add(1);
    let (bucket, key, id) = (
        input.bucket.clone(),
        input.key.clone(),
        input.upload_id.clone(),
    );
    let (upload, mut found) = gateway
        .call(move |store| {
            let upload = load(store, &bucket, &key, &id)?;
            // One part more than requested tells whether more follow.
            let found = match first {
                1..=super::MAX_PARTS => {
                    let (collection, fail) = (uploads_of(&bucket), |error| Err(of_store(error)));
                    parts(store, (&collection, &id), first, limit + 1, fail)?
                }
                _ => Vec::new(),
            };
            Ok((upload, found))
        })
        .await?;
    let more = limit > 0 && found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .and_then(|part| i32::try_from(part.number).ok());
    let (checksum_algorithm, checksum_type) = upload.checksum_names();
    Ok(S3Response::new(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        checksum_algorithm,
        checksum_type,
        initiator: Some(initiator()),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        part_number_marker: Some(marker),
        next_part_number_marker: next.or(Some(marker)),
        max_parts: i32::try_from(limit).ok(),
        is_truncated: Some(more),
        parts: Some(found.into_iter().map(part).collect()),
        ..Default::default()
    }))
}

fn part(stored: StoredPart) -> Part {
    let mut part = Part {
        part_number: i32::try_from(stored.number).ok(),
        e_tag: Some(ETag::Strong(stored.etag)),
        size: i64::try_from(stored.size).ok(),
        last_modified: Some(timestamp(stored.modified_micros)),
        ..Default::default()
    };
    set_checksum!(part, &stored.checksum);
    part
}

/// The first items after a marker, in the order of S3: by key, then by upload id.
struct Selection {
    prefix: String,
    delimiter: String,
    after_key: String,
    after_id: String,
    limit: usize,
    items: BTreeMap<(String, String), Option<Upload>>,
}

impl Selection {
    /// Offers an upload for the page; uploads that cannot be on it are dropped at once, so that memory is limited by
    /// the page and not by the number of uploads.
    fn offer(&mut self, upload: Upload) {
        let Some(rest) = upload.key.strip_prefix(&self.prefix) else {
            return;
        };
        let end = (!self.delimiter.is_empty())
            .then(|| rest.find(&self.delimiter))
            .flatten();
        let (name, item) = match end {
            Some(at) => {
                let end = self.prefix.len() + at + self.delimiter.len();
                ((upload.key[..end].to_owned(), String::new()), None)
            }
            None => ((upload.key.clone(), upload.id.clone()), Some(upload)),
        };
        let behind = match name.0.cmp(&self.after_key) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => !self.after_id.is_empty() && name.1 > self.after_id,
            std::cmp::Ordering::Greater => true,
        };
        if behind {
            self.items.insert(name, item);
            if self.items.len() > self.limit.saturating_add(1) {
                self.items.pop_last();
            }
        }
    }
}

/// ListMultipartUploads.
pub async fn list_uploads(
    gateway: &Gateway,
    request: S3Request<ListMultipartUploadsInput>,
) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
    let input = request.input;
    let encode = Encode::of(input.encoding_type.as_ref())?;
    let limit = page_size(input.max_uploads)?.min(MAX_PAGE);
    let delimiter = input.delimiter.filter(|delimiter| !delimiter.is_empty());
    let mut selection = Selection {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: delimiter.clone().unwrap_or_default(),
        after_key: input.key_marker.clone().unwrap_or_default(),
        after_id: input.upload_id_marker.clone().unwrap_or_default(),
        limit,
        items: BTreeMap::new(),
    };
    let bucket = input.bucket.clone();
    let mut items = gateway
        .call(move |store| {
            collections::require(store, &bucket)?;
            visit(store, &uploads_of(&bucket), |id, meta| {
                if let Some(upload) = meta.and_then(|info| Upload::of(id, &info)) {
                    selection.offer(upload);
                }
                Ok(())
            })?;
            Ok(selection.items)
        })
        .await?;
    let more = limit > 0 && items.len() > limit;
    while items.len() > limit {
        items.pop_last();
    }
    let names = items.keys().map(|(name, _)| name.as_str());
    let encode = encode.for_names(
        names
            .chain(input.prefix.as_deref())
            .chain(input.key_marker.as_deref()),
    );
    let last = items.keys().next_back().cloned().filter(|_| more);
    let (next_key, next_id) = last.unzip();
    let (mut uploads, mut prefixes) = (Vec::new(), Vec::new());
    for ((name, _), item) in items {
        match item {
            None => prefixes.push(name),
            Some(upload) => uploads.push(describe(&encode, upload)),
        }
    }
    Ok(S3Response::new(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        prefix: encode.option(input.prefix),
        delimiter: encode.option(delimiter),
        key_marker: Some(encode.text(input.key_marker.unwrap_or_default())),
        upload_id_marker: Some(input.upload_id_marker.unwrap_or_default()),
        next_key_marker: encode.option(next_key),
        next_upload_id_marker: next_id,
        max_uploads: i32::try_from(limit).ok(),
        is_truncated: Some(more),
        uploads: Some(uploads),
        common_prefixes: Some(encode.prefixes(prefixes)),
        encoding_type: encode.kind(),
        request_charged: None,
    }))
}

fn describe(encode: &Encode, upload: Upload) -> MultipartUpload {
    let (checksum_algorithm, checksum_type) = upload.checksum_names();
    MultipartUpload {
        key: Some(encode.text(upload.key)),
        upload_id: Some(upload.id),
        initiated: Some(timestamp(upload.initiated_micros)),
        initiator: Some(initiator()),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        checksum_algorithm,
        checksum_type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::ObjectAttributes;

    fn select(
        keys: &[(&str, &str)],
        delimiter: &str,
        after: (&str, &str),
        limit: usize,
    ) -> Vec<String> {
        let mut selection = Selection {
            prefix: String::new(),
            delimiter: delimiter.into(),
            after_key: after.0.into(),
            after_id: after.1.into(),
            limit,
            items: BTreeMap::new(),
        };
        for (key, id) in keys {
            selection.offer(Upload {
                id: (*id).into(),
                key: (*key).into(),
                object: ObjectAttributes::default(),
                lock: Ok(crate::lock::Lock::default()),
                algorithm: None,
                full: false,
                initiated_micros: 0,
            });
            assert!(selection.items.len() <= limit + 1);
        }
        selection
            .items
            .into_keys()
            .map(|(key, id)| format!("{key}:{id}"))
            .collect()
    }

    #[test]
    fn uploads_sort_by_key_then_id() {
        let keys = [
            ("b", "1"),
            ("a", "9"),
            ("c/x", "3"),
            ("a", "2"),
            ("c/y", "4"),
        ];
        assert_eq!(
            select(&keys, "", ("", ""), 9),
            ["a:2", "a:9", "b:1", "c/x:3", "c/y:4"]
        );
        assert_eq!(
            select(&keys, "/", ("", ""), 9),
            ["a:2", "a:9", "b:1", "c/:"]
        );
        assert_eq!(select(&keys, "", ("a", ""), 9), ["b:1", "c/x:3", "c/y:4"]);
        assert_eq!(
            select(&keys, "", ("a", "2"), 9),
            ["a:9", "b:1", "c/x:3", "c/y:4"]
        );
        assert_eq!(select(&keys, "", ("", ""), 1), ["a:2", "a:9"]);
        assert_eq!(select(&keys, "/", ("c/", ""), 9), Vec::<String>::new());
    }
}
