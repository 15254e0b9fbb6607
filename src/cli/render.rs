//! `k8sup render`: what apply would bring to each host, as files to look at.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Ended;
use super::args::Render as Args;
use super::fleet::{self, followed};
use super::plan::blocked;
use crate::execute::event::Phase;
use crate::exit;
use crate::plan::step::StepParam;
use crate::plan::{Lane, Plan, apply, mask};
use crate::remote::quote;
use crate::report::Console;
use crate::report::text::count;

/// The files that this command has written into a folder, so that it may write them anew.
const LIST: &str = ".k8sup-render";
/// In place of a secret.
const DOTS: &str = "…";

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Somebody's own files would be mixed with ours.
    #[error("{0} is not empty, and k8sup render has not written it")]
    Strange(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Runs the command.
pub async fn run(args: &Args, console: &Console) -> Ended {
    let mut cluster = fleet::load(&args.target, console)?;
    fleet::allow(&mut cluster, &args.allow, console)?;
    let fleet = &fleet::reach(cluster, &args.target, args.facts.as_deref(), console).await?;
    let intent = &fleet.intent(None, console).await?;
    let (facts, _) = followed(
        console,
        |events| async move { fleet.observe(Phase::Observe, &events).await },
    )
    .await;
    fleet.close().await;
    let plan = apply::plan(&fleet.cluster, &facts, intent);
    let plan = args
        .target
        .name_in(plan)
        .map_err(|blockers| blocked(&blockers, console))?;
    let written = write(&args.output, &plan).map_err(|error| {
        console.fail(&error, Some("name a folder that is empty, or that does not exist yet"));
        exit::USAGE
    })?;
    if written == 0 {
        console.say("Nothing to do, so there is nothing to write.\n");
    } else {
        console.say(&format!(
            "{} in {}: for each host its steps in their order, and the files that they leave. Secrets are masked, late \
             values named.\n",
            count(written, "file"),
            args.output.display()
        ));
    }
    Ok(exit::DONE)
}

/// Writes everything; gives how many files.
fn write(folder: &Path, plan: &Plan) -> Result<usize, RenderError> {
    clear(folder)?;
    let mut written = Vec::new();
    for lane in &plan.lanes {
        let place = PathBuf::from(lane.host.as_str());
        for (name, text) in steps(lane) {
            put(folder, &place.join(name), &text, &mut written)?;
        }
        for file in lane.steps.iter().flat_map(|planned| &planned.files) {
            if let Some(content) = &file.after {
                let path = place.join("files").join(file.path.trim_start_matches('/'));
                put(folder, &path, content, &mut written)?;
            }
        }
    }
    let count = written.len();
    if count > 0 {
        let names: Vec<_> = written.iter().map(|path| path.display().to_string()).collect();
        let list = names.join("\n") + "\n";
        put(folder, Path::new(LIST), &list, &mut written)?;
    }
    Ok(count)
}

fn put(folder: &Path, path: &Path, text: &str, written: &mut Vec<PathBuf>) -> Result<(), RenderError> {
    let whole = folder.join(path);
    let write = || {
        fs::create_dir_all(whole.parent().unwrap_or(folder))?;
        fs::write(&whole, text)
    };
    let result = write();
    result.map_err(|source| RenderError::Write { path: whole, source })?;
    written.push(path.to_owned());
    Ok(())
}

/// Name and text of each step's script, with the values of its parameters before it.
fn steps(lane: &Lane) -> impl Iterator<Item = (String, String)> {
    (1..).zip(&lane.steps).map(|(number, planned)| {
        let script = planned.step.script();
        let mut text = format!("# {}: {}\n# {}\n\n", lane.host, planned.step.title(), planned.why);
        for gate in planned.needs.iter().chain(&planned.after).chain(&planned.only_if) {
            let _ = writeln!(text, "# not before: {gate}");
        }
        for (name, param) in &script.params {
            let (StepParam::Plain(value) | StepParam::Sealed(value)) = param;
            let _ = writeln!(text, "{name}={}", quote(&mask::mask(value, DOTS)));
        }
        text.push('\n');
        text.push_str(&script.text);
        (format!("{number:02}-{}.sh", script.name), text)
    })
}

/// A folder that was written before loses the files that were written then; any other must be empty.
fn clear(folder: &Path) -> Result<(), RenderError> {
    let failed = |path: &Path, source| RenderError::Write {
        path: path.to_owned(),
        source,
    };
    let mut entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|source| failed(folder, source))?,
    };
    let Ok(list) = fs::read_to_string(folder.join(LIST)) else {
        return match entries.next() {
            Some(_) => Err(RenderError::Strange(folder.to_owned())),
            None => Ok(()),
        };
    };
    for name in list.lines().chain([LIST]) {
        // Whatever the list says, nothing outside of the folder is meant.
        if Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path, error)),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_of_ones_own_is_written_anew() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        assert!(clear(&folder).is_ok());
        fs::create_dir(&folder).unwrap();
        assert!(clear(&folder).is_ok());
        fs::write(folder.join("thesis.tex"), "years of work").unwrap();
        assert!(matches!(clear(&folder), Err(RenderError::Strange(_))));
        // What was written goes, whatever else there is stays, inside and outside.
        fs::write(place.path().join("outside"), "").unwrap();
        fs::write(folder.join("old.sh"), "").unwrap();
        fs::write(folder.join(LIST), "old.sh\n../outside\n").unwrap();
        assert!(clear(&folder).is_ok());
        let left = |name: &str| folder.join(name).exists();
        assert!(left("thesis.tex") && left("../outside") && !left("old.sh") && !left(LIST));
    }
}
