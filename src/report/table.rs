//! Tables: columns padded by hand, colours outside the padding, cut to the page's width.

use super::style::Style;
use super::text::{clean, columns, cut};

/// How a cell is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Dim,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    fn new(text: &str, tone: Tone) -> Self {
        Self {
            text: clean(text),
            tone,
        }
    }

    /// Nothing special.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self::new(text, Tone::Plain)
    }

    /// As it should be.
    #[must_use]
    pub fn good(text: &str) -> Self {
        Self::new(text, Tone::Good)
    }

    /// Broken.
    #[must_use]
    pub fn bad(text: &str) -> Self {
        Self::new(text, Tone::Bad)
    }

    /// Worth a look.
    #[must_use]
    pub fn warn(text: &str) -> Self {
        Self::new(text, Tone::Warn)
    }

    /// Beside the point.
    #[must_use]
    pub fn dim(text: &str) -> Self {
        Self::new(text, Tone::Dim)
    }
}

/// A last column that would be narrower is left out.
const NARROWEST: usize = 5;
/// What is left of the first column at least.
const NAME: usize = 10;

/// Rows of cells.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// With a line of headings.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![headings.iter().map(|heading| Cell::dim(heading)).collect()],
        }
    }

    /// Without headings.
    #[must_use]
    pub fn without_header() -> Self {
        Self::default()
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// As lines, each after `indent`, columns two spaces apart. On a page that is too narrow the last column is cut,
    /// or left out, since what may be missed stands there, and then the first.
    #[must_use]
    pub fn render(&self, indent: &str, style: Style) -> String {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..count)
            .map(|column| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(column))
                    .map(|cell| columns(&cell.text))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        if let Some(page) = style.width() {
            let needed = columns(indent) + widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
            let mut over = needed.saturating_sub(page);
            if let Some(last) = widths.last_mut().filter(|_| over > 0) {
                let kept = last.saturating_sub(over);
                let kept = if kept < NARROWEST { 0 } else { kept };
                over = over.saturating_sub(*last - kept);
                *last = kept;
            }
            if let Some(first) = widths.first_mut() {
                *first = first.saturating_sub(over).max(NAME.min(*first));
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            out.push_str(indent);
            for (column, cell) in row.iter().enumerate() {
                let text = cut(&cell.text, widths[column]);
                let painted = match cell.tone {
                    Tone::Plain => text,
                    Tone::Good => style.good(&text),
                    Tone::Bad => style.bad(&text),
                    Tone::Warn => style.warn(&text),
                    Tone::Dim => style.dim(&text),
                };
                out.push_str(&painted);
                if column + 1 < row.len() {
                    let fill = widths[column] - columns(&cut(&cell.text, widths[column])) + 2;
                    out.extend(std::iter::repeat_n(' ', fill));
                }
            }
            // A last cell without text leaves only its padding.
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_gives_way_to_a_narrow_page() {
        let mut table = Table::new(&["NAME", "OS"]);
        table.row([Cell::plain("worker-1"), Cell::bad("a very long name of a system")]);
        assert_eq!(
            table.render("  ", Style::PLAIN),
            "  NAME      OS\n  worker-1  a very long name of a system\n"
        );
        assert_eq!(
            table.render("  ", Style::PLAIN.wide(24)),
            "  NAME      OS\n  worker-1  a very long…\n"
        );
    }
}
