//! The HTML page: one file without scripts, light or dark by the reader's preference.

use std::fmt::Write;

use gustav_core::Result;

use super::draw::{Figure, dark_rules, slug, svg};
use super::figures::Chapter;
use super::parts::Part;
use super::text::escaped;

const STYLE: &str = "\
:root{--ink:#1b1b1b;--paper:#fff;--faint:#d5d5d5;--band:#f4f4f2;--link:#005a8f}
@media (prefers-color-scheme:dark){:root{--ink:#e4e4e4;--paper:#15181c;--faint:#3a3f45;\
--band:#1d2126;--link:#7cc4f0}}
body{color:var(--ink);background:var(--paper);font:16px/1.5 system-ui,sans-serif;\
max-width:64rem;margin:0 auto;padding:1rem}
a{color:var(--link)}
nav ul{columns:2 20rem}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid var(--faint)}
th{position:sticky;top:0;background:var(--paper)}
tbody tr:nth-child(even){background:var(--band)}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow:auto}
.long{max-height:36rem}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(28rem,100%),1fr));gap:2rem}
figure{margin:0}
figure svg{width:100%;height:auto;max-width:36rem}
figcaption{font-size:.9rem;max-width:36rem}
";

/// The parts of a page.
pub(crate) struct Page<'a> {
    /// What was measured where, a sentence for each platform.
    pub about: &'a [String],
    /// The figures that answer first.
    pub glance: Option<&'a Chapter>,
    /// Everything else.
    pub parts: &'a [Part],
    /// Families of figures that the records do not fill, and what they need.
    pub absent: &'a [(&'static str, &'static str)],
    /// The folder of the files of tables and figures, relative to the page.
    pub folder: &'a str,
}

impl Page<'_> {
    /// The page as HTML.
    ///
    /// # Errors
    /// As [`svg`].
    pub fn html(&self) -> Result<String> {
        let mut out = String::from(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta \
             name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
             name=\"color-scheme\" content=\"light dark\">\n<title>gustav: measured</title>\n",
        );
        let _ = writeln!(
            out,
            "<style>\n{STYLE}@media (prefers-color-scheme:dark){{\n{}}}\n</style></head><body>\n<h1>gustav: measured</h1>",
            dark_rules()
        );
        out += "<ul>\n";
        for sentence in self.about {
            let _ = writeln!(out, "<li>{}</li>", escaped(sentence));
        }
        out += "</ul>\n";
        if let Some(glance) = self.glance {
            self.chapter(&mut out, glance, "h2")?;
        }
        out += "<nav>\n";
        for part in self.parts {
            let tables = part.tables.iter().map(|t| (t.id.to_owned(), t.title));
            let chapters = part.chapters.iter().map(|c| (slug(c.name), c.name));
            let title = part.title;
            let _ = writeln!(out, "<p><a href=\"#{}\">{}</a></p><ul>", slug(title), escaped(title));
            for (id, title) in tables.chain(chapters) {
                let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", escaped(title));
            }
            out += "</ul>\n";
        }
        out += "</nav>\n";
        for part in self.parts {
            let title = part.title;
            let _ = writeln!(out, "<section id=\"{}\"><h2>{}</h2>", slug(title), escaped(title));
            for table in &part.tables {
                out += &table.html(self.folder);
            }
            for chapter in &part.chapters {
                self.chapter(&mut out, chapter, "h3")?;
            }
            out += "</section>\n";
        }
        if !self.absent.is_empty() {
            out += "<section id=\"absent\"><h2>Not drawn</h2>\n<p>The records do not hold what \
                    these figures need.</p>\n<ul>\n";
            for (name, needs) in self.absent {
                let _ = writeln!(out, "<li>{}: needs {}</li>", escaped(name), escaped(needs));
            }
            out += "</ul></section>\n";
        }
        out += "</body></html>\n";
        Ok(out)
    }

    /// The figures of a family.
    fn chapter(&self, out: &mut String, chapter: &Chapter, heading: &str) -> Result<()> {
        let (id, name) = (slug(chapter.name), escaped(chapter.name));
        let _ = writeln!(out, "<section id=\"{id}\"><{heading}>{name}</{heading}>");
        out.push_str("<div class=\"figures\">\n");
        for figure in &chapter.figures {
            let (svg, files) = (svg(figure)?, self.files(figure));
            let caption = escaped(&figure.caption);
            let _ = writeln!(
                out,
                "<figure id=\"{}\">\n{svg}\n<figcaption>{caption} {files}</figcaption></figure>",
                figure.id
            );
        }
        out.push_str("</div>\n");
        if chapter.left_out > 0 {
            let _ = writeln!(
                out,
                "<p>{} more of fewer points are not drawn; a report of fewer records draws them.</p>",
                chapter.left_out
            );
        }
        out.push_str("</section>\n");
        Ok(())
    }

    fn files(&self, figure: &Figure) -> String {
        let (id, folder) = (&figure.id, escaped(self.folder));
        format!("<a href=\"{folder}/{id}.svg\">SVG</a> <a href=\"{folder}/{id}.png\">PNG</a>")
    }
}
