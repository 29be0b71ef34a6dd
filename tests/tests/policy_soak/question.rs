use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::{Action, AuthorizeRequest, Group, LabRequest, Options, Subject, User, Value};
use wasmspawner_core::users::quota::Usage;
use wasmspawner_policies::{CallError, Policies};

use crate::swapping::VERSIONS;

/// A question to policies.
#[derive(Debug)]
enum Question {
    Form(FormContext),
    Submission(Options, FormContext),
    Quota(User),
    Spawn(AuthorizeRequest),
    Pod(LabRequest),
}

impl Question {
    /// The answers of the whole chain, as text.
    async fn ask(&self, policies: &Policies) -> Result<String, CallError> {
        Ok(match self {
            Self::Form(context) => format!("{:?}", policies.render_form(context).await?),
            Self::Submission(options, context) => {
                format!("{:?}", policies.parse_submission(options, context).await?)
            }
            Self::Quota(user) => {
                format!("{:?}", policies.limits(user, Usage::default(), &Subject::default()).await?)
            }
            Self::Spawn(request) => format!("{:?}", policies.authorize(request).await?),
            Self::Pod(request) => format!("{:?}", policies.customize(request).await?),
        })
    }
}

/// A question, and the answer of each version to it.
pub(crate) struct AnsweredQuestion {
    question: Question,
    answers: [String; VERSIONS],
}

impl AnsweredQuestion {
    /// All questions, answered by each version alone.
    pub(crate) async fn all(versions: [Policies; VERSIONS]) -> Vec<Self> {
        let mut answered = Vec::new();
        for question in questions() {
            let [first, second] = &versions;
            let answers = [question.ask(first).await.unwrap(), question.ask(second).await.unwrap()];
            assert_ne!(answers[0], answers[1], "{question:?} does not tell the versions apart");
            answered.push(Self { question, answers });
        }
        answered
    }

    /// Asks the question, and returns the version that has answered.
    pub(crate) async fn version_asked(&self, policies: &Policies) -> usize {
        let answer = self.question.ask(policies).await.unwrap();
        let version = self.answers.iter().position(|known| *known == answer);
        version.unwrap_or_else(|| unreachable!("no version answers this to {:?}: {answer}", self.question))
    }
}

/// Every hook, asked for several users.
fn questions() -> Vec<Question> {
    let crowd: Vec<String> = (0..30).map(|number| format!("group-{number}")).collect();
    let users = [user("ada", &["science".to_owned()]), user("eve", &[]), user("grace", &crowd)];
    let mut questions: Vec<Question> = users.iter().flat_map(of_user).collect();
    let mallory = user("mallory", &[]);
    let request = AuthorizeRequest {
        action: Action::Spawn,
        user: mallory,
        server: String::new(),
        options: Options::new(),
        subject: Subject::default(),
    };
    questions.push(Question::Spawn(request));
    questions
}

fn of_user(user: &User) -> Vec<Question> {
    let context = FormContext { user: user.clone(), server: String::new() };
    let options = Options::from([("debug".into(), Value::Boolean(true))]);
    let lab = LabRequest { user: user.clone(), ..LabRequest::default() };
    vec![
        Question::Form(context.clone()),
        Question::Submission(options, context),
        Question::Quota(user.clone()),
        Question::Pod(lab),
    ]
}

fn user(name: &str, groups: &[String]) -> User {
    let group = |name: &String| Group { name: name.clone(), gid: None };
    User { name: name.into(), groups: groups.iter().map(group).collect(), ..User::default() }
}
