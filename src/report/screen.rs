//! The terminal that bars are drawn on, with room for what the person types.
//!
//! indicatif leaves the cursor behind the right edge, where the `^C` that a terminal echoes goes to the next line: the
//! next drawing would begin a line too low, and a bar would stay behind. Here the cursor rests at the line's beginning.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::TermLike;

/// A terminal whose cursor rests at the beginning of the last line.
#[derive(Debug)]
pub struct Screen<T: TermLike> {
    term: T,
    /// The last line holds text, and the cursor was taken back to its beginning.
    rests: AtomicBool,
    /// Something was written since the last flush, and nothing moved or cleared after it.
    written: AtomicBool,
}

impl<T: TermLike> Screen<T> {
    /// On this terminal.
    pub fn new(term: T) -> Self {
        Self {
            term,
            rests: AtomicBool::new(false),
            written: AtomicBool::new(false),
        }
    }

    /// What follows is drawn over the line that the cursor rests on.
    fn draws_over(&self) {
        self.rests.store(false, Ordering::Relaxed);
        self.written.store(false, Ordering::Relaxed);
    }

    /// What follows goes below the line that the cursor rests on.
    fn goes_on_below(&self) -> io::Result<()> {
        if self.rests.swap(false, Ordering::Relaxed) {
            self.term.write_str("\n")?;
        }
        Ok(())
    }
}

impl<T: TermLike> TermLike for Screen<T> {
    fn width(&self) -> u16 {
        self.term.width()
    }

    fn height(&self) -> u16 {
        self.term.height()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        if n > 0 {
            self.draws_over();
        }
        self.term.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.goes_on_below()?;
        self.written.store(false, Ordering::Relaxed);
        self.term.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.goes_on_below()?;
        self.written.store(true, Ordering::Relaxed);
        self.term.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.draws_over();
        self.term.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        if self.written.swap(false, Ordering::Relaxed) {
            self.term.write_str("\r")?;
            self.rests.store(true, Ordering::Relaxed);
        }
        self.term.flush()
    }
}

/// Whoever writes next begins on a line of their own.
impl<T: TermLike> Drop for Screen<T> {
    fn drop(&mut self) {
        // A terminal that went away needs no end of a line.
        let _ = self.goes_on_below().and_then(|()| self.term.flush());
    }
}

#[cfg(test)]
mod tests {
    use indicatif::{InMemoryTerm, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

    use super::*;

    #[test]
    fn what_the_terminal_echoes_leaves_nothing_behind() {
        let term = InMemoryTerm::new(12, 30);
        let screen = Box::new(Screen::new(term.clone()));
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::term_like_with_hz(screen, 255));
        multi.println("first").unwrap();
        multi.println("second").unwrap();
        assert_eq!(term.contents(), "first\nsecond");
        let style = ProgressStyle::with_template("{wide_msg}").unwrap();
        let bars = ["all", "cp1", "w1"].map(|name| {
            let bar = multi.add(ProgressBar::new_spinner());
            bar.set_style(style.clone());
            bar.set_message(format!("{name} {}", "x".repeat(60)));
            bar
        });
        assert_eq!(term.contents().lines().count(), 5);
        term.write_str("^C").unwrap();
        multi.println("interrupted").unwrap();
        let shown = term.contents();
        assert!(shown.starts_with("first\nsecond\ninterrupted\nall x"), "{shown}");
        assert_eq!(shown.lines().count(), 6, "{shown}");
        term.write_str("^C").unwrap();
        for bar in bars {
            multi.remove(&bar);
        }
        multi.clear().unwrap();
        assert_eq!(term.contents(), "first\nsecond\ninterrupted");
        drop(multi);
        term.write_str("the end").unwrap();
        assert_eq!(term.contents(), "first\nsecond\ninterrupted\nthe end");
    }

    #[test]
    fn text_alone_ends_its_line() {
        let term = InMemoryTerm::new(12, 30);
        let screen = Box::new(Screen::new(term.clone()));
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::term_like_with_hz(screen, 255));
        multi.println("first").unwrap();
        drop(multi);
        term.write_str("the end").unwrap();
        assert_eq!(term.contents(), "first\nthe end");
    }
}
