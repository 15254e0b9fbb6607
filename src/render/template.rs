//! Plain text from the templates that are built into the program; an undefined name is an error.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// A template did not render.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the template {name}: {source}; this is a fault of k8sup, please report it")]
pub struct TemplateError {
    name: &'static str,
    source: minijinja::Error,
}

pub(super) fn render(name: &'static str, source: &str, context: impl Serialize) -> Result<String, TemplateError> {
    let render = || {
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(syntax.build()?);
        environment.render_str(source, Serde(context))
    };
    render().map_err(|source| TemplateError { name, source })
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn an_undefined_name_is_an_error() {
        let error = render(
            "a.j2",
            "{{ there }} {{ not_there }}\n",
            serde_json::json!({ "there": 1 }),
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot render the template a.j2: undefined value"),
            "{error}"
        );
    }

    #[test]
    fn block_tags_leave_no_lines_behind() {
        let text = render(
            "a.j2",
            "{% for x in xs %}\n  - {{ x }}\n{% endfor %}\nend\n",
            serde_json::json!({ "xs": [1, 2] }),
        );
        assert_eq!(text.unwrap(), "  - 1\n  - 2\nend\n");
    }
}
