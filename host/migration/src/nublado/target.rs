/// Facts about a site that the values of Nublado do not say.
pub struct NubladoTarget {
    /// The namespace of the Hub.
    pub namespace: String,
    /// The namespace of this service.
    pub service_namespace: String,
    /// The file of the policy `rubin`, relative to the configuration.
    pub policy: String,
    /// The URL of the site, such as `https://data.example.org`.
    pub base_url: Option<String>,
    /// The addresses from which the ingress connects.
    pub ingress: Vec<String>,
    /// Gafaelfawr's URL.
    pub gafaelfawr: String,
}
