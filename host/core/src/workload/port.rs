//! The port of a lab among those of the other containers of its pod.

use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::LabMark;
use crate::values::digest::Digest;
use crate::values::port_range::PortRange;

/// Returns a port of the range that no container of the template declares; `None` if there is none. Labs begin the
/// search at different places in the range, so that two that are added at the same moment rarely find the same port.
pub fn free_port(template: &PodTemplateSpec, range: &PortRange, mark: &LabMark) -> Option<u16> {
    let size = u32::from(range.last() - range.first()) + 1;
    let [a, b, c, d, ..] = *Digest::sha256(mark.container().as_bytes()).as_bytes();
    let start = u32::from_be_bytes([a, b, c, d]) % size;
    let ports = (0..size).filter_map(|step| u16::try_from((start + step) % size).ok());
    ports.map(|step| range.first() + step).find(|port| !declares_port(template, *port, mark))
}

/// Returns true if a container that is not the lab's declares the port.
pub fn declares_port(template: &PodTemplateSpec, port: u16, mark: &LabMark) -> bool {
    let Some(spec) = &template.spec else { return false };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let ports =
        containers.filter(|container| !mark.owns(&container.name)).flat_map(|one| one.ports.iter().flatten());
    ports.into_iter().any(|declared| declared.container_port == i32::from(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_gets_a_port_that_nobody_else_has() {
        let mark = LabMark::from_spawn("a");
        let range: PortRange = serde_saphyr::from_str("40000-40002").unwrap();
        let template = |ports: &[u16]| {
            let ports: Vec<_> = ports.iter().map(|port| format!("{{containerPort: {port}}}")).collect();
            let text = format!("{{spec: {{containers: [{{name: web, ports: [{}]}}]}}}}", ports.join(", "));
            serde_saphyr::from_str::<PodTemplateSpec>(&text).unwrap()
        };
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(free_port(&template(&taken), &range, &mark).unwrap());
        }
        assert_eq!(free_port(&template(&taken), &range, &mark), None, "{taken:?}");
        taken.sort_unstable();
        assert_eq!(taken, [40000, 40001, 40002]);
    }
}
