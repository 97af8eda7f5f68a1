//! A table, for the page and as CSV.

use std::fmt::Write;

use super::text::{escaped, field};

// The page shows so many lines; the file has all.
const SHOWN: usize = 60;

// Longer tables scroll on the page.
const LONG: usize = 40;

/// A table of words and numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// Name of its file and anchor.
    pub id: &'static str,
    /// What it holds.
    pub title: &'static str,
    /// How to read it.
    pub caption: String,
    /// Names of the columns, with units.
    pub head: &'static [&'static str],
    /// Lines.
    pub rows: Vec<Vec<String>>,
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

fn class(number: bool) -> &'static str {
    if number { " class=\"n\"" } else { "" }
}

impl Table {
    /// The table as a part of a page.
    pub fn html(&self, folder: &str) -> String {
        let mut out = format!("<section id=\"{}\"><h2>{}</h2>\n", self.id, escaped(self.title));
        let _ = writeln!(out, "<p>{}</p>", escaped(&self.caption));
        let long = if self.rows.len() > LONG { " long" } else { "" };
        let _ = write!(out, "<div class=\"wide{long}\"><table><thead><tr>");
        for (k, name) in self.head.iter().enumerate() {
            // Above numbers as they stand.
            let numbers =
                self.rows.first().and_then(|row| row.get(k)).is_some_and(|c| is_number(c));
            let _ = write!(out, "<th{}>{}</th>", class(numbers), escaped(name));
        }
        out += "</tr></thead><tbody>\n";
        for row in self.rows.iter().take(SHOWN) {
            out += "<tr>";
            for cell in row {
                let _ = write!(out, "<td{}>{}</td>", class(is_number(cell)), escaped(cell));
            }
            out += "</tr>\n";
        }
        out += "</tbody></table></div>\n";
        let rest = self.rows.len().saturating_sub(SHOWN);
        if rest > 0 {
            let _ = write!(out, "<p>{rest} more lines are in the file. ");
        } else {
            out += "<p>";
        }
        let file = escaped(folder);
        let _ = writeln!(out, "<a href=\"{file}/{}.csv\">CSV</a></p></section>", self.id);
        out
    }

    /// The table as CSV (RFC 4180).
    pub fn csv(&self) -> String {
        let line = |cells: Vec<_>| cells.join(",") + "\r\n";
        let head = line(self.head.iter().map(|c| field(c)).collect());
        let rows = self.rows.iter().map(|row| line(row.iter().map(|c| field(c)).collect()));
        head + &rows.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_are_cut_on_the_page_alone() {
        let table = Table {
            id: "t",
            title: "T",
            caption: String::new(),
            head: &["name", "ms"],
            rows: (0..100).map(|k| vec![format!("a,{k}"), format!("{k}.5")]).collect(),
        };
        let (html, csv) = (table.html("r"), table.csv());
        assert!(html.contains("40 more lines") && html.contains("<a href=\"r/t.csv\">"), "{html}");
        assert!(html.contains("<td>a,3</td><td class=\"n\">3.5</td>"), "{html}");
        assert!(html.contains("<th>name</th><th class=\"n\">ms</th>"), "{html}");
        assert_eq!(csv.lines().count(), 101);
        assert!(csv.starts_with("name,ms\r\n\"a,0\",0.5\r\n"), "{csv}");
    }
}
