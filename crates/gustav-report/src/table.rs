//! A table, for the page and as CSV.

use std::fmt::Write;

use super::text::{escaped, field};

// Most lines of a table on the page; the file has all.
const SHOWN: usize = 60;

// Longer tables scroll on the page.
const LONG: usize = 40;

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// Name of its file and anchor.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// How to read it.
    pub caption: String,
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// Lines.
    pub rows: Vec<Row>,
}

/// A line of a table, one string a column.
pub(crate) type Row = Vec<String>;

/// A line of a table, of values that implement `Display`.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($cell.to_string()),*] };
}
pub(crate) use row;

/// A number with `digits` decimals; empty if there is none.
pub(crate) fn number(value: impl Into<Option<f64>>, digits: usize) -> String {
    value.into().map_or_else(String::new, |value| format!("{value:.digits$}"))
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

fn class(number: bool) -> &'static str {
    if number { " class=\"n\"" } else { "" }
}

impl Table {
    /// A table whose `columns` are separated by commas.
    pub fn new(
        id: &'static str,
        title: &'static str,
        columns: &str,
        caption: impl Into<String>,
        rows: Vec<Row>,
    ) -> Self {
        let columns = columns.split(", ").map(str::to_owned).collect();
        Table { id, title, caption: caption.into(), columns, rows }
    }

    /// The table as a part of a page.
    pub fn html(&self, folder: &str) -> String {
        let mut out = format!("<section id=\"{}\"><h3>{}</h3>\n", self.id, escaped(self.title));
        let _ = writeln!(out, "<p>{}</p>", escaped(&self.caption));
        let long = if self.rows.len() > LONG { " long" } else { "" };
        let _ = write!(out, "<div class=\"wide{long}\"><table><thead><tr>");
        for (k, name) in self.columns.iter().enumerate() {
            // Headings are aligned as the numbers below them.
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

    fn lines(&self) -> impl Iterator<Item = &Row> {
        [&self.columns].into_iter().chain(&self.rows)
    }

    /// The table as CSV (RFC 4180).
    pub fn csv(&self) -> String {
        let line = |row: &Row| row.iter().map(|c| field(c)).collect::<Vec<_>>().join(",") + "\r\n";
        self.lines().map(line).collect()
    }

    /// The table as text: columns as wide as their widest cells, numbers to the right.
    pub fn text(&self) -> String {
        let width = |k: usize| self.lines().map(|row| row[k].chars().count()).max().unwrap_or(0);
        let widths: Vec<_> = (0..self.columns.len()).map(width).collect();
        let cell = |(cell, &width): (&String, &usize)| match is_number(cell) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        };
        let line = |row: &Row| {
            let cells: Vec<_> = row.iter().zip(&widths).map(cell).collect();
            cells.join("  ").trim_end().to_owned() + "\n"
        };
        format!("{}\n{}", self.title, self.lines().map(line).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_are_cut_on_the_page_alone() {
        let rows = (0..100).map(|k| row![format!("a,{k}"), k as f64 + 0.5]).collect();
        let table = Table::new("t", "T", "name, ms", "", rows);
        let (html, csv) = (table.html("r"), table.csv());
        assert!(html.contains("40 more lines") && html.contains("<a href=\"r/t.csv\">"), "{html}");
        assert!(html.contains("<td>a,3</td><td class=\"n\">3.5</td>"), "{html}");
        assert!(html.contains("<th>name</th><th class=\"n\">ms</th>"), "{html}");
        assert_eq!(csv.lines().count(), 101);
        assert!(table.text().starts_with("T\nname  ms\na,0    0.5\na,1    1.5\n"));
        assert!(csv.starts_with("name,ms\r\n\"a,0\",0.5\r\n"), "{csv}");
    }
}
