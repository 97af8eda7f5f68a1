//! Escaping of text in tables and pages.

use std::borrow::Cow;

/// `text` escaped for HTML, SVG and their attributes.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"']) {
        return text.into();
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").into()
}

/// `text` as a field of a CSV file (RFC 4180).
pub(crate) fn field(text: &str) -> Cow<'_, str> {
    if !text.contains([',', '"', '\n', '\r']) {
        return text.into();
    }
    format!("\"{}\"", text.replace('"', "\"\"")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_element_or_field() {
        assert_eq!(escaped("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!((escaped("plain"), field("plain")), ("plain".into(), "plain".into()));
    }
}
