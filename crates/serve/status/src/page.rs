//! The page's files, which are in the program: nothing is loaded from elsewhere, and nothing of the drive is in them.

/// A file of the page: its media type and its bytes.
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    Some(match path {
        "/-/" => (
            "text/html; charset=utf-8",
            include_str!("../page/index.html"),
        ),
        "/-/page.css" => ("text/css; charset=utf-8", include_str!("../page/page.css")),
        "/-/page.js" => (
            "text/javascript; charset=utf-8",
            include_str!("../page/page.js"),
        ),
        "/-/zones.js" => (
            "text/javascript; charset=utf-8",
            include_str!("../page/zones.js"),
        ),
        "/-/icon.svg" => ("image/svg+xml", include_str!("../page/icon.svg")),
        _ => return None,
    })
}

/// What a browser may do with the page: its own scripts and styles, and questions to where it came from.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
