use wasmspawner_sdk::Section;

/// What Nublado's images show in JupyterLab. They read it from a file of the lab.
#[derive(Default)]
pub(crate) struct Ui {
    pub(crate) landing_page: bool,
    pub(crate) queries_menu: bool,
    pub(crate) tutorials_menu: bool,
    pub(crate) file_browser_root: FileBrowserRoot,
}

/// Where the file browser begins.
#[derive(Clone, Copy, Default)]
pub(crate) enum FileBrowserRoot {
    #[default]
    Home,
    Root,
}

impl Ui {
    pub(super) fn read(lab: &mut Section<'_>) -> Self {
        let root = |text: &str| match text {
            "home" => Ok(FileBrowserRoot::Home),
            "root" => Ok(FileBrowserRoot::Root),
            _ => Err("must be home or root"),
        };
        Self {
            // The second name of each is that of earlier versions.
            landing_page: lab.or_default::<bool>("enableLandingPage")
                | lab.or_default::<bool>("enableCstLandingPage"),
            queries_menu: lab.or_default::<bool>("enableQueriesMenu")
                | lab.or_default::<bool>("enableRubinQueryMenu"),
            tutorials_menu: lab.or_default("enableTutorialsMenu"),
            file_browser_root: lab.parsed("fileBrowserRoot", root).unwrap_or_default(),
        }
    }
}
