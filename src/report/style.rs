//! Colours and the width of the page, decided once. The text reads the same without colours.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use anstream::AutoStream;
use anstream::stream::RawStream;
use owo_colors::OwoColorize;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` or the like says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Narrower terminals are written to as if they had no edge.
const NARROWEST: usize = 40;

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    colour: bool,
    width: Option<usize>,
}

impl Style {
    /// Without colour.
    pub const PLAIN: Self = Self {
        colour: false,
        width: None,
    };
    /// With colour.
    pub const COLOUR: Self = Self {
        colour: true,
        width: None,
    };

    /// For text on standard output.
    #[must_use]
    pub fn for_stdout(when: ColorWhen) -> Self {
        Self::decide(when, &io::stdout())
    }

    /// For text on standard error.
    #[must_use]
    pub fn for_stderr(when: ColorWhen) -> Self {
        Self::decide(when, &io::stderr())
    }

    fn decide<S: RawStream + IsTerminal + AsFd>(when: ColorWhen, stream: &S) -> Self {
        let colour = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => AutoStream::choice(stream) != anstream::ColorChoice::Never,
        };
        // Elsewhere nobody knows the width, and a line is easier to search when it is whole.
        let width = terminal_size::terminal_size_of(stream)
            .map(|(width, _)| usize::from(width.0))
            .filter(|width| *width >= NARROWEST);
        Self { colour, width }
    }

    /// The same on a page of so many columns.
    #[must_use]
    pub fn wide(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }

    /// Columns of the page; `None` where lines may be of any length.
    #[must_use]
    pub fn width(self) -> Option<usize> {
        self.width
    }

    /// Whether it paints.
    #[must_use]
    pub fn has_colour(self) -> bool {
        self.colour
    }

    /// Done, healthy, added.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        if self.colour {
            text.green().to_string()
        } else {
            text.to_owned()
        }
    }

    /// Failed, unhealthy, removed.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        if self.colour {
            text.red().to_string()
        } else {
            text.to_owned()
        }
    }

    /// Worth a look.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        if self.colour {
            text.yellow().to_string()
        } else {
            text.to_owned()
        }
    }

    /// Names and hints.
    #[must_use]
    pub fn accent(self, text: &str) -> String {
        if self.colour {
            text.cyan().to_string()
        } else {
            text.to_owned()
        }
    }

    /// Beside the point.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        if self.colour {
            text.dimmed().to_string()
        } else {
            text.to_owned()
        }
    }

    /// Headings.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        if self.colour {
            text.bold().to_string()
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_surrounds_the_text() {
        assert_eq!(Style::PLAIN.bad("failed"), "failed");
        let painted = Style::COLOUR.bad("failed");
        assert_ne!(painted, "failed");
        assert_eq!(crate::report::text::clean(&painted), "failed");
    }

    #[test]
    fn the_flag_decides() {
        assert!(Style::for_stderr(ColorWhen::Always).has_colour());
        assert!(!Style::for_stdout(ColorWhen::Never).has_colour());
    }
}
