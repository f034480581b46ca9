//! The page's static files, compiled into the program: nothing is loaded from other sites, and the files have no data
//! of the drive.

/// Media type and text of a file of the page; `None` for other paths.
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    let script = |text| ("text/javascript; charset=utf-8", text);
    Some(match path {
        "/-/" => (
            "text/html; charset=utf-8",
            include_str!("../page/index.html"),
        ),
        "/-/page.css" => ("text/css; charset=utf-8", include_str!("../page/page.css")),
        "/-/icon.svg" => ("image/svg+xml", include_str!("../page/icon.svg")),
        "/-/buckets.js" => script(include_str!("../page/buckets.js")),
        "/-/caches.js" => script(include_str!("../page/caches.js")),
        "/-/cleaner.js" => script(include_str!("../page/cleaner.js")),
        "/-/elements.js" => script(include_str!("../page/elements.js")),
        "/-/health.js" => script(include_str!("../page/health.js")),
        "/-/log.js" => script(include_str!("../page/log.js")),
        "/-/notices.js" => script(include_str!("../page/notices.js")),
        "/-/page.js" => script(include_str!("../page/page.js")),
        "/-/server.js" => script(include_str!("../page/server.js")),
        "/-/sign_in.js" => script(include_str!("../page/sign_in.js")),
        "/-/space.js" => script(include_str!("../page/space.js")),
        "/-/traffic.js" => script(include_str!("../page/traffic.js")),
        "/-/words.js" => script(include_str!("../page/words.js")),
        "/-/zone_facts.js" => script(include_str!("../page/zone_facts.js")),
        "/-/zones.js" => script(include_str!("../page/zones.js")),
        _ => return None,
    })
}

/// Content security policy: the page may use its own scripts and styles, and connect to its own origin.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::file;
    use std::path::Path;

    /// Whatever a module imports is there.
    #[test]
    fn all_files_of_the_page_are_told() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = if name == "index.html" { "" } else { name };
            let (_, text) = file(&format!("/-/{name}")).unwrap();
            assert_eq!(text, std::fs::read_to_string(&path).unwrap());
        }
    }
}
